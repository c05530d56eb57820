//! A bounded queue of jobs for threads, with admission by queueing delay.
//!
//! Used by [`crate::thread_pool`] and by the writes of a disk. Invariant: rejection is immediate, and
//! every admitted job gets exactly one result.

use crate::admission::Admission;
use crate::error::StoreError;
use crate::oneshot;
use crate::settings::{Overload, Settings};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;

/// Takes the result of a job.
pub(crate) type ResultSender<A> = oneshot::Sender<Result<A, StoreError>>;
/// Waits for the result of a job.
pub(crate) type ResultReceiver<A> = oneshot::Receiver<Result<A, StoreError>>;

/// Jobs `J` that wait for results `A`.
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
    pub(crate) reply: ResultSender<A>,
    since_us: u64,
}

impl<J, A> Queue<J, A> {
    /// An empty queue with room for `capacity` jobs.
    pub(crate) fn new(settings: &Settings, capacity: usize) -> Self {
        Self {
            waiting: RefCell::default(),
            admission: RefCell::new(Admission::new(settings.wait_ms, capacity)),
            overload: settings.overload,
            began: Instant::now(),
            refused: Cell::new(0),
        }
    }

    /// Admits one more job. Returns the job that was dropped for it, whose caller has its error already.
    ///
    /// # Errors
    /// The job is not admitted.
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
        oldest.reply.send(Err(StoreError::Overloaded));
        Ok(Some(oldest.job))
    }

    /// Appends a job, after [`Queue::make_room`].
    pub(crate) fn push(&self, job: J) -> ResultReceiver<A> {
        let (reply, receiver) = oneshot::channel();
        self.push_with(job, reply);
        receiver
    }

    /// Appends a job whose caller already waits.
    pub(crate) fn push_with(&self, job: J, reply: ResultSender<A>) {
        self.waiting.borrow_mut().push_back(Waiting { job, since_us: self.now_us(), reply });
    }

    /// Removes jobs from the front while `accept` holds for the next one.
    pub(crate) fn take_while(&self, mut accept: impl FnMut(&J) -> bool) -> Vec<Waiting<J, A>> {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(first) = waiting.front() {
            let now_us = self.now_us();
            let waited_us = now_us.saturating_sub(first.since_us);
            self.admission.borrow_mut().observe(now_us, waited_us);
        }
        let taken = waiting.iter().take_while(|next| accept(&next.job)).count();
        waiting.drain(..taken).collect()
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// The number of jobs that were rejected or dropped.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.get()
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
