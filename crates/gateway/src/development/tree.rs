//! The files under development, and which of them have changed since the last look.
//!
//! Called by [`super::Development`]. The kernel tells by inotify(7); where it cannot (too many
//! folders, a network file system), every file's time and length are compared with what they were.
//! Invariant: a look that comes after a file was written and closed finds it.

use outboard_config::Development;
use outboard_reactor::{Interest, Source};
use rustix::fd::AsFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// More folders are no project, but a disk.
const FOLDERS_MAX: usize = 10_000;
/// What the kernel queues (max_queued_events in inotify(7)): all that had happened before the look.
const EVENTS_A_LOOK: usize = 16 * 1024;
/// Deeper is a loop of links.
const DEPTH_MAX: usize = 40;

/// A file that has changed, by what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The server's own configuration.
    Configuration,
    /// What PHP has read, or may have.
    Code,
    /// What a browser shows.
    Page,
    /// How it shows it.
    Style,
}

/// What is watched, and how.
#[derive(Debug)]
pub(crate) struct Tree {
    scope: Scope,
    way: Way,
}

/// Which files count.
#[derive(Debug)]
struct Scope {
    folders: Vec<PathBuf>,
    ignore: Vec<String>,
    configuration: PathBuf,
}

#[derive(Debug)]
enum Way {
    Told(Told),
    Compared(BTreeMap<PathBuf, Stamp>),
}

/// Changes that the kernel tells.
#[derive(Debug)]
struct Told {
    source: Rc<Source>,
    folders: HashMap<i32, PathBuf>,
}

/// What a file looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified_ns: i128,
    bytes: u64,
    inode: u64,
}

impl Tree {
    /// Begins to watch. The second value says what is not as it should be: when the kernel cannot
    /// tell, files are compared.
    pub(crate) fn watch(config: &Development, configuration: &Path) -> (Self, Option<String>) {
        let scope = Scope {
            folders: config.watch.clone(),
            ignore: config.ignore.clone(),
            configuration: configuration.to_owned(),
        };
        let told = if config.polling { Err(None) } else { Told::of(&scope).map_err(Some) };
        let (way, trouble) = match told {
            Ok(told) => {
                let trouble = (told.folders.len() >= FOLDERS_MAX).then(|| {
                    format!("of the watched folders only the first {FOLDERS_MAX} are: narrow development.watch")
                });
                (Way::Told(told), trouble)
            }
            Err(error) => {
                let trouble = error.map(|error| {
                    format!(
                        "files are looked at again and again, for the kernel does not tell: {error}"
                    )
                });
                (Way::Compared(scope.stamps()), trouble)
            }
        };
        (Self { scope, way }, trouble)
    }

    /// What becomes readable when there is something to see; `None` when nothing tells.
    pub(crate) fn signal(&self) -> Option<Rc<Source>> {
        match &self.way {
            Way::Told(told) => Some(told.source.clone()),
            Way::Compared(_) => None,
        }
    }

    /// What has changed since the last look.
    pub(crate) fn look(&mut self) -> Vec<Change> {
        match &mut self.way {
            Way::Told(told) => told.look(&self.scope),
            Way::Compared(known) => {
                let present = self.scope.stamps();
                let changed = differing(known, &present);
                let changes = changed.iter().filter_map(|path| self.scope.meaning(path)).collect();
                *known = present;
                changes
            }
        }
    }
}

impl Scope {
    /// What a change of the file means, if it counts.
    fn meaning(&self, path: &Path) -> Option<Change> {
        if path == self.configuration {
            return Some(Change::Configuration);
        }
        let name = path.file_name()?.to_str()?;
        // Of editors: swap files, backups.
        if name.ends_with('~') || (name.starts_with('.') && !name.starts_with(".env")) {
            return None;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("css") => Some(Change::Style),
            Some(
                "js" | "mjs" | "map" | "html" | "htm" | "svg" | "png" | "jpg" | "jpeg" | "gif"
                | "webp" | "avif" | "ico" | "woff" | "woff2" | "txt" | "md",
            ) => Some(Change::Page),
            // Such as databases and logs, which requests write.
            Some(
                "db" | "sqlite" | "sqlite3" | "log" | "lock" | "pid" | "sock" | "swp" | "swx"
                | "tmp" | "bak",
            ) => None,
            Some(ending) if ending.contains("sqlite") || ending.starts_with("db-") => None,
            // Such as session files.
            None if !name.starts_with(".env") => None,
            _ => Some(Change::Code),
        }
    }

    fn looks_into(&self, name: &std::ffi::OsStr) -> bool {
        let name = name.to_string_lossy();
        !name.starts_with('.') && !self.ignore.iter().any(|ignored| *ignored == name)
    }

    /// Every file that counts.
    fn stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut stamps = BTreeMap::new();
        let mut keep = |path: PathBuf| {
            if self.meaning(&path).is_some()
                && let Ok(metadata) = std::fs::metadata(&path)
            {
                stamps.insert(path, Stamp::of(&metadata));
            }
        };
        keep(self.configuration.clone());
        for folder in &self.folders {
            walk(folder, self, &mut |_| true, &mut keep);
        }
        stamps
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let modified_ns =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { modified_ns, bytes: metadata.len(), inode: metadata.ino() }
    }
}

