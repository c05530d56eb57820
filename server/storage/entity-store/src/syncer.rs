//! The thread that syncs the journal within the interval.
//!
//! Driven by the committer. Invariant: a segment that is complete is synced before its successor.

use crate::error::StoreError;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The committer's handle of the thread.
#[derive(Debug)]
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// Files with unsynced frames; the last one is still written to. Empty when the syncer is
    /// dropped.
    files: Mutex<Vec<Arc<File>>>,
    closed: Condvar,
    is_dirty: AtomicBool,
    is_syncing: AtomicBool,
    has_failed: AtomicBool,
}

impl Syncer {
    pub(crate) fn start(every_ms: u64, file: Arc<File>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            files: Mutex::new(vec![file]),
            closed: Condvar::new(),
            is_dirty: AtomicBool::new(false),
            is_syncing: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("kv-sync".to_owned())
            .spawn(move || of_thread.run(Duration::from_millis(every_ms)))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Notes that a frame was written.
    pub(crate) fn written(&self, at: &str) -> Result<(), StoreError> {
        self.shared.is_dirty.store(true, Ordering::Relaxed);
        match self.shared.has_failed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Failed(format!("{at}: fsync failed; restart the server"))),
        }
    }

    /// Whether a write to the file may block on its sync.
    pub(crate) fn is_syncing(&self) -> bool {
        self.shared.is_syncing.load(Ordering::Relaxed)
    }

    /// Notes that the next frames go to another file.
    pub(crate) fn add_file(&self, file: Arc<File>) {
        let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(file);
    }
}

impl Shared {
    fn run(&self, every: Duration) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(present) = files.last().cloned() {
            if self.is_dirty.swap(false, Ordering::Relaxed) {
                let written = std::mem::replace(&mut *files, vec![present]);
                drop(files);
                self.is_syncing.store(true, Ordering::Relaxed);
                if written.iter().any(|file| file.sync_data().is_err()) {
                    self.has_failed.store(true, Ordering::Relaxed);
                }
                self.is_syncing.store(false, Ordering::Relaxed);
                files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            }
            if !files.is_empty() {
                let waited = self.closed.wait_timeout(files, every);
                files = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Drop for Syncer {
    /// Syncs the last frames.
    fn drop(&mut self) {
        let files =
            std::mem::take(&mut *self.shared.files.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.closed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread.
            let _ = thread.join();
        }
        // After a failure the data is still in the page cache, as it was before.
        files.iter().for_each(|file| drop(file.sync_data()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::thread::yield_now;
    use std::time::Instant;

    /// A file that cannot be synced: fdatasync(2) fails for a pipe.
    fn unsyncable() -> Arc<File> {
        Arc::new(File::from(OwnedFd::from(io::pipe().unwrap().1)))
    }

    /// Writes until the thread has synced; the error of the last write.
    fn until_synced(syncer: &Syncer) -> Result<(), StoreError> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            syncer.written("/kv")?;
            while syncer.shared.is_dirty.load(Ordering::Relaxed) {
                assert!(Instant::now() < until, "the thread does not sync");
                yield_now();
            }
            if !syncer.is_syncing() {
                return syncer.written("/kv");
            }
        }
    }

    #[test]
    fn a_sync_that_fails_is_reported_to_every_later_write() {
        let syncer = Syncer::start(1, unsyncable()).unwrap();
        let failed = Err(StoreError::Failed("/kv: fsync failed; restart the server".to_owned()));
        let until = Instant::now() + Duration::from_secs(10);
        while syncer.written("/kv") != failed {
            assert!(Instant::now() < until, "the failure is not reported");
            yield_now();
        }
        assert_eq!(syncer.written("/kv"), failed, "a later success cannot be trusted");
    }

    #[test]
    fn a_complete_segment_is_synced_before_its_successor_is_alone() {
        let (one, two) = (tempfile(), tempfile());
        let syncer = Syncer::start(1, one.clone()).unwrap();
        syncer.add_file(two.clone());
        assert_eq!(until_synced(&syncer), Ok(()));
        let left = |files: &[Arc<File>]| files.iter().any(|file| Arc::ptr_eq(file, &one));
        let until = Instant::now() + Duration::from_secs(10);
        while left(&syncer.shared.files.lock().unwrap()) {
            assert!(Instant::now() < until, "the first file is still to be synced");
            yield_now();
        }
        assert!(Arc::ptr_eq(&two, syncer.shared.files.lock().unwrap().last().unwrap()));
    }

    #[test]
    fn the_end_does_not_wait_for_the_interval() {
        let file = tempfile();
        let began = Instant::now();
        drop(Syncer::start(3_600_000, file.clone()).unwrap());
        assert!(began.elapsed() < Duration::from_secs(600));
        assert_eq!(Arc::strong_count(&file), 1, "the thread has ended");
    }

    fn tempfile() -> Arc<File> {
        let folder = crate::store::tests::Folder::new();
        Arc::new(File::create(folder.path().join("segment")).unwrap())
    }
}
