//! [`ProcessState`]: what the kernel has for a worker besides its memory: descriptors, mappings, directory.
//!
//! Recorded when a worker is ready for its first request, put back after each. Invariant: whatever a request
//! has left is undone, or the worker takes no further request.

use super::attributes::{self, Attributes};
use super::descriptors::{Descriptor, fill_gaps, open_descriptors};
use super::irreversible::Irreversible;
use super::mappings::{self, Mapping, Name};
use super::snapshot::Snapshot;
use crate::{descendants, kept_memory};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::process::umask;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};

/// See the module.
#[derive(Debug)]
pub(super) struct ProcessState {
    descriptors: Vec<Descriptor>,
    highest: RawFd,
    directory: OwnedFd,
    mask: Mode,
    mappings: Vec<Mapping>,
    /// Open all the time, since they are read after each request.
    size: File,
    tasks: OwnedFd,
    size_pages: Vec<u8>,
    end_of_heap: usize,
    bottom_of_stack: usize,
    /// Where scripts may call native code.
    attributes: Option<Attributes>,
    /// Whether programs that a request has started may go on.
    leaves_programs: bool,
}

impl ProcessState {
    /// Records the state of this process, whose descriptors and mappings are complete; `numbers` are those
    /// that the script may close.
    pub(super) fn record(numbers: &[RawFd], leaves_programs: bool) -> io::Result<Self> {
        let size = File::open("/proc/self/statm")?;
        let tasks = open("/proc/self/task", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let directory =
            open(".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        fill_gaps()?;
        let descriptors = numbers.iter().filter_map(|number| Descriptor::of(*number)).collect();
        let highest = open_descriptors()?.into_iter().max().unwrap_or(2);
        let mask = umask(Mode::empty());
        umask(mask);
        let mut state = Self {
            descriptors,
            highest,
            directory,
            mask,
            mappings: Vec::new(),
            size,
            tasks,
            size_pages: Vec::with_capacity(32),
            end_of_heap: end_of_heap(),
            bottom_of_stack: 0,
            attributes: None,
            leaves_programs,
        };
        state.accept_mappings()?;
        if attributes::are_needed() {
            let hosts = (0..=state.highest).filter(|number| !numbers.contains(number));
            state.attributes = Some(Attributes::record(&hosts.collect::<Vec<_>>())?);
        }
        Ok(state)
    }

    /// What is mapped now is what is put back from now on.
    pub(super) fn accept_mappings(&mut self) -> io::Result<()> {
        self.mappings = mappings::read()?;
        self.size_pages = self.read_size()?;
        self.end_of_heap = end_of_heap();
        self.bottom_of_stack = bottom_of_stack(&self.mappings);
        self.attributes.as_mut().map_or(Ok(()), |attributes| attributes.accept_code(&self.mappings))
    }

    /// Whether everything can be put back.
    pub(super) fn check(&self) -> Result<(), Irreversible> {
        self.end_programs()?;
        // Its links are two and one for each thread (proc_task_getattr in fs/proc/base.c).
        let tasks = fstat(&self.tasks).map_err(|_| Irreversible::Kernel("stat of the threads"))?;
        if tasks.st_nlink > 3 {
            return Err(Irreversible::Thread);
        }
        Ok(())
    }

    /// All children are the request's, since the worker itself starts none, and so are the orphans that it
    /// adopts.
    fn end_programs(&self) -> Result<(), Irreversible> {
        if descendants::any_is_left() && (self.leaves_programs || !descendants::end_all()) {
            return Err(Irreversible::Child);
        }
        debug_assert!(self.leaves_programs || descendants::children().is_empty());
        Ok(())
    }

    /// Puts back what native code has changed. Returns whether the request has called any.
    pub(super) fn restore_attributes(&self) -> Result<bool, Irreversible> {
        if !attributes::may_have_changed() {
            return Ok(false);
        }
        let attributes = self.attributes.as_ref();
        attributes.map_or(Err(Irreversible::Native("something")), Attributes::restore)?;
        Ok(true)
    }

    /// After native code ran and the mappings were put back.
    pub(super) fn check_code(&self) -> Result<(), Irreversible> {
        self.attributes.as_ref().map_or(Ok(()), Attributes::check_code)
    }

    /// Closes what was opened since, and puts back positions, directory and mask.
    pub(super) fn restore(&self) -> Result<(), Irreversible> {
        // SAFETY: nothing uses descriptors that the request has opened, since its memory goes, too.
        let closed = unsafe { libc::close_range((self.highest + 1).cast_unsigned(), u32::MAX, 0) };
        if closed != 0 {
            return Err(Irreversible::Kernel("close_range"));
        }
        self.descriptors
            .iter()
            .try_for_each(Descriptor::restore)
            .map_err(|_| Irreversible::Kernel("dup3"))?;
        debug_assert!(
            open_descriptors().is_ok_and(|open| open.iter().all(|number| *number <= self.highest)),
            "a descriptor outlives its request"
        );
        rustix::process::fchdir(&self.directory).map_err(|_| Irreversible::Kernel("fchdir"))?;
        umask(self.mask);
        Ok(())
    }

    /// Unmaps what was mapped since, and returns the regions of the snapshot that were unmapped or changed.
    pub(super) fn restore_mappings(
        &mut self,
        snapshot: &Snapshot,
        has_called_native_code: bool,
    ) -> Result<Vec<usize>, Irreversible> {
        let end = end_of_heap();
        let is_shorter = end < self.end_of_heap;
        if end != self.end_of_heap {
            // SAFETY: the C library's heap has ended here when the snapshot was taken.
            unsafe { libc::brk(self.end_of_heap as *mut _) };
        }
        let is_changed = self.is_changed_by_hand()? || has_called_native_code || is_shorter;
        self.unmap_noted();
        let size = self.read_size().map_err(|_| Irreversible::Kernel("/proc/self/statm"))?;
        if size == self.size_pages && !is_changed {
            return Ok(Vec::new());
        }
        let damaged = self.compare_mappings(snapshot)?;
        self.size_pages = self.read_size().map_err(|_| Irreversible::Kernel("/proc/self/statm"))?;
        Ok(damaged)
    }

    /// The first address of the first thread's stack. It grows with the address space.
    pub(super) fn bottom_of_stack(&self) -> usize {
        self.bottom_of_stack
    }

    /// Whether the request has unmapped, replaced or protected memory of the start, so that the size says nothing.
    fn is_changed_by_hand(&self) -> Result<bool, Irreversible> {
        let mut is_changed = false;
        for change in changes_by_hand() {
            for mapping in mappings::within(&self.mappings, &(change.start..change.end)) {
                is_changed = true;
                // What was not writable is in no snapshot.
                if change.is_writable && mapping.is_private && !mapping.is_writable() {
                    return Err(Irreversible::Mapping);
                }
            }
        }
        Ok(is_changed)
    }

    /// Unmaps what the request is known to have mapped: as a rule the memory of a large request, and to look at
    /// all mappings would take far longer.
    fn unmap_noted(&self) {
        let mut kept = None;
        for change in changes_by_hand().iter().filter(|change| change.is_new) {
            let kept = kept.get_or_insert_with(|| self.kept_addresses());
            unmap_others(&(change.start..change.end), kept);
        }
    }

    fn compare_mappings(&mut self, snapshot: &Snapshot) -> Result<Vec<usize>, Irreversible> {
        let now = mappings::read().map_err(|_| Irreversible::Kernel("/proc/self/maps"))?;
        self.unmap_new(&now);
        self.bottom_of_stack = bottom_of_stack(&now);
        let mut missing = Vec::new();
        for mapping in self.mappings.iter().filter(|mapping| mapping.name == Name::Other) {
            let parts = missing_part(mapping, &now);
            if mapping.is_reserved() {
                parts.iter().try_for_each(reserve).map_err(|_| Irreversible::Kernel("mmap"))?;
            } else {
                missing.extend(parts);
            }
        }
        let mut damaged = Vec::new();
        for (at, region) in snapshot.regions().iter().enumerate() {
            let within = |range: &Range<usize>| {
                range.start < region.addresses.end && range.end > region.addresses.start
            };
            if missing.iter().any(within) {
                damaged.push(at);
            }
        }
        let regions: Vec<Range<usize>> =
            snapshot.regions().iter().map(|region| region.addresses.clone()).collect();
        let is_elsewhere = |range: &Range<usize>| !mappings::without(range, &regions).is_empty();
        if missing.iter().any(is_elsewhere) { Err(Irreversible::Mapping) } else { Ok(damaged) }
    }

    /// Unmaps what is neither of the start nor Rust's nor the kernel's.
    fn unmap_new(&self, now: &[Mapping]) {
        let kept = self.kept_addresses();
        for mapping in now.iter().filter(|mapping| mapping.name == Name::Other) {
            unmap_others(&mapping.addresses, &kept);
        }
    }

    /// The addresses of the start and of Rust.
    fn kept_addresses(&self) -> Vec<Range<usize>> {
        let mut kept: Vec<Range<usize>> = kept_memory::regions();
        kept.extend(self.mappings.iter().map(|mapping| mapping.addresses.clone()));
        mappings::joined(kept)
    }

    /// Total size of the address space, as text.
    fn read_size(&self) -> io::Result<Vec<u8>> {
        let mut text = [0; 32];
        let len = rustix::io::pread(&self.size, &mut text, 0)?;
        let end = text[..len].iter().position(|byte| *byte == b' ').unwrap_or(len);
        Ok(text[..end].to_vec())
    }
}

/// `outboard_mapping_change`.
#[repr(C)]
struct ChangeByHand {
    start: usize,
    end: usize,
    /// It was made so.
    is_writable: bool,
    /// The kernel has chosen the addresses, so that nothing was there.
    is_new: bool,
}

unsafe extern "C" {
    fn outboard_mapping_changes(length: *mut usize) -> *const ChangeByHand;
}

fn changes_by_hand() -> &'static [ChangeByHand] {
    let mut length = 0;
    // SAFETY: the changes are in an array that lives as long as the process, and no other thread runs that
    // could add one.
    unsafe {
        let changes = outboard_mapping_changes(&raw mut length);
        if length == 0 { &[] } else { std::slice::from_raw_parts(changes, length) }
    }
}

/// What of a mapping of the start is no longer there.
fn missing_part(then: &Mapping, now: &[Mapping]) -> Vec<Range<usize>> {
    let now = mappings::within(now, &then.addresses);
    let same = now.filter(|mapping| mapping.is_same_memory(then));
    let same: Vec<_> = same.map(|mapping| mapping.addresses.clone()).collect();
    mappings::without(&then.addresses, &same)
}

/// Unmaps what of `range` is not among the kept addresses.
fn unmap_others(range: &Range<usize>, kept: &[Range<usize>]) {
    for new in mappings::without(range, kept) {
        // SAFETY: mapped since the start, and used by nothing that remains.
        unsafe { libc::syscall(libc::SYS_munmap, new.start, new.len()) };
    }
}

/// Maps addresses that nobody may use, such as the guard of a stack.
fn reserve(range: &Range<usize>) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: what is there instead was mapped by the request, and is used by nothing that remains.
    let mapped =
        unsafe { libc::mmap(range.start as *mut _, range.len(), libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn bottom_of_stack(mappings: &[Mapping]) -> usize {
    let stack = mappings.iter().find(|mapping| mapping.name == Name::Stack);
    stack.expect("the first thread has one").addresses.start
}

fn end_of_heap() -> usize {
    // SAFETY: changes nothing.
    unsafe { libc::sbrk(0) }.addr()
}
