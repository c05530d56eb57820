//! [`Sizing`]: how many workers a pool should have, and which of them have to be replaced.
//!
//! Called by the manager in each tick. It measures the demand, the plans of `outboard_supervisor` decide, and the
//! manager carries out the decision. Each thread may fork its part of the workers of the app; if all requests come
//! to one thread, its part is not enough, and it asks the others to fork for it. Invariant: the pools of all threads
//! together have no more workers than the app may have.

use super::core::PoolCore;
use super::lending::messages::Message;
use super::lending::shards::Shard;
use super::members::Members;
use super::replacements::Replacements;
use super::settings::PoolSettings;
use super::worker::Worker;
use outboard_supervisor::cpu::{self, Sample};
use outboard_supervisor::memory::{Resident, p95_bytes};
use outboard_supervisor::plan::recycle::{Candidate, Policy, Reason as RecycleReason};
use outboard_supervisor::plan::scale::{
    Bounds, Decision, PoolView, Reason, SATURATED_PERCENT, Sizes, decide,
};
use outboard_supervisor::thread_times::{ThreadTimes, Times};
use outboard_supervisor::worker::lifecycle::State;

/// The shortest interval between samples of the processors.
const CPU_SAMPLE_MS: u64 = 40;
/// A worker that sleeps while its request is older than this is blocked.
const BLOCKED_MS: u64 = 5;
/// The interval between samples of the workers' memory.
const MEMORY_SAMPLE_MS: u64 = 1_000;
/// The memory of a worker before the first measurement.
const ASSUMED_WORKER_BYTES: u64 = 48 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Sizing {
    pub(super) bounds: Bounds,
    sizes: Sizes,
    policy: Policy,
    idle_timeout_ms: u64,
    /// The last decision, with its reason.
    pub(super) decision: Option<Decision>,
    pub(super) cpu: Option<(u64, Sample)>,
    /// Those of this thread.
    own_times: Option<ThreadTimes>,
    pub(super) cpu_busy_percent: Option<u8>,
    memory_sampled_ms: u64,
    last_grow_ms: Option<u64>,
    last_shrink_ms: Option<u64>,
}

impl Sizing {
    pub(super) fn new(settings: &PoolSettings, shard: &Shard) -> Self {
        let cores = cpu::cores();
        let sizes = Sizes {
            min: settings.min,
            max: settings.max,
            spare: settings.spare,
            cores,
            memory_budget_bytes: settings.memory_budget_bytes,
            worker_bytes: ASSUMED_WORKER_BYTES,
        };
        Self {
            bounds: share(Bounds::resolve(sizes), shard),
            sizes,
            policy: Policy {
                requests: settings.recycle_requests,
                jitter_percent: settings.recycle_jitter_percent,
                memory_bytes: settings.recycle_memory_bytes,
                seed: u64::from(std::process::id()),
            },
            idle_timeout_ms: settings.idle_timeout_ms,
            decision: None,
            cpu: None,
            own_times: None,
            cpu_busy_percent: None,
            memory_sampled_ms: 0,
            last_grow_ms: None,
            last_shrink_ms: None,
        }
    }

    /// Why this worker has to be replaced, if it has.
    pub(super) fn recycle_reason(&self, worker: &Worker) -> Option<RecycleReason> {
        self.policy.due(&Candidate {
            worker: worker.process.number,
            is_idle: true,
            served: worker.process.lifecycle.served(),
            own_bytes: worker.process.own_bytes,
        })
    }

    /// A sample of before requests began to wait would show the processors idle. A thread of the gateway that is busy
    /// all the time counts as much as busy processors: requests wait for it, however many workers there are.
    fn sample_cpu(&mut self, now_ms: u64, is_waiting: bool) {
        if !is_waiting {
            (self.cpu, self.cpu_busy_percent) = (None, None);
            return;
        }
        if self.cpu.as_ref().is_some_and(|(at_ms, _)| now_ms - at_ms < CPU_SAMPLE_MS) {
            return;
        }
        let Some(sample) = Sample::take(now_ms) else { return };
        if self.own_times.is_none() {
            self.own_times = ThreadTimes::of_this_thread();
        }
        let own_ns =
            self.own_times.as_mut().and_then(ThreadTimes::advance).map_or(0, Times::sum_ns);
        if let Some((at_ms, earlier)) = &self.cpu {
            let own_percent = (own_ns / (10_000 * (now_ms - at_ms))).min(100) as u8;
            let machine_percent = sample.busy_percent_since(earlier, self.sizes.cores);
            self.cpu_busy_percent = machine_percent.map(|percent| percent.max(own_percent));
        }
        self.cpu = Some((now_ms, sample));
    }

    /// Decides for the present demand.
    pub(super) fn decide(
        &mut self,
        members: &Members,
        replacements: &Replacements,
        now_ms: u64,
    ) -> (Decision, PoolView) {
        self.sample_cpu(now_ms, !members.queue.is_empty());
        let view = view(members, replacements, self, now_ms);
        let decision = decide(&self.bounds, &view);
        if let Decision::Grow(count, _) = decision {
            let total = view.booting + view.idle + view.busy + count;
            debug_assert!(total <= self.bounds.max(), "{decision} makes {total} workers");
        }
        self.decision = Some(decision);
        (decision, view)
    }

