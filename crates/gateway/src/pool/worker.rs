//! The gateway's end of one worker: its ring, its doorbell, and the request that it has.
//!
//! Owned by the pool. Invariants: at most one exchange at a time (classic mode); a frame whose
//! tag is not the present one is late and is dropped; a corrupt ring ends the worker.

use crate::exchange::{End, Exchange};
use crate::reason::Reason;
use outboard_ring::channel::GatewayChannel;
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use std::rc::Rc;

/// Body bytes offered to the ring at once.
const PIECE_BYTES: usize = 32 * 1024;
/// Below this much room the body waits, so that it is not sent in crumbs.
const LEAST_PIECE_BYTES: usize = 4096;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Ordered, forked, not ready yet.
    Booting,
    /// Waits for a request.
    Idle,
    /// Has a request.
    Busy,
    /// Was told to stop, or leaves by itself; takes no more requests.
    Stopping,
    /// Is being killed; only its exit is waited for.
    Killed,
}

/// What a look into the ring brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It is ready for its first request.
    Ready,
    /// Its request is over.
    Free,
    /// Its request is over, and so is the worker.
    Leaving,
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The number that the zygote knows it by.
    pub(crate) number: u64,
    /// Known once forked.
    pub(crate) pid: Option<i32>,
    pub(crate) state: State,
    pub(crate) exchange: Option<Rc<Exchange>>,
    pub(crate) tag: Tag,
    frame_sent: bool,
    channel: GatewayChannel,
    doorbell: Doorbell,
    /// Requests answered.
    pub(crate) served: u64,
    /// Monotonic ms of the fork order.
    pub(crate) forked_ms: u64,
    /// Since when it has its request, or none.
    pub(crate) since_ms: u64,
    /// Resident memory that is its own, as last sampled.
    pub(crate) memory_bytes: u64,
    /// Requests after which it is replaced.
    pub(crate) recycle_after: u64,
    /// Stage of the deadline that its request has reached.
    pub(crate) overdue: Overdue,
}

/// How far the enforcement of a deadline has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// In time.
    No,
    /// The client has its 504; a backtrace was asked for this often.
    Asked(u32),
    /// `SIGKILL` was sent.
    Killed,
}

impl Worker {
    pub(crate) fn new(
        number: u64,
        slot: u32,
        channel: GatewayChannel,
        doorbell: Doorbell,
        now_ms: u64,
        recycle_after: u64,
    ) -> Self {
        Self {
            number,
            pid: None,
            state: State::Booting,
            exchange: None,
            tag: Tag { slot, generation: 0 },
            frame_sent: false,
            channel,
            doorbell,
            served: 0,
            forked_ms: now_ms,
            since_ms: now_ms,
            memory_bytes: 0,
            recycle_after,
            overdue: Overdue::No,
        }
    }

    /// Gives it a request. It must be idle.
    pub(crate) fn begin(&mut self, exchange: Rc<Exchange>, now_ms: u64) -> Result<(), Corrupt> {
        self.tag.generation = self.tag.generation.wrapping_add(1);
        self.state = State::Busy;
        self.since_ms = now_ms;
        self.overdue = Overdue::No;
        self.frame_sent = false;
        exchange.started_ms.set(Some(now_ms));
        self.exchange = Some(exchange);
        self.pump()
    }

    /// Moves as much of the request into the ring as there is room for.
    pub(crate) fn pump(&mut self) -> Result<(), Corrupt> {
        let Some(exchange) = self.exchange.clone() else { return Ok(()) };
        let mut body = exchange.body.borrow_mut();
        if self.frame_sent && body.is_spent() {
            return Ok(());
        }
        if !self.frame_sent {
            if exchange.frame.len() > self.channel.largest_payload_bytes() {
                exchange.finish(End::Failed(Reason::HeadersTooLarge));
                return Ok(());
            }
            self.frame_sent =
                self.channel.push(FrameKind::Request, self.tag, &[&exchange.frame])?;
        }
        while self.frame_sent && !body.is_spent() && !exchange.has_ended() {
            let free = self.channel.free_bytes()?;
            if free < LEAST_PIECE_BYTES {
                if self.channel.prepare_wait(LEAST_PIECE_BYTES)? == Sleep::MayBlock {
                    break;
                }
                continue;
            }
            let (channel, tag) = (&mut self.channel, self.tag);
            let taken = body.next(free.min(PIECE_BYTES), |piece| {
                channel.push(FrameKind::RequestBody, tag, &[piece])
            });
            match taken {
                Ok(pushed) => drop(pushed?),
                Err(_) => {
                    // The spool cannot be read: PHP must not see a shortened body as whole.
                    exchange.finish(End::Failed(Reason::SpoolFailed));
                    self.channel.abort(self.tag);
                }
            }
        }
        self.publish();
        Ok(())
    }

    /// Tells it to leave once it has nothing to do.
    pub(crate) fn stop(&mut self) -> Result<(), Corrupt> {
        self.state = State::Stopping;
        if self.channel.push(FrameKind::Stop, self.tag, &[])? {
            self.publish();
        }
        Ok(())
    }

    /// Tells it that nobody waits for the answer any more.
    pub(crate) fn abort(&mut self) {
        self.channel.abort(self.tag);
        // It may be asleep for room in a ring that nobody empties now.
        self.doorbell.ring();
    }

    /// The backtrace of the present request, once the worker has written it.
    pub(crate) fn backtrace(&self) -> Option<String> {
        self.channel.backtrace(self.tag)
    }

    fn publish(&mut self) {
        if self.channel.publish() == Wake::Needed {
            self.doorbell.ring();
        }
    }

    /// Takes frames out of the ring until it is empty or the connection has enough for now.
    pub(crate) fn look(
        &mut self,
        payload: &mut Vec<u8>,
        mut log: impl FnMut(&Worker, LogLine<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let mut news = None;
        let mut popped = false;
        while news.is_none() && !self.is_stalled() {
            let Some(header) = self.channel.receive(payload)? else { break };
            popped = true;
            news = self.handle(header, payload, &mut log)?;
        }
        if popped && self.channel.release() == Wake::Needed {
            self.doorbell.ring();
        }
        Ok(news)
    }

    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        log: &mut impl FnMut(&Worker, LogLine<'_>),
    ) -> Result<Option<News>, Corrupt> {
        match header.kind {
            FrameKind::Log => log(self, LogLine::decode(payload)?),
            FrameKind::Ready if self.state == State::Booting => return Ok(Some(News::Ready)),
            _ if header.tag != self.tag => {}
            FrameKind::Done => return self.handle_done(Done::decode(payload)?),
            kind => {
                if let Some(exchange) = &self.exchange {
                    deliver(exchange, kind, payload)?;
                }
            }
        }
        Ok(None)
    }

    fn handle_done(&mut self, done: Done) -> Result<Option<News>, Corrupt> {
        let Some(exchange) = self.exchange.take() else { return Ok(None) };
        exchange.done.set(Some(done));
        exchange.finish(End::Complete);
        self.served += 1;
        Ok(Some(if done.leaving { News::Leaving } else { News::Free }))
    }

    /// Whether frames are left in the ring because the connection has not taken earlier ones.
    pub(crate) fn is_stalled(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_full())
    }

    /// Has it ring the doorbell from now on; `Ready` when there is something to look at.
    pub(crate) fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.channel.prepare_sleep()
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
