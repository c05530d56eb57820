//! One worker's shared memory: two rings and a page of facts about the worker.
//!
//! The gateway creates it ([`GatewayChannel::create`]) and hands the memfd to the zygote with the
//! order to fork; the worker maps it ([`WorkerChannel::map`]). Invariants: the size is sealed
//! before the worker sees it, so neither side can make the other fault by truncation; both ends
//! check magic, version and capacities.
//!
//! ```text
//!  0        header: magic, version, capacities, cursors, worker facts     (16 KiB)
//!  16 KiB   backtrace text, written by the worker's signal handler        (12 KiB)
//!  28 KiB   requests ring  (gateway → worker)                             (request_bytes)
//!  …        responses ring (worker → gateway)                             (response_bytes)
//! ```

use crate::claim::{Claims, State};
use crate::frame::{FrameHeader, FrameKind, Tag};
use crate::memory::SharedRegion;
use crate::spsc::{Consumer, Corrupt, Cursors, Producer, Sleep, Wake};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waits::WaitCounter;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
#[cfg(not(miri))]
use rustix::mm::munmap;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::rc::Rc;

pub use crate::claim::LEASES;
pub use crate::waits::{WaitCall, Waits};

const MAGIC: u64 = 0x4f55_5442_4f41_5244; // "OUTBOARD"
const VERSION: u32 = 3;
const HEADER_BYTES: usize = 16 * 1024;
/// Room for the backtrace text.
pub const BACKTRACE_BYTES: usize = 12 * 1024;
const RINGS_AT: usize = HEADER_BYTES + BACKTRACE_BYTES;

/// Ring sizes in bytes; powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacities {
    /// Gateway → worker.
    pub request_bytes: u32,
    /// Worker → gateway.
    pub response_bytes: u32,
}

impl Default for Capacities {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Capacities {
    /// What workers get.
    pub const DEFAULT: Self = Self { request_bytes: 128 * 1024, response_bytes: 256 * 1024 };

    fn total_bytes(self) -> usize {
        RINGS_AT + self.request_bytes as usize + self.response_bytes as usize
    }
}

#[repr(C)]
struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    request_bytes: AtomicU32,
    response_bytes: AtomicU32,
    epoch: AtomicU32,
    /// Atomics as well: the peer may write here, too.
    _pad: [AtomicU32; 26],
    requests: Cursors,
    responses: Cursors,
    /// Length of the backtrace text; 0 while there is none.
    backtrace_len: AtomicU32,
    /// Generation of the request that the backtrace is about.
    backtrace_generation: AtomicU32,
    /// What the worker waited for, by [`WaitCall`].
    waits: [WaitCounter; WaitCall::ALL.len()],
    claims: Claims,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Header>() <= HEADER_BYTES);
    assert!(std::mem::offset_of!(Header, requests) == 128);
};

/// The mapping, or under Miri, which knows no shared memory, so much of the heap; shared by the handles into it and unmapped with the last of them.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    capacities: Capacities,
}

impl Mapping {
    fn new(memory: BorrowedFd<'_>, capacities: Capacities) -> io::Result<Self> {
        let len = capacities.total_bytes();
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases no Rust object.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                memory,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, capacities })
    }

    /// Zeroed memory that both ends of a test use.
    #[cfg(miri)]
    fn on_heap(capacities: Capacities) -> Self {
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(capacities)) };
        Self { start: NonNull::new(start).expect("Miri has memory"), capacities }
    }

    #[cfg(miri)]
    fn layout(capacities: Capacities) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(capacities.total_bytes(), 4096).expect("a small size")
    }

    /// Whatever this process forks does not have the memory.
    fn keep_from_forks(&self) -> io::Result<()> {
        let len = self.capacities.total_bytes();
        // SAFETY: exactly the range that `new` mapped; it changes nothing in this process.
        let kept = unsafe { madvise(self.start.as_ptr().cast(), len, Advice::LinuxDontFork) };
        kept.map_err(io::Error::from)
    }

    fn header(&self) -> &Header {
        // SAFETY:
        // * the mapping is page aligned, at least `HEADER_BYTES` long and lives as long as `self`;
        // * `Header` is atomics only, its padding included, for which every bit pattern is valid and which
        //   another process may change at any time.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    fn region(&self, at: usize, len: usize) -> SharedRegion {
        assert!(at + len <= self.capacities.total_bytes());
        // SAFETY:
        // * in bounds by the assertion; every owner of a region also owns an `Rc` of the mapping;
        // * no reference is ever formed to anything beyond the header page.
        unsafe { SharedRegion::new(self.start.add(at), len) }
    }

    fn requests(&self) -> SharedRegion {
        self.region(RINGS_AT, self.capacities.request_bytes as usize)
    }

    fn responses(&self) -> SharedRegion {
        let at = RINGS_AT + self.capacities.request_bytes as usize;
        self.region(at, self.capacities.response_bytes as usize)
    }

    fn backtrace(&self) -> SharedRegion {
        self.region(HEADER_BYTES, BACKTRACE_BYTES)
    }
}

