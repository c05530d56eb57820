//! [`InotifyWatch`]: watched directories, whose changes the kernel reports (inotify(7)).
//!
//! Owned by a [`super::Tree`].

use super::{Change, MAX_DIRECTORIES, Scope, walk};
use outboard_reactor::directory_events::{self, ReadFlags};
use outboard_reactor::{Interest, Source};
use rustix::io::Errno;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(super) struct InotifyWatch {
    source: Rc<Source>,
    /// Directories by watch descriptor.
    directories: HashMap<i32, PathBuf>,
}

impl InotifyWatch {
    pub(super) fn new(scope: &Scope) -> Result<Self, String> {
        let fd =
            directory_events::new_instance().map_err(|error| format!("inotify_init1: {error}"))?;
        let source = Source::new(fd, Interest::Read).map_err(|error| error.to_string())?;
        let mut watch = Self { source: Rc::new(source), directories: HashMap::new() };
        for directory in &scope.directories {
            watch.add(directory, scope)?;
        }
        for directory in scope.configuration.iter().filter_map(|file| file.parent()) {
            watch.add_one(directory)?;
        }
        Ok(watch)
    }

    /// Readable when there are changes.
    pub(super) fn source(&self) -> Rc<Source> {
        self.source.clone()
    }

    /// Whether there may be directories that are not watched.
    pub(super) fn is_full(&self) -> bool {
        self.directories.len() >= MAX_DIRECTORIES
    }

    /// Watches a directory and those below it.
    fn add(&mut self, directory: &Path, scope: &Scope) -> Result<(), String> {
        let mut failed = None;
        let mut enter = |directory: &Path| match self.add_one(directory) {
            Ok(()) => true,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        };
        walk(directory, scope, &mut enter, &mut |_| {});
        failed.map_or(Ok(()), Err)
    }

    fn add_one(&mut self, directory: &Path) -> Result<(), String> {
        if self.is_full() {
            return Ok(());
        }
        match directory_events::watch(&*self.source, directory) {
            Ok(number) => drop(self.directories.insert(number, directory.to_owned())),
            Err(Errno::NOSPC) => {
                return Err(
                    "fs.inotify.max_user_watches is too small for all directories".to_owned()
                );
            }
            // It was removed, or this user may not read it.
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => {
                return Err(format!("inotify_add_watch {}: {error}", directory.display()));
            }
        }
        Ok(())
    }

    /// Each kind of change once, so that many events cost little more than reading them.
    pub(super) fn changes(&mut self, scope: &Scope) -> Vec<Change> {
        let (seen, lost) = self.read();
        let mut changes: Vec<Change> = Vec::new();
        if lost {
            // Events were dropped: anything may have changed.
            scope.directories.iter().for_each(|directory| drop(self.add(directory, scope)));
            changes.extend([Change::Configuration, Change::Page]);
        }
        // A created file is reported again when it is closed, so that its metadata need not be read
        // then.
        let (created, others): (Vec<_>, Vec<_>) =
            seen.into_iter().partition(|(_, _, flags)| flags.contains(ReadFlags::CREATE));
        for (directory, name, flags) in others.into_iter().chain(created) {
            if flags.contains(ReadFlags::IGNORED) {
                self.directories.remove(&directory);
                continue;
            }
            let Some(path) = self.directories.get(&directory).map(|found| found.join(&name)) else {
                continue;
            };
            let is_watched =
                |path: &Path| scope.directories.iter().any(|one| path.starts_with(one));
            if !flags.contains(ReadFlags::ISDIR) {
                let Some(change) = scope.change(&path) else { continue };
                let is_relevant = scope.is_configuration(&path) || is_watched(&path);
                if !is_relevant || changes.contains(&change) {
                    continue;
                }
                // A new file is not complete until it is closed; a link is never closed.
                let is_incomplete = flags.contains(ReadFlags::CREATE)
                    && path.symlink_metadata().is_ok_and(|found| found.is_file());
                if !is_incomplete {
                    changes.push(change);
                }
            } else if scope.includes(path.file_name().unwrap_or_default()) && is_watched(&path) {
                let is_new = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                if is_new && !self.is_full() {
                    // Without a watch its changes are found by a manual reload.
                    let _ = self.add(&path, scope);
                }
                // Files may have been in it before it was watched.
                if !changes.contains(&Change::Code) {
                    changes.push(Change::Code);
                }
            }
        }
        changes
    }

    /// The events, and whether some were lost.
    fn read(&self) -> (Vec<(i32, PathBuf, ReadFlags)>, bool) {
        let mut seen = Vec::new();
        let end = directory_events::read(&*self.source, |event| {
            seen.push((event.watch, PathBuf::from(event.name), event.flags));
        });
        if end.is_drained {
            self.source.clear_readable();
        }
        (seen, end.has_lost)
    }
}
