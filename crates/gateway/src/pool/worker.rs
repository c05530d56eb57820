//! The gateway's end of one worker: its ring, its doorbell, and the request that it has.
//!
//! Owned by the pool. Invariants: at most one exchange at a time (classic mode); a frame whose
//! tag is not the present one is late and is dropped; a corrupt ring ends the worker.

use crate::exchange::{End, Exchange};
use crate::reason::Reason;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::plan::deadline::Stage;
use outboard_supervisor::worker::WorkerProcess;
use outboard_supervisor::worker::life::{Finished, Moved, State};
use std::rc::Rc;

/// Body bytes offered to the ring at once.
const PIECE_BYTES: usize = 32 * 1024;
/// Below this much room the body waits, so that it is not sent in crumbs.
const LEAST_PIECE_BYTES: usize = 4096;

/// What a look into the ring brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It can take a request.
    Free,
    /// Its request is over, and it is on its way out.
    Leaving,
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
}

impl Worker {
    pub(crate) fn new(process: WorkerProcess, slot: u32) -> Self {
        Self {
            process,
            exchange: None,
            tag: Tag { slot, generation: 0 },
            stage: Stage::InTime,
            frame_sent: false,
        }
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
        let moved = self.process.life.begin(now_ms, Some(now_ms + deadline_ms));
        debug_assert_eq!(moved, Moved::Yes, "only idle workers are given requests");
        self.tag.generation = self.tag.generation.wrapping_add(1);
        self.stage = Stage::InTime;
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
        if self.process.channel.publish() == Wake::Needed {
            self.process.doorbell.ring();
        }
    }

    /// Takes frames out of the ring until it is empty or the connection has enough for now.
    pub(crate) fn look(
        &mut self,
        payload: &mut Vec<u8>,
        now_ms: u64,
        mut log: impl FnMut(&Worker, LogLine<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let mut news = None;
        let mut popped = false;
        while news.is_none() && !self.is_stalled() {
            let Some(header) = self.process.channel.receive(payload)? else { break };
            popped = true;
            news = self.handle(header, payload, now_ms, &mut log)?;
        }
        if popped && self.process.channel.release() == Wake::Needed {
            self.process.doorbell.ring();
        }
        Ok(news)
    }

    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        log: &mut impl FnMut(&Worker, LogLine<'_>),
    ) -> Result<Option<News>, Corrupt> {
        match header.kind {
            FrameKind::Log => log(self, LogLine::decode(payload)?),
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

    /// Whether frames are left in the ring because the connection has not taken earlier ones.
    pub(crate) fn is_stalled(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.is_full())
    }

    /// Has it ring the doorbell from now on; `Ready` when there is something to look at.
    pub(crate) fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.process.channel.prepare_sleep()
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