impl Drop for Mapping {
    #[cfg(miri)]
    fn drop(&mut self) {
        // SAFETY: what `on_heap` allocated, and the last handle into it is gone.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.capacities)) };
    }

    #[cfg(not(miri))]
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped, and the last handle into it is gone. It
        // fails only for arguments that `mmap` would not have returned.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.capacities.total_bytes()) };
    }
}

/// Borrows one ring's cursors out of the mapping that it keeps alive.
#[derive(Debug, Clone)]
enum RingCursors {
    Requests(Rc<Mapping>),
    Responses(Rc<Mapping>),
}

impl std::borrow::Borrow<Cursors> for RingCursors {
    fn borrow(&self) -> &Cursors {
        match self {
            Self::Requests(mapping) => &mapping.header().requests,
            Self::Responses(mapping) => &mapping.header().responses,
        }
    }
}

type RingProducer = Producer<RingCursors, SharedRegion>;
type RingConsumer = Consumer<RingCursors, SharedRegion>;

/// The gateway's end: writes requests, reads responses.
#[derive(Debug)]
pub struct GatewayChannel {
    requests: RingProducer,
    responses: RingConsumer,
    mapping: Rc<Mapping>,
}

impl GatewayChannel {
    /// Creates the shared memory of one worker. The returned descriptor is for the worker.
    ///
    /// # Errors
    /// What `memfd_create(2)`, `ftruncate(2)` or `mmap(2)` report.
    pub fn create(capacities: Capacities, epoch: u32) -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("outboard-ring", flags)?;
        ftruncate(&memory, capacities.total_bytes() as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::new(memory.as_fd(), capacities)?;
        Ok((Self::over(Rc::new(mapping), epoch), memory))
    }

    /// Describes fresh memory, for a worker with this epoch.
    fn over(mapping: Rc<Mapping>, epoch: u32) -> Self {
        let capacities = mapping.capacities;
        let header = mapping.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.request_bytes.store(capacities.request_bytes, Ordering::Relaxed);
        header.response_bytes.store(capacities.response_bytes, Ordering::Relaxed);
        header.epoch.store(epoch, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Self {
            requests: Producer::new(
                RingCursors::Requests(mapping.clone()),
                mapping.requests(),
                capacities.request_bytes as usize,
            ),
            responses: Consumer::new(
                RingCursors::Responses(mapping.clone()),
                mapping.responses(),
                capacities.response_bytes as usize,
            ),
            mapping,
        }
    }

    /// Appends a frame; `Ok(false)` when the worker must first make room.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn push(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<bool, Corrupt> {
        self.requests.push(FrameHeader::new(kind, tag), parts)
    }

    /// Payload bytes that the largest frame can have.
    pub fn largest_payload_bytes(&self) -> usize {
        self.requests.largest_payload_bytes()
    }

    /// Payload bytes that fit now.
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

    /// Makes pushed frames visible; `Needed` means: ring the worker's doorbell.
    pub fn publish(&mut self) -> Wake {
        self.requests.publish()
    }

