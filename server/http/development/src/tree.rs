//! [`Tree`]: the files under development, and which of them have changed since the last check.
//!
//! Called by [`crate::Development`]. The kernel reports changes by inotify(7); if it cannot (too
//! many directories, a network file system), the time and length of every file are compared with
//! those of the last check. Invariant: a check after a file was written and closed finds the
//! change.

mod inotify_watch;

use inotify_watch::InotifyWatch;
use outboard_config::Development;
use outboard_reactor::Source;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A tree of more directories is not a project.
const MAX_DIRECTORIES: usize = 10_000;
/// A deeper tree has a loop of links.
const MAX_DEPTH: usize = 40;

/// A changed file, by its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The server's own configuration.
    Configuration,
    /// A file that PHP may have read.
    Code,
    /// A file that a page consists of.
    Page,
    /// A style sheet.
    Style,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tree {
    scope: Scope,
    method: Method,
}

/// Which files count.
#[derive(Debug)]
struct Scope {
    directories: Vec<PathBuf>,
    ignore: Vec<String>,
    /// The files of the configuration.
    configuration: Vec<PathBuf>,
}

#[derive(Debug)]
enum Method {
    Inotify(InotifyWatch),
    Polling(BTreeMap<PathBuf, FileState>),
}

/// The metadata by which a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    modified_ns: i128,
    bytes: u64,
    inode: u64,
}

impl Tree {
    /// Starts to watch; the second value is a warning. If the kernel cannot report changes, files
    /// are compared.
    pub(crate) fn watch(config: &Development, configuration: &Path) -> (Self, Option<String>) {
        let scope = Scope {
            directories: config.watch.clone(),
            ignore: config.ignore.clone(),
            configuration: std::iter::once(configuration.to_owned())
                .chain(config.configuration_files.iter().cloned())
                .collect(),
        };
        let watch = match config.polling {
            true => Err(None),
            false => InotifyWatch::new(&scope).map_err(Some),
        };
        let (method, warning) = match watch {
            Ok(watch) => {
                let warning = watch.is_full().then(|| {
                    format!(
                        "only the first {MAX_DIRECTORIES} directories are watched: narrow development.watch"
                    )
                });
                (Method::Inotify(watch), warning)
            }
            Err(error) => {
                let warning = error.map(|error| {
                    format!("files are polled, since the kernel cannot report changes: {error}")
                });
                (Method::Polling(scope.files()), warning)
            }
        };
        (Self { scope, method }, warning)
    }

    /// Readable when there are changes; `None` if files are compared.
    pub(crate) fn signal(&self) -> Option<Rc<Source>> {
        match &self.method {
            Method::Inotify(watch) => Some(watch.source()),
            Method::Polling(_) => None,
        }
    }

    /// The changes since the last call, each kind once.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        match &mut self.method {
            Method::Inotify(watch) => watch.changes(&self.scope),
            Method::Polling(known) => {
                let present = self.scope.files();
                let changed = differing(known, &present);
                *known = present;
                let mut changes = Vec::new();
                for change in changed.iter().filter_map(|path| self.scope.change(path)) {
                    if !changes.contains(&change) {
                        changes.push(change);
                    }
                }
                changes
            }
        }
    }
}

impl Scope {
    fn is_configuration(&self, path: &Path) -> bool {
        self.configuration.iter().any(|file| file == path)
    }

    /// The effect of a change of the file; `None` if it is ignored.
    fn change(&self, path: &Path) -> Option<Change> {
        if self.is_configuration(path) {
            return Some(Change::Configuration);
        }
        let name = path.file_name()?.to_str()?;
        // Swap files and backups of editors.
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
            // Databases and logs, which requests write.
            Some(
                "db" | "sqlite" | "sqlite3" | "log" | "lock" | "pid" | "sock" | "swp" | "swx"
                | "tmp" | "bak",
            ) => None,
            Some(ending) if ending.contains("sqlite") || ending.starts_with("db-") => None,
            // Session files, for example.
            None if !name.starts_with(".env") => None,
            _ => Some(Change::Code),
        }
    }

    fn includes(&self, name: &std::ffi::OsStr) -> bool {
        let name = name.to_string_lossy();
        !name.starts_with('.') && !self.ignore.iter().any(|ignored| *ignored == name)
    }

    /// The state of every file that is not ignored.
    fn files(&self) -> BTreeMap<PathBuf, FileState> {
        let mut files = BTreeMap::new();
        let mut add = |path: PathBuf| {
            if self.change(&path).is_some()
                && let Ok(metadata) = std::fs::metadata(&path)
            {
                files.insert(path, FileState::of(&metadata));
            }
        };
        self.configuration.iter().cloned().for_each(&mut add);
        for directory in &self.directories {
            walk(directory, self, &mut |_| true, &mut add);
        }
        files
    }
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        let modified_ns =
            i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { modified_ns, bytes: metadata.len(), inode: metadata.ino() }
    }
}

/// Paths whose state differs.
fn differing(
    before: &BTreeMap<PathBuf, FileState>,
    after: &BTreeMap<PathBuf, FileState>,
) -> Vec<PathBuf> {
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let new = after.iter().filter(|(path, state)| before.get(*path) != Some(*state));
    removed.chain(new.map(|(path, _)| path)).cloned().collect()
}

/// Walks a directory, and those below it that `enter` accepts; unreadable ones are skipped.
fn walk(
    directory: &Path,
    scope: &Scope,
    enter: &mut dyn FnMut(&Path) -> bool,
    file: &mut dyn FnMut(PathBuf),
) {
    let mut left = vec![(directory.to_owned(), 0)];
    let mut seen = 0;
    while let Some((directory, depth)) = left.pop() {
        seen += 1;
        if seen > MAX_DIRECTORIES || depth > MAX_DEPTH || !enter(&directory) {
            continue;
        }
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() || (kind.is_symlink() && path.is_dir()) => {
                    if scope.includes(&entry.file_name()) {
                        left.push((path, depth + 1));
                    }
                }
                Ok(_) => file(path),
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