/// Paths whose stamps are not the same in both.
fn differing(before: &BTreeMap<PathBuf, Stamp>, after: &BTreeMap<PathBuf, Stamp>) -> Vec<PathBuf> {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let new = after.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp));
    gone.chain(new.map(|(path, _)| path)).cloned().collect()
}

/// Goes through a folder, and into those that `enter` says; what cannot be read is passed over.
fn walk(
    folder: &Path,
    scope: &Scope,
    enter: &mut dyn FnMut(&Path) -> bool,
    file: &mut dyn FnMut(PathBuf),
) {
    let mut left = vec![(folder.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = left.pop() {
        seen += 1;
        if seen > FOLDERS_MAX || depth > DEPTH_MAX || !enter(&folder) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() || (kind.is_symlink() && path.is_dir()) => {
                    if scope.looks_into(&entry.file_name()) {
                        left.push((path, depth + 1));
                    }
                }
                Ok(_) => file(path),
                Err(_) => {}
            }
        }
    }
}

impl Told {
    fn of(scope: &Scope) -> Result<Self, String> {
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| format!("inotify_init1: {error}"))?;
        let source = Source::new(told, Interest::Read).map_err(|error| error.to_string())?;
        let mut told = Self { source: Rc::new(source), folders: HashMap::new() };
        for folder in &scope.folders {
            told.add(folder, scope)?;
        }
        if let Some(folder) = scope.configuration.parent() {
            told.add_one(folder)?;
        }
        Ok(told)
    }

    /// Watches a folder and those in it.
    fn add(&mut self, folder: &Path, scope: &Scope) -> Result<(), String> {
        let mut failed = None;
        let mut enter = |folder: &Path| match self.add_one(folder) {
            Ok(()) => true,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        };
        walk(folder, scope, &mut enter, &mut |_| {});
        failed.map_or(Ok(()), Err)
    }

    fn add_one(&mut self, folder: &Path) -> Result<(), String> {
        if self.folders.len() >= FOLDERS_MAX {
            return Ok(());
        }
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        match inotify::add_watch(&*self.source, folder, flags) {
            Ok(number) => drop(self.folders.insert(number, folder.to_owned())),
            Err(Errno::NOSPC) => {
                return Err("fs.inotify.max_user_watches is too small for all folders".to_owned());
            }
            // It has gone since, or is not ours to read.
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(format!("inotify_add_watch {}: {error}", folder.display())),
        }
        Ok(())
    }

    /// Each kind of change once, so that what a flood of events costs is little more than to read them.
    fn look(&mut self, scope: &Scope) -> Vec<Change> {
        let (seen, lost) = self.read();
        let mut changes: Vec<Change> = Vec::new();
        if lost {
            // What was told is not all: everything may have changed.
            scope.folders.iter().for_each(|folder| drop(self.add(folder, scope)));
            changes.extend([Change::Configuration, Change::Page]);
        }
        // A file that is made is reported again when it is closed, and then need not be looked at.
        let (made, others): (Vec<_>, Vec<_>) =
            seen.into_iter().partition(|(_, _, flags)| flags.contains(ReadFlags::CREATE));
        for (folder, name, flags) in others.into_iter().chain(made) {
            if flags.contains(ReadFlags::IGNORED) {
                self.folders.remove(&folder);
                continue;
            }
            let Some(path) = self.folders.get(&folder).map(|folder| folder.join(&name)) else {
                continue;
            };
            let is_of_folders = |path: &Path| scope.folders.iter().any(|one| path.starts_with(one));
            if !flags.contains(ReadFlags::ISDIR) {
                let Some(change) = scope.meaning(&path) else { continue };
                let counts = path == scope.configuration || is_of_folders(&path);
                if !counts || changes.contains(&change) {
                    continue;
                }
                // A link is not closed.
                let is_half = flags.contains(ReadFlags::CREATE)
                    && path.symlink_metadata().is_ok_and(|found| found.is_file());
                if !is_half {
                    changes.push(change);
                }
            } else if scope.looks_into(path.file_name().unwrap_or_default()) && is_of_folders(&path)
            {
                let is_new = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                if is_new && self.folders.len() < FOLDERS_MAX {
                    // Without a watch it is the same as with fewer files: a reload finds them.
                    let _ = self.add(&path, scope);
                }
                // What was in it before it was watched.
                if !changes.contains(&Change::Code) {
                    changes.push(Change::Code);
                }
            }
        }
        changes
    }

    /// What was told, and whether some of it was lost. What is beyond [`EVENTS_A_LOOK`] is left for
    /// the next look: a script that writes files without end has no end here.
    fn read(&self) -> (Vec<(i32, PathBuf, ReadFlags)>, bool) {
        let (mut seen, mut lost) = (Vec::new(), false);
        let mut space = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(self.source.as_fd(), &mut space);
        while seen.len() < EVENTS_A_LOOK {
            match reader.next() {
                Ok(event) => {
                    lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
                    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
                    seen.push((event.wd(), PathBuf::from(name), event.events()));
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.source.clear_readable();
                    break;
                }
            }
        }
        (seen, lost)
    }
}

#[cfg(test)]
mod tests;
