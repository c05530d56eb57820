//! The gateway's end of one worker: its ring, its doorbell, and the requests that it has.
//!
//! Owned by the pool. A worker has up to `concurrency` requests. While those of a worker with one
//! at a time are quick, a few more lie ahead in its ring, so that it need not be woken for each.
//! What it has not started can be withdrawn and given to another. Invariants: a frame goes to the
//! request whose tag it carries, or is late and is dropped; a request that was withdrawn is never
//! answered by this worker; a corrupt ring ends it.

use super::leases::{Lease, Leases, Run};
use super::operations::WorkerId;
use super::routes::Shares;
use crate::exchange::{End, Exchange, Place};
use crate::reason::Reason;
use outboard_reactor::{TaskId, wake};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::life::{Finished, Moved, State};
use std::collections::VecDeque;
use std::rc::Rc;

/// Body bytes offered to the ring at once.
const PIECE_BYTES: usize = 32 * 1024;
/// Below this much room the body waits, so that it is not sent in crumbs.
const LEAST_PIECE_BYTES: usize = 4096;

/// Requests that may lie ahead in a ring.
const MOST_AHEAD: usize = 128;
const _: () = assert!(MOST_AHEAD + 2 <= LEASES);
/// So many requests in a row must have been quick before any is put ahead.
const QUICK_BEFORE_AHEAD: u32 = 3;
/// A request that took no longer than this was quick.
const QUICK_MS: u64 = 1;
/// A client that does not take its answer stops a worker that has its request alone as soon as its
/// buffer is full. With others in the worker the request is told to wait; one that cannot may take
/// more: so many buffers for all of them, and a few for each.
const SHARED_PATIENCE: usize = 64;
const LEAST_PATIENCE: usize = 4;
/// Of what a starting worker says, so much is kept to be told if it does not start.
const LAST_WORDS_BYTES: usize = 2048;

/// What a look into the ring brought.
#[derive(Debug)]
pub(crate) struct News {
    /// The request that is over, if it was that.
    pub(crate) finished: Option<Lease>,
    /// What becomes of the worker.
    pub(crate) then: Then,
}

/// What becomes of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It can take a request.
    Free,
    /// It is on its way out and takes no more.
    Leaving,
}

/// What a worker says beside its answers.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// Into the log.
    Line(LogLine<'a>),
    /// It asks for an operation.
    Operation(&'a [u8]),
}

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
    leases: Leases,
    /// Those that lie ahead, in order.
    ahead: VecDeque<Tag>,
    /// Those of which not all is in the ring yet, in order.
    unsent: VecDeque<Tag>,
    /// Frames beside requests for which the ring has had no room.
    unsent_frames: VecDeque<(FrameKind, Tag, Vec<u8>)>,
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
    /// Whether it broke the protocol.
    is_broken: bool,
    /// What it said while it started.
    last_words: String,
    /// Whether the pool's list of workers with room has it.
    pub(crate) is_listed: bool,
    /// What it has served since its memory was last looked at.
    pub(crate) shares: Shares,
}

