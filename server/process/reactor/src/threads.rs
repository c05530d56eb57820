//! [`Threads`]: a few threads for work that may wait, and the work that waits for one of them.
//!
//! Used for files that are not in memory and for requests to other processes of the server. Invariants:
//! there are at most [`THREADS`] for each kind of work, however long it takes, and further work waits in the
//! order of arrival; an owner of work has at most its share of them, so that one whose work hangs leaves
//! threads for the others; work whose requester is gone is not begun.

mod jobs;

use crate::core_binding::unbound;
use jobs::{Job, Jobs};
use rustix::process::setpriority_process;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

/// Disks answer this many reads at once, and a thread that waits needs only its stack.
pub(crate) const THREADS: usize = 32;
/// How long a thread without work waits for more: its start takes longer than most work.
const IDLE: Duration = Duration::from_secs(10);

/// See the module.
pub struct Threads {
    state: Mutex<State>,
    arrived: Condvar,
    niceness: Option<i32>,
}

struct State {
    jobs: Jobs,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
}

struct Outcome<T> {
    result: Option<thread::Result<T>>,
    waker: Option<Waker>,
}

impl Threads {
    /// Threads of which each owner of work has so many at most.
    pub const fn new(most_per_owner: usize) -> Self {
        assert!(most_per_owner > 0, "no work would begin");
        let state = State { jobs: Jobs::new(most_per_owner), threads: 0, idle: 0 };
        Self { state: Mutex::new(state), arrived: Condvar::new(), niceness: None }
    }

    /// The same for work that must not take the processors from the loop (nice(2)).
    pub(crate) const fn nice(most_per_owner: usize, niceness: i32) -> Self {
        assert!(most_per_owner > 0, "no work would begin");
        let state = State { jobs: Jobs::new(most_per_owner), threads: 0, idle: 0 };
        Self { state: Mutex::new(state), arrived: Condvar::new(), niceness: Some(niceness) }
    }

    /// Runs `work` on a thread and waits for its result without blocking the loop. A panic of `work`
    /// continues in the waiting task.
    pub async fn run<T: Send + 'static>(
        &'static self,
        owner: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let requester = Arc::new(());
        let outcome = Arc::new(Mutex::new(Outcome { result: None, waker: None }));
        let of_thread = outcome.clone();
        let run = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            let waker = {
                let mut outcome = lock(&of_thread);
                outcome.result = Some(result);
                outcome.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        });
        self.submit(owner, Job { requester: Arc::downgrade(&requester), run });
        let result = poll_fn(|context| {
            let mut outcome = lock(&outcome);
            match outcome.result.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    outcome.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        drop(requester);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The number of jobs that have not begun.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.state).jobs.waiting()
    }

    fn submit(&'static self, owner: u64, job: Job) {
        let mut state = lock(&self.state);
        state.jobs.add(owner, job);
        if state.jobs.startable() <= state.idle || state.threads >= THREADS {
            drop(state);
            return self.arrived.notify_one();
        }
        state.threads += 1;
        drop(state);
        if unbound(|| thread::Builder::new().spawn(|| self.serve())).is_err() {
            // The system allows no more threads: others take the work, or the loop itself waits.
            let mut state = lock(&self.state);
            state.threads -= 1;
            if state.threads == 0 {
                drop(self.run_jobs(state));
            }
        }
    }

    /// Runs jobs until none arrives for some time.
    fn serve(&self) {
        if let Some(niceness) = self.niceness {
            // For this thread only, as Linux has it (setpriority(2), NOTES); without it the work is done
            // as well.
            let _ = setpriority_process(None, niceness);
        }
        let mut state = lock(&self.state);
        loop {
            state = self.run_jobs(state);
            state.idle += 1;
            debug_assert!(state.idle <= state.threads && state.threads <= THREADS);
            let nothing = |state: &mut State| state.jobs.startable() == 0;
            let waited = self.arrived.wait_timeout_while(state, IDLE, nothing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            if state.jobs.startable() == 0 {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Runs jobs until none may begin.
    fn run_jobs<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while let Some((owner, job)) = state.jobs.take() {
            drop(state);
            job.run_if_wanted();
            state = lock(&self.state);
            state.jobs.finished(owner);
        }
        state
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
