//! [`BootFiles`]: what the start of a script reads.
//!
//! From [`begin`], before PHP starts, to [`end`], before the snapshot; in between the shim reports what PHP uses
//! (`boot_files.c`). Only the files that the start has used matter: a request reads any other itself, as in
//! classic mode. Invariants: the state of a file is taken before it is read, so no change is missed; nothing of this
//! is left when workers are forked.

use crate::engine;
use outboard_ring::boot_files::{BootFile, FILES_MAX, Kind, LIST_BYTES_MAX, State, encode};
use outboard_ring::control::{HostSettings, Isolation};
use rustix::fs::{MemfdFlags, memfd_create};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// Keys of other data that a snapshot may depend on.
const KEYS_MAX: usize = 256;
/// Not files whose contents are stored.
const VIRTUAL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Files that an application writes while it serves: logs, locks, databases.
const WRITTEN_ENDINGS: [&str; 7] = ["log", "lock", "pid", "sock", "db", "sqlite", "sqlite3"];

/// Directories whose entries belong to many programs, and come and go.
const COMMON: [&str; 3] = ["/", "/tmp", "/var/tmp"];

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is opened to be read.
    Reads,
    /// It is opened to be written.
    Writes,
    /// The names in a directory are read.
    Lists,
    /// It was found not to exist.
    Misses,
    /// It is a script that runs.
    Includes,
    /// It is a symbolic link, to which a path leads.
    Follows,
}

/// What was read; for the gateway.
#[derive(Debug)]
pub(crate) struct BootRead {
    pub(crate) keys: Vec<String>,
    /// Whether the list has all files.
    pub(crate) is_complete: bool,
    /// For how long the script wants to be used; 0: as configured.
    pub(crate) max_age_s: u64,
    /// The list.
    pub(crate) files: Option<OwnedFd>,
}

/// See the module.
#[derive(Debug)]
struct BootFiles {
    /// Children that the script forks have a copy of this, which is of no use.
    process: u32,
    keys: BTreeSet<String>,
    lists_files: bool,
    files: HashMap<(PathBuf, Kind), Option<State>>,
    /// Files that this start has written itself.
    written: HashSet<PathBuf>,
    is_complete: bool,
    max_age_s: u64,
}

static BOOT: Mutex<Option<BootFiles>> = Mutex::new(None);

/// Begins to record, if the script boots in this process.
pub(crate) fn begin(settings: &HostSettings) {
    let Some(script) = &settings.worker else { return };
    if script.starts_server || script.isolation == Isolation::Reset {
        return;
    }
    if let Ok(mut place) = BOOT.lock() {
        *place = Some(BootFiles::new(script.lists_files));
    }
    engine::record_boot_files(script.lists_files);
}

/// Records nothing until the script runs: the host itself uses files.
pub(crate) fn pause() {
    engine::record_boot_files(false);
}

/// The script begins to run.
pub(crate) fn resume(script: &Path) {
    let lists_files =
        BOOT.lock().is_ok_and(|boot| boot.as_ref().is_some_and(|boot| boot.lists_files));
    engine::record_boot_files(lists_files);
    record(Use::Reads, script);
}

/// Records the use of a file.
pub(crate) fn record(kind: Use, path: &Path) {
    // Nothing here is reported while this file is used itself.
    let Ok(mut place) = BOOT.try_lock() else { return };
    if let Some(boot) = place.as_mut().filter(|boot| boot.process == std::process::id()) {
        boot.record(kind, path);
    }
}

/// Records a key of other data; false if there are too many.
pub(crate) fn depend(key: &str) -> bool {
    let Ok(mut place) = BOOT.lock() else { return false };
    let Some(boot) = place.as_mut() else { return true };
    if boot.keys.len() >= KEYS_MAX && !boot.keys.contains(key) {
        return false;
    }
    boot.keys.insert(key.to_owned());
    true
}

/// Bounds the age of the snapshot.
pub(crate) fn limit_age(seconds: u64) {
    if let Ok(mut place) = BOOT.lock()
        && let Some(boot) = place.as_mut()
    {
        boot.max_age_s = seconds;
    }
}

