//! Frames from a worker, each delivered to its request.
//!
//! Called by the pool when it polls the rings. Invariants: a frame is delivered to the request with its
//! tag, or is late and dropped; a client that does not read costs no more memory than its request may
//! use.

use super::Worker;
use crate::exchange::Assignment;
use crate::pool::leases::Lease;
use outboard_ring::channel::is_direct;
use outboard_ring::direct::Answered;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::response::{Done, LogLine, Whole};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::worker::lifecycle::{RequestEnd, State, Transition};

/// The longest time of a quick request.
pub(super) const QUICK_MS: u64 = 1;
/// A worker with one request at a time is stalled as soon as a buffer is full whose client does not
/// read. With a higher concurrency the worker is to pause the request; if it cannot, the request may
/// fill more buffers: so many for all requests together, and a few for each.
const SHARED_BUFFERS: usize = 64;
const MIN_BUFFERS: usize = 4;

/// What follows from a frame that ends a request or a start.
#[derive(Debug)]
pub(crate) struct FrameOutcome {
    /// The request that has ended.
    pub(crate) finished: Option<Lease>,
    /// Whether the worker drains and accepts no others.
    pub(crate) is_draining: bool,
}

/// A frame that is not part of a response.
#[derive(Debug)]
pub(crate) enum WorkerMessage<'a> {
    /// A line for the log.
    LogLine(LogLine<'a>),
    /// An operation that it requests.
    Operation(&'a [u8]),
    /// It has answered a request for this target on a direct connection.
    Answered(&'a [u8], Answered),
}

impl Worker {
    /// Reads frames from the ring until one has an outcome, the ring is empty, `count` of their lengths
    /// breaks, or a client has to read first.
    pub(crate) fn poll_ring(
        &mut self,
        payload: &mut Vec<u8>,
        now_ms: u64,
        mut is_last: impl FnMut(usize) -> bool,
        mut on_message: impl FnMut(&mut Worker, Tag, WorkerMessage<'_>),
    ) -> Result<Option<FrameOutcome>, Corrupt> {
        let mut outcome = None;
        let mut popped = false;
        if !self.paused.is_empty() {
            self.resume_paused()?;
        }
        let mut stop = false;
        while outcome.is_none() && !stop && !self.is_stalled() {
            let Some(header) = self.process.channel.receive(payload)? else { break };
            popped = true;
            stop = is_last(payload.len());
            outcome = self.handle(header, payload, now_ms, &mut on_message)?;
        }
        if popped {
            self.doorbell_is_due |= self.process.channel.release() == Wake::Needed;
        }
        Ok(outcome)
    }

    fn handle(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        now_ms: u64,
        on_message: &mut impl FnMut(&mut Worker, Tag, WorkerMessage<'_>),
    ) -> Result<Option<FrameOutcome>, Corrupt> {
        let tag = header.tag;
        match header.kind {
            kind @ (FrameKind::Taken | FrameKind::Answered | FrameKind::Returned) => {
                if let Some((target, answered)) = self.ends().handle(kind, tag, payload)? {
                    on_message(self, tag, WorkerMessage::Answered(&target, answered));
                }
                return Ok(None);
            }
            _ if is_direct(tag) => {
                self.ends().adopt(tag);
            }
            _ => {}
        }
        match header.kind {
            FrameKind::Log => {
                on_message(self, tag, WorkerMessage::LogLine(LogLine::decode(payload)?));
            }
            FrameKind::Operation => on_message(self, tag, WorkerMessage::Operation(payload)),
            FrameKind::Ready => {
                let transition = self.process.lifecycle.ready(now_ms);
                self.start_us.get_or_insert_with(|| self.ordered.elapsed().as_micros() as u64);
                self.output = None;
                let outcome = FrameOutcome { finished: None, is_draining: false };
                return Ok((transition == Transition::Applied).then_some(outcome));
            }
            FrameKind::Done => return self.handle_done(tag, Done::decode(payload)?, now_ms),
            FrameKind::Whole => {
                let Whole { done, head, body } = Whole::decode(payload)?;
                if let Some(lease) = self.leases.get(tag) {
                    lease.exchange.add_whole(head, body)?;
                }
                return self.handle_done(tag, done, now_ms);
            }
            kind => self.handle_response(kind, tag, payload)?,
        }
        Ok(None)
    }

    fn handle_response(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<(), Corrupt> {
        let Some(lease) = self.leases.get(tag) else { return Ok(()) };
        debug_assert_eq!(
            lease.exchange.assignment.get(),
            Some(Assignment { worker: self.id, tag }),
            "another worker responds to the request"
        );
        lease.exchange.add_frame(kind, payload)?;
        if kind == FrameKind::Body {
            let is_full = self.concurrency > 1 && lease.exchange.is_full(1);
            if is_full && self.process.channel.pause(tag) {
                self.paused.push(tag);
            }
            self.stalled_by = Some(tag);
        }
        Ok(())
    }

    fn handle_done(
        &mut self,
        tag: Tag,
        done: Done,
        now_ms: u64,
    ) -> Result<Option<FrameOutcome>, Corrupt> {
        let Some(lease) = self.leases.get(tag) else { return Ok(None) };
        if lease.timing.is_none() {
            return Err(Corrupt { what: "the end of a request before its turn" });
        }
        let finished = self.leases.remove(tag);
        if let Some(lease) = &finished {
            lease.exchange.done.set(Some(done));
            lease.exchange.complete(done.handled);
            let is_quick = lease.took_ms(now_ms) <= QUICK_MS;
            self.consecutive_quick =
                if is_quick { self.consecutive_quick.saturating_add(1) } else { 0 };
        }
        let is_draining = match self.process.lifecycle.finished(now_ms, done.leaving) {
            RequestEnd::Free => false,
            RequestEnd::Leaving => true,
            RequestEnd::Stop => {
                self.process.send_stop()?;
                true
            }
            RequestEnd::HadNone => {
                return Err(Corrupt { what: "the end of a request that was not started" });
            }
        };
        Ok(Some(FrameOutcome { finished, is_draining }))
    }

    /// Resumes paused requests whose clients have read the response so far, or are gone.
    fn resume_paused(&mut self) -> Result<(), Corrupt> {
        let leases = &self.leases;
        let is_full = |tag: &Tag| leases.get(*tag).is_some_and(|lease| lease.exchange.is_full(1));
        let resumed: Vec<Tag> = self.paused.extract_if(.., |tag| !is_full(tag)).collect();
        for tag in resumed {
            self.process.channel.resume(tag);
            self.send(FrameKind::Resume, tag, &[])?;
        }
        Ok(())
    }

    /// Whether frames stay in the ring because a client has not read earlier ones, or the worker does
    /// not read its own.
    pub(crate) fn is_stalled(&mut self) -> bool {
        if self.is_behind() {
            return true;
        }
        let Some(tag) = self.stalled_by else { return false };
        let buffers = match self.concurrency {
            1 => 1,
            _ => (SHARED_BUFFERS / self.in_flight().max(1)).max(MIN_BUFFERS),
        };
        let is_full = self.leases.get(tag).is_some_and(|lease| lease.exchange.is_full(buffers));
        if !is_full {
            self.stalled_by = None;
        }
        is_full
    }

    /// Whether it may send frames. A worker that is being killed may have finished requests before.
    pub(crate) fn may_send(&self) -> bool {
        match self.state() {
            State::Idle => self.is_resident,
            State::Gone => false,
            _ => !self.is_broken,
        }
    }

    /// From now on the worker rings the doorbell; `Ready` if a frame has arrived before. It need not
    /// ring while its frames stay in the ring on purpose.
    pub(crate) fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        if self.is_stalled() {
            return Ok(Sleep::MayBlock);
        }
        self.process.channel.prepare_sleep()
    }
}
