//! [`FileWatch`]: the files that the start of a script has read, and which of them have changed.
//!
//! Made of the list that the host sends; asked before each request. The directories of the files are watched by
//! inotify(7). Files for which the kernel has no room are compared from time to time; those that this user cannot
//! see are neither. Invariants: without an event a check is one system call; an event of a file that nobody has
//! read costs no more than reading it; a file has changed only if its state is not the one that the start has
//! seen; no other process has the inotify instance, so reading it never blocks.

use outboard_reactor::directory_events;
use outboard_ring::boot_files::{Kind, LIST_BYTES_MAX, State, decode};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most directories of an app that are watched: the kernel's limit is one for all apps.
const DIRECTORIES_MAX: usize = 20_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct FileWatch {
    /// `None` if nothing is watched.
    inotify: Option<Arc<OwnedFd>>,
    /// By watch and name.
    watched: Box<[Watched]>,
    compared: Arc<[SeenFile]>,
    directories: usize,
    unseen: usize,
    /// Whether the kernel has dropped events.
    has_lost: bool,
}

/// A file as the start has seen it.
#[derive(Debug)]
pub(crate) struct SeenFile {
    path: Box<Path>,
    kind: Kind,
    /// `None`: it did not exist.
    state: Option<State>,
}

#[derive(Debug)]
struct Watched {
    watch: i32,
    file: SeenFile,
}

/// How changes of the files of a directory are noticed.
#[derive(Debug, Clone, Copy)]
enum Method {
    Watch(i32),
    Compare,
    /// It does not exist, which its parent's watch has to do with.
    Missing,
}

impl FileWatch {
    /// Reads the list that the host has sent, and watches the files on it. With the first one, if any, that has
    /// changed since. Takes a system call for each: not for an event loop.
    ///
    /// # Errors
    /// The list is not one.
    pub(crate) fn begin(list: OwnedFd) -> io::Result<(Self, Option<PathBuf>)> {
        Self::begin_with(directory_events::new_instance().ok(), list)
    }

    fn begin_with(inotify: Option<OwnedFd>, list: OwnedFd) -> io::Result<(Self, Option<PathBuf>)> {
        let mut text = Vec::new();
        File::from(list).take(LIST_BYTES_MAX as u64).read_to_end(&mut text)?;
        let mut directories =
            Directories { inotify: inotify.as_ref(), methods: HashMap::new(), watched: 0 };
        let (mut watched, mut compared, mut rest) = (Vec::new(), Vec::new(), &text[..]);
        let (mut changed, mut unseen) = (None, 0);
        while let Some(file) = decode(&mut rest).map_err(io::Error::other)? {
            let path = Path::new(OsStr::from_bytes(file.path)).into();
            let file = SeenFile { path, kind: file.kind, state: file.state };
            let method = file.directory().map_or(Method::Missing, |path| directories.watch(path));
            // Compared after it is watched, so that no change is between the two.
            match file.differs() {
                Err(_) => {
                    unseen += 1;
                    continue;
                }
                Ok(true) if changed.is_none() => changed = Some(file.path.to_path_buf()),
                Ok(_) => {}
            }
            match method {
                Method::Watch(watch) => watched.push(Watched { watch, file }),
                Method::Compare => compared.push(file),
                Method::Missing => {}
            }
        }
        watched.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        let directories = directories.watched;
        let watch = Self {
            inotify: inotify.filter(|_| directories > 0).map(Arc::new),
            watched: watched.into(),
            compared: compared.into(),
            directories,
            unseen,
            has_lost: false,
        };
        debug_assert!(
            watch.inotify.is_some() || watch.watched.is_empty(),
            "nothing would be noticed"
        );
        Ok((watch, changed))
    }

    /// The number of files.
    pub(crate) fn count(&self) -> usize {
        self.watched.len() + self.compared.len() + self.unseen
    }

    /// The number of watched directories.
    pub(crate) fn directories(&self) -> usize {
        self.directories
    }

