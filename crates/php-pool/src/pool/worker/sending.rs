//! What goes to a worker: requests with their bodies, other frames, the bell.
//!
//! Called by the pool. Invariants: requests go out in the order in which they were given; frames
//! that are no part of a request go before them; the bell is rung once for all that a turn brought.

use super::Worker;
use crate::exchange::{End, Exchange, Place};
use crate::pool::leases::Run;
use outboard_log::Reason;
use outboard_reactor::{TaskId, wake};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use outboard_supervisor::worker::lifecycle::{RequestEnd, State, Transition};
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

/// Frames beside requests that wait for a worker, before it is not listened to any more. Whoever sends
/// much waits for room, so these are many small ones.
const MOST_UNSENT_BYTES: usize = 1 << 20;
/// Beside its payload.
const UNSENT_FRAME_BYTES: usize = 64;

fn unsent_bytes(payload: &[u8]) -> usize {
    payload.len() + UNSENT_FRAME_BYTES
}

impl Worker {
    /// Gives it a request. It must have room.
    pub(crate) fn begin(&mut self, exchange: Rc<Exchange>, run: Run) -> Result<(), Corrupt> {
        let moved = self.process.lifecycle.begin();
        debug_assert_eq!(moved, Transition::Applied, "only workers with room are given requests");
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
        self.process.lifecycle.begin() == Transition::Applied
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
        if lease.run.is_some() && self.process.lifecycle.withdrawn(now_ms) == RequestEnd::Stop {
            // One that cannot even be told is ended by its drain deadline.
            let _ = self.process.send_stop();
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
        self.unsent_held.grow(unsent_bytes(payload));
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

    /// Whether so much waits for it that nothing more of what it says should be heard: whoever does not
    /// read what it asked for is not to ask for more.
    pub(crate) fn is_behind(&self) -> bool {
        self.unsent_held.bytes() > MOST_UNSENT_BYTES
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
                self.unsent_held.shrink(unsent_bytes(payload));
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

    /// Tells it that nobody waits for the answer any more.
    pub(crate) fn abort(&mut self, tag: Tag) {
        self.process.channel.abort(tag);
        // It may be asleep for room in a ring that nobody empties now.
        self.process.doorbell.ring();
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
}
