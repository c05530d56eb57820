//! Workers that are lent to other threads of the server, so that a request waits on one thread only if
//! no worker is idle on any.
//!
//! Called by the dispatcher, by the manager and for [`Message`]s of other pools. What moves is the
//! gateway's end of an idle worker: its ring memory and its doorbells; the process does not notice. Its
//! home, whose zygote has forked it, sends it signals and learns of its exit ([`super::lent_exits`]).
//! Invariants: a worker is in one pool, or in one message; only an idle worker without operations is
//! lent, so nothing is sent to it or expected from it meanwhile; a borrowed worker that is not needed
//! goes home.

use super::activity::WorkerBell;
use super::allowance::Allowance;
use super::members::Members;
use super::messages::Message;
use super::worker::Worker;
use super::{Phase, Pool, WorkerId};
use crate::exchange::End;
use outboard_log::{Level, Reason};
use outboard_reactor::Source;
use outboard_ring::doorbell::Doorbell;
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::lifecycle::State;
use std::io;
use std::rc::Rc;

/// A borrowed worker that has been idle for longer goes home.
pub(super) const LOAN_IDLE_MS: u64 = 200;

/// A worker on its way to another thread.
#[derive(Debug)]
pub(super) struct LentWorker {
    pub(super) process: WorkerProcess,
    pub(super) doorbell: Doorbell,
}

/// A worker of this zygote that another thread has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loan {
    pub(super) holder: usize,
    /// When its holder had it killed.
    pub(super) killed_ms: Option<u64>,
}

/// A thread that was asked for a worker and has not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Borrowing {
    asked: usize,
    /// How many were asked before, and this one.
    tries: usize,
}

impl Pool {
    /// Requests wait here: an idle worker of another thread is requested, or the next one that becomes
    /// idle.
    pub(super) fn want_worker(&self, members: &Members) {
        if self.shard.count() > 1 && self.borrows.get().is_none() {
            self.ask(members, self.shard.index(), 0);
        }
    }

    /// Asks the next thread after `last` that seems to have an idle worker, or all for their next one.
    fn ask(&self, members: &Members, last: usize, tries: usize) {
        if self.ask_next(last, tries) {
            return;
        }
        let Some(since_ms) = members.oldest_queued_ms() else { return };
        self.shard.wish(since_ms);
        // A worker may have become idle before its thread could see the wish.
        self.ask_next(last, tries);
    }

    fn ask_next(&self, last: usize, tries: usize) -> bool {
        let may_ask = tries + 1 < self.shard.count();
        let next = self.shard.free_elsewhere(last).filter(|_| may_ask);
        let asked = next.filter(|at| {
            let message = Message::Borrow { by: self.shard.index() };
            self.shard.try_send(*at, message).is_ok()
        });
        self.borrows.set(asked.map(|asked| Borrowing { asked, tries: tries + 1 }));
        asked.is_some()
    }

    /// No worker is idle: requests that were queued for one wait no longer if the queue is full.
    fn refuse_excess(&self, members: &mut Members) {
        while members.queue.len() + self.shard.queued_elsewhere() > self.settings.queue_length
            && let Some(refused) = members.queue.pop_back()
        {
            self.counters.borrow_mut().rejected += 1;
            refused.exchange.finish(End::Failed(Reason::QueueFull));
        }
        self.publish(members);
    }

    /// Publishes the state of this shard for the others.
    pub(super) fn publish(&self, members: &Members) {
        if self.shard.count() > 1 {
            self.shard.publish(members.with_room.len(), members.queue.len());
            self.shard.renew_wish(members.oldest_queued_ms());
        }
    }

    /// Gives an idle worker to the thread whose request waits longest, if none here waits as long.
    /// Returns whether it is gone.
    pub(super) fn offer(&self, members: &mut Members, slot: usize) -> bool {
        let is_needed_here = !members.queue.is_empty() && !self.is_overtaken(members);
        if self.shard.count() == 1 || is_needed_here {
            return false;
        }
        let before_ms = self.overtaken_before_ms(members);
        if !self.shard.has_wish(before_ms) || !self.may_lend(members, slot) {
            return false;
        }
        let Some(to) = self.shard.take_wish(before_ms) else { return false };
        self.lend(members, slot, to)
    }

    /// Another thread requests a worker.
    pub(super) fn lend_idle(&self, to: usize) {
        let mut members = self.members.borrow_mut();
        let is_needed_here = !members.queue.is_empty();
        let found = members.idle().into_iter().find(|slot| self.may_lend(&members, *slot));
        let is_lent = match found.filter(|_| !is_needed_here) {
            Some(slot) => self.lend(&mut members, slot, to),
            None => false,
        };
        if !is_lent {
            self.publish(&members);
            self.shard.send(to, Message::NoneIdle);
        }
    }

    fn may_lend(&self, members: &Members, slot: usize) -> bool {
        let Some(worker) = members.workers[slot].as_ref() else { return false };
        let is_free =
            worker.state() == State::Idle && worker.has_nothing_under_way() && !worker.has_exited;
        is_free
            // Its home finds it by its number when its fork is reported.
            && worker.process.pid.is_some()
            && self.phase.get() == Phase::Serving
            && !self.settings.runs_program()
            && !(worker.is_own && self.has_to_be_replaced(worker))
            && !self.has_operations(worker.id)
    }

