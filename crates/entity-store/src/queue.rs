//! What waits for a thread: in order, within a bound, and no longer than is sensible.
//!
//! Called by whatever hands work to threads: a desk, and the writes of a disk.
//! Invariant: who is refused is told so at once, and whoever is inside has been admitted by how long
//! waiting takes.

use crate::admission::Admission;
use crate::error::StoreError;
use crate::reply::Reply;
use crate::settings::{Overload, Settings};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

/// What one who waits is told.
pub(crate) type Answer<A> = Result<A, StoreError>;

/// What one who waits will be told.
pub(crate) type Owed<A> = Rc<Reply<Answer<A>>>;

/// Jobs `J` that wait for answers `A`.
pub(crate) struct Queue<J, A> {
    waiting: RefCell<VecDeque<Waiting<J, A>>>,
    admission: RefCell<Admission>,
    overload: Overload,
    began: Instant,
    refused: Cell<u64>,
}

/// A job in a queue.
pub(crate) struct Waiting<J, A> {
    pub(crate) job: J,
    pub(crate) reply: Owed<A>,
    since_us: u64,
}

impl<J, A> Queue<J, A> {
    /// An empty queue with room for `most`.
    pub(crate) fn new(settings: &Settings, most: usize) -> Self {
        Self {
            waiting: RefCell::default(),
            admission: RefCell::new(Admission::new(settings.wait_ms, most)),
            overload: settings.overload,
            began: Instant::now(),
            refused: Cell::new(0),
        }
    }

    /// Makes sure that one more may wait; the job that had to go for it has been answered.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn make_room(&self) -> Result<Option<J>, StoreError> {
        let now_us = self.now_us();
        let mut waiting = self.waiting.borrow_mut();
        let first_us = waiting.front().map(|first| first.since_us);
        if self.admission.borrow().admits(now_us, waiting.len(), first_us) {
            return Ok(None);
        }
        self.refused.set(self.refused.get() + 1);
        let oldest = match self.overload {
            Overload::RejectNewest => None,
            Overload::DropOldest => waiting.pop_front(),
        };
        let Some(oldest) = oldest else { return Err(StoreError::Overloaded) };
        oldest.reply.give(Err(StoreError::Overloaded));
        Ok(Some(oldest.job))
    }

    /// Puts a job at the end, after [`Queue::make_room`].
    pub(crate) fn push(&self, job: J) -> Owed<A> {
        let reply = Reply::new();
        self.push_for(job, reply.clone());
        reply
    }

    /// Puts a job at the end for somebody who waits already.
    pub(crate) fn push_for(&self, job: J, reply: Owed<A>) {
        self.waiting.borrow_mut().push_back(Waiting { job, since_us: self.now_us(), reply });
    }

    /// Takes jobs from the front while `more` says so of the next one.
    pub(crate) fn take_while(&self, mut more: impl FnMut(&J) -> bool) -> Vec<Waiting<J, A>> {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(first) = waiting.front() {
            let now_us = self.now_us();
            let waited_us = now_us.saturating_sub(first.since_us);
            self.admission.borrow_mut().observe(now_us, waited_us);
        }
        let taken = waiting.iter().take_while(|next| more(&next.job)).count();
        waiting.drain(..taken).collect()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// How many were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
