//! A single-producer, single-consumer byte ring of frames.
//!
//! Used by [`crate::channel`]; generic over [`Memory`], so that loom, Miri and the property tests
//! run the same algorithm on the heap.
//!
//! Who may touch what:
//! * `tail` is written by the producer only, `head` by the consumer only; both count bytes and
//!   never wrap in practice (2^64 bytes).
//! * Bytes `head..tail` belong to the consumer, all others to the producer.
//! * A popped frame leaves zeros: the worker's memory has nothing of requests that it has received, and of
//!   responses that the gateway has.
//! * `consumer_sleeping` is set by the consumer before it blocks and cleared by the side that wakes
//!   it; `producer_waiting` likewise with the roles exchanged.
//!
//! SYNC 1: `publish` stores `tail` with Release; `pop` loads it with Acquire: the frame's bytes
//! are visible before the frame is.
//! SYNC 2: `release` stores `head` with Release; `free_bytes` loads it with Acquire: a byte is
//! overwritten only after it was copied out.
//! SYNC 3: "store the flag, fence, look again" against "store the position, fence, look at the
//! flag" (both `SeqCst` fences): at least one side sees the other, so no wake-up is lost.

use crate::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::memory::Memory;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use std::borrow::Borrow;

pub use crate::corrupt::Corrupt;

/// The shared cursors of one ring, each side's on its own cache line.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Cursors {
    tail: AtomicU64,
    consumer_sleeping: AtomicU32,
    /// Atomics as well: the peer may write here, too.
    _pad_tail: [AtomicU32; 13],
    head: AtomicU64,
    producer_waiting: AtomicU32,
    _pad_head: [AtomicU32; 13],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Cursors>() == 128);
    assert!(std::mem::offset_of!(Cursors, head) == 64);
};

impl Default for Cursors {
    fn default() -> Self {
        Self {
            tail: AtomicU64::new(0),
            consumer_sleeping: AtomicU32::new(0),
            _pad_tail: std::array::from_fn(|_| AtomicU32::new(0)),
            head: AtomicU64::new(0),
            producer_waiting: AtomicU32::new(0),
            _pad_head: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

/// Whether the peer sleeps, so that its doorbell has to be rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a sleeping peer stays asleep unless its doorbell is rung"]
pub enum Wake {
    /// Ring the peer's doorbell.
    Needed,
    /// The peer is awake.
    NotNeeded,
}

/// The result of [`Consumer::prepare_sleep`] and [`Producer::prepare_wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sleep {
    /// There is nothing to do, and the peer will ring: blocking is safe.
    MayBlock,
    /// There is something to do: do not block.
    Ready,
}

/// Copies into a ring that wraps at `capacity` (a power of two).
fn copy_in_wrapped(memory: &impl Memory, capacity: usize, position: u64, source: &[u8]) {
    let at = (position as usize) & (capacity - 1);
    let first = source.len().min(capacity - at);
    memory.copy_in(at, &source[..first]);
    if first < source.len() {
        memory.copy_in(0, &source[first..]);
    }
}

fn move_out_wrapped(memory: &impl Memory, capacity: usize, position: u64, target: &mut [u8]) {
    let at = (position as usize) & (capacity - 1);
    let first = target.len().min(capacity - at);
    memory.move_out(at, &mut target[..first]);
    if first < target.len() {
        memory.move_out(0, &mut target[first..]);
    }
}

/// The writing end. `C` is how the cursors are held: a reference into shared memory, or an `Arc`
/// in tests.
#[derive(Debug)]
pub struct Producer<C, M> {
    cursors: C,
    memory: M,
    capacity: usize,
    tail: u64,
    head_seen: u64,
}

impl<C: Borrow<Cursors>, M: Memory> Producer<C, M> {
    /// A writing end of an empty ring of `capacity` bytes (a power of two).
    ///
    /// # Panics
    /// When `capacity` is not a power of two.
    pub fn new(cursors: C, memory: M, capacity: usize) -> Self {
        assert!(capacity.is_power_of_two());
        Self { cursors, memory, capacity, tail: 0, head_seen: 0 }
    }

    /// The payload of the largest possible frame, in bytes.
    pub fn largest_payload_bytes(&self) -> usize {
        self.capacity - FRAME_HEADER_BYTES
    }

    /// The payload of a frame that fits now, in bytes.
    ///
    /// # Errors
    /// [`Corrupt`] when the consumer's cursor is impossible.
    pub fn free_bytes(&mut self) -> Result<usize, Corrupt> {
        // SYNC 2: pairs with the Release in `Consumer::release`.
        let head = self.cursors.borrow().head.load(Ordering::Acquire);
        if head < self.head_seen || head > self.tail {
            return Err(Corrupt { what: "the consumer's cursor moved backwards or too far" });
        }
        self.head_seen = head;
        Ok(self.room().saturating_sub(FRAME_HEADER_BYTES))
    }

    /// Free bytes, as of the last look at the cursor of the consumer.
    fn room(&self) -> usize {
        self.capacity - (self.tail - self.head_seen) as usize
    }

    /// Appends a frame whose payload is the concatenation of `parts`; `Ok(false)` when it does
    /// not fit now. Not visible to the consumer before [`Producer::publish`].
    ///
    /// # Errors
    /// [`Corrupt`] when the consumer's cursor is impossible.
    pub fn push(&mut self, mut header: FrameHeader, parts: &[&[u8]]) -> Result<bool, Corrupt> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let needed = FRAME_HEADER_BYTES + len;
        if self.room() < needed {
            self.free_bytes()?;
            if self.room() < needed {
                return Ok(false);
            }
        }
        header.len = len as u32;
        copy_in_wrapped(&self.memory, self.capacity, self.tail, &header.encode());
        let mut position = self.tail + FRAME_HEADER_BYTES as u64;
        for part in parts {
            copy_in_wrapped(&self.memory, self.capacity, position, part);
            position += part.len() as u64;
        }
        self.tail = position;
        Ok(true)
    }

    /// Publishes pushed frames to a consumer that is awake. A sleeping one sees them after the next
    /// [`Producer::publish`].
    pub fn show(&mut self) {
        // SYNC 1: pairs with the Acquire in `Consumer::pop`.
        self.cursors.borrow().tail.store(self.tail, Ordering::Release);
    }

    /// Publishes pushed frames, and returns whether the consumer sleeps.
    pub fn publish(&mut self) -> Wake {
        self.show();
        let cursors = self.cursors.borrow();
        // SYNC 3: pairs with the fence in `Consumer::prepare_sleep`.
        fence(Ordering::SeqCst);
        take_flag(&cursors.consumer_sleeping)
    }

    /// Announces that the producer is about to block until `payload_bytes` are free.
    ///
    /// # Errors
    /// [`Corrupt`] when the consumer's cursor is impossible.
    pub fn prepare_wait(&mut self, payload_bytes: usize) -> Result<Sleep, Corrupt> {
        self.cursors.borrow().producer_waiting.store(1, Ordering::Relaxed);
        // SYNC 3: pairs with the fence in `Consumer::release`.
        fence(Ordering::SeqCst);
        if self.free_bytes()? >= payload_bytes && self.room() >= FRAME_HEADER_BYTES {
            self.cursors.borrow().producer_waiting.store(0, Ordering::Relaxed);
            return Ok(Sleep::Ready);
        }
        Ok(Sleep::MayBlock)
    }
}

/// The reading end.
#[derive(Debug)]
pub struct Consumer<C, M> {
    cursors: C,
    memory: M,
    capacity: usize,
    head: u64,
    tail_seen: u64,
}

impl<C: Borrow<Cursors>, M: Memory> Consumer<C, M> {
    /// A reading end of an empty ring of `capacity` bytes (a power of two).
    ///
    /// # Panics
    /// When `capacity` is not a power of two.
    pub fn new(cursors: C, memory: M, capacity: usize) -> Self {
        assert!(capacity.is_power_of_two());
        Self { cursors, memory, capacity, head: 0, tail_seen: 0 }
    }

