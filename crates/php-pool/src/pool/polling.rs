//! Polling of the rings: frames of all workers, within a budget.
//!
//! Called by [`crate::Rings`] before the loop sleeps, and once more for a worker that has exited.
//! Invariants: each worker is polled first at times; a worker whose frames make the gateway panic is
//! the only one that is affected; the loop does not sleep before a worker to which something was sent is woken.

use super::Pool;
use super::members::Members;
use super::worker::{FrameOutcome, PANICKED, Worker, WorkerMessage};
use crate::budget::{Budget, Share};
use crate::rings::PolledRings;
use outboard_reactor::{contain, now_ms};
use outboard_ring::spsc::{Corrupt, Sleep};

/// A worker with a backlog does not ring for each response (`Link::publish_answer` of the host). If its
/// next request takes long, the responses before that wait no longer than this, nor does its backlog for
/// another worker.
const BACKLOG_POLL_MS: u64 = 1;

impl PolledRings for Pool {
    fn poll_rings(&self, budget: &mut Budget) -> bool {
        if self.placement.is_watching() {
            self.watch_requests(now_ms());
        }
        if self.has_backlog.take() {
            self.redistribute_stuck_backlogs(now_ms());
        }
        let is_active = self.has_pending_operations() || self.poll_all(budget);
        if self.log_is_dirty.take() {
            self.error_log.flush();
        }
        self.replace_used_forks();
        self.fork_successors();
        self.begin_operations(budget);
        // After all that sends: some operations are completed at once.
        is_active | self.ring_doorbells()
    }

    fn prepare_sleep(&self) -> u64 {
        let mut members = self.members.borrow_mut();
        let mut max_ms = u64::MAX;
        self.active.retain(|slot| {
            let Some(worker) = members.workers[slot].as_mut() else { return false };
            // Another pool may have sent to it after this one was polled: its task, for one.
            worker.ring_doorbell_if_due();
            if worker.may_send() {
                match worker.prepare_sleep() {
                    Ok(Sleep::Ready) => max_ms = 0,
                    Ok(Sleep::MayBlock) if worker.backlog_len() > 0 => {
                        max_ms = max_ms.min(BACKLOG_POLL_MS);
                        self.has_backlog.set(true);
                    }
                    Ok(Sleep::MayBlock) => return !worker.rest_if_idle(),
                    Err(corrupt) => self.kill_for_protocol_error(worker, corrupt),
                }
                return true;
            }
            !worker.rest_if_idle()
        });
        max_ms
    }

    fn rest_rings(&self) -> bool {
        let is_resting = self.active.len() == 0
            && !self.has_pending_operations()
            && self.departed_workers.borrow().is_empty();
        if is_resting {
            self.active.unlist_pool();
        }
        is_resting
    }

    fn cancel_sleep(&self) {
        let mut members = self.members.borrow_mut();
        for at in 0..self.active.len() {
            let slot = self.active.get(at);
            if let Some(worker) = slot.and_then(|slot| members.workers[slot].as_mut()) {
                worker.process.channel.cancel_sleep();
            }
        }
    }
}

impl Pool {
    fn poll_all(&self, budget: &mut Budget) -> bool {
        let mut members = self.members.borrow_mut();
        // Workers that become active meanwhile are at the end of the list.
        let (count, first) = (self.active.len(), self.first_active.get());
        let mut is_active = false;
        for turn in 0..count {
            let at = if first + turn < count { first + turn } else { (first + turn) % count };
            let Some(slot) = self.active.get(at) else { break };
            is_active |= self.poll_worker(&mut members, slot, Share::POLL, budget);
            if budget.is_spent() {
                self.first_active.set(at + 1);
                is_active = true;
                break;
            }
        }
        is_active
    }

    /// Rings the workers to which something was sent since the last poll. Returns whether the core was left to
    /// one: its responses are polled before the loop sleeps.
    fn ring_doorbells(&self) -> bool {
        let mut members = self.members.borrow_mut();
        let mut has_rung = false;
        for at in 0..self.active.len() {
            let slot = self.active.get(at);
            if let Some(worker) = slot.and_then(|slot| members.workers[slot].as_mut()) {
                has_rung |= worker.ring_doorbell_if_due();
            }
        }
        drop(members);
        has_rung && self.placement.yield_core()
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
            let Some(worker) = members.workers[slot].as_mut() else { return is_active };
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
                    return self.note_death(members, slot) || is_active || share.is_spent();
                }
                Err(corrupt) => {
                    self.kill_for_protocol_error(worker, corrupt);
                    members.update_room_list(slot);
                    return true;
                }
            }
        }
        true
    }

    /// Has another worker take the place of one that has announced its death; its present requests fail once it is
    /// gone. Returns whether it has now.
    fn note_death(&self, members: &mut Members, slot: usize) -> bool {
        let Some(worker) = members.workers[slot].as_mut() else { return false };
        // The home of a borrowed one hears of its end.
        if !worker.is_own || !worker.process.note_death(now_ms()) {
            return false;
        }
        let unstarted = worker.withdraw_unstarted(now_ms());
        members.update_room_list(slot);
        self.use_reserve(members);
        self.reassign(members, unstarted);
        self.end_rest();
        true
    }

    fn receive_from(
        &self,
        worker: &mut Worker,
        count: impl FnMut(usize) -> bool,
    ) -> Result<Option<FrameOutcome>, Corrupt> {
        let received = contain(|| {
            worker.pump()?;
            let buffer = &mut self.frame_buffer.borrow_mut();
            worker.poll_ring(buffer, now_ms(), count, |worker, tag, message| match message {
                WorkerMessage::LogLine(line) => self.log_line(worker, tag, line),
                WorkerMessage::Operation(payload) => self.queue_operation(worker, tag, payload),
            })
        });
        received.unwrap_or(Err(PANICKED))
    }

    /// Gives an available worker its next request, or the requests of a draining one to others.
    fn after_outcome(&self, members: &mut Members, slot: usize, is_draining: bool) {
        if !is_draining {
            if !self.is_retired() {
                self.manager.borrow_mut().record_success();
            }
            self.phase_changed.set();
            return self.assign_next(members, slot);
        }
        if self.settings.forks_script() {
            self.manager.borrow_mut().record_success();
        }
        members.update_room_list(slot);
        self.use_reserve(members);
        let Some(worker) = members.workers[slot].as_mut() else { return };
        // The home of a borrowed one replaces it.
        if worker.is_own && self.settings.forks_script() {
            self.used_forks.update(|used| used + 1);
        }
        let unstarted = worker.withdraw_unstarted(now_ms());
        self.reassign(members, unstarted);
    }
}
