//! The thread behind a namespace that moves what is in memory to sorted files, and merges these.
//!
//! Told by the committer what was sealed. Invariants: a journal segment goes only after everything
//! in it is in a sorted file; it runs at a lower priority than everything that somebody waits for.

use crate::error::StoreError;
use crate::journal::segment_path;
use crate::levels::Levels;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most sealed buffers that wait before writes wait for them.
const SEALED_MOST: usize = 2;
/// How long until a disk that failed is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The keeper's `nice(2)`.
const NICENESS: i32 = 10;

/// The committer's end.
#[derive(Debug)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// It writes and syncs files.
    is_busy: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The highest segment whose content is sealed, and whether the keeper has seen it.
    sealed_through: Option<u64>,
    /// Why the last attempt failed.
    failure: Option<StoreError>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// Starts the thread for the tree whose journal is in `folder`.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(levels: Arc<Levels>, folder: &Path) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (theirs, folder) = (shared.clone(), folder.to_owned());
        let thread = std::thread::Builder::new()
            .name("kv-keep".to_owned())
            .spawn(move || keep(&theirs, &levels, &folder))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The buffers are sealed, and with them all segments up to `segment`.
    pub(crate) fn sealed(&self, segment: u64) {
        self.shared.lock().sealed_through = Some(segment);
        self.shared.changed.notify_all();
    }

    /// Whether [`Keeper::room`] would not wait.
    pub(crate) fn has_room(&self, levels: &Levels) -> bool {
        levels.sealed() <= SEALED_MOST
    }

    /// Whether it keeps the disk and the file system's own journal busy, so that a write to another
    /// file, which is a copy into memory otherwise, may wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.is_busy.load(Ordering::Relaxed)
    }

    /// Waits while too many sealed buffers wait.
    ///
    /// # Errors
    /// The keeper cannot write them.
    pub(crate) fn room(&self, levels: &Levels) -> Result<(), StoreError> {
        let mut state = self.shared.lock();
        while levels.sealed() > SEALED_MOST {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // What it did not finish is in the journal.
            let _ = thread.join();
        }
    }
}

/// The segment up to which everything is sealed, once there is another.
fn next(shared: &Shared) -> Option<u64> {
    let mut state = shared.lock();
    loop {
        if state.is_closed {
            return None;
        }
        if let Some(segment) = state.sealed_through.take() {
            return Some(segment);
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn keep(shared: &Shared, levels: &Levels, folder: &Path) {
    lower_priority();
    while let Some(segment) = next(shared) {
        shared.is_busy.store(true, Ordering::Relaxed);
        let flushed = flush(levels, folder, segment);
        let mut state = shared.lock();
        state.failure = flushed.err();
        shared.changed.notify_all();
        if state.failure.is_some() {
            state.sealed_through = state.sealed_through.max(Some(segment));
            // Closing ends the wait as well.
            let _ = shared.changed.wait_timeout(state, TRY_AGAIN);
            continue;
        }
        drop(state);
        // Files that cannot be merged can still be read; there are just more of them.
        let _ = levels.merge();
        shared.is_busy.store(false, Ordering::Relaxed);
    }
}

/// Writes sealed buffers to disk, then removes the segments up to `segment`.
pub(crate) fn flush(levels: &Levels, folder: &Path, segment: u64) -> Result<(), StoreError> {
    levels.flush()?;
    let numbers = crate::journal::segments(folder).unwrap_or_default();
    for number in numbers.into_iter().filter(|number| *number <= segment) {
        let path: PathBuf = segment_path(folder, number);
        // One that stays is read again at the next start, to no effect.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn lower_priority() {
    // setpriority(2): for Linux a thread is a process of its own here. Without it the keeper only
    // gets more of the processor.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}