    /// The number of files that this user cannot see.
    pub(crate) fn unseen(&self) -> usize {
        self.unseen
    }

    /// Whether each change is noticed before the next request.
    pub(crate) fn notices_all(&self) -> bool {
        self.unseen == 0 && self.compared.is_empty()
    }

    /// Readable when there are events.
    pub(crate) fn events(&self) -> Option<&Arc<OwnedFd>> {
        self.inotify.as_ref()
    }

    /// Files whose states have to be compared.
    pub(crate) fn compared(&self) -> &Arc<[SeenFile]> {
        &self.compared
    }

    /// A file that has changed since the start has read it, by the events since the last call.
    pub(crate) fn changed(&mut self) -> Option<PathBuf> {
        let inotify = self.inotify.clone()?;
        let mut changed = None;
        let end = directory_events::read(&*inotify, |event| {
            if changed.is_none() {
                changed = self.changed_by(event.watch, event.name.as_bytes());
            }
        });
        if end.has_lost | std::mem::take(&mut self.has_lost) {
            let all = self.watched.iter();
            changed = changed.or_else(|| first(all.map(|watched| &watched.file)));
        }
        changed
    }

    /// The file that an event of a watch is about, if it has changed.
    fn changed_by(&self, watch: i32, name: &[u8]) -> Option<PathBuf> {
        let listing = first(self.at((watch, b"")));
        listing.or_else(|| if name.is_empty() { None } else { first(self.at((watch, name))) })
    }

    /// The files of one place.
    fn at(&self, place: (i32, &[u8])) -> impl Iterator<Item = &SeenFile> {
        let begin = self.watched.partition_point(|watched| watched.place() < place);
        let end = self.watched.partition_point(|watched| watched.place() <= place);
        self.watched[begin..end].iter().map(|watched| &watched.file)
    }
}

impl Watched {
    /// A directory whose names were read is concerned by every event of its watch.
    fn place(&self) -> (i32, &[u8]) {
        let name = self.file.path.file_name().unwrap_or_default().as_bytes();
        (self.watch, if self.file.kind == Kind::Listing { b"" } else { name })
    }
}

impl SeenFile {
    /// The directory whose events tell of its changes.
    fn directory(&self) -> Option<&Path> {
        match self.kind {
            Kind::Listing => Some(&self.path),
            Kind::Contents | Kind::PathPart => self.path.parent(),
        }
    }

    /// # Errors
    /// This user cannot see it.
    fn differs(&self) -> Result<bool, Errno> {
        Ok(State::of(&self.path, self.kind)? != self.state)
    }
}

/// The first that has changed. One that can be seen no more has, as far as is known.
fn first<'a>(mut files: impl Iterator<Item = &'a SeenFile>) -> Option<PathBuf> {
    files.find(|file| file.differs().unwrap_or(true)).map(|file| file.path.to_path_buf())
}

/// The first of these files that has changed. Not for an event loop.
pub(crate) fn first_differing(files: &[SeenFile]) -> Option<PathBuf> {
    first(files.iter())
}

struct Directories<'a> {
    inotify: Option<&'a OwnedFd>,
    methods: HashMap<PathBuf, Method>,
    watched: usize,
}

impl Directories<'_> {
    fn watch(&mut self, directory: &Path) -> Method {
        if let Some(method) = self.methods.get(directory) {
            return *method;
        }
        let method = self.add(directory);
        self.watched += usize::from(matches!(method, Method::Watch(_)));
        self.methods.insert(directory.to_owned(), method);
        method
    }

    fn add(&self, directory: &Path) -> Method {
        let Some(inotify) = self.inotify.filter(|_| self.watched < DIRECTORIES_MAX) else {
            return Method::Compare;
        };
        match directory_events::watch(inotify, directory) {
            Ok(number) => Method::Watch(number),
            Err(Errno::NOENT | Errno::NOTDIR) => Method::Missing,
            // The kernel has no more of them, or this user may not list the directory.
            Err(_) => Method::Compare,
        }
    }
}

#[cfg(test)]
mod tests;
