//! The size of the pool: when workers are forked, and when they are drained.
//!
//! Called by the manager in each tick. It measures the demand, the plans of `outboard_supervisor` decide,
//! and it carries out the decision. Invariant: without permission of the back-off nothing is forked.

use super::super::members::Members;
use super::super::worker::Worker;
use super::super::{Phase, Pool, PoolSettings, Shard};
use outboard_supervisor::cpu::{self, Sample};
use outboard_supervisor::memory::{Resident, p95_bytes};
use outboard_supervisor::plan::recycle::{Candidate, Policy, Reason as RecycleReason};
use outboard_supervisor::plan::scale::{
    Bounds, Decision, PoolView, SATURATED_PERCENT, Sizes, decide,
};
use outboard_supervisor::worker::lifecycle::State;
use std::rc::Rc;

/// The shortest interval between samples of the processors.
const CPU_SAMPLE_MS: u64 = 40;
/// A worker that sleeps while its request is older than this is blocked.
const BLOCKED_MS: u64 = 5;
/// The interval between samples of the workers' memory.
const MEMORY_SAMPLE_MS: u64 = 1_000;
/// The number of workers if each processes one request: those that are busy, and those that replace
/// them at once.
const FORKS_PER_CORE: usize = 4;
const MIN_FORKS: usize = 4;
const MAX_FORKS: usize = 16;
/// The memory of a worker before the first measurement.
const ASSUMED_WORKER_BYTES: u64 = 48 << 20;

/// The state of sizing.
#[derive(Debug)]
pub(crate) struct Sizing {
    pub(crate) bounds: Bounds,
    sizes: Sizes,
    policy: Policy,
    idle_timeout_ms: u64,
    /// The last decision, with its reason.
    pub(crate) decision: Option<Decision>,
    pub(crate) cpu: Option<(u64, Sample)>,
    pub(crate) cpu_busy_percent: Option<u8>,
    memory_sampled_ms: u64,
    pub(super) last_grow_ms: Option<u64>,
    last_shrink_ms: Option<u64>,
}

impl Sizing {
    pub(super) fn new(settings: &PoolSettings, shard: &Shard) -> Self {
        let cores = cpu::cores();
        let forks = settings.forks_per_request().then(|| {
            let max = settings.max.unwrap_or(MAX_FORKS);
            (FORKS_PER_CORE * cores).clamp(MIN_FORKS, MAX_FORKS).min(max)
        });
        let sizes = Sizes {
            min: settings.min.or(forks),
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
            cpu_busy_percent: None,
            memory_sampled_ms: 0,
            last_grow_ms: None,
            last_shrink_ms: None,
        }
    }

    /// Why this worker has to be replaced, if it has.
    pub(crate) fn recycle_reason(&self, worker: &Worker) -> Option<RecycleReason> {
        self.policy.due(&Candidate {
            worker: worker.process.number,
            is_idle: true,
            served: worker.process.lifecycle.served(),
            own_bytes: worker.process.own_bytes,
        })
    }

    fn sample_cpu(&mut self, now_ms: u64) {
        if self.cpu.as_ref().is_some_and(|(at_ms, _)| now_ms - at_ms < CPU_SAMPLE_MS) {
            return;
        }
        let Some(sample) = Sample::take(now_ms) else { return };
        if let Some((_, earlier)) = &self.cpu {
            self.cpu_busy_percent = sample.busy_percent_since(earlier, self.sizes.cores);
        }
        self.cpu = Some((now_ms, sample));
    }
}

