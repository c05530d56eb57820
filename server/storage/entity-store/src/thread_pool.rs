//! [`ThreadPool`]: a queue and the threads behind it, each fed its share of the queue in batches.
//!
//! Used for everything that blocks: reads of a disk, and Redis. Several threads, so that one slow job
//! does not delay all. Invariants: the loop never waits for a thread; every admitted job gets a result,
//! also when its thread panics; dropping the pool ends its threads after their current batch.

use crate::batch_worker::BatchWorker;
use crate::error::StoreError;
use crate::oneshot;
use crate::queue::{Queue, ResultReceiver, ResultSender, Waiting};
use outboard_reactor::{Event, spawn};
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// Thread-pool settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadPoolConfig {
    /// The name of the threads.
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
    /// The most jobs that a thread gets at once.
    pub(crate) batch_jobs: usize,
}

/// Threads that turn jobs `J` into results `A`.
pub(crate) struct ThreadPool<J, A> {
    shared: Rc<Shared<J, A>>,
}

struct Shared<J, A> {
    queue: Queue<J, A>,
    config: ThreadPoolConfig,
    threads: Vec<Thread>,
    is_closed: Cell<bool>,
}

#[derive(Default)]
struct Thread {
    filled: Event,
    is_idle: Cell<bool>,
}

impl<J: Send + 'static, A: 'static> ThreadPool<J, A> {
    /// Starts the threads. Each runs its own closure from `work`; `settle` runs on the loop with the
    /// outcome of each job and the sender of its result.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start<R, W, S>(
        config: ThreadPoolConfig,
        queue: Queue<J, A>,
        work: impl Fn() -> W,
        settle: S,
    ) -> io::Result<Self>
    where
        R: Send + 'static,
        W: FnMut(Vec<J>) -> Vec<R> + Send + 'static,
        S: Fn(R, ResultSender<A>) + Clone + 'static,
    {
        let threads = (0..config.threads).map(|_| Thread::default()).collect();
        let pool = Self {
            shared: Rc::new(Shared { queue, config, threads, is_closed: Cell::new(false) }),
        };
        for index in 0..config.threads {
            let worker = BatchWorker::start(config.name, work())?;
            spawn(pool.shared.clone().feed(index, worker, settle.clone()));
        }
        Ok(pool)
    }
}

impl<J, A> ThreadPool<J, A> {
    /// See [`Queue::make_room`].
    ///
    /// # Errors
    /// The job is not admitted.
    pub(crate) fn make_room(&self) -> Result<Option<J>, StoreError> {
        self.shared.queue.make_room()
    }

    /// Appends a job, after [`ThreadPool::make_room`].
    pub(crate) fn push(&self, job: J) -> ResultReceiver<A> {
        let (reply, receiver) = oneshot::channel();
        self.push_with(job, reply);
        receiver
    }

    /// Appends a job whose caller already waits.
    pub(crate) fn push_with(&self, job: J, reply: ResultSender<A>) {
        self.shared.queue.push_with(job, reply);
        if let Some(thread) = self.shared.threads.iter().find(|thread| thread.is_idle.take()) {
            thread.filled.set();
        }
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.shared.queue.len()
    }

    /// The number of jobs that were rejected or dropped.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.queue.refused()
    }
}

impl<J, A> Drop for ThreadPool<J, A> {
    fn drop(&mut self) {
        self.shared.is_closed.set(true);
        self.shared.threads.iter().for_each(|thread| thread.filled.set());
    }
}

impl<J: Send + 'static, A> Shared<J, A> {
    /// Removes an equal share of the queue, at most a batch.
    fn take_share(&self) -> (Vec<J>, Vec<ResultSender<A>>) {
        let share = self.queue.len().div_ceil(self.threads.len());
        let mut left = share.min(self.config.batch_jobs);
        let taken =
            self.queue.take_while(|_| left.checked_sub(1).map(|less| left = less).is_some());
        taken.into_iter().map(|Waiting { job, reply, .. }| (job, reply)).unzip()
    }

    async fn feed<R: Send + 'static>(
        self: Rc<Self>,
        index: usize,
        worker: BatchWorker<Vec<J>, Vec<R>>,
        settle: impl Fn(R, ResultSender<A>),
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
            match worker.run(jobs).await {
                Some(outcomes) => {
                    outcomes.into_iter().zip(replies).for_each(|(one, reply)| settle(one, reply));
                }
                None => replies
                    .into_iter()
                    .for_each(|reply| reply.send(Err(StoreError::thread_ended()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::sync::{Arc, Mutex, mpsc};

    const CONFIG: ThreadPoolConfig = ThreadPoolConfig { name: "test", threads: 2, batch_jobs: 3 };

    fn queue() -> Queue<u32, u32> {
        Queue::new(&Settings::new(std::path::PathBuf::new()), 100)
    }

    fn send(answer: u32, reply: ResultSender<u32>) {
        reply.send(Ok(answer));
    }

    #[test]
    fn each_job_gets_its_result_in_batches_within_the_limit() {
        outboard_reactor::run(async {
            let work = || {
                |jobs: Vec<u32>| {
                    assert!(jobs.len() <= CONFIG.batch_jobs);
                    jobs.into_iter().map(|job| job * 2).collect()
                }
            };
            let pool = ThreadPool::start(CONFIG, queue(), work, send).unwrap();
            let replies: Vec<_> = (0..20).map(|job| pool.push(job)).collect();
            for (job, reply) in (0..).zip(replies) {
                assert_eq!(reply.receive().await, Ok(job * 2));
            }
        })
        .unwrap();
    }

    #[test]
    fn a_slow_job_does_not_delay_the_next() {
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
            let one_each = ThreadPoolConfig { batch_jobs: 1, ..CONFIG };
            let pool = ThreadPool::start(one_each, queue(), work, send).unwrap();
            let slow = pool.push(0);
            assert_eq!(pool.push(1).receive().await, Ok(1));
            release.send(()).unwrap();
            assert_eq!(slow.receive().await, Ok(0));
        })
        .unwrap();
    }

    #[test]
    fn a_job_of_a_panicked_thread_gets_an_error() {
        outboard_reactor::run(async {
            let work = || |_: Vec<u32>| -> Vec<u32> { panic!("the test's own panic") };
            let pool = ThreadPool::start(CONFIG, queue(), work, send).unwrap();
            for job in 0..3 {
                assert_eq!(pool.push(job).receive().await, Err(StoreError::thread_ended()));
            }
        })
        .unwrap();
    }
}
