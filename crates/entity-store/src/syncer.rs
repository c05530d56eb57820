//! The thread that has what was written on the disk within the interval.
//!
//! Told by the committer of frames and of segments. Invariant: a segment that is no longer written
//! to is synced as well, before the one that follows it.

use crate::error::StoreError;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The thread that syncs the journal every so often, beside the commits.
#[derive(Debug)]
pub(crate) struct Syncer {
    shared: Arc<Syncing>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Syncing {
    /// Where is written, last, and before it where was written since the last sync. None: over.
    files: Mutex<Vec<Arc<File>>>,
    closed: Condvar,
    is_dirty: AtomicBool,
    is_syncing: AtomicBool,
    has_failed: AtomicBool,
}

impl Syncer {
    pub(crate) fn start(every_ms: u64, file: Arc<File>) -> io::Result<Self> {
        let shared = Arc::new(Syncing {
            files: Mutex::new(vec![file]),
            closed: Condvar::new(),
            is_dirty: AtomicBool::new(false),
            is_syncing: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("kv-sync".to_owned())
            .spawn(move || theirs.run(Duration::from_millis(every_ms)))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A frame was written.
    pub(crate) fn written(&self, at: &str) -> Result<(), StoreError> {
        self.shared.is_dirty.store(true, Ordering::Relaxed);
        match self.shared.has_failed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(StoreError::Failed(format!("{at}: cannot sync; restart the server"))),
        }
    }

    /// Whether a write to the file might wait for its sync.
    pub(crate) fn is_syncing(&self) -> bool {
        self.shared.is_syncing.load(Ordering::Relaxed)
    }

    /// Writing goes on in another file.
    pub(crate) fn follow(&self, file: Arc<File>) {
        let mut files = self.shared.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(file);
    }
}

impl Syncing {
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
    /// Leaves nothing for the disk to lose.
    fn drop(&mut self) {
        let files =
            std::mem::take(&mut *self.shared.files.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.closed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
        // A failure is nothing new: the operating system has it all the same.
        files.iter().for_each(|file| drop(file.sync_data()));
    }
}
