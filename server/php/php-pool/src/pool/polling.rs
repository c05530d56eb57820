//! Polling of the rings: frames of all workers, within a budget.
//!
//! Called by [`crate::Rings`] before the loop sleeps, and once more for a worker that has exited.
//! Invariants: each worker is polled first at times; a worker whose frames make the gateway panic is
//! the only one that is affected; the loop does not sleep before a worker to which something was sent is woken.

use super::Pool;
use super::direct::WATCH_MS;
use super::leases::Lease;
use super::members::Members;
use super::worker::{FrameOutcome, PANICKED, Worker, WorkerMessage};
use crate::budget::{Budget, Share};
use crate::rings::PolledRings;
use outboard_log::Level;
use outboard_reactor::{contain, now_ms};
use outboard_ring::channel::is_direct;
use outboard_ring::direct::Answered;
use outboard_ring::spsc::{Corrupt, Sleep};
use outboard_supervisor::plan::deadline::Stage;

/// A worker with a backlog does not ring for each response (`Link::publish_answer` of the host). If its
/// next request takes long, the responses before that wait no longer than this, nor does its backlog for
/// another worker.
const BACKLOG_POLL_MS: u64 = 1;

impl PolledRings for Pool {
    fn poll_rings(&self, budget: &mut Budget) -> bool {
        let (core, dispatcher) = (&self.core, &self.dispatcher);
        if dispatcher.placement.is_watching() {
            dispatcher.placement.watch_requests(core, now_ms());
        }
        self.watch_direct(now_ms());
        if self.polling.has_backlog.take() {
            dispatcher.redistribute_stuck_backlogs(now_ms());
        }
        let is_active = dispatcher.operations.has_pending() || self.poll_all(budget);
        core.log.flush_if_dirty();
        self.replace_used_forks();
        self.fork_successors();
        dispatcher.operations.begin_pending(budget);
        // After all that sends: some operations are completed at once.
        is_active | self.ring_doorbells()
    }

    fn prepare_sleep(&self) -> u64 {
        let core = &self.core;
        let mut members = core.members.borrow_mut();
        let mut max_ms = u64::MAX;
        core.active.retain(|slot| {
            let Some(worker) = members.roster.get_mut(slot) else { return false };
            // Another pool may have sent to it after this one was polled: its task, for one.
            worker.ring_doorbell_if_due();
            if worker.direct.is_watched(now_ms()) || worker.holds_up_clients() {
                max_ms = max_ms.min(WATCH_MS);
                if worker.in_flight() == 0 {
                    return true;
                }
            }
            if worker.may_send() {
                match worker.prepare_sleep() {
                    Ok(Sleep::Ready) => max_ms = 0,
                    Ok(Sleep::MayBlock) if worker.backlog_len() > 0 => {
                        max_ms = max_ms.min(BACKLOG_POLL_MS);
                        self.polling.has_backlog.set(true);
                    }
                    Ok(Sleep::MayBlock) => return !worker.rest_if_idle(),
                    Err(corrupt) => core.kill_for_protocol_error(&mut members, slot, corrupt),
                }
                return true;
            }
            !worker.rest_if_idle()
        });
        debug_assert!(
            members.roster.all().all(|worker| !worker.is_doorbell_due()),
            "a worker sleeps although something was sent to it"
        );
        max_ms
    }

    fn rest_rings(&self) -> bool {
        let is_resting = self.core.active.len() == 0 && self.dispatcher.operations.is_idle();
        if is_resting {
            self.core.active.unlist_pool();
        }
        is_resting
    }

    fn cancel_sleep(&self) {
        let mut members = self.core.members.borrow_mut();
        for at in 0..self.core.active.len() {
            let slot = self.core.active.get(at);
            if let Some(worker) = slot.and_then(|slot| members.roster.get_mut(slot)) {
                worker.process.channel.cancel_sleep();
            }
        }
    }
}

