//! Workers that are lent to other threads of the server, so that a request waits on one thread only if
//! no worker is idle on any.
//!
//! A part of the [`Dispatcher`]. What moves is the gateway's end of an idle worker: its ring memory and its
//! doorbells; the process does not notice. Its owner, the thread whose zygote has forked it, sends it signals and
//! learns of its exit. Invariants: a worker is in one pool, or in one message; only an idle worker without
//! operations is lent, so nothing is sent to it or expected from it meanwhile; a borrowed worker that is not needed
//! goes back to its owner.

pub(super) mod borrower;
pub(super) mod crash_loop;
pub(super) mod fairness;
pub(super) mod lent;
pub(super) mod messages;
pub(super) mod shards;
pub(super) mod siblings;

use super::core::{PoolCore, SIGKILL};
use super::dispatch::Dispatcher;
use super::members::Members;
use super::worker::{NewWorker, Worker};
use crate::worker_id::WorkerId;
use fairness::Fairness;
use messages::{Message, WorkerTransfer};
use outboard_log::Level;
use outboard_reactor::Source;
use outboard_supervisor::worker::lifecycle::State;
use std::io;
use std::rc::Rc;

/// A borrowed worker that has been idle for longer goes back to its owner.
pub(super) const BORROWED_IDLE_MS: u64 = 200;

impl Dispatcher {
    /// Gives an idle worker to the thread whose request waits longest, if none here waits as long.
    /// Returns whether it is gone.
    pub(super) fn offer(&self, members: &mut Members, slot: usize) -> bool {
        let shard = &self.core.shard;
        if shard.count() == 1 || !members.queue.is_empty() && !self.is_overtaken(members) {
            return false;
        }
        let before_ms = Fairness::overtaken_before_ms(&members.queue);
        if !shard.has_wish(before_ms) || !self.may_lend(members, slot) {
            return false;
        }
        let Some(to) = shard.take_wish(before_ms) else { return false };
        self.lend(members, slot, to)
    }

    /// Another thread requests a worker.
    pub(super) fn lend_idle(&self, to: usize) {
        let mut members = self.core.members.borrow_mut();
        let is_needed_here = !members.queue.is_empty();
        let found = members.roster.idle().into_iter().find(|slot| self.may_lend(&members, *slot));
        let is_lent = match found.filter(|_| !is_needed_here) {
            Some(slot) => self.lend(&mut members, slot, to),
            None => false,
        };
        if !is_lent {
            self.core.publish(&members);
            self.core.shard.send(to, Message::NoneIdle);
        }
    }

    fn may_lend(&self, members: &Members, slot: usize) -> bool {
        let Some(worker) = members.roster.get(slot) else { return false };
        let is_free =
            worker.state() == State::Idle && worker.has_nothing_under_way() && !worker.has_exited;
        is_free
            // Its owner finds it by its number when its fork is reported.
            && worker.process.pid.is_some()
            && self.core.lifecycle.is_serving()
            && !self.core.settings.runs_program()
            && !(worker.is_own && self.has_to_be_replaced(worker))
            && !self.operations.has_any(worker.id)
    }

    /// Whether a worker stays with its owner, or goes there, until it is replaced.
    fn has_to_be_replaced(&self, worker: &Worker) -> bool {
        self.replacements.concerns(worker.process.number)
            || self.sizing.borrow().recycle_reason(worker).is_some()
    }

    /// Moves a worker to another thread, which may be its owner.
    fn lend(&self, members: &mut Members, slot: usize, to: usize) -> bool {
        let core = &self.core;
        let doorbell = match members.roster.get(slot).map(Worker::clone_doorbell) {
            Some(Ok(doorbell)) => doorbell,
            Some(Err(error)) => {
                core.log.log(Level::Error, &format!("cannot lend a worker: {error}"));
                return false;
            }
            None => return false,
        };
        let Some(worker) = members.roster.remove(slot) else { return false };
        debug_assert!(
            worker.state() == State::Idle && worker.has_nothing_under_way(),
            "{worker:?} is lent"
        );
        let (id, process) = (worker.id, worker.into_process());
        // Before the worker: it could be back with its owner, and lent again, before a later message.
        announce_borrower(core, members, id.number, to);
        self.placement.let_worker_go(core, id.number);
        let transfer = Message::Worker(Box::new(WorkerTransfer { process, doorbell }));
        let returned = core.shard.try_send(to, transfer).err();
        let is_sent = returned.is_none();
        if let Some(Message::Worker(transfer)) = returned {
            // The thread is at its end. The worker stays.
            announce_borrower(core, members, id.number, core.shard.index());
            self.take_over(members, slot, *transfer);
        } else {
            self.operations.forget(id);
        }
        core.publish(members);
        is_sent
    }