    /// The pool grows.
    pub(super) fn grown(&mut self, now_ms: u64) {
        self.last_grow_ms = Some(now_ms);
    }

    /// The pool shrinks.
    pub(super) fn shrunk(&mut self, now_ms: u64) {
        self.last_shrink_ms = Some(now_ms);
    }

    /// How many workers a pool with so many may still fork.
    pub(super) fn vacant(&self, active: usize) -> usize {
        self.bounds.max().saturating_sub(active)
    }

    /// Requests workers of other threads if this one may not fork those that it needs. They are lent to it.
    pub(super) fn grow_elsewhere(&mut self, shard: &Shard, active: usize, view: &PoolView) {
        if shard.count() == 1 {
            return;
        }
        shard.publish_vacant(self.vacant(active));
        if self.decision != Some(Decision::Hold(Reason::AtMaximum)) {
            return;
        }
        let vacant = shard.vacant_elsewhere().map(|(_, vacant)| vacant).sum();
        let Decision::Grow(mut count, _) = decide(&self.bounds.with_more(vacant), view) else {
            return;
        };
        self.grown(view.now_ms);
        for (at, vacant) in shard.vacant_elsewhere() {
            let part = count.min(vacant);
            count -= part;
            if part > 0 {
                shard.send(at, Message::Grow { count: part });
            }
        }
    }

    /// Measures the memory of the workers, from time to time: how many it permits, and which routes need it.
    pub(super) fn sample_memory(&mut self, core: &PoolCore, now_ms: u64) {
        if now_ms - self.memory_sampled_ms < MEMORY_SAMPLE_MS {
            return;
        }
        self.memory_sampled_ms = now_ms;
        let mut members = core.members.borrow_mut();
        let mut sizes = Vec::new();
        let mut routes = core.routes.borrow_mut();
        for worker in members.roster.all_mut() {
            let Some(resident) = worker.process.pid.and_then(Resident::read) else { continue };
            let before = std::mem::replace(&mut worker.process.own_bytes, resident.own_bytes());
            // Its initial memory belongs to no route.
            let growth =
                if before == 0 { 0 } else { worker.process.own_bytes as i64 - before as i64 };
            routes.record_growth(growth, &mut worker.request_counts);
            sizes.push(worker.process.own_bytes);
        }
        if !sizes.is_empty() {
            self.sizes.worker_bytes = p95_bytes(&sizes).max(1 << 20);
            self.bounds = share(Bounds::resolve(self.sizes), &core.shard);
        }
    }
}

/// The bounds of one thread's part of a pool.
fn share(bounds: Bounds, shard: &Shard) -> Bounds {
    bounds.map(|total| shard.share(total))
}

fn view(members: &Members, replacements: &Replacements, sizing: &Sizing, now_ms: u64) -> PoolView {
    let mut view = PoolView {
        now_ms,
        // Others have them because they are busy.
        busy: members.lent.len(),
        queue_length: members.queue.len(),
        cpu_busy_percent: sizing.cpu_busy_percent,
        last_grow_ms: sizing.last_grow_ms,
        last_shrink_ms: sizing.last_shrink_ms,
        ..PoolView::default()
    };
    if let Some(oldest_ms) = members.queue.oldest_ms() {
        view.oldest_queued_ms = now_ms.saturating_sub(oldest_ms);
    }
    let mut busy_pids = Vec::new();
    // Workers that are about to be replaced do not count, nor does one in reserve.
    let is_counted =
        |worker: &&Worker| !worker.is_reserve && !replacements.is_replaced(worker.process.number);
    for worker in members.roster.own().filter(is_counted) {
        let life = &worker.process.lifecycle;
        match life.state() {
            State::Forking | State::Booting => view.booting += 1,
            State::Idle => {
                view.idle += 1;
                let is_long = life.idle_ms(now_ms) >= Some(sizing.idle_timeout_ms);
                view.idle_long += usize::from(is_long);
            }
            State::Busy => {
                view.busy += 1;
                let busy_ms = worker.busy_ms(now_ms).unwrap_or(0);
                // Between two quick requests a worker sleeps as well, without being blocked.
                if busy_ms >= BLOCKED_MS {
                    busy_pids.extend(worker.process.pid);
                }
                view.oldest_busy_ms = view.oldest_busy_ms.max(busy_ms);
            }
            State::Draining | State::Killing | State::Gone => {}
        }
    }
    let is_idle = sizing.cpu_busy_percent.is_some_and(|percent| percent < SATURATED_PERCENT);
    if !is_idle && !members.queue.is_empty() {
        // Whether those that others have are blocked is not known here. They must not keep a request of this
        // thread waiting.
        view.sleeping = Some(cpu::count_sleeping(busy_pids) + members.lent.len());
    }
    view
}