/// Ends it. The result is for the gateway; `None` if nothing was recorded, or it has ended before.
pub(crate) fn end() -> Option<BootRead> {
    engine::record_boot_files(false);
    BOOT.lock().ok()?.take().map(BootFiles::into_read)
}

impl BootFiles {
    fn new(lists_files: bool) -> Self {
        Self {
            process: std::process::id(),
            keys: BTreeSet::new(),
            lists_files,
            files: HashMap::new(),
            written: HashSet::new(),
            is_complete: true,
            max_age_s: 0,
        }
    }

    fn record(&mut self, kind: Use, path: &Path) {
        // Relative ones are rare: PHP expands paths.
        let Ok(path) = std::path::absolute(path).map(|path| normalized(&path)) else { return };
        if !self.lists_files || VIRTUAL.iter().any(|skipped| path.starts_with(skipped)) {
            return;
        }
        match kind {
            Use::Writes => drop(self.written.insert(path)),
            Use::Reads if is_written_while_serving(&path) => {}
            Use::Reads | Use::Misses => self.add(path, Kind::Contents),
            // A missing one is noticed in its parent.
            Use::Follows => {
                self.add_parts(&path);
                self.add(path, Kind::PathPart);
            }
            Use::Lists if path.is_dir() => self.add(path, Kind::Listing),
            Use::Lists => self.add(path, Kind::Contents),
            Use::Includes => {
                self.written.remove(&path);
                // Its state was taken before it was compiled, unless OPcache had it.
                if !self.files.contains_key(&(path.clone(), Kind::Contents)) {
                    self.add(path, Kind::Contents);
                }
            }
        }
    }

    fn add(&mut self, path: PathBuf, kind: Kind) {
        if self.files.len() >= FILES_MAX {
            self.is_complete = false;
            return;
        }
        let Ok(state) = State::of(&path, kind) else { return };
        if kind != Kind::PathPart {
            self.add_parts(&path);
        }
        // What was read first decides; what did not exist then may be this start's own.
        self.files
            .entry((path, kind))
            .and_modify(|known| *known = known.or(state))
            .or_insert(state);
    }

    /// Adds the directories and symbolic links that a path consists of, up to one that is known.
    fn add_parts(&mut self, path: &Path) {
        for part in path.ancestors().skip(1) {
            let (Some(parent), false) =
                (part.parent(), self.files.contains_key(&(part.to_owned(), Kind::PathPart)))
            else {
                return;
            };
            let is_common = COMMON.iter().any(|common| parent == Path::new(common));
            if !is_common || part.is_symlink() {
                self.add(part.to_owned(), Kind::PathPart);
            }
        }
    }

    fn into_read(mut self) -> BootRead {
        let files = if self.lists_files { self.list() } else { None };
        let is_complete = self.is_complete && (files.is_some() || !self.lists_files);
        let (keys, max_age_s) = (self.keys.into_iter().collect(), self.max_age_s);
        BootRead { keys, is_complete, max_age_s, files }
    }

    fn list(&mut self) -> Option<OwnedFd> {
        let mut list = Vec::new();
        for ((path, kind), state) in &self.files {
            if self.written.contains(path) {
                continue;
            }
            let path = path.as_os_str().as_bytes();
            encode(&BootFile { path, kind: *kind, state: *state }, &mut list);
            if list.len() > LIST_BYTES_MAX {
                self.is_complete = false;
                return None;
            }
        }
        let memory = memfd_create("outboard-boot-files", MemfdFlags::CLOEXEC).ok()?;
        let mut file = std::fs::File::from(memory);
        file.write_all(&list).and_then(|()| file.rewind()).ok()?;
        Some(file.into())
    }
}

/// Without `.` and `..`, as PHP does it.
fn normalized(path: &Path) -> PathBuf {
    let mut parts: Vec<OsString> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Path::new("/").join(parts.iter().collect::<PathBuf>())
}

fn is_written_while_serving(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| WRITTEN_ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests;
