//! [`Mapping`]: the memory that gateway and worker share, with its header.
//!
//! Owned by both ends of a channel. Invariants: see [`super`]; the header has atomics only, because the
//! peer may write to it at any time.

use crate::claim::Claims;
use crate::memory::SharedRegion;
use crate::rewinds::RewindCounter;
use crate::spsc::{Consumer, Cursors, Producer};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::waits::{WaitCall, WaitCounter};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
#[cfg(not(miri))]
use rustix::mm::munmap;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

const MAGIC: u64 = 0x4f55_5442_4f41_5244; // "OUTBOARD"
const VERSION: u32 = 9;
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
    /// The sizes that workers get.
    pub const DEFAULT: Self = Self { request_bytes: 128 * 1024, response_bytes: 256 * 1024 };

    pub(super) fn total_bytes(self) -> usize {
        RINGS_AT + self.request_bytes as usize + self.response_bytes as usize
    }
}

#[repr(C)]
pub(super) struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    request_bytes: AtomicU32,
    response_bytes: AtomicU32,
    pub(super) epoch: AtomicU32,
    /// Other than 0 once the worker is about to die.
    pub(super) dying: AtomicU32,
    /// Other than 0 while a debugger is attached to the worker.
    pub(super) debugged: AtomicU32,
    /// Atomics as well: the peer may write here, too.
    _pad: [AtomicU32; 24],
    requests: Cursors,
    responses: Cursors,
    /// Of the backtrace; odd while it is being written.
    pub(super) backtrace_version: AtomicU32,
    /// Length of the backtrace text; 0 while there is none.
    pub(super) backtrace_len: AtomicU32,
    /// Generation of the request that the backtrace belongs to.
    pub(super) backtrace_generation: AtomicU32,
    /// How often the worker waited, by [`WaitCall`].
    pub(super) waits: [WaitCounter; WaitCall::ALL.len()],
    pub(super) rewinds: RewindCounter,
    pub(super) claims: Claims,
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Header>() <= HEADER_BYTES);
    assert!(std::mem::offset_of!(Header, requests) == 128);
};

/// See the module. Unmapped with the last handle. Under Miri, which has no shared memory, it is on the
/// heap.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    capacities: Capacities,
}

// SAFETY: the mapping is memory of the process and belongs to no thread. It is read and written through
// atomics, and through copies between it and memory of the caller, for which the ring's cursors
// decide who may access which bytes; another process does the same at any time.
unsafe impl Send for Mapping {}
// SAFETY: as above: no reference to its bytes exists, other than to atomics.
unsafe impl Sync for Mapping {}

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

    /// Creates the memory, with its header.
    pub(super) fn create(capacities: Capacities, epoch: u32) -> io::Result<(Arc<Self>, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("outboard-ring", flags)?;
        ftruncate(&memory, capacities.total_bytes() as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Self::new(memory.as_fd(), capacities)?;
        mapping.write_header(epoch);
        Ok((Arc::new(mapping), memory))
    }

    /// Creates zeroed memory, with its header, for both ends of a test.
    #[cfg(miri)]
    pub(super) fn on_heap(capacities: Capacities, epoch: u32) -> Arc<Self> {
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(capacities)) };
        let start = NonNull::new(start).expect("Miri has memory");
        let mapping = Self { start, capacities };
        mapping.write_header(epoch);
        Arc::new(mapping)
    }

    #[cfg(miri)]
    fn layout(capacities: Capacities) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(capacities.total_bytes(), 4096).expect("a small size")
    }

    /// Describes fresh memory, for a worker with this epoch.
    fn write_header(&self, epoch: u32) {
        let header = self.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.request_bytes.store(self.capacities.request_bytes, Ordering::Relaxed);
        header.response_bytes.store(self.capacities.response_bytes, Ordering::Relaxed);
        header.epoch.store(epoch, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Maps memory that another process created, and checks its header.
    pub(super) fn open(memory: &OwnedFd) -> io::Result<Arc<Self>> {
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
        let probe = Self::new(memory.as_fd(), Capacities { request_bytes: 0, response_bytes: 0 })?;
        let header = probe.header();
        let capacities = Capacities {
            request_bytes: header.request_bytes.load(Ordering::Relaxed),
            response_bytes: header.response_bytes.load(Ordering::Relaxed),
        };
        let is_valid = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && capacities.request_bytes.is_power_of_two()
            && capacities.response_bytes.is_power_of_two()
            && size == capacities.total_bytes();
        if !is_valid {
            return Err(mismatch());
        }
        Ok(Arc::new(Self::new(memory.as_fd(), capacities)?))
    }

    /// Removes the memory from children that this process forks.
    pub(super) fn exclude_from_forks(&self) -> io::Result<()> {
        let len = self.capacities.total_bytes();
        // SAFETY: exactly the range that `new` mapped; it changes nothing in this process.
        let advised = unsafe { madvise(self.start.as_ptr().cast(), len, Advice::LinuxDontFork) };
        advised.map_err(io::Error::from)
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY:
        // * the mapping is page aligned, at least `HEADER_BYTES` long and lives as long as `self`;
        // * `Header` is atomics only, its padding included, for which every bit pattern is valid and which
        //   another process may change at any time.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    fn region(&self, at: usize, len: usize) -> SharedRegion {
        assert!(at + len <= self.capacities.total_bytes());
        // SAFETY:
        // * in bounds by the assertion; every owner of a region also owns an `Arc` of the mapping;
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

    pub(super) fn backtrace(&self) -> SharedRegion {
        self.region(HEADER_BYTES, BACKTRACE_BYTES)
    }
}

impl Drop for Mapping {
    #[cfg(miri)]
    fn drop(&mut self) {
        // SAFETY: `on_heap` allocated it with this layout, and the last handle into it is gone.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.capacities)) };
    }

    #[cfg(not(miri))]
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped, and the last handle into it is gone. It
        // fails only for arguments that `mmap` would not have returned.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.capacities.total_bytes()) };
    }
}

/// The cursors of one ring, which keep the mapping alive.
#[derive(Debug, Clone)]
pub(super) enum RingCursors {
    Requests(Arc<Mapping>),
    Responses(Arc<Mapping>),
}

impl std::borrow::Borrow<Cursors> for RingCursors {
    fn borrow(&self) -> &Cursors {
        match self {
            Self::Requests(mapping) => &mapping.header().requests,
            Self::Responses(mapping) => &mapping.header().responses,
        }
    }
}

pub(super) type RingProducer = Producer<RingCursors, SharedRegion>;
pub(super) type RingConsumer = Consumer<RingCursors, SharedRegion>;

/// Makes an end of the ring of requests: [`Producer::new`] or [`Consumer::new`].
pub(super) fn request_ring<T>(
    mapping: &Arc<Mapping>,
    end: impl FnOnce(RingCursors, SharedRegion, usize) -> T,
) -> T {
    let capacity = mapping.capacities.request_bytes as usize;
    end(RingCursors::Requests(mapping.clone()), mapping.requests(), capacity)
}

/// The same of the ring of responses.
pub(super) fn response_ring<T>(
    mapping: &Arc<Mapping>,
    end: impl FnOnce(RingCursors, SharedRegion, usize) -> T,
) -> T {
    let capacity = mapping.capacities.response_bytes as usize;
    end(RingCursors::Responses(mapping.clone()), mapping.responses(), capacity)
}