    /// Moves the payload of the next frame into `payload` and returns its header; `None` if the
    /// ring is empty. [`Consumer::release`] frees the space.
    ///
    /// # Errors
    /// [`Corrupt`] when the producer's cursor or the frame header is impossible.
    pub fn pop(&mut self, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Corrupt> {
        if !self.has_more()? {
            return Ok(None);
        }
        let available = (self.tail_seen - self.head) as usize;
        let mut raw = [0; FRAME_HEADER_BYTES];
        if available < FRAME_HEADER_BYTES {
            return Err(Corrupt { what: "less than a frame header was published" });
        }
        move_out_wrapped(&self.memory, self.capacity, self.head, &mut raw);
        let header = FrameHeader::decode(&raw)?;
        let len = header.len as usize;
        if len > available - FRAME_HEADER_BYTES {
            return Err(Corrupt { what: "a frame is longer than what was published" });
        }
        payload.clear();
        payload.resize(len, 0);
        let position = self.head + FRAME_HEADER_BYTES as u64;
        move_out_wrapped(&self.memory, self.capacity, position, payload);
        self.head = position + len as u64;
        Ok(Some(header))
    }

    /// Whether there is a frame to pop.
    ///
    /// # Errors
    /// [`Corrupt`] when the producer's cursor is impossible.
    pub fn has_more(&mut self) -> Result<bool, Corrupt> {
        Ok(self.head != self.tail_seen || self.look()?)
    }

    /// Whether there are published bytes to pop.
    fn look(&mut self) -> Result<bool, Corrupt> {
        // SYNC 1: pairs with the Release in `Producer::publish`.
        let tail = self.cursors.borrow().tail.load(Ordering::Acquire);
        if tail < self.tail_seen || tail - self.head > self.capacity as u64 {
            return Err(Corrupt { what: "the producer's cursor moved backwards or too far" });
        }
        self.tail_seen = tail;
        Ok(tail != self.head)
    }

    /// Frees the space of popped frames, and returns whether the producer waits for it.
    pub fn release(&mut self) -> Wake {
        let cursors = self.cursors.borrow();
        // SYNC 2: pairs with the Acquire in `Producer::free_bytes`.
        cursors.head.store(self.head, Ordering::Release);
        // SYNC 3: pairs with the fence in `Producer::prepare_wait`.
        fence(Ordering::SeqCst);
        take_flag(&cursors.producer_waiting)
    }

    /// Announces that the consumer is about to block on its doorbell.
    ///
    /// # Errors
    /// [`Corrupt`] when the producer's cursor is impossible.
    pub fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.cursors.borrow().consumer_sleeping.store(1, Ordering::Relaxed);
        // SYNC 3: pairs with the fence in `Producer::publish`.
        fence(Ordering::SeqCst);
        if self.look()? {
            self.cancel_sleep();
            return Ok(Sleep::Ready);
        }
        Ok(Sleep::MayBlock)
    }

    /// Withdraws the announcement: the consumer is awake.
    pub fn cancel_sleep(&mut self) {
        self.cursors.borrow().consumer_sleeping.store(0, Ordering::Relaxed);
    }
}

fn take_flag(flag: &AtomicU32) -> Wake {
    if flag.load(Ordering::Relaxed) != 0 {
        flag.store(0, Ordering::Relaxed);
        return Wake::Needed;
    }
    Wake::NotNeeded
}

#[cfg(test)]
mod tests;