impl Pool {
    /// Adapts the size of the pool to the demand.
    pub(in crate::pool) fn resize(self: &Rc<Self>, now_ms: u64) {
        if self.phase.get() != Phase::Serving {
            return;
        }
        self.sample_memory(now_ms);
        let (decision, view) = {
            let members = self.members.borrow();
            let mut manager = self.manager.borrow_mut();
            if !members.queue.is_empty() {
                manager.sizing.sample_cpu(now_ms);
            }
            let replacements = self.replacements.borrow();
            let is_replaced = |worker: &Worker| {
                replacements.iter().any(|replacement| replacement.old == worker.process.number)
            };
            let view = view(&members, is_replaced, &manager.sizing, now_ms);
            let decision = decide(&manager.sizing.bounds, &view);
            manager.sizing.decision = Some(decision);
            if !manager.may_fork(now_ms) && matches!(decision, Decision::Grow(..)) {
                return;
            }
            (decision, view)
        };
        match decision {
            Decision::Grow(count, _) => {
                self.manager.borrow_mut().sizing.last_grow_ms = Some(now_ms);
                for _ in 0..count {
                    self.fork();
                }
            }
            Decision::Shrink(count, _) => {
                self.manager.borrow_mut().sizing.last_shrink_ms = Some(now_ms);
                self.shrink(count);
            }
            Decision::Hold(_) => {}
        }
        self.grow_elsewhere(&view);
        self.recycle_idle();
    }

    /// Drains the workers that have been idle longest.
    fn shrink(&self, count: usize) {
        let mut members = self.members.borrow_mut();
        self.drain_reserve(&mut members);
        let is_own =
            |slot: &usize| members.workers[*slot].as_ref().is_some_and(|worker| worker.is_own);
        let idle: Vec<usize> = members.idle().into_iter().filter(is_own).take(count).collect();
        for slot in idle {
            self.drain_slot(&mut members, slot);
        }
    }

    /// Drains idle workers that have to be replaced.
    pub(in crate::pool) fn recycle_idle(&self) {
        let mut members = self.members.borrow_mut();
        for slot in members.idle() {
            if self.should_drain(&members, slot) {
                self.drain_slot(&mut members, slot);
            }
        }
    }

    fn sample_memory(&self, now_ms: u64) {
        let mut manager = self.manager.borrow_mut();
        if now_ms - manager.sizing.memory_sampled_ms < MEMORY_SAMPLE_MS {
            return;
        }
        manager.sizing.memory_sampled_ms = now_ms;
        let mut members = self.members.borrow_mut();
        let mut sizes = Vec::new();
        let mut routes = self.routes.borrow_mut();
        for worker in members.all_mut() {
            let Some(resident) = worker.process.pid.and_then(Resident::read) else { continue };
            let before = std::mem::replace(&mut worker.process.own_bytes, resident.own_bytes());
            // Its initial memory belongs to no route.
            let growth =
                if before == 0 { 0 } else { worker.process.own_bytes as i64 - before as i64 };
            routes.record_growth(growth, &mut worker.request_counts);
            sizes.push(worker.process.own_bytes);
        }
        if !sizes.is_empty() {
            manager.sizing.sizes.worker_bytes = p95_bytes(&sizes).max(1 << 20);
            manager.sizing.bounds = share(Bounds::resolve(manager.sizing.sizes), &self.shard);
        }
    }
}

/// The bounds of one thread's part of a pool.
fn share(bounds: Bounds, shard: &Shard) -> Bounds {
    bounds.map(|total| shard.share(total))
}

fn view(
    members: &Members,
    is_replaced: impl Fn(&Worker) -> bool,
    sizing: &Sizing,
    now_ms: u64,
) -> PoolView {
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
    if let Some(queued) = members.queue.front() {
        view.oldest_queued_ms = now_ms.saturating_sub(queued.exchange.submitted_ms);
    }
    let mut busy_pids = Vec::new();
    // Workers that are about to be replaced do not count, nor does one in reserve.
    for worker in members.own().filter(|worker| !is_replaced(worker) && !worker.is_reserve) {
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
    let saturated = sizing.cpu_busy_percent.is_some_and(|percent| percent >= SATURATED_PERCENT);
    if saturated && !members.queue.is_empty() {
        // Whether those that others have are blocked is not known here. They must not keep a request of this
        // thread waiting.
        view.sleeping = Some(cpu::count_sleeping(busy_pids) + members.lent.len());
    }
    view
}
