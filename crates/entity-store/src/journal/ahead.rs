//! The next segment, made before it is wanted: a new file has to be synced before anything may be
//! promised in it, and so does its folder, which takes as long as a disk takes.
//!
//! Called by the committer. Invariant: nobody else makes the segment while the thread here does.

use super::Journal;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The committer's end.
#[derive(Debug)]
pub(crate) struct Ahead {
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
    /// Nothing is to be made, or making it failed.
    Idle,
    /// The segment with this number is to be made, or is being made.
    Wanted(u64),
    Made(Journal),
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

impl Ahead {
    /// Begins with the segment behind `present`.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(present: &Journal) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            folder: present.folder.clone(),
            reserve_bytes: present.reserve_bytes,
            state: Mutex::new(State::Wanted(present.number + 1)),
            changed: Condvar::new(),
        });
        let theirs = shared.clone();
        let thread =
            std::thread::Builder::new().name("kv-ahead".to_owned()).spawn(move || make(&theirs))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The segment that was made; waits for one that is being made. `None`: it could not be.
    pub(crate) fn take(&self) -> Option<Journal> {
        let mut state = self.shared.lock();
        while matches!(*state, State::Wanted(_)) {
            state = self.shared.wait(state);
        }
        match std::mem::replace(&mut *state, State::Idle) {
            State::Made(segment) => Some(segment),
            _ => None,
        }
    }

    /// The one behind `present` is wanted next.
    pub(crate) fn follow(&self, present: &Journal) {
        *self.shared.lock() = State::Wanted(present.number + 1);
        self.shared.changed.notify_all();
    }
}

fn make(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        let number = match *state {
            State::Closed => return,
            State::Wanted(number) => number,
            State::Idle | State::Made(_) => {
                state = shared.wait(state);
                continue;
            }
        };
        drop(state);
        let made = Journal::create(&shared.folder, number, shared.reserve_bytes);
        state = shared.lock();
        if let State::Wanted(_) = *state {
            // Whoever wants it after a failure makes it, and tells why that fails.
            *state = made.map_or(State::Idle, State::Made);
        }
        shared.changed.notify_all();
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        *self.shared.lock() = State::Closed;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
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
    fn the_next_segment_is_there_and_so_is_the_one_behind_it() {
        let folder = Folder::new();
        let first = Journal::create(folder.path(), 1, 1 << 12).unwrap();
        let ahead = Ahead::start(&first).unwrap();
        let second = ahead.take().unwrap();
        ahead.follow(&second);
        assert_eq!((second.number(), ahead.take().unwrap().number()), (2, 3));
        assert_eq!(segments(folder.path()).unwrap(), [1, 2, 3]);
        assert!(ahead.take().is_none(), "nobody said what is wanted next");
    }

    #[test]
    fn what_cannot_be_made_is_left_to_whoever_wants_it() {
        let folder = Folder::new();
        let first = Journal::create(folder.path(), 1, 1 << 12).unwrap();
        std::fs::create_dir(crate::journal::segment_path(folder.path(), 2)).unwrap();
        assert!(Ahead::start(&first).unwrap().take().is_none());
    }
}
