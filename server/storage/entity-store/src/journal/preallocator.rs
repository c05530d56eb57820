//! [`SegmentPreallocator`]: a thread that creates the next segment in advance. A new file and its
//! folder have to be synced before a frame in it counts, which takes as long as a disk takes.
//!
//! Used by the committer. Invariant: only the thread creates the requested segment.

use super::segment::Segment;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The committer's handle of the thread.
#[derive(Debug)]
pub(crate) struct SegmentPreallocator {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    reserve_bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// No segment is requested, or creating it failed.
    Idle,
    /// The segment with this number is to be created, or being created.
    Requested(u64),
    Ready(Segment),
    Closed,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl SegmentPreallocator {
    /// Starts the thread with the segment after `present`.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(present: &Segment) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            folder: present.folder.clone(),
            reserve_bytes: present.reserve_bytes,
            state: Mutex::new(State::Requested(present.number() + 1)),
            changed: Condvar::new(),
        });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("kv-prealloc".to_owned())
            .spawn(move || run(&of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The created segment; waits for one that is being created. `None` if that failed.
    pub(crate) fn take(&self) -> Option<Segment> {
        let mut state = self.shared.lock();
        while matches!(*state, State::Requested(_)) {
            state = self.shared.wait(state);
        }
        match std::mem::replace(&mut *state, State::Idle) {
            State::Ready(segment) => Some(segment),
            _ => None,
        }
    }

    /// Requests the segment after `present`.
    pub(crate) fn prepare_after(&self, present: &Segment) {
        *self.shared.lock() = State::Requested(present.number() + 1);
        self.shared.changed.notify_all();
    }
}

fn run(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        let number = match *state {
            State::Closed => return,
            State::Requested(number) => number,
            State::Idle | State::Ready(_) => {
                state = shared.wait(state);
                continue;
            }
        };
        drop(state);
        let created = Segment::create(&shared.folder, number, shared.reserve_bytes);
        state = shared.lock();
        if let State::Requested(_) = *state {
            // After a failure the committer tries again itself and reports the error.
            *state = created.map_or(State::Idle, State::Ready);
        }
        shared.changed.notify_all();
    }
}

impl Drop for SegmentPreallocator {
    fn drop(&mut self) {
        *self.shared.lock() = State::Closed;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::segments;
    use crate::store::tests::Folder;

    #[test]
    fn each_requested_segment_is_created_in_advance() {
        let folder = Folder::new();
        let first = Segment::create(folder.path(), 1, 1 << 12).unwrap();
        let preallocator = SegmentPreallocator::start(&first).unwrap();
        let second = preallocator.take().unwrap();
        preallocator.prepare_after(&second);
        assert_eq!((second.number(), preallocator.take().unwrap().number()), (2, 3));
        assert_eq!(segments(folder.path()).unwrap(), [1, 2, 3]);
        assert!(preallocator.take().is_none(), "nothing was requested");
    }

    #[test]
    fn a_segment_that_cannot_be_created_is_none() {
        let folder = Folder::new();
        let first = Segment::create(folder.path(), 1, 1 << 12).unwrap();
        std::fs::create_dir(crate::journal::segment_path(folder.path(), 2)).unwrap();
        assert!(SegmentPreallocator::start(&first).unwrap().take().is_none());
    }
}
