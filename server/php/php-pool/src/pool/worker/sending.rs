//! Frames to a worker: requests with their bodies and other frames; and its doorbell.
//!
//! Called by the pool. Invariants: requests are sent in the order of assignment; frames that are not
//! part of a request are sent before them; the doorbell is rung once for all frames of a turn.

use super::Worker;
use super::receive::QUICK_MS;
use crate::exchange::{End, Exchange};
use crate::pool::leases::Timing;
use outboard_log::Reason;
use outboard_reactor::{TaskId, wake};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::worker::lifecycle::{RequestEnd, State, Transition};
use std::rc::Rc;

/// The most body bytes in one frame.
const PIECE_BYTES: usize = 32 * 1024;
/// The body waits for this much room, so that it is not sent in tiny frames.
const MIN_PIECE_BYTES: usize = 4096;

/// The most requests in a backlog.
const MAX_BACKLOG: usize = 128;
const _: () = assert!(MAX_BACKLOG + 2 <= LEASES);
/// The number of consecutive quick requests before a worker gets a backlog.
const QUICK_BEFORE_BACKLOG: u32 = 3;

/// The size of unsent frames above which the worker's ring is not read. Large completions wait for
/// room, so these are many small ones.
const MAX_UNSENT_BYTES: usize = 1 << 20;
/// The same for operations that the lead's thread has not begun.
const MAX_FORWARDED_BYTES: usize = 256 << 10;
/// The memory of an unsent frame in addition to its payload.
const UNSENT_FRAME_BYTES: usize = 64;

fn unsent_bytes(payload_bytes: usize) -> usize {
    payload_bytes + UNSENT_FRAME_BYTES
}

impl Worker {
    /// Assigns a request to it. It must have room.
    pub(crate) fn assign(&mut self, exchange: Rc<Exchange>, timing: Timing) -> Result<(), Corrupt> {
        let transition = self.process.lifecycle.begin();
        debug_assert_eq!(transition, Transition::Applied, "the worker has no room");
        exchange.times.started();
        let tag = self.add_lease(exchange, Some(timing));
        self.unsent.push_back(tag);
        self.check();
        self.pump()
    }

    fn add_lease(&mut self, exchange: Rc<Exchange>, timing: Option<Timing>) -> Tag {
        self.activate();
        let tag = self.leases.add(exchange, timing, self.id);
        self.process.channel.offer(tag);
        tag
    }

    /// Whether its backlog can take another request: not behind one that takes long.
    pub(crate) fn has_backlog_room(&self, now_ms: u64) -> bool {
        self.concurrency == 1
            && self.state() == State::Busy
            && self.busy_ms(now_ms) <= Some(QUICK_MS)
            && self.consecutive_quick >= QUICK_BEFORE_BACKLOG
            && self.backlog.len() < MAX_BACKLOG
            && self.unsent.is_empty()
    }

    pub(crate) fn backlog_len(&self) -> usize {
        self.backlog.len()
    }

    /// Adds a request without a body to its backlog.
    pub(crate) fn add_to_backlog(&mut self, exchange: Rc<Exchange>) -> Result<(), Corrupt> {
        let tag = self.add_lease(exchange, None);
        self.backlog.push_back(tag);
        self.unsent.push_back(tag);
        self.check();
        self.pump()
    }

    /// Starts the time of the first request of its backlog; false if that is empty.
    pub(crate) fn start_next(&mut self, timing: Timing) -> bool {
        let Some(lease) = self.backlog.pop_front().and_then(|tag| self.leases.get_mut(tag)) else {
            return false;
        };
        lease.timing = Some(timing);
        lease.exchange.times.started();
        self.check();
        self.process.lifecycle.begin() == Transition::Applied
    }

    /// Withdraws the unstarted requests of its backlog, in order.
    pub(crate) fn withdraw_backlog(&mut self, now_ms: u64) -> Vec<Rc<Exchange>> {
        let backlog: Vec<Tag> = self.backlog.iter().copied().collect();
        self.withdraw_all(backlog, now_ms)
    }

    /// Withdraws all unstarted requests, in order.
    pub(crate) fn withdraw_unstarted(&mut self, now_ms: u64) -> Vec<Rc<Exchange>> {
        let tags = self.leases.tags();
        self.withdraw_all(tags, now_ms)
    }

    fn withdraw_all(&mut self, tags: Vec<Tag>, now_ms: u64) -> Vec<Rc<Exchange>> {
        tags.into_iter().filter_map(|tag| self.withdraw(tag, now_ms)).collect()
    }

