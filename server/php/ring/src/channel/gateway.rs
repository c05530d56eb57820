//! [`GatewayChannel`]: the gateway's end of a worker's rings.
//!
//! Used by the pool. Invariants: everything read from the memory is untrusted; an impossible value is
//! [`Corrupt`]. The gateway writes frames of its direction only, about requests that have a claim word.

use super::mapping::{self, BACKTRACE_BYTES, Capacities, Mapping, RingConsumer, RingProducer};
use crate::claim::{DIRECT_CONNECTIONS, LEASES, State};
use crate::corrupt::Corrupt;
use crate::frame::{FrameHeader, FrameKind, Tag};
use crate::rewinds::Rewinds;
use crate::spsc::{Consumer, Producer, Sleep, Wake};
use crate::sync::{Ordering, fence};
use crate::waits::{WaitCall, Waits};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Whether the gateway has a direct connection again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenBack {
    /// It has: the worker reads no more.
    Now,
    /// The worker is writing a response, and gives it back then.
    Soon,
    /// The worker reads or runs a request, which can be adopted once it is known.
    Busy,
}

/// The gateway's end: writes requests, reads responses.
#[derive(Debug)]
pub struct GatewayChannel {
    requests: RingProducer,
    responses: RingConsumer,
    mapping: Arc<Mapping>,
}

impl GatewayChannel {
    /// Creates the shared memory of one worker. The returned descriptor is for the worker.
    ///
    /// # Errors
    /// `memfd_create(2)`, `ftruncate(2)` or `mmap(2)` fails.
    pub fn create(capacities: Capacities, epoch: u32) -> io::Result<(Self, OwnedFd)> {
        let (mapping, memory) = Mapping::create(capacities, epoch)?;
        Ok((Self::over(mapping), memory))
    }

    /// The gateway's end of this memory.
    pub(super) fn over(mapping: Arc<Mapping>) -> Self {
        Self {
            requests: mapping::request_ring(&mapping, Producer::new),
            responses: mapping::response_ring(&mapping, Consumer::new),
            mapping,
        }
    }

    /// Appends a frame; `Ok(false)` if the worker has to make room first.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn push(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<bool, Corrupt> {
        debug_assert!(kind.is_to_worker(), "{kind:?} is a frame of workers");
        debug_assert!((tag.slot as usize) < LEASES + DIRECT_CONNECTIONS, "{tag:?}");
        self.requests.push(FrameHeader::new(kind, tag), parts)
    }

    /// The payload of the largest possible frame, in bytes.
    pub fn largest_payload_bytes(&self) -> usize {
        self.requests.largest_payload_bytes()
    }

    /// The payload that fits now, in bytes.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn free_bytes(&mut self) -> Result<usize, Corrupt> {
        self.requests.free_bytes()
    }

    /// Asks the worker to ring the gateway's doorbell once `payload_bytes` are free.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn prepare_wait(&mut self, payload_bytes: usize) -> Result<Sleep, Corrupt> {
        self.requests.prepare_wait(payload_bytes)
    }

    /// Publishes pushed frames. After `Needed` ring the worker's doorbell.
    pub fn publish(&mut self) -> Wake {
        self.requests.publish()
    }

    /// Copies the next frame of the worker into `payload`; `None` if there is none.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Corrupt> {
        self.responses.pop(payload)
    }

    /// Frees the space of received frames. After `Needed` ring the worker's doorbell.
    pub fn release(&mut self) -> Wake {
        self.responses.release()
    }

    /// Announces that the gateway is about to block in epoll: from now on the worker rings the
    /// doorbell.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.responses.prepare_sleep()
    }

    /// Announces that the gateway is awake: the worker need not ring.
    pub fn cancel_sleep(&mut self) {
        self.responses.cancel_sleep();
    }

    /// Whether the worker has announced that it is about to die.
    pub fn is_dying(&self) -> bool {
        self.mapping.header().dying.load(Ordering::Acquire) != 0
    }

    /// Whether a debugger is attached to it, as the worker says.
    pub fn is_debugged(&self) -> bool {
        self.mapping.header().debugged.load(Ordering::Relaxed) != 0
    }

    /// Offers the request that is about to be pushed. The order matters: the worker must not see
    /// the frame without the offer (SYNC 1 of the ring).
    pub fn offer(&self, tag: Tag) {
        self.mapping.header().claims.set(tag, State::Offered);
    }

    /// Withdraws an offered request; false if the worker has started it.
    pub fn withdraw(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Offered, State::Withdrawn)
    }

    /// Marks a started request whose client has disconnected.
    pub fn abort(&self, tag: Tag) {
        self.mapping.header().claims.set(tag, State::Aborted);
    }

    /// Marks a started request whose client does not read for now; false if the request is not in
    /// that state.
    pub fn pause(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Started, State::Paused)
    }

    /// Removes the mark. A [`FrameKind::Resume`] has to follow, because the request may wait for
    /// it.
    pub fn resume(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Paused, State::Started)
    }

    /// Parks a direct connection whose socket the worker is about to get.
    pub fn park(&self, tag: Tag) {
        self.mapping.header().claims.set(tag, State::Parked);
    }

    /// Takes a direct connection back, whose last known request has this tag.
    pub fn take_back(&self, tag: Tag) -> TakenBack {
        let claims = &self.mapping.header().claims;
        if claims.exchange(tag, State::Parked, State::Withdrawn) {
            TakenBack::Now
        } else if claims.exchange(tag, State::Answering, State::Leaving)
            || claims.is(tag, State::Leaving)
        {
            TakenBack::Soon
        } else {
            TakenBack::Busy
        }
    }

    /// Makes an ordinary started request of one that the worker runs on a direct connection, so that its frames are
    /// the gateway's to answer with. False if the worker answers it.
    pub fn adopt(&self, tag: Tag) -> bool {
        let claims = &self.mapping.header().claims;
        claims.exchange(tag, State::Direct, State::Started) || claims.is(tag, State::Started)
    }

    /// Whether the worker has no request of a direct connection.
    pub fn is_parked(&self, tag: Tag) -> bool {
        self.mapping.header().claims.is(tag, State::Parked)
    }

    /// How often the worker has waited in `call`.
    pub fn waits(&self, call: WaitCall) -> Waits {
        self.mapping.header().waits[call as usize].read()
    }

    /// What the worker's rewinds have cost.
    pub fn rewinds(&self) -> Rewinds {
        self.mapping.header().rewinds.read()
    }

    /// The backtrace of the request with this generation, if one has been written. None while it is
    /// being written.
    pub fn backtrace(&self, tag: Tag) -> Option<String> {
        let header = self.mapping.header();
        let version = header.backtrace_version.load(Ordering::Acquire);
        let len = header.backtrace_len.load(Ordering::Relaxed) as usize;
        let generation = header.backtrace_generation.load(Ordering::Relaxed);
        if version % 2 == 1 || len == 0 || generation != tag.generation {
            return None;
        }
        let mut text = vec![0; len.min(BACKTRACE_BYTES)];
        self.mapping.backtrace().copy_out(0, &mut text);
        fence(Ordering::Acquire);
        if header.backtrace_version.load(Ordering::Relaxed) != version {
            return None;
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// A worker is given to another thread of the gateway while it is idle.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<GatewayChannel>()
};
