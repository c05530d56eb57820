//! Rust's heap, in memory of its own: PHP, its extensions and the C library have theirs.
//!
//! A rewind puts the memory of PHP back to what it was (`rewind`). What Rust knows must not go back with it:
//! how far the ring was read, which descriptors are open. So all that Rust allocates lies in regions that only
//! this file maps, and that a snapshot leaves out. Invariants: no allocation of Rust is in the C library's
//! heap; nothing here is in a static variable except one address, which never changes once it is set; what is freed
//! is cleared, and so is what request data leaves in a buffer ([`wipe`]), since a later request could read both.

use dlmalloc::{Allocator, Dlmalloc};
use std::alloc::{GlobalAlloc, Layout};
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Regions are at least this large, so that there are few.
const REGION_BYTES: usize = 4 << 20;

/// More do not fit into the table; the allocation fails.
const REGIONS_MAX: usize = 1024;

const PAGE_BYTES: usize = 4096;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: KeptMemory = KeptMemory;

/// The heap, once it exists.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());

struct KeptMemory;

/// In a mapping of its own, which is the first of its regions.
struct Heap {
    is_locked: AtomicBool,
    allocator: Dlmalloc<Regions>,
    /// Address and size in bytes of each region.
    regions: [(usize, usize); REGIONS_MAX],
    count: usize,
}

/// The allocator's source of memory: the table of the [`Heap`] that contains it.
struct Regions;

fn map(bytes: usize) -> *mut u8 {
    // SAFETY: a new mapping, which replaces none.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory.cast() }
}

/// The heap. The first allocation creates it, when the process has one thread.
fn heap() -> Option<NonNull<Heap>> {
    let known = HEAP.load(Ordering::Acquire);
    if let Some(known) = NonNull::new(known) {
        return Some(known);
    }
    let bytes = size_of::<Heap>().next_multiple_of(PAGE_BYTES);
    let heap = NonNull::new(map(bytes).cast::<Heap>())?;
    let mut regions = [(0, 0); REGIONS_MAX];
    regions[0] = (heap.as_ptr().addr(), bytes);
    // SAFETY: the mapping is large enough, aligned to a page, and nobody else knows it.
    unsafe {
        heap.write(Heap {
            is_locked: AtomicBool::new(false),
            allocator: Dlmalloc::new_with_allocator(Regions),
            regions,
            count: 1,
        });
    }
    HEAP.store(heap.as_ptr(), Ordering::Release);
    // SAFETY: the functions are never unloaded, and touch the lock alone.
    unsafe { libc::pthread_atfork(Some(lock_before_fork), Some(unlock), Some(unlock)) };
    Some(heap)
}

/// A fork copies the lock, whichever thread holds it.
extern "C" fn lock_before_fork() {
    if let Some(heap) = heap() {
        lock(heap);
    }
}

extern "C" fn unlock() {
    if let Some(heap) = heap() {
        // SAFETY: the heap lives as long as the process.
        unsafe { heap.as_ref() }.is_locked.store(false, Ordering::Release);
    }
}

/// Threads are rare and hold it shortly (`offload`), so the wait is a loop.
fn lock(heap: NonNull<Heap>) {
    // SAFETY: the heap lives as long as the process; a shared reference to an atomic field.
    let is_locked = unsafe { &(*heap.as_ptr()).is_locked };
    while is_locked
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        std::thread::yield_now();
    }
}

/// Calls `work` with the only access to the allocator.
fn with<T>(work: impl FnOnce(&mut Dlmalloc<Regions>) -> T) -> Option<T> {
    let heap = heap()?;
    lock(heap);
    // SAFETY: the lock is held, and the allocator reaches the heap's other fields by their own pointers.
    let result = work(unsafe { &mut (*heap.as_ptr()).allocator });
    unlock();
    Some(result)
}

