//! What the pools of an app on other threads tell this one, and the exits of workers that they have.
//!
//! [`follow`] runs for each pool of several. Invariants: the messages of one thread to another are handled in their
//! order, each outside of any other work of the pool; a pool at its end handles all that were sent to it, so that
//! nobody waits for an answer and no worker is lost; an exit is handled once, by the pool that has the worker.

use super::Pool;
use super::core::SIGKILL;
use super::lending::messages::Message;
use super::lending::report_end;
use outboard_log::Level;
use outboard_reactor::{MailboxReceiver, contain, now_ms, share_turn, with_deadline};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::SiblingEnds;
use std::rc::Rc;

/// The time for another thread to learn of the end of its borrowed workers.
pub(super) const FORGET_TIMEOUT_MS: u64 = 1_000;

/// Handles messages of the other pools until this one is gone.
pub(super) async fn follow(pool: Rc<Pool>, messages: MailboxReceiver<Message>) {
    loop {
        match messages.next().await {
            Message::Gone => break,
            message => {
                let bytes = message.bytes();
                pool.handle_message(message);
                // Another thread can send many.
                share_turn(bytes).await;
            }
        }
    }
    messages.close().into_iter().for_each(|message| pool.handle_message(message));
}

impl Pool {
    fn handle_message(self: &Rc<Self>, message: Message) {
        if contain(|| self.on_message(message)).is_err() {
            self.core.log.log(Level::Error, "a message of another thread made the gateway panic");
        }
    }

    pub(super) fn on_message(self: &Rc<Self>, message: Message) {
        let (core, dispatcher) = (&self.core, &self.dispatcher);
        debug_assert!(
            core.members.try_borrow_mut().is_ok(),
            "the pool is in the middle of other work"
        );
        match message {
            Message::Gone => {}
            Message::Split { shard, ends } => self.split_zygote(shard, ends),
            Message::KillZygote { shard } => self.kill_sibling(shard),
            Message::Borrow { by } => dispatcher.lend_idle(by),
            Message::NoneIdle => dispatcher.none_to_borrow(),
            Message::Grow { count } => self.grow_for_others(count),
            Message::Worker(transfer) => {
                dispatcher.receive_worker(*transfer);
                self.continue_retiring();
            }
            Message::Exited { number, code, how } => self.borrowed_exited(number, code, how),
            Message::Moved { number, borrower } => {
                core.members.borrow_mut().lent.moved(number, borrower);
            }
            Message::Reaped { number } => self.lent_ended(number),
            Message::Signal { number, signal } => self.signal_lent(number, signal),
            Message::Operation { by, worker, request, trace, payload } => {
                dispatcher.operations.begin_remote(by, (worker, request, trace), &payload);
            }
            Message::Begun { worker, bytes } => dispatcher.operations.begun(worker, bytes),
            Message::Forget { worker } => dispatcher.operations.forget_remote(worker),
            Message::Frame { worker, kind, tag, payload } => {
                dispatcher.operations.deliver(worker, kind, tag, &payload);
            }
            Message::Delivered { worker, bytes } => {
                dispatcher.operations.remote_has_read(worker, bytes);
            }
            Message::Asleep => core.lifecycle.end_rest(),
            Message::Closed => core.lifecycle.dependent_closed(),
        }
    }

    /// Forks a zygote for another shard, now or when PHP has started.
    fn split_zygote(&self, shard: usize, ends: SiblingEnds) {
        self.siblings.add(shard, ends);
        self.split_waiting();
        if self.core.lifecycle.is_asleep() {
            self.core.lifecycle.end_rest();
        }
    }

    /// Forks the zygotes that were requested, if PHP has started.
    pub(super) fn split_waiting(&self) {
        let zygote = self.core.zygote.borrow();
        let Some(zygote) = zygote.as_ref().filter(|_| !self.core.php.borrow().is_under_way())
        else {
            return;
        };
        for error in self.siblings.fork_waiting(zygote) {
            self.log_error(&format!("cannot fork the zygote of a thread: {error}"));
        }
    }