impl Worker {
    /// A worker for `concurrency` requests at a time.
    pub(crate) fn new(
        id: WorkerId,
        process: WorkerProcess,
        concurrency: usize,
        is_resident: bool,
    ) -> Self {
        Self {
            id,
            process,
            concurrency,
            is_resident,
            leases: Leases::default(),
            ahead: VecDeque::new(),
            unsent: VecDeque::new(),
            unsent_frames: VecDeque::new(),
            waiting_for_room: Vec::new(),
            stalled_by: None,
            paused: Vec::new(),
            quick: 0,
            ring_due: false,
            is_broken: false,
            last_words: String::new(),
            is_listed: false,
            shares: Shares::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.process.life.state()
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

    /// Gives it a request. It must have room.
    pub(crate) fn begin(&mut self, exchange: Rc<Exchange>, run: Run) -> Result<(), Corrupt> {
        let moved = self.process.life.begin();
        debug_assert_eq!(moved, Moved::Yes, "only workers with room are given requests");
        let tag = self.take(exchange, Some(run));
        self.unsent.push_back(tag);
        self.pump()
    }

    fn take(&mut self, exchange: Rc<Exchange>, run: Option<Run>) -> Tag {
        let place = |tag| Place { worker: self.id, tag };
        let tag = self.leases.add(exchange, run, place);
        self.process.channel.offer(tag);
        tag
    }

    /// Whether another request may lie ahead in its ring.
    pub(crate) fn can_lead(&self) -> bool {
        self.concurrency == 1
            && self.state() == State::Busy
            && self.quick >= QUICK_BEFORE_AHEAD
            && self.ahead.len() < MOST_AHEAD
            && self.unsent.is_empty()
    }

    pub(crate) fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Puts a request without a body behind the present one.
    pub(crate) fn lead(&mut self, exchange: Rc<Exchange>) -> Result<(), Corrupt> {
        let tag = self.take(exchange, None);
        self.ahead.push_back(tag);
        self.unsent.push_back(tag);
        self.pump()
    }

    /// Goes on with the request that lies ahead; false when there is none.
    pub(crate) fn go_on(&mut self, run: Run) -> bool {
        let Some(lease) = self.ahead.pop_front().and_then(|tag| self.leases.get_mut(tag)) else {
            return false;
        };
        lease.run = Some(run);
        self.process.life.begin() == Moved::Yes
    }

    /// Takes back what lies ahead and was not started, in order.
    pub(crate) fn withdraw_ahead(&mut self, now_ms: u64) -> Vec<Rc<Exchange>> {
        let ahead: Vec<Tag> = self.ahead.iter().copied().collect();
        self.withdraw_all(ahead, now_ms)
    }

    /// Takes back everything that was not started, in order.
    pub(crate) fn withdraw_unstarted(&mut self, now_ms: u64) -> Vec<Rc<Exchange>> {
        let tags = self.leases.tags();
        self.withdraw_all(tags, now_ms)
    }

    fn withdraw_all(&mut self, tags: Vec<Tag>, now_ms: u64) -> Vec<Rc<Exchange>> {
        tags.into_iter().filter_map(|tag| self.withdraw(tag, now_ms)).collect()
    }

    /// Takes a request back, unless it was started. It can be given to another then.
    pub(crate) fn withdraw(&mut self, tag: Tag, now_ms: u64) -> Option<Rc<Exchange>> {
        self.leases.get(tag)?;
        if !self.process.channel.withdraw(tag) {
            return None;
        }
        self.ahead.retain(|theirs| *theirs != tag);
        self.unsent.retain(|theirs| *theirs != tag);
        let lease = self.leases.remove(tag)?;
        if lease.run.is_some() && self.process.life.withdrawn(now_ms) == Finished::Stop {
            // One that cannot even be told is ended by its drain deadline.
            let _ = self.process.tell_to_stop();
        }
        lease.exchange.body.borrow_mut().rewind();
        lease.exchange.place.set(None);
        Some(lease.exchange)
    }

    /// Sends a frame that is no part of a request, now or as soon as there is room.
    pub(crate) fn send(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<(), Corrupt> {
        let is_sent =
            self.unsent_frames.is_empty() && self.process.channel.push(kind, tag, &[payload])?;
        if is_sent {
            self.publish();
            return Ok(());
        }
        self.unsent_frames.push_back((kind, tag, payload.to_vec()));
        self.pump()
    }

    /// Tells it to end a request.
    pub(crate) fn cancel(&mut self, tag: Tag) -> Result<(), Corrupt> {
        self.send(FrameKind::Cancel, tag, &[])?;
        self.process.doorbell.ring();
        Ok(())
    }

    /// Whether nothing beside requests waits for room in its ring.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.unsent_frames.is_empty()
    }

    /// Has the task woken once everything is sent, or the worker has gone.
    pub(crate) fn wait_for_room(&mut self, task: TaskId) {
        if !self.waiting_for_room.contains(&task) {
            self.waiting_for_room.push(task);
        }
    }

    /// Moves as much into the ring as there is room for.
    pub(crate) fn pump(&mut self) -> Result<(), Corrupt> {
        if self.unsent_frames.is_empty() && self.unsent.is_empty() {
            return Ok(());
        }
        if self.pump_frames()? {
            while let Some(tag) = self.unsent.front().copied()
                && self.pump_request(tag)?
            {
                self.unsent.pop_front();
            }
        }
        self.publish();
        Ok(())
    }

    /// True when all of them are in the ring.
    fn pump_frames(&mut self) -> Result<bool, Corrupt> {
        while let Some((kind, tag, payload)) = self.unsent_frames.front() {
            if self.process.channel.push(*kind, *tag, &[payload])? {
                self.unsent_frames.pop_front();
            } else if self.process.channel.prepare_wait(payload.len())? == Sleep::MayBlock {
                return Ok(false);
            }
        }
        self.waiting_for_room.drain(..).for_each(wake);
        Ok(true)
    }

    /// True when all of the request is in the ring, or nobody waits for its answer.
    fn pump_request(&mut self, tag: Tag) -> Result<bool, Corrupt> {
        let Some(lease) = self.leases.get_mut(tag) else { return Ok(true) };
        let channel = &mut self.process.channel;
        while !lease.frame_sent {
            let frame = &lease.exchange.frame;
            lease.frame_sent = channel.push(FrameKind::Request, tag, &[frame])?;
            if !lease.frame_sent && channel.prepare_wait(frame.len())? == Sleep::MayBlock {
                return Ok(false);
            }
        }
        let mut body = lease.exchange.body.borrow_mut();
        while !body.is_spent() && !lease.exchange.has_ended() {
            let free = channel.free_bytes()?;
            if free < LEAST_PIECE_BYTES {
                if channel.prepare_wait(LEAST_PIECE_BYTES)? == Sleep::MayBlock {
                    return Ok(false);
                }
                continue;
            }
            let taken = body.next(free.min(PIECE_BYTES), |piece| {
                channel.push(FrameKind::RequestBody, tag, &[piece])
            });
            match taken {
                Ok(pushed) => drop(pushed?),
                Err(_) => {
                    // The spool cannot be read: PHP must not see a shortened body as whole.
                    lease.exchange.finish(End::Failed(Reason::SpoolFailed));
                    channel.abort(tag);
                }
            }
        }
        Ok(true)
    }

    /// Fails everything that it has. Returns what that was, oldest first.
    pub(crate) fn fail(&mut self) -> Vec<Rc<Exchange>> {
        let reason = if self.is_broken { Reason::WorkerBroke } else { Reason::WorkerCrashed };
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

    /// Tells it that nobody waits for the answer any more.
    pub(crate) fn abort(&mut self, tag: Tag) {
        self.process.channel.abort(tag);
        // It may be asleep for room in a ring that nobody empties now.
        self.process.doorbell.ring();
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

    fn publish(&mut self) {
        self.ring_due |= self.process.channel.publish() == Wake::Needed;
    }

    /// Rings its doorbell if it sleeps beside a ring that is not empty. Once for all that came in
    /// a turn: woken for the first request, it would take the processor from the gateway that is
    /// about to bring more.
    pub(crate) fn ring_if_due(&mut self) {
        if std::mem::take(&mut self.ring_due) {
            self.process.doorbell.ring();
        }
    }

    /// Takes frames out of the ring until there is news, it is empty, or a connection has enough
    /// for now.
    pub(crate) fn look(
        &mut self,
        payload: &mut Vec<u8>,
        now_ms: u64,
        mut hear: impl FnMut(&mut Worker, Tag, Heard<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let mut news = None;
        let mut popped = false;
        if !self.paused.is_empty() {
            self.resume_taken()?;
        }
        while news.is_none() && !self.is_stalled() {
            let Some(header) = self.process.channel.receive(payload)? else { break };
            popped = true;
            news = self.handle(header, payload, now_ms, &mut hear)?;
        }
        if popped {
            self.ring_due |= self.process.channel.release() == Wake::Needed;
        }
        Ok(news)
    }

    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        hear: &mut impl FnMut(&mut Worker, Tag, Heard<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let tag = header.tag;
        match header.kind {
            FrameKind::Log => hear(self, tag, Heard::Line(LogLine::decode(payload)?)),
            FrameKind::Operation => hear(self, tag, Heard::Operation(payload)),
            FrameKind::Ready => {
                let moved = self.process.life.ready(now_ms);
                let news = News { finished: None, then: Then::Free };
                return Ok((moved == Moved::Yes).then_some(news));
            }
            FrameKind::Done => return self.handle_done(tag, Done::decode(payload)?, now_ms),
            kind => {
                let Some(lease) = self.leases.get(tag) else { return Ok(None) };
                deliver(&lease.exchange, kind, payload)?;
                if kind == FrameKind::Body {
                    let is_full = self.concurrency > 1 && lease.exchange.is_full(1);
                    if is_full && self.process.channel.pause(tag) {
                        self.paused.push(tag);
                    }
                    self.stalled_by = Some(tag);
                }
            }
        }
        Ok(None)
    }

    fn handle_done(&mut self, tag: Tag, done: Done, now_ms: u64) -> Result<Option<News>, Corrupt> {
        let Some(lease) = self.leases.get(tag) else { return Ok(None) };
        if lease.run.is_none() {
            return Err(Corrupt { what: "the end of a request before its turn" });
        }
        let finished = self.leases.remove(tag);
        if let Some(lease) = &finished {
            lease.exchange.done.set(Some(done));
            lease.exchange.finish(End::Complete);
            let is_quick = lease.took_ms(now_ms) <= QUICK_MS;
            self.quick = if is_quick { self.quick.saturating_add(1) } else { 0 };
        }
        let then = match self.process.life.finished(now_ms, done.leaving) {
            Finished::Free => Then::Free,
            Finished::Leaving => Then::Leaving,
            Finished::Stop => {
                self.process.tell_to_stop()?;
                Then::Leaving
            }
            Finished::HadNone => {
                return Err(Corrupt { what: "the end of a request that was not begun" });
            }
        };
        Ok(Some(News { finished, then }))
    }

    /// Has those go on whose clients have taken what there was, or have gone.
    fn resume_taken(&mut self) -> Result<(), Corrupt> {
        let leases = &self.leases;
        let is_full = |tag: &Tag| leases.get(*tag).is_some_and(|lease| lease.exchange.is_full(1));
        let taken: Vec<Tag> = self.paused.extract_if(.., |tag| !is_full(tag)).collect();
        for tag in taken {
            self.process.channel.resume(tag);
            self.send(FrameKind::Resume, tag, &[])?;
        }
        Ok(())
    }

    /// Whether frames are left in the ring because a connection has not taken earlier ones.
    pub(crate) fn is_stalled(&mut self) -> bool {
        let Some(tag) = self.stalled_by else { return false };
        let patience = match self.concurrency {
            1 => 1,
            _ => (SHARED_PATIENCE / self.in_flight().max(1)).max(LEAST_PATIENCE),
        };
        let is_full = self.leases.get(tag).is_some_and(|lease| lease.exchange.is_full(patience));
        if !is_full {
            self.stalled_by = None;
        }
        is_full
    }

    /// Whether frames of it are to be expected. One that is being killed may have finished
    /// requests before.
    pub(crate) fn may_speak(&self) -> bool {
        match self.state() {
            State::Idle => self.is_resident,
            State::Gone => false,
            _ => !self.is_broken,
        }
    }

    /// Has it ring the doorbell from now on; `Ready` when there is something to look at. A worker
    /// whose frames are left in the ring on purpose need not.
    pub(crate) fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        if self.is_stalled() {
            return Ok(Sleep::MayBlock);
        }
        self.process.channel.prepare_sleep()
    }

    /// The gateway looks by itself again.
    pub(crate) fn cancel_sleep(&mut self) {
        self.process.channel.cancel_sleep();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.waiting_for_room.drain(..).for_each(wake);
    }
}

fn deliver(exchange: &Exchange, kind: FrameKind, payload: &[u8]) -> Result<(), Corrupt> {
    match kind {
        FrameKind::Head => exchange.add_head(payload),
        FrameKind::Body => exchange.add_body(payload),
        FrameKind::Flush => exchange.add_flush(),
        FrameKind::End => exchange.finish(End::Complete),
        _ => return Err(Corrupt { what: "a frame that only the gateway sends" }),
    }
    Ok(())
}