impl Pool {
    fn poll_all(&self, budget: &mut Budget) -> bool {
        let mut members = self.core.members.borrow_mut();
        // Workers that become active meanwhile are at the end of the list.
        let (count, first) = (self.core.active.len(), self.polling.first_active.get());
        let mut is_active = false;
        for turn in 0..count {
            let at = if first + turn < count { first + turn } else { (first + turn) % count };
            let Some(slot) = self.core.active.get(at) else { break };
            is_active |= self.poll_worker(&mut members, slot, Share::POLL, budget);
            if budget.is_spent() {
                self.polling.first_active.set(at + 1);
                is_active = true;
                break;
            }
        }
        is_active
    }

    /// Rings the workers to which something was sent since the last poll. Returns whether the core was left to
    /// one: its responses are polled before the loop sleeps.
    fn ring_doorbells(&self) -> bool {
        let mut members = self.core.members.borrow_mut();
        let mut has_rung = false;
        for at in 0..self.core.active.len() {
            let slot = self.core.active.get(at);
            if let Some(worker) = slot.and_then(|slot| members.roster.get_mut(slot)) {
                has_rung |= worker.ring_doorbell_if_due();
            }
        }
        drop(members);
        has_rung && self.dispatcher.placement.yield_core()
    }

    /// Processes the frames of one worker. Returns the same for it.
    pub(super) fn poll_worker(
        &self,
        members: &mut Members,
        slot: usize,
        mut share: Share,
        budget: &mut Budget,
    ) -> bool {
        let mut is_active = false;
        while !share.is_spent() {
            let Some(worker) = members.roster.get_mut(slot) else { return is_active };
            if !worker.may_send() {
                return is_active;
            }
            let count = |len| {
                share.count(len);
                budget.count(len);
                share.is_spent() || budget.is_spent()
            };
            match self.receive_from(worker, count) {
                Ok(Some(outcome)) => {
                    is_active = true;
                    if let Some(lease) = &outcome.finished {
                        self.record_finished(worker, lease);
                    }
                    self.after_outcome(members, slot, outcome.is_draining);
                }
                Ok(None) => {
                    // A request of a direct connection may have become an exchange.
                    members.roster.update_room_list(slot);
                    return self.note_death(members, slot) || is_active || share.is_spent();
                }
                Err(corrupt) => {
                    self.core.kill_for_protocol_error(members, slot, corrupt);
                    return true;
                }
            }
        }
        members.roster.update_room_list(slot);
        true
    }

    /// Has another worker take the place of one that has announced its death; its present requests fail once it is
    /// gone. Returns whether it has now.
    fn note_death(&self, members: &mut Members, slot: usize) -> bool {
        let Some(worker) = members.roster.get_mut(slot) else { return false };
        // The owner of a borrowed one hears of its end.
        if !worker.is_own || !worker.process.note_death(now_ms()) {
            return false;
        }
        let unstarted = worker.withdraw_unstarted(now_ms());
        members.roster.update_room_list(slot);
        self.dispatcher.use_reserve(members);
        self.dispatcher.reassign(members, unstarted);
        self.core.lifecycle.end_rest();
        true
    }

    fn receive_from(
        &self,
        worker: &mut Worker,
        count: impl FnMut(usize) -> bool,
    ) -> Result<Option<FrameOutcome>, Corrupt> {
        let received = contain(|| {
            worker.pump()?;
            let buffer = &mut self.polling.frame_buffer.borrow_mut();
            worker.poll_ring(buffer, now_ms(), count, |worker, tag, message| match message {
                WorkerMessage::LogLine(line) => {
                    if !self.core.log.log_line(worker, tag, line) {
                        self.core.lifecycle.end_rest();
                    }
                }
                WorkerMessage::Answered(target, answered) => {
                    self.record_answered(worker, target, answered);
                }
                WorkerMessage::Operation(payload) => {
                    self.dispatcher.operations.queue(worker, tag, payload);
                }
            })
        });
        received.unwrap_or(Err(PANICKED))
    }