// SAFETY: as dlmalloc, which every call reaches alone.
unsafe impl GlobalAlloc for KeptMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract; the size is not 0.
        with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
            .unwrap_or(ptr::null_mut())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
            .unwrap_or(ptr::null_mut())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract: it is of this allocator, with this layout.
        unsafe { ptr::write_bytes(memory, 0, layout.size()) };
        // SAFETY: as above.
        with(|heap| unsafe { heap.free(memory, layout.size(), layout.align()) });
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Not by the allocator, which leaves the content where it was.
        // SAFETY: the caller's contract: the size is not 0, and the alignment was one before.
        unsafe {
            let target = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !target.is_null() {
                ptr::copy_nonoverlapping(memory, target, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            target
        }
    }
}

// SAFETY: `alloc` returns new memory of at least the size; nothing is ever returned to the system.
unsafe impl Allocator for Regions {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let bytes = size.next_multiple_of(REGION_BYTES);
        let memory = allocate_region(bytes);
        (memory, if memory.is_null() { 0 } else { bytes }, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE_BYTES
    }
}

/// Maps a region and records it; null if it is impossible.
fn allocate_region(bytes: usize) -> *mut u8 {
    let Some(heap) = heap() else { return ptr::null_mut() };
    // SAFETY: the caller holds the lock, and no reference to these fields exists.
    let (regions, count) = unsafe { (&mut (*heap.as_ptr()).regions, &mut (*heap.as_ptr()).count) };
    if *count == REGIONS_MAX {
        return ptr::null_mut();
    }
    let memory = map(bytes);
    if !memory.is_null() {
        regions[*count] = (memory.addr(), bytes);
        *count += 1;
    }
    memory
}

/// Up to this number of bytes a loop is faster than memset(3), whose code is in none of the processor's caches when a
/// worker wakes up.
const SMALL_BYTES: usize = 64;

/// Empties a buffer that is used again, and leaves zeros in it. Who empties it in another way leaves data there.
pub(crate) fn wipe(buffer: &mut Vec<u8>) {
    if buffer.len() > SMALL_BYTES {
        buffer.fill(0);
    } else {
        for byte in buffer.iter_mut() {
            // SAFETY: a reference is valid. The compiler makes a call of memset of ordinary writes.
            unsafe { ptr::write_volatile(byte, 0) };
        }
    }
    buffer.clear();
}

/// The addresses of all of Rust's memory, in no order.
pub(crate) fn regions() -> Vec<Range<usize>> {
    // Room for one more, which this allocation may add.
    let mut found = Vec::with_capacity(REGIONS_MAX);
    if let Some(heap) = heap() {
        lock(heap);
        // SAFETY: the lock is held; nothing is allocated meanwhile, since there is room.
        let (regions, count) = unsafe { (&(*heap.as_ptr()).regions, (*heap.as_ptr()).count) };
        found.extend(regions[..count].iter().map(|(start, bytes)| *start..*start + *bytes));
        unlock();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_is_in_a_region() {
        let small = Box::new(1_u8);
        let large = vec![0_u8; 3 * REGION_BYTES];
        let regions = regions();
        for address in [
            ptr::from_ref(&*small).addr(),
            large.as_ptr().addr(),
            large.as_ptr().addr() + large.len() - 1,
        ] {
            assert!(regions.iter().any(|region| region.contains(&address)), "{address:#x}");
        }
    }

    #[test]
    fn zeroed_memory_that_was_used_before_is_zeroed() {
        for bytes in [100, 5000, 2 * REGION_BYTES] {
            drop(vec![0xff_u8; bytes]);
            assert!(vec![0_u8; bytes].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn threads_allocate_at_the_same_time() {
        let threads: Vec<_> = (0..4_usize)
            .map(|seed| {
                std::thread::spawn(move || {
                    (0..20_000_usize).map(|i| vec![seed as u8; (i * 7 + seed) % 3000]).fold(
                        0,
                        |sum, bytes| {
                            assert!(bytes.iter().all(|byte| usize::from(*byte) == seed));
                            sum + bytes.len()
                        },
                    )
                })
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() > 0));
    }
}
