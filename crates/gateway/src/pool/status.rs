//! What `outboard status` shows of a pool.

use super::keeper::add_waits;
use super::members::Members;
use super::routes::RouteStatus;
use super::worker::Worker;
use super::{Counters, Phase, Pool};
use outboard_reactor::now_ms;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::Isolation;
use outboard_supervisor::zygote::Zygote;
use serde::Serialize;

/// A pool at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct PoolStatus {
    /// App name.
    pub app: String,
    /// `classic` or `worker`.
    pub mode: &'static str,
    /// In worker mode: `reset` or `fork`.
    pub isolation: Option<&'static str>,
    /// Requests that a worker may have at a time.
    pub concurrency: usize,
    /// `starting`, `serving`, `retiring` or `gone`.
    pub phase: &'static str,
    /// Version of PHP, once started.
    pub php_version: String,
    /// Process id of the zygote, once there is one.
    pub zygote_pid: Option<u32>,
    /// Fewest workers.
    pub min: usize,
    /// Most workers, as decided now.
    pub max: usize,
    /// Why the pool has the size that it has.
    pub sizing: String,
    /// Requests waiting now.
    pub queue_length: u64,
    /// Requests that workers have now.
    pub in_flight: usize,
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
    /// What PHP has waited for, by function; those that it has waited in.
    pub waits: Vec<WaitStatus>,
    /// Memory by route.
    pub routes: Vec<RouteStatus>,
    /// Each worker.
    pub workers: Vec<WorkerStatus>,
}

/// How often PHP has waited in a function of the C library, since the pool began.
#[derive(Debug, Serialize)]
pub(crate) struct WaitStatus {
    /// Which.
    pub call: &'static str,
    /// A coroutine waited, its worker did not.
    pub suspended: u64,
    /// A whole worker waited.
    pub blocked: u64,
    /// For so long together.
    pub blocked_ms: u64,
}

/// A worker at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct WorkerStatus {
    /// Process id.
    pub pid: Option<i32>,
    /// Where it is in its life: `booting`, `idle`, `busy`, ….
    pub state: String,
    /// Requests that it has.
    pub in_flight: usize,
    /// Method and target of its request, or of the oldest of them.
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
        let workers = members.all().map(|worker| {
            let life = &worker.process.life;
            WorkerStatus {
                pid: worker.process.pid,
                state: life.state().to_string(),
                request: worker.oldest().map(|lease| lease.exchange.label()),
                in_flight: worker.in_flight(),
                for_ms: worker.busy_ms(now_ms).or(life.idle_ms(now_ms)).unwrap_or(0),
                served: life.served(),
                memory_bytes: worker.process.own_bytes,
            }
        });
        PoolStatus {
            app: self.settings.app.clone(),
            mode: if self.settings.is_resident() { "worker" } else { "classic" },
            isolation: self.settings.host.worker.as_ref().map(|worker| match worker.isolation {
                Isolation::Reset => "reset",
                Isolation::Fork => "fork",
            }),
            concurrency: self.settings.concurrency(),
            phase: match self.phase.get() {
                Phase::Starting => "starting",
                Phase::Serving => "serving",
                Phase::Retiring => "retiring",
                Phase::Gone => "gone",
            },
            php_version: keeping.php_version.clone(),
            zygote_pid: self.zygote.borrow().as_ref().map(Zygote::pid),
            min: keeping.sizing.bounds.min(),
            max: keeping.sizing.bounds.max(),
            sizing: keeping.sizing.why(),
            queue_length: members.queue.len() as u64,
            in_flight: members.all().map(Worker::in_flight).sum(),
            requests: counters.requests,
            queued: counters.queued,
            rejected: counters.rejected,
            crashes: counters.crashes,
            deadlines: counters.deadlines,
            recycled: counters.recycled,
            forks: counters.forks,
            waits: waits(&counters, &members),
            routes: self.routes.borrow().status(),
            workers: workers.collect(),
        }
    }
}

/// Those of the workers that have gone and of those that are there.
fn waits(counters: &Counters, members: &Members) -> Vec<WaitStatus> {
    let calls = WaitCall::ALL.into_iter().map(|call| {
        let mut sum = counters.waits[call as usize];
        for worker in members.all() {
            add_waits(&mut sum, worker.process.channel.waits(call));
        }
        WaitStatus {
            call: call.name(),
            suspended: sum.suspended,
            blocked: sum.blocked,
            blocked_ms: sum.blocked_us / 1000,
        }
    });
    calls.filter(|wait| wait.suspended > 0 || wait.blocked > 0).collect()
}
