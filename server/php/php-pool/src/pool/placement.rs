//! [`Placement`]: where the workers of a pool run: on the core of this thread while their requests are
//! short and the core has room, otherwise anywhere.
//!
//! Called by the manager in each tick, and whenever the rings are polled. It measures, the plan of
//! `outboard_supervisor` decides, and the zygote moves the workers. Meanwhile this thread keeps to its
//! core ([`CoreBinding`]), and lets workers that it has woken answer before it sleeps. Invariants: only
//! workers of this zygote that are ready are placed; once a request of one of them has computed for long,
//! all are let go at the next event of the loop; without news of workers a turn costs two comparisons.

use super::core::PoolCore;
use super::settings::PoolSettings;
use super::worker::Worker;
use outboard_log::Level;
use outboard_reactor::CoreBinding;
use outboard_supervisor::cpu;
use outboard_supervisor::plan::placement::{INTERVAL_MS, Interval, LONG_MS, LONG_NS, Load, Plan};
use outboard_supervisor::thread_times::ThreadTimes;
use std::cell::{Cell, RefCell};

/// If more workers than this are in use, they are not measured, and not placed.
const MAX_WORKERS: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Placement {
    /// Whether the workers of this pool may be placed at all.
    is_possible: bool,
    pub(super) plan: RefCell<Plan>,
    /// Requests that have ended in this interval.
    requests: Cell<u64>,
    /// When this interval began.
    since_ms: Cell<u64>,
    /// When running requests were last looked at.
    watched_ms: Cell<u64>,
    /// While workers are placed.
    binding: RefCell<Option<CoreBinding>>,
    /// Those of this thread.
    own_times: RefCell<Option<ThreadTimes>>,
    pub(super) workers: RefCell<Vec<MeasuredWorker>>,
}

#[derive(Debug)]
pub(super) struct MeasuredWorker {
    pub(super) number: u64,
    times: ThreadTimes,
    /// Whether the zygote was ordered to move it to the core of this thread.
    pub(super) is_placed: bool,
    /// Its time on a processor when its request was first seen to run long.
    watched_ns: Option<u64>,
}

impl MeasuredWorker {
    /// Whether its request, under way for so long, has computed since that was first seen to be long.
    fn computes(&mut self, busy_ms: Option<u64>) -> bool {
        if busy_ms <= Some(LONG_MS) {
            self.watched_ns = None;
            return false;
        }
        let Some(now_ns) = self.times.run_ns() else { return false };
        let since_ns = *self.watched_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) >= LONG_NS
    }
}

impl Placement {
    /// Nothing is placed yet.
    pub(super) fn new(settings: &PoolSettings) -> Self {
        // The work of a program that has its own connections is not known here.
        let has_requests_only = !settings.runs_program();
        Self {
            is_possible: settings.may_share_core && has_requests_only && cpu::cores() > 1,
            plan: RefCell::default(),
            requests: Cell::default(),
            since_ms: Cell::default(),
            watched_ms: Cell::default(),
            binding: RefCell::default(),
            own_times: RefCell::default(),
            workers: RefCell::default(),
        }
    }

    /// A request has ended.
    pub(super) fn record_request(&self) {
        self.requests.update(|requests| requests + 1);
    }

    /// Whether running requests have to be looked at.
    pub(super) fn is_watching(&self) -> bool {
        self.binding.borrow().is_some()
    }

    /// Lets placed workers run that were just woken; false if there are none.
    pub(super) fn yield_core(&self) -> bool {
        let binding = self.binding.borrow();
        binding.as_ref().inspect(|binding| binding.yield_core()).is_some()
    }

    /// Whether a worker is placed.
    pub(super) fn is_active(&self) -> bool {
        self.is_watching() || self.workers.borrow().iter().any(|worker| worker.is_placed)
    }

