//! The directory of an app's pages: files, the log of purges, and the thread that writes.
//!
//! ```text
//!  DISK/APP/GENERATION/lock        held by the process that uses the directory
//!                     /purges      purges whose files may still exist
//!                     /NUMBER      an entry
//!                     /NUMBER.new  an entry that is being written
//! ```
//!
//! Invariants: the jobs are done in the order in which they were sent; a file gets its name by
//! rename(2) when it is complete.

use crate::entry::Entry;
use crate::purge::Selector;
use crate::record::decoded;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Work of the thread.
#[derive(Debug)]
pub(super) enum Job {
    Write {
        file: u64,
        bytes: Vec<u8>,
    },
    Remove {
        file: u64,
    },
    /// Removes the directory.
    RemoveAll,
    /// All files of the purges up to this place in the log are removed.
    Forget {
        place: u64,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Directory {
    path: Arc<Path>,
    log: Arc<Mutex<Log>>,
    jobs: Sender<Job>,
    waiting_bytes: Arc<AtomicUsize>,
    fault: Arc<Mutex<Option<io::Error>>>,
    first_file: u64,
    _lock: File,
}

/// The log of purges whose files may still exist.
#[derive(Debug)]
struct Log {
    file: File,
    /// The number of purges since the process started.
    place: u64,
}

/// An entry that was found at the start: its file, its length, and all of it but the bodies.
pub(crate) type Recovered = (u64, u64, Entry);

impl Directory {
    /// Opens the latest directory below `parent` if `takes_over`, or else a new one. It is a new one, too, if
    /// another process holds the latest: in an upgrade that still serves from it.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn open(parent: &Path, takes_over: bool) -> io::Result<Self> {
        make_private(parent)?;
        let mut left: Vec<PathBuf> =
            fs::read_dir(parent)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // Their names are times of equal length.
        left.sort();
        let latest = left.last().filter(|latest| takes_over && latest.is_dir());
        let taken = latest.and_then(|latest| Some((latest.clone(), locked(latest).ok()?)));
        let begun_us = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64);
        let (path, lock) = match taken {
            Some(taken) => taken,
            None => {
                let path = parent.join(format!("{begun_us:020}"));
                make_private(&path)?;
                let lock = locked(&path)?;
                (path, lock)
            }
        };
        // Directories of earlier processes that no process holds.
        for old in left.into_iter().filter(|old| *old != path) {
            if locked(&old).is_ok() {
                let _ = fs::remove_dir_all(&old);
            }
        }
        let log = private().append(true).open(path.join("purges"))?;
        let log = Arc::new(Mutex::new(Log { file: log, place: 0 }));
        let (jobs, todo) = channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let path: Arc<Path> = path.into();
        let fault = Arc::default();
        let worker = Worker {
            path: path.clone(),
            log: log.clone(),
            waiting_bytes: waiting_bytes.clone(),
            fault: Arc::clone(&fault),
        };
        std::thread::Builder::new()
            .name("page-cache-disk".to_owned())
            .spawn(move || worker.work(&todo))?;
        Ok(Self { path, log, jobs, waiting_bytes, fault, first_file: begun_us, _lock: lock })
    }

    /// A number that no file of a predecessor has.
    pub(super) fn first_file(&self) -> u64 {
        self.first_file
    }

    /// The bytes that wait to be written.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// The latest error of a write, once.
    pub(super) fn take_fault(&self) -> Option<io::Error> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn send(&self, job: Job) {
        if let Job::Write { bytes, .. } = &job {
            self.waiting_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        // The thread lives as long as this does.
        let _ = self.jobs.send(job);
    }

    /// Logs a purge before its files are removed; returns its place in the log.
    pub(super) fn log(&self, selector: &Selector) -> u64 {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.file.write_all(&selector.encoded()).is_err() {
            // Without a log a purged entry could return after a crash; without files it cannot.
            let _ = fs::remove_dir_all(&self.path).and_then(|()| make_private(&self.path));
        }
        log.place += 1;
        log.place
    }

    /// Reads a file, on any thread.
    pub(super) fn reader(
        &self,
        file: u64,
    ) -> impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static + use<> {
        let path = name(&self.path, file);
        move || fs::read(path)
    }

    /// The entries that a predecessor left and did not purge, oldest first. Other files are removed.
    pub(super) fn scan(&self) -> impl FnOnce() -> Vec<Recovered> + Send + 'static + use<> {
        let (path, first_file, log) = (self.path.clone(), self.first_file, self.log.clone());
        move || {
            let place = log.lock().unwrap_or_else(PoisonError::into_inner).place;
            let purged = logged(&path);
            let mut files: Vec<u64> = fs::read_dir(&path)
                .into_iter()
                .flatten()
                .filter_map(|entry| {
                    let name = entry.ok()?.file_name().into_string().ok()?;
                    let (number, is_whole) = match name.strip_suffix(".new") {
                        Some(number) => (number, false),
                        None => (&name[..], true),
                    };
                    // Later ones are of this process, which may be writing them.
                    let file = number.parse().ok().filter(|&file| file < first_file)?;
                    if !is_whole {
                        let _ = fs::remove_file(path.join(&name));
                    }
                    is_whole.then_some(file)
                })
                .collect();
            files.sort_unstable();
            let mut left = Vec::new();
            for file in files {
                let bytes = fs::read(name(&path, file)).unwrap_or_default();
                let entry = decoded(&bytes);
                match entry.filter(|entry| !purged.iter().any(|one| one.selects_entry(entry))) {
                    Some(entry) => left.push((file, bytes.len() as u64, entry.without_bodies())),
                    None => drop(fs::remove_file(name(&path, file))),
                }
            }
            forget(&log, place);
            left
        }
    }
}

fn locked(path: &Path) -> io::Result<File> {
    let lock = private().append(true).open(path.join("lock"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

/// Pages may be personal: no other user can read them.
fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    fs::set_permissions(directory, Permissions::from_mode(0o700))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

fn name(path: &Path, file: u64) -> PathBuf {
    path.join(format!("{file:020}"))
}

fn logged(path: &Path) -> Vec<Selector> {
    let bytes = fs::read(path.join("purges")).unwrap_or_default();
    let mut rest = &bytes[..];
    std::iter::from_fn(|| {
        let (selector, more) = Selector::decoded(rest)?;
        rest = more;
        Some(selector)
    })
    .collect()
}

/// Empties the log, unless there was a purge since.
fn forget(log: &Mutex<Log>, place: u64) {
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if log.place == place {
        let _ = log.file.set_len(0);
    }
}

/// The part of the thread.
struct Worker {
    path: Arc<Path>,
    log: Arc<Mutex<Log>>,
    waiting_bytes: Arc<AtomicUsize>,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Worker {
    /// Works until the directory is dropped.
    fn work(&self, todo: &Receiver<Job>) {
        while let Ok(job) = todo.recv() {
            match job {
                Job::Write { file, bytes } => {
                    self.write(file, &bytes);
                    self.waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
                }
                Job::Remove { file } => drop(fs::remove_file(name(&self.path, file))),
                Job::RemoveAll => drop(fs::remove_dir_all(&self.path)),
                Job::Forget { place } => forget(&self.log, place),
            }
        }
    }

    /// An entry that cannot be written is missing when it is read, which does no harm.
    fn write(&self, file: u64, bytes: &[u8]) {
        let path = name(&self.path, file);
        let new = path.with_extension("new");
        let opened = private().write(true).truncate(true).open(&new);
        let written = opened
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&new, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&new);
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

#[cfg(test)]
mod tests;
