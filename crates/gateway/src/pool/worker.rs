//! The gateway's end of one worker: its ring, its doorbell, and the request that it has.
//!
//! Owned by the pool. A worker answers one request at a time; while its requests are quick, a few
//! more lie ahead in its ring, so that it need not be woken for each. What it has not started can
//! be withdrawn and given to another. Invariants: a frame whose tag is not the present one is late
//! and is dropped; a request that was withdrawn is never answered by this worker; a corrupt ring
//! ends it.

use crate::exchange::{End, Exchange};
use crate::reason::Reason;
use outboard_reactor::{TaskId, wake};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::plan::deadline::Stage;
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::life::{Finished, Moved, State};
use std::collections::VecDeque;
use std::rc::Rc;

/// Body bytes offered to the ring at once.
const PIECE_BYTES: usize = 32 * 1024;
/// Below this much room the body waits, so that it is not sent in crumbs.
const LEAST_PIECE_BYTES: usize = 4096;

/// Requests that may lie ahead in a ring.
const MOST_AHEAD: usize = 12;
const _: () = assert!(MOST_AHEAD + 2 <= LEASES);
/// So many requests in a row must have been quick before any is put ahead.
const QUICK_BEFORE_AHEAD: u32 = 3;
/// A request that took no longer than this was quick.
const QUICK_MS: u64 = 1;

/// What a look into the ring brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It can take a request.
    Free,
    /// Its request is over, and it is on its way out.
    Leaving,
}