    /// Withdraws a request, unless it was started. It can be given to another worker then.
    pub(crate) fn withdraw(&mut self, tag: Tag, now_ms: u64) -> Option<Rc<Exchange>> {
        self.leases.get(tag)?;
        if !self.process.channel.withdraw(tag) {
            return None;
        }
        self.backlog.retain(|theirs| *theirs != tag);
        self.unsent.retain(|theirs| *theirs != tag);
        let lease = self.leases.remove(tag)?;
        if lease.timing.is_some() && self.process.lifecycle.withdrawn(now_ms) == RequestEnd::Stop {
            // If even this cannot be sent, the drain deadline ends the worker.
            let _ = self.process.send_stop();
        }
        lease.exchange.body.borrow_mut().rewind();
        lease.exchange.assignment.set(None);
        self.check();
        Some(lease.exchange)
    }

    /// Sends a frame that is not part of a request, now or as soon as there is room.
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
        self.unsent_held.grow(unsent_bytes(payload.len()));
        self.unsent_frames.push_back((kind, tag, payload.to_vec()));
        self.pump()
    }

    /// Cancels a request that runs.
    pub(crate) fn cancel(&mut self, tag: Tag) -> Result<(), Corrupt> {
        self.send(FrameKind::Cancel, tag, &[])?;
        self.process.doorbell.ring();
        Ok(())
    }

    /// Whether no frame waits for room in its ring, other than those of requests.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.unsent_frames.is_empty()
    }

    /// Whether too much waits for room in its ring, or to be begun on the lead's thread. A worker that
    /// does not read the results of its operations cannot request more.
    pub(crate) fn is_behind(&self) -> bool {
        self.unsent_held.bytes() > MAX_UNSENT_BYTES || self.forwarded_bytes > MAX_FORWARDED_BYTES
    }

    /// An operation of so many bytes is on its way to the lead's thread.
    pub(crate) fn operation_forwarded(&mut self, bytes: usize) {
        self.forwarded_bytes += unsent_bytes(bytes);
    }

    /// The lead has begun it.
    pub(crate) fn operation_begun(&mut self, bytes: usize) {
        self.forwarded_bytes = self.forwarded_bytes.saturating_sub(unsent_bytes(bytes));
    }

    /// Wakes the task once no frame waits for room, or the worker is gone.
    pub(crate) fn wait_for_room(&mut self, task: TaskId) {
        if !self.waiting_for_room.0.contains(&task) {
            self.waiting_for_room.0.push(task);
        }
    }

    /// Writes frames into the ring as far as there is room.
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

    /// Whether all frames outside of requests are in the ring.
    fn pump_frames(&mut self) -> Result<bool, Corrupt> {
        while let Some((kind, tag, payload)) = self.unsent_frames.front() {
            if self.process.channel.push(*kind, *tag, &[payload])? {
                self.unsent_held.shrink(unsent_bytes(payload.len()));
                self.unsent_frames.pop_front();
            } else if self.process.channel.prepare_wait(payload.len())? == Sleep::MayBlock {
                return Ok(false);
            }
        }
        self.check();
        self.waiting_for_room.0.drain(..).for_each(wake);
        Ok(true)
    }

    /// Whether the complete request is in the ring, or its client is gone.
    fn pump_request(&mut self, tag: Tag) -> Result<bool, Corrupt> {
        let Some(lease) = self.leases.get_mut(tag) else { return Ok(true) };
        let channel = &mut self.process.channel;
        while !lease.is_frame_sent {
            let frame = &lease.exchange.frame;
            lease.is_frame_sent = channel.push(FrameKind::Request, tag, &[frame])?;
            if !lease.is_frame_sent && channel.prepare_wait(frame.len())? == Sleep::MayBlock {
                return Ok(false);
            }
        }
        let mut body = lease.exchange.body.borrow_mut();
        while !body.is_spent() && !lease.exchange.has_ended() {
            let free = channel.free_bytes()?;
            if free < MIN_PIECE_BYTES {
                if channel.prepare_wait(MIN_PIECE_BYTES)? == Sleep::MayBlock {
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
                    // The spool cannot be read: PHP must not take a truncated body for complete.
                    lease.exchange.finish(End::Failed(Reason::SpoolFailed));
                    channel.abort(tag);
                }
            }
        }
        Ok(true)
    }

    /// Marks a request whose client is gone.
    pub(crate) fn abort(&mut self, tag: Tag) {
        self.process.channel.abort(tag);
        // It may sleep until there is room in a ring that is not read any more.
        self.process.doorbell.ring();
    }

    fn publish(&mut self) {
        self.activate();
        self.doorbell_is_due |= self.process.channel.publish() == Wake::Needed;
    }

    /// Whether its doorbell has to be rung.
    pub(crate) fn is_doorbell_due(&self) -> bool {
        self.doorbell_is_due
    }

    /// Rings its doorbell if it sleeps although its ring is not empty. This happens once for all frames
    /// of a turn: woken for the first request, it would take the processor from the gateway, which is
    /// about to send more. Returns whether it was rung.
    pub(crate) fn ring_doorbell_if_due(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.doorbell_is_due);
        if is_due {
            self.process.doorbell.ring();
        }
        is_due
    }
}
