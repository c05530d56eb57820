//! A queue and the threads behind it, each fed its share of what waits.
//!
//! Called by whatever waits for something that blocks: the reads of a disk, and Redis. Several
//! threads, so that what is slow for one does not hold up all. Invariants: the loop never waits for
//! a thread; every job that was let in is settled, by its owner or as lost; dropping the desk ends
//! its threads when they have done what they were given.

use crate::error::StoreError;
use crate::lane::Lane;
use crate::queue::{Owed, Queue, Waiting};
use crate::reply::Reply;
use outboard_reactor::{Event, spawn};
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// How a desk is manned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staff {
    /// What the threads are called.
    pub(crate) name: &'static str,
    /// How many there are.
    pub(crate) threads: usize,
    /// Most jobs that a thread is given at once.
    pub(crate) batch_jobs: usize,
}

/// Jobs `J` that threads turn into answers `A`.
pub(crate) struct Desk<J, A> {
    shared: Rc<Shared<J, A>>,
}

struct Shared<J, A> {
    queue: Queue<J, A>,
    staff: Staff,
    threads: Vec<Thread>,
    is_closed: Cell<bool>,
}

#[derive(Default)]
struct Thread {
    filled: Event,
    is_idle: Cell<bool>,
}

impl<J: Send + 'static, A: 'static> Desk<J, A> {
    /// Starts the threads and begins to feed them. Each has what `work` makes; what comes of a job
    /// there is settled here, with who waits for it.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start<R, W, S>(
        staff: Staff,
        queue: Queue<J, A>,
        work: impl Fn() -> W,
        settle: S,
    ) -> io::Result<Self>
    where
        R: Send + 'static,
        W: FnMut(Vec<J>) -> Vec<R> + Send + 'static,
        S: Fn(R, Owed<A>) + Clone + 'static,
    {
        let threads = (0..staff.threads).map(|_| Thread::default()).collect();
        let desk =
            Self { shared: Rc::new(Shared { queue, staff, threads, is_closed: Cell::new(false) }) };
        for index in 0..staff.threads {
            let lane = Lane::start(staff.name, work())?;
            spawn(desk.shared.clone().feed(index, lane, settle.clone()));
        }
        Ok(desk)
    }
}

impl<J, A> Desk<J, A> {
    /// As [`Queue::make_room`].
    ///
    /// # Errors
    /// No more may wait.
    pub(crate) fn make_room(&self) -> Result<Option<J>, StoreError> {
        self.shared.queue.make_room()
    }

    /// Puts a job at the end, after [`Desk::make_room`].
    pub(crate) fn push(&self, job: J) -> Owed<A> {
        let reply = Reply::new();
        self.push_for(job, reply.clone());
        reply
    }

    /// Puts a job at the end for somebody who waits already.
    pub(crate) fn push_for(&self, job: J, reply: Owed<A>) {
        self.shared.queue.push_for(job, reply);
        if let Some(thread) = self.shared.threads.iter().find(|thread| thread.is_idle.take()) {
            thread.filled.set();
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.shared.queue.len()
    }

    /// How many were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.queue.refused()
    }
}

impl<J, A> Drop for Desk<J, A> {
    fn drop(&mut self) {
        self.shared.is_closed.set(true);
        self.shared.threads.iter().for_each(|thread| thread.filled.set());
    }
}

impl<J: Send + 'static, A> Shared<J, A> {
    /// A thread's share of what waits.
    fn take_share(&self) -> (Vec<J>, Vec<Owed<A>>) {
        let share = self.queue.len().div_ceil(self.threads.len());
        let mut left = share.min(self.staff.batch_jobs);
        let taken =
            self.queue.take_while(|_| left.checked_sub(1).map(|less| left = less).is_some());
        taken.into_iter().map(|Waiting { job, reply, .. }| (job, reply)).unzip()
    }

    async fn feed<R: Send + 'static>(
        self: Rc<Self>,
        index: usize,
        lane: Lane<Vec<J>, Vec<R>>,
        settle: impl Fn(R, Owed<A>),
    ) {
        let thread = &self.threads[index];
        while !self.is_closed.get() {
            let (jobs, replies) = self.take_share();
            if jobs.is_empty() {
                thread.is_idle.set(true);
                thread.filled.wait().await;
                thread.is_idle.set(false);
                continue;
            }
            match lane.run(jobs).await {
                Some(done) => done.into_iter().zip(replies).for_each(|(one, by)| settle(one, by)),
                None => replies.iter().for_each(|reply| reply.give(Err(StoreError::lost()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::sync::{Arc, Mutex, mpsc};

    const STAFF: Staff = Staff { name: "test", threads: 2, batch_jobs: 3 };

    fn queue() -> Queue<u32, u32> {
        Queue::new(&Settings::new(std::path::PathBuf::new()), 100)
    }

    fn give(answer: u32, reply: Owed<u32>) {
        reply.give(Ok(answer));
    }

    #[test]
    fn each_job_gets_its_own_answer_and_no_thread_more_than_a_batch() {
        outboard_reactor::run(async {
            let work = || {
                |jobs: Vec<u32>| {
                    assert!(jobs.len() <= STAFF.batch_jobs);
                    jobs.into_iter().map(|job| job * 2).collect()
                }
            };
            let desk = Desk::start(STAFF, queue(), work, give).unwrap();
            let replies: Vec<_> = (0..20).map(|job| desk.push(job)).collect();
            for (job, reply) in (0..).zip(replies) {
                assert_eq!(reply.wait().await, Ok(job * 2));
            }
        })
        .unwrap();
    }

    #[test]
    fn a_job_that_takes_long_does_not_hold_up_the_next() {
        outboard_reactor::run(async {
            let (release, gate) = mpsc::channel::<()>();
            let gate = Arc::new(Mutex::new(gate));
            let work = || {
                let gate = gate.clone();
                move |jobs: Vec<u32>| {
                    if jobs.contains(&0) {
                        gate.lock().unwrap().recv().unwrap();
                    }
                    jobs
                }
            };
            let one_each = Staff { batch_jobs: 1, ..STAFF };
            let desk = Desk::start(one_each, queue(), work, give).unwrap();
            let slow = desk.push(0);
            assert_eq!(desk.push(1).wait().await, Ok(1));
            release.send(()).unwrap();
            assert_eq!(slow.wait().await, Ok(0));
        })
        .unwrap();
    }

    #[test]
    fn who_waits_for_a_thread_that_has_ended_is_told() {
        outboard_reactor::run(async {
            let work = || |_: Vec<u32>| -> Vec<u32> { panic!("the test's own panic") };
            let desk = Desk::start(STAFF, queue(), work, give).unwrap();
            for job in 0..3 {
                assert_eq!(desk.push(job).wait().await, Err(StoreError::lost()));
            }
        })
        .unwrap();
    }
}
