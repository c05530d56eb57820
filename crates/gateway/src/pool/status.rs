//! What `outboard status` shows of a pool.

use super::{Phase, Pool};
use outboard_reactor::now_ms;
use serde::Serialize;

/// A pool at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct PoolStatus {
    /// App name.
    pub app: String,
    /// `starting`, `serving`, `retiring` or `gone`.
    pub phase: &'static str,
    /// Version of PHP, once started.
    pub php_version: String,
    /// Fewest workers.
    pub min: usize,
    /// Most workers, as decided now.
    pub max: usize,
    /// Why the pool has the size that it has.
    pub sizing: String,
    /// Requests waiting now.
    pub queue_length: u64,
    /// Requests given to the pool since start.
    pub requests: u64,
    /// Of these, how many had to wait.
    pub queued: u64,
    /// Of these, how many found the queue full.
    pub rejected: u64,
    /// Workers that ended by themselves.
    pub crashes: u64,
    /// Requests past their deadline.
    pub deadlines: u64,
    /// Workers replaced by plan.
    pub recycled: u64,
    /// Workers forked.
    pub forks: u64,
    /// Each worker.
    pub workers: Vec<WorkerStatus>,
}

/// A worker at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct WorkerStatus {
    /// Process id.
    pub pid: Option<i32>,
    /// Where it is in its life: `booting`, `idle`, `busy`, ….
    pub state: String,
    /// Method and target of its request.
    pub request: Option<String>,
    /// For how long it has been in this state.
    pub for_ms: u64,
    /// Requests answered.
    pub served: u64,
    /// Resident memory that is its own.
    pub memory_bytes: u64,
}

impl Pool {
    /// Takes a picture.
    pub(crate) fn status(&self) -> PoolStatus {
        let members = self.members.borrow();
        let counters = self.counters.borrow();
        let keeping = self.keeping.borrow();
        let now_ms = now_ms();
        let workers = members.workers.iter().flatten().map(|worker| {
            let life = &worker.process.life;
            WorkerStatus {
                pid: worker.process.pid,
                state: life.state().to_string(),
                request: worker.exchange.as_ref().map(|exchange| exchange.label()),
                for_ms: life.busy_ms(now_ms).or(life.idle_ms(now_ms)).unwrap_or(0),
                served: life.served(),
                memory_bytes: worker.process.own_bytes,
            }
        });
        PoolStatus {
            app: self.settings.app.clone(),
            phase: match self.phase.get() {
                Phase::Starting => "starting",
                Phase::Serving => "serving",
                Phase::Retiring => "retiring",
                Phase::Gone => "gone",
            },
            php_version: keeping.php_version.clone(),
            min: keeping.sizing.bounds.min(),
            max: keeping.sizing.bounds.max(),
            sizing: keeping.sizing.why(),
            queue_length: members.queue.len() as u64,
            requests: counters.requests,
            queued: counters.queued,
            rejected: counters.rejected,
            crashes: counters.crashes,
            deadlines: counters.deadlines,
            recycled: counters.recycled,
            forks: counters.forks,
            workers: workers.collect(),
        }
    }
}
