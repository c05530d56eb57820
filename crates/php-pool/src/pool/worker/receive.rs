//! What comes from a worker: its frames, each to the request that it is about.
//!
//! Called by the pool when it looks into the rings. Invariants: a frame goes to the request whose
//! tag it carries, or is late and is dropped; a client that takes nothing costs no more memory than
//! its request may have.

use super::Worker;
use crate::exchange::{End, Exchange};
use crate::pool::leases::Lease;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::worker::lifecycle::{RequestEnd, State, Transition};

/// A request that took no longer than this was quick.
const QUICK_MS: u64 = 1;
/// A client that does not take its answer stops a worker that has its request alone as soon as its
/// buffer is full. With others in the worker the request is told to wait; one that cannot may take
/// more: so many buffers for all of them, and a few for each.
const SHARED_PATIENCE: usize = 64;
const LEAST_PATIENCE: usize = 4;

/// What a look into the ring brought.
#[derive(Debug)]
pub(crate) struct News {
    /// The request that is over, if it was that.
    pub(crate) finished: Option<Lease>,
    /// What becomes of the worker.
    pub(crate) then: Then,
}

/// Whether a look goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    /// It does.
    Wanted,
    /// Others have their turn first.
    Later,
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

impl Worker {
    /// Takes frames out of the ring until there is news, it is empty, its share of the look is
    /// spent, or a connection has enough for now.
    pub(crate) fn look(
        &mut self,
        payload: &mut Vec<u8>,
        now_ms: u64,
        mut count: impl FnMut(usize) -> More,
        mut hear: impl FnMut(&mut Worker, Tag, Heard<'_>),
    ) -> Result<Option<News>, Corrupt> {
        let mut news = None;
        let mut popped = false;
        if !self.paused.is_empty() {
            self.resume_taken()?;
        }
        let mut more = More::Wanted;
        while news.is_none() && more == More::Wanted && !self.is_stalled() {
            let Some(header) = self.process.channel.receive(payload)? else { break };
            popped = true;
            more = count(payload.len());
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
                let moved = self.process.lifecycle.ready(now_ms);
                self.printed = None;
                let news = News { finished: None, then: Then::Free };
                return Ok((moved == Transition::Applied).then_some(news));
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
        let then = match self.process.lifecycle.finished(now_ms, done.leaving) {
            RequestEnd::Free => Then::Free,
            RequestEnd::Leaving => Then::Leaving,
            RequestEnd::Stop => {
                self.process.send_stop()?;
                Then::Leaving
            }
            RequestEnd::HadNone => {
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

    /// Whether frames are left in the ring because a connection has not taken earlier ones, or the
    /// worker does not read its own.
    pub(crate) fn is_stalled(&mut self) -> bool {
        if self.is_behind() {
            return true;
        }
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

fn deliver(exchange: &Exchange, kind: FrameKind, payload: &[u8]) -> Result<(), Corrupt> {
    match kind {
        FrameKind::Head => exchange.add_head(payload),
        FrameKind::Interim => exchange.add_interim(payload),
        FrameKind::Body => exchange.add_body(payload),
        FrameKind::Flush => exchange.add_flush(),
        FrameKind::End => exchange.finish(End::Complete),
        _ => return Err(Corrupt { what: "a frame that only the gateway sends" }),
    }
    Ok(())
}