    /// Ends the interval.
    pub(super) fn measure<'a>(
        &self,
        now_ms: u64,
        own: impl Iterator<Item = &'a Worker>,
    ) -> Interval {
        let requests = self.requests.take();
        let elapsed_ms = now_ms.saturating_sub(self.since_ms.replace(now_ms));
        // Without requests there is no decision to be made.
        let is_used = |worker: &Worker| {
            let idle_ms = worker.process.lifecycle.idle_ms(now_ms);
            idle_ms.is_none_or(|idle_ms| idle_ms <= elapsed_ms)
        };
        let ready = own.filter(|worker| worker.is_ready());
        let load = match requests {
            0 => None,
            _ => self.load(ready.map(|worker| (worker, is_used(worker))).collect()),
        };
        Interval { elapsed_ms, requests, load }
    }

    /// The load of the workers that have been used, as the second of each pair says. A worker that a burst has left
    /// behind sleeps and costs nothing.
    fn load(&self, ready: Vec<(&Worker, bool)>) -> Option<Load> {
        let mut own_times = self.own_times.borrow_mut();
        if own_times.is_none() {
            *own_times = ThreadTimes::of_this_thread();
        }
        let own_times = own_times.as_mut()?.advance()?;
        let gateway_ns = own_times.sum_ns();
        let mut workers_ns = 0_u64;
        let mut workers = self.workers.borrow_mut();
        let used = || ready.iter().filter(|(_, is_used)| *is_used);
        if used().count() > MAX_WORKERS {
            return None;
        }
        for (worker, _) in used() {
            let number = worker.process.number;
            if workers.iter().any(|known| known.number == number) {
                continue;
            }
            let times = worker.process.pid.and_then(ThreadTimes::of_process)?;
            workers.push(MeasuredWorker { number, times, is_placed: false, watched_ns: None });
        }
        // One that drains runs until its last request has ended; one that has exited is removed.
        workers.retain_mut(|worker| {
            let is_it = |(ready, is_used): &(&Worker, bool)| {
                ready.process.number == worker.number && !is_used
            };
            if ready.iter().any(is_it) {
                return worker.is_placed;
            }
            let times = worker.times.advance();
            workers_ns = workers_ns.saturating_add(times.unwrap_or_default().run_ns);
            times.is_some()
        });
        Some(Load { workers_ns, gateway_ns })
    }

    /// Measures at the end of an interval, and places workers or lets them go.
    pub(super) fn place_workers(&self, core: &PoolCore, now_ms: u64) {
        if !self.is_possible {
            return;
        }
        if !core.lifecycle.is_serving() {
            return self.let_workers_go(core);
        }
        if now_ms.saturating_sub(self.since_ms.get()) < INTERVAL_MS {
            return;
        }
        let interval = self.measure(now_ms, core.members.borrow().roster.own());
        self.plan.borrow_mut().decide(now_ms, &interval);
        match self.plan.borrow().is_placed() {
            true => self.place_ready_workers(core),
            false => self.let_workers_go(core),
        }
    }

    /// Moves workers to this core that are not there. If the core is that of another thread, the next
    /// interval tries again.
    pub(super) fn place_ready_workers(&self, core: &PoolCore) {
        let mut binding = self.binding.borrow_mut();
        if binding.is_none() {
            *binding = CoreBinding::bind();
        }
        let Some(here) = binding.as_ref().map(CoreBinding::core) else { return };
        for worker in self.workers.borrow_mut().iter_mut().filter(|one| !one.is_placed) {
            debug_assert!(core.shard.is_owner_of(worker.number), "another zygote has it");
            worker.is_placed = order_cores(core, worker.number, &[here]);
        }
    }

    /// Lets all workers go, and this thread. An order that the zygote does not take now is repeated at the
    /// next tick.
    fn let_workers_go(&self, core: &PoolCore) {
        self.binding.take();
        for worker in self.workers.borrow_mut().iter_mut().filter(|one| one.is_placed) {
            worker.is_placed = !order_cores(core, worker.number, &[]);
        }
    }

    /// Lets a worker go that another thread gets.
    pub(super) fn let_worker_go(&self, core: &PoolCore, number: u64) {
        let mut workers = self.workers.borrow_mut();
        if let Some(at) = workers.iter().position(|worker| worker.number == number)
            && workers.swap_remove(at).is_placed
        {
            order_cores(core, number, &[]);
        }
    }

    /// The zygote is gone, and its workers with it.
    pub(super) fn forget(&self) {
        self.binding.take();
        self.workers.borrow_mut().clear();
    }

    /// Lets the workers go if a request of one computes for long.
    pub(super) fn watch_requests(&self, core: &PoolCore, now_ms: u64) {
        if self.watched_ms.replace(now_ms) == now_ms {
            return;
        }
        let has_long = {
            let (members, mut workers) = (core.members.borrow(), self.workers.borrow_mut());
            members.roster.own().any(|worker| {
                let number = worker.process.number;
                let measured = workers.iter_mut().find(|measured| measured.number == number);
                measured.is_some_and(|measured| measured.computes(worker.busy_ms(now_ms)))
            })
        };
        if has_long {
            self.plan.borrow_mut().end(now_ms);
            self.let_workers_go(core);
        }
    }
}

/// Whether the zygote has accepted the order.
fn order_cores(core: &PoolCore, worker: u64, cores: &[u16]) -> bool {
    let zygote = core.zygote.borrow();
    // Without a zygote there are no workers.
    let Some(zygote) = zygote.as_ref() else { return true };
    let ordered = zygote.place(worker, cores);
    if let Err(error) = &ordered {
        core.log.log(Level::Debug, &format!("cannot move a worker to other cores: {error}"));
    }
    ordered.is_ok()
}
