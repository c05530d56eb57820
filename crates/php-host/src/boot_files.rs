//! [`BootFiles`]: what the start of a script reads, and the kernel's watch of it (inotify(7)).
//!
//! From [`begin`], before PHP starts, to [`end`], before the snapshot; in between the shim reports each use
//! (`boot_files.c`). Only the files that the start has used matter: a request reads any other itself, as in
//! classic mode. Invariants: a directory is watched before the state of its file is taken, and that before the
//! file is read, so no change is missed; nothing of this is left when workers are forked.

use crate::engine;
use outboard_ring::boot_files::{BootFile, FILES_MAX, Kind, LIST_BYTES_MAX, State, encode};
use outboard_ring::control::{HostSettings, Isolation};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
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

/// The sticky bit: many programs write to such a directory, and its entries come and go.
const STICKY: u32 = 0o1000;

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
}

/// What was read; for the gateway.
#[derive(Debug)]
pub(crate) struct BootRead {
    pub(crate) keys: Vec<String>,
    /// Whether the list has all files.
    pub(crate) is_complete: bool,
    /// The kernel's watch, and the list.
    pub(crate) files: Option<(OwnedFd, OwnedFd)>,
}

/// See the module.
#[derive(Debug)]
struct BootFiles {
    /// Children that the script forks have a copy of this, which is of no use.
    process: u32,
    keys: BTreeSet<String>,
    /// `None` if files are not listed.
    watch: Option<Watch>,
    files: HashMap<(PathBuf, Kind), Record>,
    /// Files that this start has written itself.
    written: HashSet<PathBuf>,
    is_complete: bool,
}

#[derive(Debug)]
struct Record {
    state: Option<State>,
    watch: Option<i32>,
}

/// The watched directories.
#[derive(Debug)]
struct Watch {
    /// `None` if the kernel has no more: the gateway compares states.
    inotify: Option<OwnedFd>,
    numbers: HashMap<PathBuf, Option<i32>>,
}

static BOOT: Mutex<Option<BootFiles>> = Mutex::new(None);

/// Begins to record, if the script boots in this process.
pub(crate) fn begin(settings: &HostSettings) {
    let Some(script) = &settings.worker else { return };
    if script.swoole || script.isolation == Isolation::Reset {
        return;
    }
    let boot = BootFiles::new(script.lists_files);
    let is_listing = boot.watch.is_some();
    if let Ok(mut place) = BOOT.lock() {
        *place = Some(boot);
    }
    engine::record_boot_files(is_listing);
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

/// Ends it. The result is for the gateway; `None` if nothing was recorded, or it has ended before.
pub(crate) fn end() -> Option<BootRead> {
    engine::record_boot_files(false);
    BOOT.lock().ok()?.take().map(BootFiles::into_read)
}

impl BootFiles {
    fn new(lists_files: bool) -> Self {
        let inotify = || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let watch = lists_files.then(|| Watch { inotify: inotify(), numbers: HashMap::new() });
        Self {
            process: std::process::id(),
            keys: BTreeSet::new(),
            watch,
            files: HashMap::new(),
            written: HashSet::new(),
            is_complete: true,
        }
    }

    fn record(&mut self, kind: Use, path: &Path) {
        // Relative ones are rare: PHP expands paths.
        let Ok(path) = std::path::absolute(path).map(|path| normalized(&path)) else { return };
        if self.watch.is_none() || VIRTUAL.iter().any(|skipped| path.starts_with(skipped)) {
            return;
        }
        match kind {
            Use::Writes => drop(self.written.insert(path)),
            Use::Reads if is_written_while_serving(&path) => {}
            Use::Reads | Use::Misses => self.add(path, Kind::Contents),
            Use::Lists => self.add(path, Kind::Listing),
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
        let Some(watched) = (if kind == Kind::Listing { Some(&*path) } else { path.parent() }) else {
            return;
        };
        let number = self.watch.as_mut().and_then(|watch| watch.add(watched));
        let Ok(state) = State::of(&path, kind) else { return };
        if kind != Kind::PathPart {
            self.add_parts(&path);
        }
        let record = self.files.entry((path, kind)).or_insert(Record { state, watch: number });
        // What was read first decides; what did not exist then may be this start's own.
        if record.state.is_none() {
            *record = Record { state, watch: number };
        }
    }

    /// Adds the directories and symbolic links that a path consists of, up to one that is known.
    fn add_parts(&mut self, path: &Path) {
        for part in path.ancestors().skip(1) {
            let (Some(parent), false) =
                (part.parent(), self.files.contains_key(&(part.to_owned(), Kind::PathPart)))
            else {
                return;
            };
            let is_link = part.is_symlink();
            if is_link || !is_common(parent) {
                self.add(part.to_owned(), Kind::PathPart);
            }
        }
    }

    fn into_read(mut self) -> BootRead {
        let files = self.watch.take().and_then(|watch| {
            let list = self.list()?;
            // Without an instance of its own, there is one without watches.
            let inotify = watch.inotify.or_else(|| list.try_clone().ok())?;
            Some((inotify, list))
        });
        let is_complete = self.is_complete && files.is_some();
        BootRead { keys: self.keys.into_iter().collect(), is_complete, files }
    }

    fn list(&mut self) -> Option<OwnedFd> {
        let mut list = Vec::new();
        for ((path, kind), record) in &self.files {
            if self.written.contains(path) {
                continue;
            }
            let path = path.as_os_str().as_bytes();
            let (kind, state, watch) = (*kind, record.state, record.watch);
            encode(&BootFile { path, kind, state, watch }, &mut list);
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

impl Watch {
    /// Watches a directory; `None` if that is impossible, or it does not exist.
    fn add(&mut self, directory: &Path) -> Option<i32> {
        if let Some(number) = self.numbers.get(directory) {
            return *number;
        }
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let number = match inotify::add_watch(self.inotify.as_ref()?, directory, flags) {
            Ok(number) => Some(number),
            // It may be created later.
            Err(Errno::NOENT | Errno::NOTDIR) => return None,
            Err(_) => None,
        };
        self.numbers.insert(directory.to_owned(), number);
        number
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

/// Whether a directory is one of the whole system.
fn is_common(directory: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    directory.parent().is_none()
        || directory.metadata().is_ok_and(|found| found.mode() & STICKY != 0)
}

#[cfg(test)]
mod tests;
