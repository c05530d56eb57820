//! The gateway's end of one worker: its ring, its doorbell, and the requests that it has.
//!
//! Owned by the pool. A worker has up to `concurrency` requests. While those of a worker with one
//! at a time are quick, a few more lie ahead in its ring, so that it need not be woken for each.
//! What it has not started can be withdrawn and given to another. Invariants: a request that was
//! withdrawn is never answered by this worker; a corrupt ring ends it.
//!
//! [`sending`] is the way to it, [`receive`] the way from it.

mod receive;
mod sending;

use super::allowance::Allowance;
use super::leases::{Lease, Leases};
use super::routes::Shares;
use crate::exchange::{End, Exchange};
use crate::worker_id::WorkerId;
use outboard_buffer::{Account, Held};
use outboard_log::Reason;
use outboard_reactor::{Source, TaskId, wake};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::lifecycle::State;
pub(crate) use receive::{Heard, More, News, Then};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// What one worker's operations may hold, in eighths of `limits.memory`.
const MEMORY_EIGHTHS: usize = 2;
/// Of what a starting worker says, so much is kept to be told if it does not start.
const LAST_WORDS_BYTES: usize = 2048;

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its name.
    pub(crate) id: WorkerId,
    /// Its process, ring and place in life.
    pub(crate) process: WorkerProcess,
    /// Requests that it may have at a time.
    concurrency: usize,
    /// Whether its script stays, so that it may speak without a request.
    is_resident: bool,
    /// What it may write into the log.
    pub(super) allowance: Rc<Allowance>,
    leases: Leases,
    /// Those that lie ahead, in order.
    ahead: VecDeque<Tag>,
    /// Those of which not all is in the ring yet, in order.
    unsent: VecDeque<Tag>,
    /// Frames beside requests for which the ring has had no room.
    unsent_frames: VecDeque<(FrameKind, Tag, Vec<u8>)>,
    /// They are counted where all is that it asks for.
    unsent_held: Held,
    /// Woken once there are none.
    waiting_for_room: Vec<TaskId>,
    /// The request whose client did not take its answer when that was last looked at.
    stalled_by: Option<Tag>,
    /// Requests that were told to wait for their clients.
    paused: Vec<Tag>,
    /// Consecutive requests that took next to no time.
    quick: u32,
    /// Whether it is to be woken at the end of the turn.
    ring_due: bool,
    /// When its death was ordered.
    pub(super) killed_ms: Option<u64>,
    /// Whether it broke the protocol.
    is_broken: bool,
    /// Until it is ready: where it prints, for what is unread when its end is known.
    pub(super) printed: Option<OwnedFd>,
    /// What it said while it started.
    last_words: String,
    /// Whether the pool's list of workers with room has it.
    pub(crate) is_listed: bool,
    /// What it has served since its memory was last looked at.
    pub(crate) shares: Shares,
    /// Its doorbell, in the loop's epoll for as long as it lives.
    _rung: Option<Source>,
}

impl Worker {
    /// A worker for `concurrency` requests at a time.
    pub(crate) fn new(
        id: WorkerId,
        process: WorkerProcess,
        printed: Option<OwnedFd>,
        concurrency: usize,
        is_resident: bool,
        allowance: Rc<Allowance>,
        rung: Option<Source>,
    ) -> Self {
        Self {
            id,
            process,
            printed,
            concurrency,
            is_resident,
            allowance,
            leases: Leases::default(),
            ahead: VecDeque::new(),
            unsent: VecDeque::new(),
            unsent_frames: VecDeque::new(),
            unsent_held: Account::detached().hold(0),
            waiting_for_room: Vec::new(),
            stalled_by: None,
            paused: Vec::new(),
            quick: 0,
            ring_due: false,
            killed_ms: None,
            is_broken: false,
            last_words: String::new(),
            is_listed: false,
            shares: Shares::default(),
            _rung: rung,
        }
    }

