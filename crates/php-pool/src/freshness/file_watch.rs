//! [`FileWatch`]: the files that the start of a script has read, and which of them have changed.
//!
//! Made of what the host sends: an inotify(7) instance with watches, which the app's own user could add, and
//! the list of files. Called before each request. Invariants: without an event a check is one system call; an
//! event of a file that nobody has read costs no more than reading it; a file has changed only if its state is
//! not the one that the start has seen.

use outboard_ring::boot_files::{BootFile, Kind, LIST_BYTES_MAX, State, decode};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// As many events as the kernel queues (max_queued_events in inotify(7)); others are for the next check.
const MAX_EVENTS: usize = 16 * 1024;

/// See the module.
#[derive(Debug)]
pub struct FileWatch {
    inotify: Arc<OwnedFd>,
    /// Ordered by watch and name.
    watched: Box<[Watched]>,
    /// Those whose changes the kernel does not report.
    compared: Arc<[Compared]>,
    directories: usize,
    is_complete: bool,
    /// Whether the kernel has dropped events.
    has_lost: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    watch: i32,
    path: Box<Path>,
    kind: Kind,
    state: Option<Seen>,
}

/// A file whose state has to be compared from time to time.
#[derive(Debug)]
pub struct Compared {
    path: Box<Path>,
    kind: Kind,
    state: Option<State>,
}

/// A state, for the order of files.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen(u64, u64, u64, i64);

impl From<State> for Seen {
    fn from(state: State) -> Self {
        Self(state.device, state.inode, state.bytes, state.modified_ns)
    }
}

impl FileWatch {
    /// Reads what the host has sent, which is not trusted.
    ///
    /// # Errors
    /// The list is not one.
    pub fn new(inotify: OwnedFd, list: OwnedFd, is_complete: bool) -> io::Result<Self> {
        let mut text = Vec::new();
        File::from(list).take(LIST_BYTES_MAX as u64 + 1024).read_to_end(&mut text)?;
        // The host's end has the same flags, so it is set here again.
        rustix::io::ioctl_fionbio(&inotify, true)?;
        let (mut watched, mut compared, mut rest) = (Vec::new(), Vec::new(), &text[..]);
        while let Some(file) = decode(&mut rest).map_err(io::Error::other)? {
            let BootFile { path, kind, state, watch } = file;
            let path = Path::new(OsStr::from_bytes(path)).into();
            match watch {
                Some(watch) => {
                    watched.push(Watched { watch, path, kind, state: state.map(Seen::from) });
                }
                // Below a directory that does not exist, whose appearance is noticed.
                None if state.is_none() => {}
                None => compared.push(Compared { path, kind, state }),
            }
        }
        watched.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        let directories: BTreeSet<i32> = watched.iter().map(|file| file.watch).collect();
        Ok(Self {
            inotify: Arc::new(inotify),
            watched: watched.into(),
            compared: compared.into(),
            directories: directories.len(),
            is_complete,
            has_lost: false,
        })
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.watched.len() + self.compared.len()
    }

    /// Whether nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of watched directories.
    pub fn directories(&self) -> usize {
        self.directories
    }

    /// Whether the list has all files that were read.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Readable when there are events.
    pub(crate) fn events(&self) -> &Arc<OwnedFd> {
        &self.inotify
    }

    /// Files whose states have to be compared.
    pub fn compared(&self) -> &Arc<[Compared]> {
        &self.compared
    }

    /// A file that has changed since the start has read it, by the events since the last call.
    pub fn changed(&mut self) -> Option<PathBuf> {
        let mut changed = None;
        let mut space = [MaybeUninit::uninit(); 4 * 1024];
        let inotify = self.inotify.clone();
        let mut reader = Reader::new(inotify.as_fd(), &mut space);
        for _ in 0..MAX_EVENTS {
            match reader.next() {
                Ok(event) => {
                    self.has_lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    if changed.is_none() {
                        let name = event.file_name().map_or(&b""[..], |name| name.to_bytes());
                        changed = self.changed_by(event.wd(), name);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if std::mem::take(&mut self.has_lost) {
            changed = changed.or_else(|| self.differing());
        }
        changed
    }

    /// The file that an event of a watch is about, if it has changed.
    fn changed_by(&self, watch: i32, name: &[u8]) -> Option<PathBuf> {
        let is_changed = |place| self.at(place).iter().find(|file| file.differs());
        let changed = is_changed((watch, b"")).or_else(|| is_changed((watch, name)));
        changed.map(|file| file.path.to_path_buf())
    }

    /// The files of one place.
    fn at(&self, place: (i32, &[u8])) -> &[Watched] {
        let first = self.watched.partition_point(|file| file.place() < place);
        let end = self.watched.partition_point(|file| file.place() <= place);
        &self.watched[first..end]
    }

    fn differing(&self) -> Option<PathBuf> {
        self.watched.iter().find(|file| file.differs()).map(|file| file.path.to_path_buf())
    }
}

impl Watched {
    fn name(&self) -> &[u8] {
        self.path.file_name().unwrap_or_default().as_bytes()
    }

    fn place(&self) -> (i32, &[u8]) {
        (self.watch, if self.kind == Kind::Listing { b"" } else { self.name() })
    }

    /// One that this user cannot see any more has changed, as far as is known.
    fn differs(&self) -> bool {
        let now = State::of(&self.path, self.kind);
        now.map_or(true, |now| now.map(Seen::from) != self.state)
    }
}

/// A file whose state is another one. Takes a system call for each: not for an event loop.
pub(crate) fn first_differing(files: &[Compared]) -> Option<PathBuf> {
    let differs = |file: &&Compared| {
        // One that this user cannot see is not compared.
        State::of(&file.path, file.kind).is_ok_and(|now| now != file.state)
    };
    files.iter().find(differs).map(|file| file.path.to_path_buf())
}

#[cfg(test)]
mod tests;