    /// The next frame from the worker, its payload over `payload`; `None` when there is none.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Corrupt> {
        self.responses.pop(payload)
    }

    /// Gives the space of received frames back; `Needed` means: ring the worker's doorbell.
    pub fn release(&mut self) -> Wake {
        self.responses.release()
    }

    /// Call before the gateway blocks in epoll: from now on the worker rings the doorbell.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.responses.prepare_sleep()
    }

    /// The gateway is awake and looks by itself: the worker need not ring.
    pub fn cancel_sleep(&mut self) {
        self.responses.cancel_sleep();
    }

    /// Says that the request about to be pushed is to be had. Before the push, so that the worker
    /// cannot see the frame without the offer (SYNC 1 of the ring orders them).
    pub fn offer(&self, tag: Tag) {
        self.mapping.header().claims.set(tag, State::Offered);
    }

    /// Takes an offered request back; false when the worker has started it.
    pub fn withdraw(&self, tag: Tag) -> bool {
        self.mapping.header().claims.turn(tag, State::Offered, State::Withdrawn)
    }

    /// Tells the worker that the client of a request that it has started has gone.
    pub fn abort(&self, tag: Tag) {
        self.mapping.header().claims.set(tag, State::Aborted);
    }

    /// Tells the worker that the client of a request that it has started takes nothing for now;
    /// false when that is not how it stands with the request.
    pub fn pause(&self, tag: Tag) -> bool {
        self.mapping.header().claims.turn(tag, State::Started, State::Paused)
    }

    /// Takes that back. A [`FrameKind::Resume`] has to follow: the request may be waiting for it.
    pub fn resume(&self, tag: Tag) -> bool {
        self.mapping.header().claims.turn(tag, State::Paused, State::Started)
    }

    /// How often the worker waited in `call` so far.
    pub fn waits(&self, call: WaitCall) -> Waits {
        self.mapping.header().waits[call as usize].read()
    }

    /// The backtrace that the worker wrote about the request with this generation, if any.
    pub fn backtrace(&self, tag: Tag) -> Option<String> {
        use crate::memory::Memory;
        let header = self.mapping.header();
        let len = header.backtrace_len.load(Ordering::Acquire) as usize;
        if len == 0 || header.backtrace_generation.load(Ordering::Relaxed) != tag.generation {
            return None;
        }
        let mut text = vec![0; len.min(BACKTRACE_BYTES)];
        self.mapping.backtrace().copy_out(0, &mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The worker's end: reads requests, writes responses.
#[derive(Debug)]
pub struct WorkerChannel {
    requests: RingConsumer,
    responses: RingProducer,
    mapping: Rc<Mapping>,
}

impl WorkerChannel {
    /// Maps the memory that the gateway created, for this process alone: a child that it forks has no
    /// part in the conversation.
    ///
    /// # Errors
    /// `InvalidData` when it is not a channel of this version; what `fstat(2)` and `mmap(2)`
    /// report otherwise.
    pub fn map(memory: &OwnedFd) -> io::Result<Self> {
        let mismatch = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "not a ring of this version: gateway and PHP host must come from the same release",
            )
        };
        let size = rustix::fs::fstat(memory)?.st_size as usize;
        if size < RINGS_AT {
            return Err(mismatch());
        }
        let probe =
            Mapping::new(memory.as_fd(), Capacities { request_bytes: 0, response_bytes: 0 })?;
        let header = probe.header();
        let capacities = Capacities {
            request_bytes: header.request_bytes.load(Ordering::Relaxed),
            response_bytes: header.response_bytes.load(Ordering::Relaxed),
        };
        let sound = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && capacities.request_bytes.is_power_of_two()
            && capacities.response_bytes.is_power_of_two()
            && size == capacities.total_bytes();
        if !sound {
            return Err(mismatch());
        }
        let mapping = Mapping::new(memory.as_fd(), capacities)?;
        mapping.keep_from_forks()?;
        Ok(Self::over(Rc::new(mapping)))
    }

    /// Takes memory that the gateway has described.
    fn over(mapping: Rc<Mapping>) -> Self {
        let capacities = mapping.capacities;
        Self {
            requests: Consumer::new(
                RingCursors::Requests(mapping.clone()),
                mapping.requests(),
                capacities.request_bytes as usize,
            ),
            responses: Producer::new(
                RingCursors::Responses(mapping.clone()),
                mapping.responses(),
                capacities.response_bytes as usize,
            ),
            mapping,
        }
    }

    /// The number of this worker's life; a successor in the same place has another.
    pub fn epoch(&self) -> u32 {
        self.mapping.header().epoch.load(Ordering::Relaxed)
    }

    /// Takes the request whose frame was received; false when the gateway has withdrawn it.
    pub fn start(&self, tag: Tag) -> bool {
        let claims = &self.mapping.header().claims;
        // The client may have gone meanwhile: it is run, as it would have been a moment sooner.
        claims.turn(tag, State::Offered, State::Started) || claims.is(tag, State::Aborted)
    }

    /// Whether the client of the request with this tag has gone.
    pub fn is_aborted(&self, tag: Tag) -> bool {
        self.mapping.header().claims.is(tag, State::Aborted)
    }

    /// Whether the client of the request with this tag takes nothing for now.
    pub fn is_paused(&self, tag: Tag) -> bool {
        self.mapping.header().claims.is(tag, State::Paused)
    }

    /// Counts a wait during which the worker did other work.
    pub fn count_suspended(&self, call: WaitCall) {
        self.mapping.header().waits[call as usize].count_suspended();
    }

    /// Counts a wait that held the whole worker.
    pub fn count_blocked(&self, call: WaitCall, us: u64) {
        self.mapping.header().waits[call as usize].count_blocked(us);
    }

    /// The next frame from the gateway, its payload over `payload`; `None` when there is none.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Corrupt> {
        self.requests.pop(payload)
    }

    /// Gives the space of received frames back; `Needed` means: ring the gateway's doorbell.
    pub fn release(&mut self) -> Wake {
        self.requests.release()
    }

    /// Call before blocking on the worker's doorbell for a frame.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.requests.prepare_sleep()
    }

    /// Appends a frame; `Ok(false)` when the gateway must first make room: publish, then
    /// [`WorkerChannel::prepare_wait`], then block on the worker's doorbell.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn push(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<bool, Corrupt> {
        self.responses.push(FrameHeader::new(kind, tag), parts)
    }

    /// Payload bytes that fit now.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn free_bytes(&mut self) -> Result<usize, Corrupt> {
        self.responses.free_bytes()
    }

    /// Makes pushed frames visible to a gateway that looks by itself; see [`Producer::show`].
    pub fn show(&mut self) {
        self.responses.show();
    }

    /// Whether another frame lies ahead.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn has_more(&mut self) -> Result<bool, Corrupt> {
        self.requests.has_more()
    }

    /// Makes pushed frames visible; `Needed` means: ring the gateway's doorbell.
    pub fn publish(&mut self) -> Wake {
        self.responses.publish()
    }

    /// Call before blocking until `payload_bytes` are free.
    ///
    /// # Errors
    /// [`Corrupt`]: leave the process.
    pub fn prepare_wait(&mut self, payload_bytes: usize) -> Result<Sleep, Corrupt> {
        self.responses.prepare_wait(payload_bytes)
    }

    /// A handle for the signal handler that writes the backtrace.
    pub fn backtrace_sink(&self) -> BacktraceSink {
        BacktraceSink { mapping: self.mapping.clone() }
    }
}

/// Where a worker's signal handler puts a PHP backtrace. All of it is async-signal-safe: memory
/// copies and atomics, no allocation, no locks.
#[derive(Debug)]
pub struct BacktraceSink {
    mapping: Rc<Mapping>,
}

impl BacktraceSink {
    /// Copies `text` at `at`; what would not fit is cut.
    pub fn write(&self, at: usize, text: &[u8]) {
        use crate::memory::Memory;
        let room = BACKTRACE_BYTES.saturating_sub(at);
        let text = &text[..text.len().min(room)];
        if !text.is_empty() {
            self.mapping.backtrace().copy_in(at, text);
        }
    }

    /// Shows the first `len` bytes to the gateway as the backtrace of the request with this tag.
    pub fn publish(&self, len: usize, tag: Tag) {
        let header = self.mapping.header();
        header.backtrace_generation.store(tag.generation, Ordering::Relaxed);
        header.backtrace_len.store(len.min(BACKTRACE_BYTES) as u32, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
