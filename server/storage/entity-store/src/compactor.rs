//! The thread that flushes sealed buffers to sorted files, and merges the files.
//!
//! Driven by the committer. Invariants: a journal segment is removed only when all its writes are
//! in sorted files; the thread has a lower priority than requests.

use crate::error::StoreError;
use crate::journal::segment_path;
use crate::levels::Levels;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The most sealed buffers before writes wait.
const SEALED_MAX: usize = 2;
/// The pause before a flush is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The thread's `nice(2)` value.
const NICENESS: i32 = 10;

/// The committer's handle of the thread.
#[derive(Debug)]
pub(crate) struct Compactor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The thread writes and syncs files.
    is_busy: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The highest segment whose content is sealed, until the thread takes it.
    sealed_up_to: Option<u64>,
    /// The error of the last flush.
    failure: Option<StoreError>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compactor {
    /// Starts the thread for the tree whose journal is in `folder`.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(levels: Arc<Levels>, folder: &Path) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (of_thread, folder) = (shared.clone(), folder.to_owned());
        let thread = std::thread::Builder::new()
            .name("kv-compact".to_owned())
            .spawn(move || run(&of_thread, &levels, &folder))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Announces that the buffers are sealed, and with them all segments up to `segment`.
    pub(crate) fn sealed(&self, segment: u64) {
        self.shared.lock().sealed_up_to = Some(segment);
        self.shared.changed.notify_all();
    }

    /// Whether [`Compactor::wait_for_room`] would return at once.
    pub(crate) fn has_room(&self, levels: &Levels) -> bool {
        levels.sealed() <= SEALED_MAX
    }

    /// Whether the thread keeps the disk and the journal of the file system busy, so that a write
    /// to another file may block.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.is_busy.load(Ordering::Relaxed)
    }

    /// Waits while too many buffers are sealed.
    ///
    /// # Errors
    /// The buffers cannot be flushed.
    pub(crate) fn wait_for_room(&self, levels: &Levels) -> Result<(), StoreError> {
        let mut state = self.shared.lock();
        while levels.sealed() > SEALED_MAX {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // Unflushed buffers are in the journal.
            let _ = thread.join();
        }
    }
}

/// Waits for the next segment to flush up to; `None` when the compactor is dropped.
fn next(shared: &Shared) -> Option<u64> {
    let mut state = shared.lock();
    loop {
        if state.is_closed {
            return None;
        }
        if let Some(segment) = state.sealed_up_to.take() {
            return Some(segment);
        }
        state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run(shared: &Shared, levels: &Levels, folder: &Path) {
    lower_priority();
    while let Some(segment) = next(shared) {
        shared.is_busy.store(true, Ordering::Relaxed);
        let flushed = flush(levels, folder, segment);
        let mut state = shared.lock();
        state.failure = flushed.err();
        shared.changed.notify_all();
        if state.failure.is_some() {
            state.sealed_up_to = state.sealed_up_to.max(Some(segment));
            // Dropping the compactor ends the wait as well.
            let _ = shared.changed.wait_timeout(state, RETRY_PAUSE);
            continue;
        }
        drop(state);
        // Unmerged files can still be read; there are only more of them.
        let _ = levels.merge();
        shared.is_busy.store(false, Ordering::Relaxed);
    }
}

/// Flushes sealed buffers, then removes the segments up to `segment`.
pub(crate) fn flush(levels: &Levels, folder: &Path, segment: u64) -> Result<(), StoreError> {
    levels.flush()?;
    let numbers = crate::journal::segments(folder).unwrap_or_default();
    for number in numbers.into_iter().filter(|number| *number <= segment) {
        let path: PathBuf = segment_path(folder, number);
        // A segment that stays is replayed at the next start, without effect.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn lower_priority() {
    // Linux applies setpriority(2) to one thread. A failure only costs processor time.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Segment, segments};
    use crate::levels::Blocks;
    use crate::record::Record;
    use crate::store::tests::Folder;
    use std::time::Instant;

    fn levels(folder: &Folder) -> Arc<Levels> {
        Arc::new(Levels::open(&folder.path().join("levels"), &Blocks::new(1 << 20, 16)).unwrap())
    }

    fn put(levels: &Levels, version: u64) {
        let record = Record { version, expires_ms: None, value: (*b"value").into() };
        levels.put(&version.to_be_bytes(), version, Some(&record));
    }

    #[test]
    fn a_segment_is_removed_once_its_writes_are_in_a_file() {
        let folder = Folder::new();
        let levels = levels(&folder);
        for number in 1..=3 {
            Segment::create(folder.path(), number, 1 << 12).unwrap();
        }
        put(&levels, 1);
        levels.seal();
        put(&levels, 2);
        let compactor = Compactor::start(levels.clone(), folder.path()).unwrap();
        compactor.sealed(2);
        let until = Instant::now() + Duration::from_secs(20);
        while segments(folder.path()).unwrap() != [3] {
            assert!(Instant::now() < until, "the segments stay");
            std::thread::yield_now();
        }
        assert_eq!((levels.sealed(), levels.persisted_version()), (0, Some(1)));
        assert_eq!(levels.get(&2_u64.to_be_bytes()).unwrap().map(|found| found.version), Some(2));
    }

    #[test]
    fn writes_wait_while_too_many_buffers_are_sealed() {
        let folder = Folder::new();
        let levels = levels(&folder);
        let compactor = Compactor::start(levels.clone(), folder.path()).unwrap();
        for version in 1..=SEALED_MAX as u64 + 1 {
            assert!(compactor.has_room(&levels));
            put(&levels, version);
            levels.seal();
        }
        assert!(!compactor.has_room(&levels));
        compactor.sealed(0);
        assert_eq!(compactor.wait_for_room(&levels), Ok(()));
        assert!(compactor.has_room(&levels));
    }

    #[test]
    fn a_flush_that_fails_is_reported_to_the_writes_that_wait() {
        let folder = Folder::new();
        let levels = levels(&folder);
        for version in 1..=SEALED_MAX as u64 + 1 {
            put(&levels, version);
            levels.seal();
        }
        let compactor = Compactor::start(levels.clone(), folder.path()).unwrap();
        std::fs::remove_dir_all(folder.path().join("levels")).unwrap();
        compactor.sealed(1);
        let failed = compactor.wait_for_room(&levels);
        assert!(
            matches!(failed, Err(StoreError::Failed(_) | StoreError::Damaged(_))),
            "{failed:?}"
        );
        drop(compactor);
    }
}