/// What a worker says beside its answers.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// Into the log.
    Line(LogLine<'a>),
    /// It asks for an operation, on behalf of a request.
    Operation(Tag, &'a [u8]),
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its process, ring and place in life.
    pub(crate) process: WorkerProcess,
    pub(crate) exchange: Option<Rc<Exchange>>,
    pub(crate) tag: Tag,
    /// How far the enforcement of its deadline has come.
    pub(crate) stage: Stage,
    frame_sent: bool,
    /// Requests in its ring behind the present one, in order.
    ahead: VecDeque<(Tag, Rc<Exchange>)>,
    last_generation: u32,
    /// Consecutive requests that took next to no time.
    quick: u32,
    /// Whether it is to be woken at the end of the turn.
    ring_due: bool,
    /// Frames that its ring has no room for yet.
    unsent: VecDeque<(FrameKind, Tag, Vec<u8>)>,
    /// Woken once there are none.
    waiting_for_room: Vec<TaskId>,
}

impl Worker {
    pub(crate) fn new(process: WorkerProcess) -> Self {
        Self {
            process,
            exchange: None,
            tag: Tag::default(),
            stage: Stage::InTime,
            frame_sent: false,
            ahead: VecDeque::new(),
            last_generation: 0,
            quick: 0,
            ring_due: false,
            unsent: VecDeque::new(),
            waiting_for_room: Vec::new(),
        }
    }

    fn next_tag(&mut self) -> Tag {
        self.last_generation = self.last_generation.wrapping_add(1);
        // One after the other, so a slot is free again long before its turn comes.
        Tag { slot: self.last_generation % LEASES as u32, generation: self.last_generation }
    }

    pub(crate) fn state(&self) -> State {
        self.process.life.state()
    }

    /// Gives it a request. It must be idle.
    pub(crate) fn begin(
        &mut self,
        exchange: Rc<Exchange>,
        now_ms: u64,
        deadline_ms: u64,
    ) -> Result<(), Corrupt> {
        self.tag = self.next_tag();
        self.frame_sent = false;
        self.process.channel.offer(self.tag);
        self.take_up(exchange, now_ms, deadline_ms);
        self.pump()
    }

    /// Makes an exchange the present one.
    fn take_up(&mut self, exchange: Rc<Exchange>, now_ms: u64, deadline_ms: u64) {
        let moved = self.process.life.begin(now_ms, Some(now_ms + deadline_ms));
        debug_assert_eq!(moved, Moved::Yes, "only idle workers are given requests");
        self.stage = Stage::InTime;
        exchange.started_ms.set(Some(now_ms));
        self.exchange = Some(exchange);
    }

    /// Whether another request may lie ahead in its ring.
    pub(crate) fn can_lead(&self) -> bool {
        self.state() == State::Busy
            && self.quick >= QUICK_BEFORE_AHEAD
            && self.ahead.len() < MOST_AHEAD
            && self.frame_sent
            && self.exchange.as_ref().is_some_and(|exchange| exchange.body.borrow().is_spent())
    }

    pub(crate) fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Puts a request without a body behind the present one; false when there is no room.
    pub(crate) fn lead(&mut self, exchange: &Rc<Exchange>) -> Result<bool, Corrupt> {
        if !exchange.body.borrow().is_spent() {
            return Ok(false);
        }
        let tag = self.next_tag();
        self.process.channel.offer(tag);
        if !self.process.channel.push(FrameKind::Request, tag, &[&exchange.frame])? {
            return Ok(false);
        }
        self.publish();
        self.ahead.push_back((tag, exchange.clone()));
        Ok(true)
    }

    /// Takes back what it has not started, in order.
    pub(crate) fn withdraw_ahead(&mut self) -> Vec<Rc<Exchange>> {
        let channel = &self.process.channel;
        let (back, kept): (VecDeque<_>, VecDeque<_>) =
            self.ahead.drain(..).partition(|(tag, _)| channel.withdraw(*tag));
        self.ahead = kept;
        back.into_iter().map(|(_, exchange)| exchange).collect()
    }

    /// Takes back the present request, if it was not started.
    pub(crate) fn withdraw_present(&mut self) -> Option<Rc<Exchange>> {
        if self.exchange.is_some() && self.process.channel.withdraw(self.tag) {
            return self.exchange.take();
        }
        None
    }

    /// Forgets a request that lies ahead; false when it is not there or was started.
    pub(crate) fn withdraw(&mut self, exchange: &Rc<Exchange>) -> bool {
        let channel = &self.process.channel;
        let before = self.ahead.len();
        self.ahead
            .retain(|(tag, theirs)| !(Rc::ptr_eq(theirs, exchange) && channel.withdraw(*tag)));
        self.ahead.len() < before
    }

    /// Sends a frame that is no part of a request, now or as soon as there is room.
    pub(crate) fn send(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        payload: Vec<u8>,
    ) -> Result<(), Corrupt> {
        self.unsent.push_back((kind, tag, payload));
        self.send_unsent()
    }

    fn send_unsent(&mut self) -> Result<(), Corrupt> {
        while let Some((kind, tag, payload)) = self.unsent.front() {
            if self.process.channel.push(*kind, *tag, &[payload])? {
                self.unsent.pop_front();
            } else if self.process.channel.prepare_wait(payload.len())? == Sleep::MayBlock {
                break;
            }
        }
        self.publish();
        if self.unsent.is_empty() {
            self.waiting_for_room.drain(..).for_each(wake);
        }
        Ok(())
    }

    /// Whether nothing waits for room in its ring.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Has the task woken once everything is sent, or the worker has gone.
    pub(crate) fn wait_for_room(&mut self, task: TaskId) {
        if !self.waiting_for_room.contains(&task) {
            self.waiting_for_room.push(task);
        }
    }

    /// Moves as much of the request into the ring as there is room for.
    pub(crate) fn pump(&mut self) -> Result<(), Corrupt> {
        if !self.unsent.is_empty() {
            self.send_unsent()?;
        }
        let Some(exchange) = self.exchange.clone() else { return Ok(()) };
        let mut body = exchange.body.borrow_mut();
        if self.frame_sent && body.is_spent() {
            return Ok(());
        }
        if !self.frame_sent {
            if exchange.frame.len() > self.process.channel.largest_payload_bytes() {
                exchange.finish(End::Failed(Reason::HeadersTooLarge));
                return Ok(());
            }
            self.frame_sent =
                self.process.channel.push(FrameKind::Request, self.tag, &[&exchange.frame])?;
        }
        while self.frame_sent && !body.is_spent() && !exchange.has_ended() {
            let free = self.process.channel.free_bytes()?;
            if free < LEAST_PIECE_BYTES {
                if self.process.channel.prepare_wait(LEAST_PIECE_BYTES)? == Sleep::MayBlock {
                    break;
                }
                continue;
            }
            let (channel, tag) = (&mut self.process.channel, self.tag);
            let taken = body.next(free.min(PIECE_BYTES), |piece| {
                channel.push(FrameKind::RequestBody, tag, &[piece])
            });
            match taken {
                Ok(pushed) => drop(pushed?),
                Err(_) => {
                    // The spool cannot be read: PHP must not see a shortened body as whole.
                    exchange.finish(End::Failed(Reason::SpoolFailed));
                    self.process.channel.abort(self.tag);
                }
            }
        }
        self.publish();
        Ok(())
    }

    /// Fails what it has, the present request and what it has started of those ahead.
    pub(crate) fn fail(&mut self, reason: Reason) {
        let ahead = self.ahead.drain(..).map(|(_, exchange)| exchange);
        for exchange in self.exchange.take().into_iter().chain(ahead) {
            exchange.finish(End::Failed(reason));
        }
    }

    /// Tells it that nobody waits for the answer any more.
    pub(crate) fn abort(&mut self) {
        self.process.channel.abort(self.tag);
        // It may be asleep for room in a ring that nobody empties now.
        self.process.doorbell.ring();
    }

    /// The backtrace of the present request, once the worker has written it.
    pub(crate) fn backtrace(&self) -> Option<String> {
        self.process.channel.backtrace(self.tag)
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

    /// Takes frames out of the ring until it is empty or the connection has enough for now.
    pub(crate) fn look(
        &mut self,
        payload: &mut Vec<u8>,
        now_ms: u64,
        mut hear: impl FnMut(&Worker, Heard<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let mut news = None;
        let mut popped = false;
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
        hear: &mut impl FnMut(&Worker, Heard<'_>),
    ) -> Result<Option<News>, Corrupt> {
        match header.kind {
            FrameKind::Log => hear(self, Heard::Line(LogLine::decode(payload)?)),
            FrameKind::Operation => hear(self, Heard::Operation(header.tag, payload)),
            FrameKind::Ready => {
                let moved = self.process.life.ready(now_ms);
                return Ok((moved == Moved::Yes).then_some(News::Free));
            }
            _ if header.tag != self.tag => {}
            FrameKind::Done => return self.handle_done(Done::decode(payload)?, now_ms),
            kind => {
                if let Some(exchange) = &self.exchange {
                    deliver(exchange, kind, payload)?;
                }
            }
        }
        Ok(None)
    }

    fn handle_done(&mut self, done: Done, now_ms: u64) -> Result<Option<News>, Corrupt> {
        if let Some(exchange) = self.exchange.take() {
            exchange.done.set(Some(done));
            exchange.finish(End::Complete);
        }
        let took_ms = self.process.life.busy_ms(now_ms).unwrap_or(0);
        self.quick = if took_ms <= QUICK_MS { self.quick.saturating_add(1) } else { 0 };
        match self.process.life.finished(now_ms, done.leaving) {
            Finished::Idle => Ok(Some(News::Free)),
            Finished::Leaving => Ok(Some(News::Leaving)),
            Finished::Stop => {
                self.process.tell_to_stop()?;
                Ok(Some(News::Leaving))
            }
            Finished::HadNone => Err(Corrupt { what: "the end of a request that was not begun" }),
        }
    }

    /// Goes on with the request that lies ahead; false when there is none.
    pub(crate) fn go_on(&mut self, now_ms: u64, deadline_ms: u64) -> bool {
        let Some((tag, exchange)) = self.ahead.pop_front() else { return false };
        self.tag = tag;
        self.frame_sent = true;
        self.take_up(exchange, now_ms, deadline_ms);
        true
    }

    /// Whether frames are left in the ring because the connection has not taken earlier ones.
    pub(crate) fn is_stalled(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_full())
    }

    /// Whether frames of it are to be expected.
    pub(crate) fn may_speak(&self) -> bool {
        !matches!(self.state(), State::Idle | State::Killing | State::Gone)
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