    /// Kills the zygote of another shard, which does not carry out its orders.
    fn kill_sibling(&self, shard: usize) {
        if let Some(zygote) = self.core.zygote.borrow().as_ref()
            && let Err(error) = self.siblings.kill(shard, zygote)
        {
            self.log_error(&format!("cannot kill the zygote of a thread: {error}"));
        }
    }

    /// Another thread needs workers. Those that start already are counted.
    fn grow_for_others(&self, count: usize) {
        let core = &self.core;
        if !core.lifecycle.is_serving() || !core.php.borrow().may_fork(now_ms()) {
            return;
        }
        let starting = {
            let members = core.members.borrow();
            let is_starting = |state| matches!(state, State::Forking | State::Booting);
            members.roster.own().filter(|worker| is_starting(worker.state())).count()
        };
        for _ in 0..count.saturating_sub(starting).min(self.vacant()) {
            self.fork();
        }
        core.shard.publish_vacant(self.vacant());
        core.lifecycle.end_rest();
    }

    /// How many workers it may still fork.
    fn vacant(&self) -> usize {
        let active = self.core.members.borrow().active();
        self.dispatcher.sizing.borrow().vacant(active)
    }

    /// A borrower sends a signal to a worker of this zygote.
    fn signal_lent(&self, number: u64, signal: i32) {
        let core = &self.core;
        if signal == SIGKILL && core.members.borrow_mut().lent.killed(number, now_ms()) {
            core.lifecycle.demand().set();
        }
        core.signal(number, signal);
    }

    /// The zygote has reaped a worker: its borrower learns of it.
    pub(super) fn worker_exited(&self, number: u64, code: Option<i32>, how: &str) {
        let borrower = self.core.members.borrow().lent.borrower_of(number);
        let Some(borrower) = borrower else { return self.reap(number, code, how) };
        let message = Message::Exited { number, code, how: how.to_owned() };
        if self.core.shard.try_send(borrower, message).is_err() {
            self.lent_ended(number);
        }
    }

    /// A borrowed worker has exited. If it is not here any more, its owner knows, or comes to know, which
    /// thread has it: that was sent before.
    fn borrowed_exited(&self, number: u64, code: Option<i32>, how: String) {
        let core = &self.core;
        let is_here = core.members.borrow().roster.slot_of(number).is_some();
        let owner = core.shard.owner_of(number);
        if owner == core.shard.index() {
            return self.worker_exited(number, code, &how);
        }
        if is_here {
            self.reap(number, code, &how);
            return report_end(core, number);
        }
        core.shard.send(owner, Message::Exited { number, code, how });
    }

    /// A worker that was lent does not exist any more.
    fn lent_ended(&self, number: u64) {
        let was_lent = self.core.members.borrow_mut().lent.end(number);
        if was_lent && self.core.settings.forks_script() {
            self.forks.record_used();
            self.replace_used_forks();
        }
        self.core.lifecycle.demand().set();
    }

    /// All workers of this zygote have died with it.
    pub(super) fn lent_workers_died(&self) {
        let lent = self.core.members.borrow().lent.numbers();
        for number in lent {
            self.worker_exited(number, None, "died with its zygote");
        }
    }

    /// Waits until the other threads know that the workers are gone that they have. They could not learn
    /// of it from a pool that is gone itself.
    pub(super) async fn lent_workers_forgotten(&self) {
        let until_ms = now_ms() + FORGET_TIMEOUT_MS;
        let forgotten = with_deadline(until_ms, async {
            while !self.core.members.borrow().lent.is_empty() {
                self.core.lifecycle.demand().wait().await;
            }
        });
        // A thread that does not respond in time is blocked, and has the deadlines of its requests.
        let _ = forgotten.await;
    }
}