    /// Has what it asks for counted as a part of this.
    pub(crate) fn counted_below(mut self, operations: &Rc<Account>) -> Self {
        self.unsent_held = Account::below(operations, MEMORY_EIGHTHS).hold(0);
        self
    }

    /// What it asks for is counted here.
    pub(crate) fn memory(&self) -> &Rc<Account> {
        self.unsent_held.account()
    }

    pub(crate) fn state(&self) -> State {
        self.process.lifecycle.state()
    }

    /// Requests that it has, without those that lie ahead.
    pub(crate) fn in_flight(&self) -> usize {
        self.leases.len() - self.ahead.len()
    }

    /// Whether it can be given a request.
    pub(crate) fn has_room(&self) -> bool {
        matches!(self.state(), State::Idle | State::Busy) && self.in_flight() < self.concurrency
    }

    /// Whether it ends a request without harm to its others when it is told to.
    pub(crate) fn can_cancel(&self) -> bool {
        self.concurrency > 1
    }

    /// Its requests, those that lie ahead among them.
    pub(crate) fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter()
    }

    pub(crate) fn lease(&self, tag: Tag) -> Option<&Lease> {
        self.leases.get(tag)
    }

    pub(crate) fn lease_mut(&mut self, tag: Tag) -> Option<&mut Lease> {
        self.leases.get_mut(tag)
    }

    /// The request that it has had longest, of those that it has.
    pub(crate) fn oldest(&self) -> Option<&Lease> {
        let running = self.leases.iter().filter(|lease| lease.run.is_some());
        running.min_by_key(|lease| lease.run.map(|run| run.since_ms))
    }

    /// For how long it has had its oldest request; `None` without one.
    pub(crate) fn busy_ms(&self, now_ms: u64) -> Option<u64> {
        self.oldest().map(|lease| lease.took_ms(now_ms))
    }

    /// The request that something is about which it says: that with the tag, or its only one.
    pub(crate) fn request_id(&self, tag: Tag) -> Option<u64> {
        let sole = || self.oldest().filter(|_| self.in_flight() == 1);
        self.leases.get(tag).or_else(sole).map(|lease| lease.exchange.request_id)
    }

    /// Keeps a line that it says about a request, with that.
    pub(crate) fn keep_words_about(&self, tag: Tag, line: &str) {
        let sole = || self.oldest().filter(|_| self.in_flight() == 1);
        if let Some(lease) = self.leases.get(tag).or_else(sole) {
            lease.exchange.keep_words(line);
        }
    }

    /// Fails everything that it has. Returns what that was, oldest first.
    pub(crate) fn fail(&mut self) -> Vec<Rc<Exchange>> {
        let reason =
            if self.is_broken { Reason::WorkerProtocolError } else { Reason::WorkerCrashed };
        let leases = self.leases.tags().into_iter().filter_map(|tag| self.leases.remove(tag));
        let failed: Vec<_> = leases.map(|lease| lease.exchange).collect();
        for exchange in &failed {
            exchange.finish(End::Failed(reason));
        }
        failed
    }

    /// Its ring is not looked at any more.
    pub(crate) fn give_up(&mut self) {
        self.is_broken = true;
    }

    /// The backtrace of a request, once the worker has written it.
    pub(crate) fn backtrace(&self, tag: Tag) -> Option<String> {
        self.process.channel.backtrace(tag)
    }

    /// Keeps a line that it says while it starts.
    pub(crate) fn keep_words(&mut self, line: &str) {
        let is_starting = matches!(self.state(), State::Forking | State::Booting);
        if is_starting && self.last_words.len() + line.len() < LAST_WORDS_BYTES {
            if !self.last_words.is_empty() {
                self.last_words.push('\n');
            }
            self.last_words.push_str(line);
        }
    }

    /// What it said while it started.
    pub(crate) fn last_words(&self) -> &str {
        &self.last_words
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.waiting_for_room.drain(..).for_each(wake);
    }
}
