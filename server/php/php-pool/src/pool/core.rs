//! [`PoolCore`]: what all parts of a pool read and change: its workers and its queue, its place among the pools of
//! the app, its zygote, and what is written about it.
//!
//! The parts call it; it calls none of them, but signals workers and wakes the manager. Tasks and doorbells that
//! need a worker hold it rather than the pool. Invariants: those of [`Members`](super::members); a
//! worker is killed once, and its requests fail when its exit is reported.

use super::activity::ActiveSlots;
use super::counters::Counters;
use super::lending::messages::Message;
use super::lending::shards::Shard;
use super::lifecycle::Lifecycle;
use super::log::PoolLog;
use super::members::Members;
use super::php_start::PhpStart;
use super::routes::Routes;
use super::settings::PoolSettings;
use super::worker::Worker;
use outboard_log::{Level, Reason};
use outboard_reactor::{Bell, now_ms};
use outboard_ring::spsc::Corrupt;
use outboard_supervisor::worker::lifecycle::{LEAVING_GRACE_MS, Transition};
use outboard_supervisor::zygote::Zygote;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Fixed by Linux on every architecture.
pub(super) const SIGKILL: i32 = 9;

/// See the module.
#[derive(Debug)]
pub(super) struct PoolCore {
    /// Unique in this process.
    pub(super) id: u64,
    pub(super) settings: PoolSettings,
    /// Its place among the pools of the app, one on each thread.
    pub(super) shard: Shard,
    pub(super) lifecycle: Rc<Lifecycle>,
    pub(super) log: PoolLog,
    pub(super) members: RefCell<Members>,
    /// Its workers whose rings are polled.
    pub(super) active: Rc<ActiveSlots>,
    pub(super) zygote: RefCell<Option<Zygote>>,
    pub(super) php: RefCell<PhpStart>,
    pub(super) counters: RefCell<Counters>,
    pub(super) routes: RefCell<Routes>,
}

impl PoolCore {
    /// Calls a function with the worker of this number, if it exists.
    pub(super) fn with_worker<R>(
        &self,
        number: u64,
        act: impl FnOnce(&mut Worker) -> R,
    ) -> Option<R> {
        self.members.borrow_mut().roster.with_number(number).map(act)
    }

    /// Publishes the state of this shard for the others.
    pub(super) fn publish(&self, members: &Members) {
        if self.shard.count() > 1 {
            self.shard.publish(members.roster.with_room().len(), members.queue.len());
            self.shard.renew_wish(members.queue.oldest_ms());
        }
    }

    /// Fails all queued requests.
    pub(super) fn fail_queue(&self, reason: Reason) {
        let mut members = self.members.borrow_mut();
        members.queue.fail_all(reason);
        self.publish(&members);
    }

    /// Fails requests that were queued for too long.
    pub(super) fn expire_queue(&self, now_ms: u64) {
        let mut members = self.members.borrow_mut();
        members.queue.expire(now_ms, self.settings.queue_timeout_ms);
        self.publish(&members);
    }

    /// Drains the worker of a slot: it exits once its requests are finished.
    pub(super) fn drain_slot(&self, members: &mut Members, slot: usize) {
        if let Some(worker) = members.roster.get_mut(slot) {
            worker.activate();
            worker.ends().take_all_back();
            let longest_ms = if worker.in_flight() > 0 { self.settings.deadline_ms } else { 0 };
            let until_ms = now_ms().saturating_add(longest_ms).saturating_add(LEAVING_GRACE_MS);
            if worker.process.drain(until_ms).is_err() {
                self.kill(worker);
            }
        }
        members.roster.update_room_list(slot);
    }

    /// Kills a worker that has broken the protocol. Its requests fail or are given to others when its
    /// exit is reported.
    pub(super) fn kill_for_protocol_error(
        &self,
        members: &mut Members,
        slot: usize,
        corrupt: Corrupt,
    ) {
        let Some(worker) = members.roster.get_mut(slot) else { return };
        self.log.log_failure(worker, Reason::WorkerProtocolError, &corrupt.to_string());
        worker.is_broken = true;
        self.kill(worker);
        members.roster.update_room_list(slot);
    }

    pub(super) fn kill(&self, worker: &mut Worker) {
        if worker.process.lifecycle.kill() == Transition::Applied {
            debug_assert!(worker.killed_ms.is_none(), "a worker is killed once");
            worker.killed_ms = Some(now_ms());
            worker.activate();
            self.lifecycle.end_rest();
            self.signal(worker.process.number, SIGKILL);
        }
    }

    /// Sends a signal to a worker, by way of its owner's zygote.
    pub(super) fn signal(&self, worker: u64, signal: i32) {
        if !self.shard.is_owner_of(worker) {
            let owner = self.shard.owner_of(worker);
            return self.shard.send(owner, Message::Signal { number: worker, signal });
        }
        if let Some(zygote) = self.zygote.borrow().as_ref()
            && let Err(error) = zygote.signal(worker, signal)
        {
            self.log.note(Level::Error, &format!("cannot signal a worker: {error}"));
        }
    }

    /// The doorbell of the worker of a slot.
    pub(super) fn bell(self: &Rc<Self>, slot: usize) -> Rc<WorkerBell> {
        Rc::new(WorkerBell { core: Rc::downgrade(self), slot })
    }

    /// Requests are refused if each one kills its worker.
    pub(super) fn is_refusing(&self) -> bool {
        self.shard.crash_loop().is_paused(now_ms)
    }

    /// A request has killed its worker.
    pub(super) fn record_crash(&self) {
        let Some(pause) = self.shard.crash_loop().crashed(now_ms()) else { return };
        if pause.is_first {
            self.log.log(Level::Error, &pause.describe());
        }
        self.fail_queue(Reason::AppDown);
    }

    /// A request was finished.
    pub(super) fn record_response(&self) {
        if self.shard.crash_loop().succeeded() {
            self.log.log(Level::Info, "a request has succeeded: none are refused any more");
        }
    }
}

/// The doorbell by which a worker announces frames while it is inactive or the gateway sleeps.
#[derive(Debug)]
pub(super) struct WorkerBell {
    core: Weak<PoolCore>,
    slot: usize,
}

impl Bell for WorkerBell {
    fn ring(&self) {
        if let Some(core) = self.core.upgrade()
            && let Some(worker) = core.members.borrow_mut().roster.get_mut(self.slot)
        {
            worker.activate();
        }
    }
}