    /// Records a request that a worker has answered on a direct connection.
    fn record_answered(&self, worker: &mut Worker, target: &[u8], answered: Answered) {
        let core = &self.core;
        let mut counters = core.counters.borrow_mut();
        counters.requests += 1;
        counters.direct += 1;
        drop(counters);
        core.record_response();
        let mut routes = core.routes.borrow_mut();
        let route = routes.number_of_target(target);
        routes.record_request(route, answered.peak_memory_bytes, &mut worker.request_counts);
    }

    /// Adopts requests of direct connections that take long, and gives what waits behind them to other workers.
    fn watch_direct(&self, now_ms: u64) {
        let (core, dispatcher) = (&self.core, &self.dispatcher);
        if !core.settings.has_direct || now_ms < self.polling.watched_ms.get() + WATCH_MS {
            return;
        }
        self.polling.watched_ms.set(now_ms);
        let mut members = core.members.borrow_mut();
        for slot in 0..members.roster.slots() {
            let Some(worker) = members.roster.get_mut(slot) else { continue };
            worker.direct.account(now_ms);
            if worker.direct.is_empty() {
                continue;
            }
            let has_adopted = worker.ends().relieve(now_ms);
            let unstarted = match has_adopted && !worker.can_cancel() {
                true => worker.withdraw_unstarted(now_ms),
                false => Vec::new(),
            };
            // Also a connection that was to come back may have left its request with the worker.
            members.roster.update_room_list(slot);
            if has_adopted {
                dispatcher.reassign(&mut members, unstarted);
            }
        }
    }

    /// Records a request that a worker has finished.
    fn record_finished(&self, worker: &mut Worker, lease: &Lease) {
        let core = &self.core;
        core.record_response();
        let exchange = &lease.exchange;
        let took_ms = lease.took_ms(now_ms());
        self.dispatcher.placement.record_request();
        if is_direct(lease.tag) {
            let mut counters = core.counters.borrow_mut();
            counters.requests += 1;
            counters.adopted += 1;
        }
        if let Some(done) = exchange.done.get() {
            if done.takes_snapshot && !core.settings.is_resident() {
                self.snapshots.record(exchange);
            }
            let (route, counts) = (exchange.route.get(), &mut worker.request_counts);
            core.routes.borrow_mut().record_request(route, done.peak_memory_bytes, counts);
        }
        match lease.stage {
            // It was written when the worker was killed.
            Stage::Killed => {}
            Stage::Cancelled { .. } => {
                let position = core.log.write_overdue(worker, lease);
                let text = format!("a request was ended at its deadline: it was in {position}");
                core.log.log_request(worker, exchange, Level::Warn, &text);
            }
            _ => {
                if core.settings.slow_ms.is_some_and(|slow_ms| took_ms >= slow_ms) {
                    let backtrace = worker.process.channel.backtrace(lease.tag).unwrap_or_default();
                    core.log.write_slow(worker, exchange, took_ms, &backtrace);
                }
            }
        }
    }

    /// Gives an available worker its next request, or the requests of a draining one to others.
    fn after_outcome(&self, members: &mut Members, slot: usize, is_draining: bool) {
        let core = &self.core;
        if !is_draining {
            if !core.lifecycle.is_retired() {
                core.php.borrow_mut().record_success();
            }
            core.lifecycle.changed().set();
            return self.dispatcher.assign_next(members, slot);
        }
        let forks_script = core.settings.forks_script();
        if forks_script {
            core.php.borrow_mut().record_success();
        }
        members.roster.update_room_list(slot);
        self.dispatcher.use_reserve(members);
        let Some(worker) = members.roster.get_mut(slot) else { return };
        // The owner of a borrowed one replaces it.
        if worker.is_own && forks_script {
            self.forks.record_used();
        }
        let unstarted = worker.withdraw_unstarted(now_ms());
        self.dispatcher.reassign(members, unstarted);
    }
}
