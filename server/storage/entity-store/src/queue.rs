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

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;

    fn queue(overload: Overload, capacity: usize) -> Queue<u32, u32> {
        let settings = Settings { overload, ..Settings::new(std::path::PathBuf::new()) };
        Queue::new(&settings, capacity)
    }

    #[test]
    fn the_newest_is_rejected_at_once_and_the_others_stay() {
        let queue = queue(Overload::RejectNewest, 2);
        let _waiting = [1, 2].map(|job| {
            assert_eq!(queue.make_room(), Ok(None));
            queue.push(job)
        });
        assert_eq!(queue.make_room(), Err(StoreError::Overloaded));
        assert_eq!((queue.len(), queue.refused()), (2, 1));
    }

    #[test]
    fn the_oldest_is_dropped_with_an_error_for_the_newest() {
        run(async {
            let queue = queue(Overload::DropOldest, 2);
            let [first, second] = [1, 2].map(|job| queue.push(job));
            assert_eq!(queue.make_room(), Ok(Some(1)));
            let third = queue.push(3);
            assert_eq!(first.receive().await, Err(StoreError::Overloaded));
            for (waiting, receiver) in queue.take_while(|_| true).into_iter().zip([second, third]) {
                waiting.reply.send(Ok(waiting.job * 10));
                assert_eq!(receiver.receive().await, Ok(waiting.job * 10));
            }
            assert_eq!((queue.len(), queue.refused()), (0, 1));
        })
        .unwrap();
    }

    #[test]
    fn a_queue_without_room_for_any_job_drops_none() {
        let queue = queue(Overload::DropOldest, 0);
        assert_eq!(queue.make_room(), Err(StoreError::Overloaded));
    }

    #[test]
    fn jobs_are_taken_from_the_front_as_long_as_they_are_accepted() {
        let queue = queue(Overload::RejectNewest, 10);
        let _receivers = [1, 2, 9, 3].map(|job| queue.push(job));
        let taken = |limit| {
            let jobs = queue.take_while(|job| *job < limit);
            jobs.into_iter().map(|waiting| waiting.job).collect::<Vec<_>>()
        };
        assert_eq!(taken(5), [1, 2]);
        assert_eq!(taken(5), []);
        assert_eq!(taken(10), [9, 3]);
    }
}
