//! The status of a pool, for `outboard status` and the metrics.
//!
//! Called by the gateway. Invariant: it changes nothing (by its type: it has shared borrows only).

use super::core::PoolCore;
use super::counters::{Counters, add_waits};
use super::lifecycle::Phase;
use super::members::Members;
use super::sizing::Sizing;
use super::worker::Worker;
use outboard_admin_api::status as api;
use outboard_reactor::now_ms;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::{self, Isolation};
use outboard_supervisor::zygote::Zygote;

/// The present status, without that of the snapshot.
pub(super) fn of(core: &PoolCore, sizing: &Sizing) -> api::Pool {
    let (members, counters) = (core.members.borrow(), core.counters.borrow());
    let (php, now_ms) = (core.php.borrow(), now_ms());
    let workers = members.roster.all();
    let isolation = core.settings.host.worker.as_ref().map(|worker| match worker.isolation {
        Isolation::Reset => "reset".to_owned(),
        Isolation::Fork => "fork".to_owned(),
        Isolation::Rewind => "rewind".to_owned(),
    });
    api::Pool {
        app: core.settings.app.clone(),
        mode: if core.settings.is_resident() { "worker" } else { "classic" }.to_owned(),
        isolation,
        snapshot: None,
        rewind: php.boot.rewind.map(|rewind| describe_rewind(rewind, &counters, &members)),
        rewind_refused: php.boot.rewind_refused.clone(),
        start_failure: php.failure.clone(),
        concurrency: core.settings.concurrency(),
        phase: phase_name(core).to_owned(),
        php_version: php.boot.php_version.clone(),
        zygote_pid: core.zygote.borrow().as_ref().and_then(Zygote::pid),
        min: sizing.bounds.min(),
        max: sizing.bounds.max(),
        sizing: sizing.decision.map_or_else(String::new, |decision| decision.to_string()),
        queue_length: members.queue.len() as u64,
        in_flight: workers.clone().map(Worker::in_flight).sum(),
        requests: counters.requests,
        direct_connections: workers.clone().map(|worker| worker.direct.len()).sum(),
        direct_requests: counters.direct,
        adopted_requests: counters.adopted,
        queued: counters.queued,
        rejected: counters.rejected,
        crashes: counters.crashes,
        deadlines: counters.deadlines,
        recycled: counters.recycled,
        forks: counters.forks,
        mean_start_us: counters.mean_start_us(workers.clone()),
        waits: waits(&counters, &members),
        routes: core.routes.borrow().status(),
        workers: workers.map(|worker| describe_worker(worker, now_ms)).collect(),
    }
}

fn describe_worker(worker: &Worker, now_ms: u64) -> api::Worker {
    let life = &worker.process.lifecycle;
    let state = if worker.is_reserve { "reserve".to_owned() } else { life.state().to_string() };
    api::Worker {
        pid: worker.process.pid,
        state,
        request: worker.oldest().map(|lease| lease.exchange.label()),
        in_flight: worker.in_flight(),
        for_ms: worker.busy_ms(now_ms).or(life.idle_ms(now_ms)).unwrap_or(0),
        served: life.served(),
        memory_bytes: worker.process.own_bytes,
    }
}

fn phase_name(core: &PoolCore) -> &'static str {
    match core.lifecycle.phase() {
        Phase::Serving if core.shard.crash_loop().is_active() => "crashing",
        Phase::Asleep => "asleep",
        Phase::Starting => "starting",
        Phase::Serving => "serving",
        Phase::Retiring => "retiring",
        Phase::Gone => "gone",
    }
}

/// How workers are rewound, and what it has cost those that have exited and those that run.
fn describe_rewind(how: control::Rewind, counters: &Counters, members: &Members) -> api::Rewind {
    let mut sum = counters.rewinds;
    members.roster.all().for_each(|worker| sum.add(worker.process.channel.rewinds()));
    api::Rewind {
        writes_by: how.writes_by.name().to_owned(),
        snapshot_bytes: how.snapshot_bytes,
        rewinds: sum.count,
        mean_us: sum.us / sum.count.max(1),
        mean_pages: sum.pages / sum.count.max(1),
    }
}

/// The waits of workers that have exited and of those that run.
fn waits(counters: &Counters, members: &Members) -> Vec<api::Wait> {
    let calls = WaitCall::ALL.into_iter().map(|call| {
        let mut sum = counters.waits[call as usize];
        for worker in members.roster.all() {
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