    /// Whether a worker stays at home, or goes there, until it is replaced.
    fn has_to_be_replaced(&self, worker: &Worker) -> bool {
        self.is_being_replaced(worker)
            || self.manager.borrow().sizing.recycle_reason(worker).is_some()
    }

    /// Moves a worker to another thread, which may be its home.
    fn lend(&self, members: &mut Members, slot: usize, to: usize) -> bool {
        let doorbell = members.workers[slot].as_ref().map(Worker::clone_doorbell);
        let doorbell = match doorbell {
            Some(Ok(doorbell)) => doorbell,
            Some(Err(error)) => {
                self.log(Level::Error, &format!("cannot lend a worker: {error}"));
                return false;
            }
            None => return false,
        };
        let Some(worker) = members.remove(slot) else { return false };
        let (id, process) = (worker.id, worker.into_process());
        // Before the worker: it could be back at home, and lent again, before a later message.
        self.announce_holder(members, id.number, to);
        self.let_worker_go(id.number);
        let lent = Message::Worker(Box::new(LentWorker { process, doorbell }));
        let returned = self.shard.try_send(to, lent).err();
        let is_sent = returned.is_none();
        if let Some(Message::Worker(lent)) = returned {
            // The thread is at its end. The worker stays.
            self.announce_holder(members, id.number, self.shard.index());
            self.place_worker(members, slot, *lent);
        } else {
            self.forget_operations(id);
        }
        self.publish(members);
        is_sent
    }

    /// Has the home of a worker know which thread has it from now on.
    fn announce_holder(&self, members: &mut Members, number: u64, holder: usize) {
        let home = self.shard.home_of(number);
        if home != self.shard.index() {
            if home != holder {
                self.shard.send(home, Message::Moved { number, holder });
            }
        } else if holder == home {
            members.lent.remove(&number);
        } else {
            members.lent.insert(number, Loan { holder, killed_ms: None });
        }
    }

    fn place_worker(&self, members: &mut Members, slot: usize, lent: LentWorker) {
        let (number, pid) = (lent.process.number, lent.process.pid);
        match self.adopt_worker(slot, lent) {
            Ok(worker) => members.workers[slot] = Some(worker),
            Err(error) => {
                self.log(Level::Error, &format!("cannot take over a worker: {error}"));
                self.signal(number, super::recycling::SIGKILL);
                self.shard.remove_pid(pid);
                // Nothing here waits for its exit.
                self.end_loan(number);
            }
        }
        members.update_room_list(slot);
    }

    /// A worker has arrived, borrowed or back at home.
    pub(super) fn receive_worker(&self, lent: LentWorker) {
        if self.is_gone() {
            // Its home waits for it, or for its exit.
            let home = self.shard.home_of(lent.process.number);
            return self.shard.send(home, Message::Worker(Box::new(lent)));
        }
        self.borrows.set(None);
        let mut members = self.members.borrow_mut();
        members.lent.remove(&lent.process.number);
        let slot = members.free_slot();
        self.place_worker(&mut members, slot, lent);
        self.end_rest();
        self.assign_next(&mut members, slot);
        if !members.queue.is_empty() {
            self.want_worker(&members);
        }
        drop(members);
        self.continue_retiring();
    }

    /// There was no worker to borrow.
    pub(super) fn none_to_borrow(&self) {
        let Some(Borrowing { asked, tries }) = self.borrows.take() else { return };
        let mut members = self.members.borrow_mut();
        if !members.queue.is_empty() {
            self.ask(&members, asked, tries);
        }
        if self.borrows.get().is_none() {
            self.refuse_excess(&mut members);
        }
    }

    fn adopt_worker(&self, slot: usize, lent: LentWorker) -> io::Result<Worker> {
        let LentWorker { mut process, doorbell } = lent;
        let bell = Rc::new(WorkerBell { pool: self.weak_self.clone(), slot });
        let source = Source::with_bell(doorbell.into_fd(), bell)?;
        process.channel.cancel_sleep();
        let id = WorkerId { pool: self.id, slot, number: process.number };
        // It may have been here before.
        self.departed_workers.borrow_mut().retain(|departed| *departed != id);
        let allowance = Rc::new(Allowance::new(self.settings.log_rate));
        Ok(Worker::new(self, id, process, None, allowance, Some(source)))
    }

    /// Sends a borrowed worker home that its home has to replace. Returns whether it is gone.
    pub(super) fn return_to_be_replaced(&self, members: &mut Members, slot: usize) -> bool {
        let Some(worker) = members.workers[slot].as_ref() else { return false };
        if worker.is_own || !self.has_to_be_replaced(worker) || !self.may_lend(members, slot) {
            return false;
        }
        let home = self.shard.home_of(worker.process.number);
        self.lend(members, slot, home)
    }

    /// Sends borrowed workers home that are not needed. While requests wait, requests a worker again.
    pub(super) fn return_loans(&self, now_ms: u64) {
        if self.shard.count() == 1 {
            return;
        }
        let mut members = self.members.borrow_mut();
        if !members.queue.is_empty() || members.all().any(|worker| worker.backlog_len() > 0) {
            return self.want_worker(&members);
        }
        for slot in members.idle() {
            let Some(worker) = members.workers[slot].as_ref() else { continue };
            let is_old = worker.process.lifecycle.idle_ms(now_ms) >= Some(LOAN_IDLE_MS);
            if is_old && !worker.is_own && self.may_lend(&members, slot) {
                let home = self.shard.home_of(worker.process.number);
                self.lend(&mut members, slot, home);
            }
        }
    }
}
