//! The status of a pool, for `outboard status` and the metrics.
//!
//! Called by the gateway. Invariant: it changes nothing.

use super::manager::add_waits;
use super::members::Members;
use super::worker::Worker;
use super::{Counters, Phase, Pool};
use outboard_admin_api::status as api;
use outboard_reactor::now_ms;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::{self, Isolation};
use outboard_supervisor::zygote::Zygote;

impl Pool {
    /// The present status.
    pub fn status(&self) -> api::Pool {
        let members = self.members.borrow();
        let counters = self.counters.borrow();
        let manager = self.manager.borrow();
        let (sizing, now_ms) = (&manager.sizing, now_ms());
        let workers = members.all().map(|worker| {
            let life = &worker.process.lifecycle;
            api::Worker {
                pid: worker.process.pid,
                state: if worker.is_reserve {
                    "reserve".to_owned()
                } else {
                    life.state().to_string()
                },
                request: worker.oldest().map(|lease| lease.exchange.label()),
                in_flight: worker.in_flight(),
                for_ms: worker.busy_ms(now_ms).or(life.idle_ms(now_ms)).unwrap_or(0),
                served: life.served(),
                memory_bytes: worker.process.own_bytes,
            }
        });
        api::Pool {
            app: self.settings.app.clone(),
            mode: if self.settings.is_resident() { "worker" } else { "classic" }.to_owned(),
            isolation: self.settings.host.worker.as_ref().map(|worker| match worker.isolation {
                Isolation::Reset => "reset".to_owned(),
                Isolation::Fork => "fork".to_owned(),
                Isolation::Rewind => "rewind".to_owned(),
            }),
            snapshot: self.snapshot_status(),
            rewind: manager.rewind.map(|rewind| describe_rewind(rewind, &counters, &members)),
            rewind_refused: manager.rewind_refused.clone(),
            start_failure: manager.failure.clone(),
            concurrency: self.settings.concurrency(),
            phase: self.phase_name().to_owned(),
            php_version: manager.php_version.clone(),
            zygote_pid: self.zygote.borrow().as_ref().and_then(Zygote::pid),
            min: sizing.bounds.min(),
            max: sizing.bounds.max(),
            sizing: sizing.decision.map_or_else(String::new, |decision| decision.to_string()),
            queue_length: members.queue.len() as u64,
            in_flight: members.all().map(Worker::in_flight).sum(),
            requests: counters.requests,
            queued: counters.queued,
            rejected: counters.rejected,
            crashes: counters.crashes,
            deadlines: counters.deadlines,
            recycled: counters.recycled,
            forks: counters.forks,
            mean_start_us: mean_start_us(&counters, &members),
            waits: waits(&counters, &members),
            routes: self.routes.borrow().status(),
            workers: workers.collect(),
        }
    }

    /// Requests that workers handle, and those that wait.
    pub fn load(&self) -> (usize, usize) {
        let members = self.members.borrow();
        (members.all().map(Worker::in_flight).sum(), members.queue.len())
    }

    fn phase_name(&self) -> &'static str {
        match self.phase.get() {
            Phase::Serving if self.crash_loop().is_active() => "crashing",
            Phase::Starting => "starting",
            Phase::Serving => "serving",
            Phase::Retiring => "retiring",
            Phase::Gone => "gone",
        }
    }
}

/// How workers are rewound, and what it has cost those that have exited and those that run.
fn describe_rewind(how: control::Rewind, counters: &Counters, members: &Members) -> api::Rewind {
    let mut sum = counters.rewinds;
    members.all().for_each(|worker| sum.add(worker.process.channel.rewinds()));
    api::Rewind {
        writes_by: how.writes_by.name().to_owned(),
        snapshot_bytes: how.snapshot_bytes,
        rewinds: sum.count,
        mean_us: sum.us / sum.count.max(1),
        mean_pages: sum.pages / sum.count.max(1),
    }
}

/// The mean time from the order to fork a worker until it was ready.
fn mean_start_us(counters: &Counters, members: &Members) -> u64 {
    let (mut starts, mut us) = (counters.starts, counters.start_us);
    for running_us in members.all().filter_map(Worker::start_us) {
        starts += 1;
        us += running_us;
    }
    us / starts.max(1)
}

/// The waits of workers that have exited and of those that run.
fn waits(counters: &Counters, members: &Members) -> Vec<api::Wait> {
    let calls = WaitCall::ALL.into_iter().map(|call| {
        let mut sum = counters.waits[call as usize];
        for worker in members.all() {
            add_waits(&mut sum, worker.process.channel.waits(call));
        }
        api::Wait {
            call: call.name().to_owned(),
            suspended: sum.suspended,
            blocked: sum.blocked,
            blocked_ms: sum.blocked_us / 1000,
        }
    });
    calls.filter(|wait| wait.suspended > 0 || wait.blocked > 0).collect()
}