    /// Adds a worker that has arrived, or kills it.
    fn take_over(&self, members: &mut Members, slot: usize, transfer: WorkerTransfer) {
        let core = &self.core;
        let (number, pid) = (transfer.process.number, transfer.process.pid);
        match self.adopt(slot, transfer) {
            Ok(worker) => members.roster.insert(slot, worker),
            Err(error) => {
                core.log.log(Level::Error, &format!("cannot take over a worker: {error}"));
                core.signal(number, SIGKILL);
                core.shard.remove_pid(pid);
                // Nothing here waits for its exit.
                report_end(core, number);
            }
        }
    }

    fn adopt(&self, slot: usize, transfer: WorkerTransfer) -> io::Result<Worker> {
        let core = &self.core;
        let WorkerTransfer { mut process, doorbell } = transfer;
        let source = Source::with_bell(doorbell.into_fd(), core.bell(slot))?;
        process.channel.cancel_sleep();
        let id = WorkerId { pool: core.id, slot, number: process.number };
        // It may have been here before.
        self.operations.returned(id);
        let new = NewWorker {
            id,
            is_own: core.shard.is_owner_of(id.number),
            process,
            output: None,
            allowance: core.log.new_allowance(),
            doorbell_source: Some(source),
        };
        let memory = self.operations.memory();
        Ok(Worker::new(new, &core.settings, core.active.clone(), &memory))
    }

    /// A worker has arrived, borrowed or back with its owner.
    pub(super) fn receive_worker(&self, transfer: WorkerTransfer) {
        let core = &self.core;
        if core.lifecycle.is_gone() {
            // Its owner waits for it, or for its exit.
            let owner = core.shard.owner_of(transfer.process.number);
            return core.shard.send(owner, Message::Worker(Box::new(transfer)));
        }
        self.borrower.received();
        let mut members = core.members.borrow_mut();
        members.lent.end(transfer.process.number);
        let slot = members.roster.free_slot();
        self.take_over(&mut members, slot, transfer);
        core.lifecycle.end_rest();
        self.assign_next(&mut members, slot);
        if !members.queue.is_empty() {
            self.borrower.want_worker(&core.shard, &members.queue);
        }
    }

    /// There was no worker to borrow. If no other thread may have one, requests that were queued for it wait no
    /// longer if the queue is full.
    pub(super) fn none_to_borrow(&self) {
        let (core, mut members) = (&self.core, self.core.members.borrow_mut());
        if self.borrower.was_refused(&core.shard, &members.queue) {
            let elsewhere = core.shard.queued_elsewhere();
            let most = core.settings.queue_length.saturating_sub(elsewhere);
            core.counters.borrow_mut().rejected += members.queue.refuse_beyond(most);
            core.publish(&members);
        }
    }

    /// Sends a borrowed worker back that its owner has to replace. Returns whether it is gone.
    pub(super) fn return_to_be_replaced(&self, members: &mut Members, slot: usize) -> bool {
        let Some(worker) = members.roster.get(slot) else { return false };
        if worker.is_own || !self.has_to_be_replaced(worker) || !self.may_lend(members, slot) {
            return false;
        }
        let owner = self.core.shard.owner_of(worker.process.number);
        self.lend(members, slot, owner)
    }

    /// Sends borrowed workers back that are not needed. While requests wait, requests a worker again.
    pub(super) fn return_unneeded(&self, now_ms: u64) {
        let shard = &self.core.shard;
        if shard.count() == 1 {
            return;
        }
        let mut members = self.core.members.borrow_mut();
        let has_backlog = members.roster.all().any(|worker| worker.backlog_len() > 0);
        if !members.queue.is_empty() || has_backlog {
            return self.borrower.want_worker(shard, &members.queue);
        }
        for slot in members.roster.idle() {
            let Some(worker) = members.roster.get(slot) else { continue };
            let is_old = worker.process.lifecycle.idle_ms(now_ms) >= Some(BORROWED_IDLE_MS);
            if is_old && !worker.is_own && self.may_lend(&members, slot) {
                let owner = shard.owner_of(worker.process.number);
                self.lend(&mut members, slot, owner);
            }
        }
    }
}

/// Has the owner of a worker know which thread has it from now on.
fn announce_borrower(core: &PoolCore, members: &mut Members, number: u64, borrower: usize) {
    let owner = core.shard.owner_of(number);
    if owner != core.shard.index() {
        if owner != borrower {
            core.shard.send(owner, Message::Moved { number, borrower });
        }
    } else if borrower == owner {
        members.lent.end(number);
    } else {
        members.lent.lend(number, borrower);
    }
}

/// Has the owner of a borrowed worker know that it does not exist any more.
pub(super) fn report_end(core: &Rc<PoolCore>, number: u64) {
    if !core.shard.is_owner_of(number) {
        core.shard.send(core.shard.owner_of(number), Message::Reaped { number });
    }
}
