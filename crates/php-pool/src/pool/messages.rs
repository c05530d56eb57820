//! [`Message`]: what the pools of an app tell each other across the threads of the server.
//!
//! Sent by all that concerns several threads, to the [`Shard`](super::Shard) of the other pool. Invariants:
//! the messages of one thread to another are handled in their order, each outside of any other work of
//! the pool; a pool at its end handles all that were sent to it, so that nobody waits for an answer and no
//! worker is lost.

use super::Pool;
use super::loans::LentWorker;
use super::recycling::SIGKILL;
use crate::worker_id::WorkerId;
use outboard_log::Level;
use outboard_reactor::{MailboxReceiver, contain, now_ms, share_turn, spawn};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_supervisor::zygote::SiblingEnds;
use outboard_trace::TraceContext;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(super) enum Message {
    /// To the first pool: have its zygote fork one for this shard.
    Split { shard: usize, ends: SiblingEnds },
    /// To the first pool: kill the zygote of this shard.
    KillZygote { shard: usize },
    /// Requests wait on this shard: give it an idle worker.
    Borrow { by: usize },
    /// There was none.
    NoneIdle,
    /// Requests wait on a shard that may not fork more workers: fork so many.
    Grow { count: usize },
    /// A worker, lent or given back.
    Worker(Box<LentWorker>),
    /// A lent worker has exited; or it is not here any more.
    Exited { number: u64, code: Option<i32>, how: String },
    /// To the home of a borrowed worker: another thread has it now.
    Moved { number: u64, holder: usize },
    /// To the home of a borrowed worker: its holder knows of its end.
    Reaped { number: u64 },
    /// Send a signal to a worker that is lent.
    Signal { number: u64, signal: i32 },
    /// To the first pool: an operation that it carries out for all.
    Operation {
        by: usize,
        worker: WorkerId,
        request: Tag,
        trace: Option<TraceContext>,
        payload: Vec<u8>,
    },
    /// To the pool that sent it: it has been begun.
    Begun { worker: WorkerId, bytes: usize },
    /// To the first pool: forget the operations of a worker.
    Forget { worker: WorkerId },
    /// A frame for a worker whose operation the first pool carries out.
    Frame { worker: WorkerId, kind: FrameKind, tag: Tag, payload: Vec<u8> },
    /// To the first pool: such a frame is in the worker's ring.
    Delivered { worker: WorkerId, bytes: usize },
    /// To the first pool: the pool of another thread has no process any more.
    Closed,
    /// To itself: the pool is gone.
    Gone,
}

impl Message {
    /// What it carries.
    fn bytes(&self) -> usize {
        match self {
            Self::Operation { payload, .. } | Self::Frame { payload, .. } => payload.len(),
            _ => 0,
        }
    }
}

impl Pool {
    pub(super) fn on_message(self: &Rc<Self>, message: Message) {
        match message {
            Message::Gone => {}
            Message::Split { shard, ends } => self.split_zygote(shard, ends),
            Message::KillZygote { shard } => self.kill_sibling(shard),
            Message::Borrow { by } => self.lend_idle(by),
            Message::NoneIdle => self.none_to_borrow(),
            Message::Grow { count } => self.grow_for_others(count),
            Message::Worker(lent) => self.receive_worker(*lent),
            Message::Exited { number, code, how } => self.borrowed_exited(number, code, how),
            Message::Moved { number, holder } => {
                if let Some(loan) = self.members.borrow_mut().lent.get_mut(&number) {
                    loan.holder = holder;
                }
            }
            Message::Reaped { number } => self.loan_ended(number),
            Message::Signal { number, signal } => self.signal_lent(number, signal),
            Message::Operation { by, worker, request, trace, payload } => {
                self.begin_remote(by, (worker, request, trace), &payload);
            }
            Message::Begun { worker, bytes } => self.operation_begun(worker, bytes),
            Message::Forget { worker } => self.forget_remote(worker),
            Message::Frame { worker, kind, tag, payload } => {
                self.deliver(worker, kind, tag, &payload);
            }
            Message::Delivered { worker, bytes } => self.remote_has_read(worker, bytes),
            Message::Closed => {
                self.dependents.update(|left| left.saturating_sub(1));
                self.demand.set();
            }
        }
    }

    fn signal_lent(&self, number: u64, signal: i32) {
        if signal == SIGKILL
            && let Some(loan) = self.members.borrow_mut().lent.get_mut(&number)
        {
            loan.killed_ms.get_or_insert(now_ms());
            self.demand.set();
        }
        self.signal(number, signal);
    }

    fn handle_message(self: &Rc<Self>, message: Message) {
        if contain(|| self.on_message(message)).is_err() {
            self.log(Level::Error, "a message of another thread made the gateway panic");
        }
    }
}

/// Handles messages of the other pools until this one is gone. The messages are its own from now on.
pub(super) fn follow_messages(pool: &Rc<Pool>) {
    if let Some(messages) = pool.shard.receiver() {
        spawn(follow(pool.clone(), messages));
    }
}

async fn follow(pool: Rc<Pool>, messages: MailboxReceiver<Message>) {
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
