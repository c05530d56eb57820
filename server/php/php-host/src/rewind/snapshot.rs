//! [`Snapshot`]: the memory of the booted script, in a file without a name that all workers map.
//!
//! Taken once by the zygote, used by each worker. What was private memory becomes a private mapping of the
//! file at the same addresses: a page that nobody has written to *is* the snapshot's, and one that was
//! written to is a copy that the process alone has. So forks share what they do not write, and a page is put
//! back either by copying it or by dropping the copy.
//!
//! A worker may add to its snapshot what it has done between two requests: its own pages, in place of those of
//! the file or beside them.
//!
//! Invariants: the file never changes once it is complete (it is sealed); what is neither in it nor among the own
//! pages is the kernel's, shared with other processes, or Rust's (`kept_memory`).

use super::mappings::{self, Mapping, Name};
use crate::kept_memory;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// A sanitizer reserves terabytes for its own account.
const BYTES_MAX: usize = 64 << 30;

pub(super) const PAGE_BYTES: usize = 4096;

/// What small requests use of the stack. It is cleared in place, since a page that is dropped costs a fault.
const STACK_CLEARED_BYTES: usize = 32 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// In the order of their addresses.
    regions: Vec<Region>,
    file: OwnedFd,
    /// The file's content, for reading.
    content: *const u8,
    /// Pages of this worker, by their addresses.
    own: BTreeMap<usize, Box<[u8]>>,
    /// The part of the stack that is in use; its copy is `stack_content`.
    stack: Range<usize>,
    stack_content: Vec<u8>,
}

/// Memory that was private and writable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) addresses: Range<usize>,
    pub(super) protection: i32,
    /// Where it is in the file, in bytes; `None` if all its pages are a worker's own.
    pub(super) offset: Option<usize>,
}

impl Snapshot {
    /// Copies the memory of this process and maps the copy in its place. `stack` is the part of the first
    /// thread's stack that is put back; the rest is unused or the command line's.
    ///
    /// # Safety
    /// The process has one thread, which runs on a stack in Rust's memory.
    pub(super) unsafe fn take(stack: Range<usize>) -> io::Result<Self> {
        let regions = choose(&mappings::read()?)?;
        let bytes: usize = regions.iter().map(|region| region.addresses.len()).sum();
        let file =
            memfd_create(c"outboard snapshot", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        for region in &regions {
            let offset = region.offset.unwrap_or_default();
            // SAFETY: the memory is readable, and this thread, the only one, does not write to it.
            unsafe { copy(region, &file, offset) }?;
            // SAFETY: the file has what the memory has, so that nothing changes for its users.
            unsafe { map(region, &file, offset) }?;
        }
        fcntl_add_seals(
            &file,
            SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL,
        )?;
        let mut snapshot = Self {
            content: map_content(&file, bytes)?,
            regions,
            file,
            own: BTreeMap::new(),
            stack_content: Vec::new(),
            stack: 0..0,
        };
        // SAFETY: the caller's contract.
        unsafe { snapshot.set_stack(stack) };
        Ok(snapshot)
    }

    /// # Safety
    /// The range is on the first thread's stack, and no thread runs on it.
    unsafe fn set_stack(&mut self, stack: Range<usize>) {
        // SAFETY: the caller's contract; a stack is readable.
        let content = unsafe { std::slice::from_raw_parts(stack.start as *const u8, stack.len()) };
        self.stack_content = content.to_vec();
        self.stack = stack;
    }

    /// Makes the present content of these pages, of memory that was mapped since, and of the stack part of the
    /// snapshot. Returns the new regions.
    ///
    /// # Safety
    /// As [`Self::take`].
    pub(super) unsafe fn add(
        &mut self,
        written: &[Range<usize>],
        stack: Range<usize>,
    ) -> io::Result<Vec<Region>> {
        let known: Vec<Range<usize>> =
            self.regions.iter().map(|region| region.addresses.clone()).collect();
        let mut new = Vec::new();
        for region in choose(&mappings::read()?)? {
            let parts = mappings::without(&region.addresses, &known).into_iter();
            new.extend(parts.map(|addresses| Region { addresses, offset: None, ..region.clone() }));
        }
        self.regions.extend(new.iter().cloned());
        self.regions.sort_unstable_by_key(|region| region.addresses.start);
        let pages = written.iter().chain(new.iter().map(|region| &region.addresses));
        for page in pages.flat_map(|range| range.clone().step_by(PAGE_BYTES)) {
            let Some(then) = self.source(page) else { continue };
            // SAFETY: a page of a region is mapped, as is its source; this thread, the only one, writes to neither.
            let (now, then) = unsafe {
                (
                    std::slice::from_raw_parts(page as *const u8, PAGE_BYTES),
                    then.map(|then| std::slice::from_raw_parts(then, PAGE_BYTES)),
                )
            };
            if then != Some(now) {
                self.own.insert(page, now.into());
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.set_stack(stack) };
        Ok(new)
    }

    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Size in bytes, without the stack.
    pub(super) fn bytes(&self) -> usize {
        self.regions.iter().map(|region| region.addresses.len()).sum()
    }

    /// Size in bytes of the pages that are this worker's own.
    pub(super) fn own_bytes(&self) -> usize {
        self.own.len() * PAGE_BYTES
    }

    /// From the first to the last address of all regions, with whatever lies between them.
    pub(super) fn span(&self) -> Range<usize> {
        let start = self.regions.first().map_or(0, |region| region.addresses.start);
        start..self.regions.last().map_or(start, |region| region.addresses.end)
    }

    /// The region of an address.
    fn region_of(&self, address: usize) -> Option<&Region> {
        let at = self.regions.partition_point(|region| region.addresses.end <= address);
        self.regions.get(at).filter(|region| region.addresses.contains(&address))
    }

    /// The snapshot's content of a page: none outside of it, `Some(None)` of a new region's.
    fn source(&self, page: usize) -> Option<Option<*const u8>> {
        let region = self.region_of(page)?;
        let own = self.own.get(&page).map(|content| content.as_ptr());
        Some(own.or_else(|| self.in_file(region, page)))
    }

    fn in_file(&self, region: &Region, address: usize) -> Option<*const u8> {
        let offset = region.offset?;
        Some(self.content.wrapping_add(offset + (address - region.addresses.start)))
    }

    /// The aligned word that the snapshot has at this address.
    pub(super) fn word_at(&self, address: usize) -> Option<i32> {
        let within = address % PAGE_BYTES;
        let page = self.source(address - within)??;
        // SAFETY: within a page that is mapped or owned; an aligned word does not reach beyond.
        Some(unsafe { page.wrapping_add(within).cast::<i32>().read() })
    }

    /// Copies back what of the ranges, which are in order, belongs to the snapshot; returns how many bytes.
    ///
    /// # Safety
    /// Nothing uses the memory meanwhile, and no reference to it exists afterwards that expects other values.
    pub(super) unsafe fn restore(&self, ranges: &[Range<usize>]) -> usize {
        // SAFETY: the caller's contract.
        unsafe {
            let bytes = ranges.iter().map(|range| self.restore_from_file(range)).sum();
            self.restore_own(ranges);
            bytes
        }
    }

    /// # Safety
    /// As [`Self::restore`].
    unsafe fn restore_from_file(&self, range: &Range<usize>) -> usize {
        let mut restored = 0;
        let first = self.regions.partition_point(|region| region.addresses.end <= range.start);
        for region in
            self.regions[first..].iter().take_while(|region| region.addresses.start < range.end)
        {
            let start = range.start.max(region.addresses.start);
            let end = range.end.min(region.addresses.end);
            if let Some(source) = self.in_file(region, start) {
                // SAFETY: both are mapped, with this length, and do not overlap; the caller's contract.
                unsafe { ptr::copy_nonoverlapping(source, start as *mut u8, end - start) };
            }
            restored += end - start;
        }
        restored
    }

    /// # Safety
    /// As [`Self::restore`].
    unsafe fn restore_own(&self, ranges: &[Range<usize>]) {
        let mut ranges = ranges.iter().peekable();
        for (page, content) in &self.own {
            while ranges.next_if(|range| range.end <= *page).is_some() {}
            let Some(range) = ranges.peek() else { return };
            if range.contains(page) {
                // SAFETY: a page of a region is mapped; the caller's contract.
                unsafe {
                    ptr::copy_nonoverlapping(content.as_ptr(), *page as *mut u8, content.len());
                }
            }
        }
    }

    /// Drops this process's copies of all pages of the file, and copies its own back.
    ///
    /// # Safety
    /// As [`Self::restore`].
    pub(super) unsafe fn restore_all(&self) -> io::Result<()> {
        for region in self.regions.iter().filter(|region| region.offset.is_some()) {
            // SAFETY: a private mapping of the file, whose pages come back with the file's content.
            let dropped = unsafe {
                libc::madvise(
                    region.addresses.start as *mut _,
                    region.addresses.len(),
                    libc::MADV_DONTNEED,
                )
            };
            if dropped != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.restore_own(std::slice::from_ref(&self.span())) };
        Ok(())
    }

    /// Copies the stack back.
    ///
    /// # Safety
    /// No thread runs on it.
    pub(super) unsafe fn restore_stack(&self) {
        // SAFETY: the range was readable and writable when the copy was made, and a stack is never unmapped.
        unsafe {
            ptr::copy_nonoverlapping(
                self.stack_content.as_ptr(),
                self.stack.start as *mut u8,
                self.stack.len(),
            );
        }
    }

    /// Clears the stack below what is copied back, where calls of the request have left their variables; `bottom` is
    /// the first address of its mapping. Far below there are no pages after this, and none without a fault.
    ///
    /// # Safety
    /// No thread runs on it.
    pub(super) unsafe fn clear_stack(&self, bottom: usize, has_faulted: bool) {
        let near = self.stack.start.saturating_sub(STACK_CLEARED_BYTES) & !(PAGE_BYTES - 1);
        let near = near.max(bottom);
        // SAFETY: the range belongs to the stack, and nothing below its pointer is in use.
        unsafe {
            ptr::write_bytes(near as *mut u8, 0, self.stack.start - near);
            if has_faulted {
                libc::madvise(bottom as *mut _, near - bottom, libc::MADV_DONTNEED);
            }
        }
    }

    /// Maps a region again that was unmapped or changed.
    ///
    /// # Safety
    /// As [`Self::restore`].
    pub(super) unsafe fn map_again(&self, region: &Region) -> io::Result<()> {
        let offset = region.offset.ok_or(Errno::NXIO)?;
        // SAFETY: the caller's contract.
        unsafe {
            map(region, &self.file, offset)?;
            self.restore_own(std::slice::from_ref(&region.addresses));
        }
        Ok(())
    }

    /// The first address whose content is not the snapshot's, other than in `variables`, which are in order.
    pub(super) fn first_difference(&self, variables: &[Range<usize>]) -> Option<usize> {
        let pages =
            self.regions.iter().flat_map(|region| region.addresses.clone().step_by(PAGE_BYTES));
        pages.into_iter().find_map(|page| {
            let parts = mappings::without(&(page..page + PAGE_BYTES), variables);
            parts.into_iter().find_map(|part| self.difference_in(page, &part))
        })
    }

    fn difference_in(&self, page: usize, part: &Range<usize>) -> Option<usize> {
        let source = self.source(page)??.wrapping_add(part.start - page);
        // SAFETY: both are mapped with this length; this thread, the only one, does not write to them.
        let (now, then) = unsafe {
            (
                std::slice::from_raw_parts(part.start as *const u8, part.len()),
                std::slice::from_raw_parts(source, part.len()),
            )
        };
        if now == then {
            return None;
        }
        now.iter().zip(then).position(|(one, other)| one != other).map(|at| part.start + at)
    }
}

/// What belongs to a snapshot of this process.
fn choose(all: &[Mapping]) -> io::Result<Vec<Region>> {
    let mut kept = kept_memory::regions();
    kept.sort_by_key(|region| region.start);
    let mut regions = Vec::new();
    let mut offset = 0;
    for mapping in all.iter().filter(|mapping| is_snapshotted(mapping)) {
        for addresses in mappings::without(&mapping.addresses, &kept) {
            let bytes = addresses.len();
            regions.push(Region {
                addresses,
                protection: mapping.protection,
                offset: Some(offset),
            });
            offset += bytes;
        }
    }
    if offset > BYTES_MAX {
        return Err(io::Error::new(
            ErrorKind::Unsupported,
            "the process has reserved too much memory",
        ));
    }
    Ok(regions)
}

fn is_snapshotted(mapping: &Mapping) -> bool {
    mapping.is_private
        && mapping.is_writable()
        && mapping.protection & libc::PROT_READ != 0
        && mapping.name == Name::Other
}

/// Writes the region to the file at `offset`, without pages of zeros, which it has already.
///
/// # Safety
/// The region is readable, and nothing writes to it.
unsafe fn copy(region: &Region, file: &OwnedFd, offset: usize) -> io::Result<()> {
    // SAFETY: the caller's contract.
    let content = unsafe {
        std::slice::from_raw_parts(region.addresses.start as *const u8, region.addresses.len())
    };
    for (at, page) in content.chunks(PAGE_BYTES).enumerate() {
        if page.iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut offset = offset + at * PAGE_BYTES;
        let mut rest = page;
        while !rest.is_empty() {
            match rustix::io::pwrite(file, rest, offset as u64) {
                Ok(written) => {
                    rest = &rest[written..];
                    offset += written;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Maps the file's copy of a region in its place.
///
/// # Safety
/// Its users expect what the file has there.
unsafe fn map(region: &Region, file: &OwnedFd, offset: usize) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
    let Range { start, end } = region.addresses;
    // Not by the C library's name, which notes what requests do (sapi/process/mapping_changes.c), in memory that
    // may not be copied yet.
    // SAFETY: the caller's contract; the file is large enough.
    let mapped = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            start,
            end - start,
            region.protection,
            flags,
            file.as_raw_fd(),
            offset,
        )
    };
    if mapped == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Private, because a sealed file cannot be mapped otherwise before Linux 6.7.
fn map_content(file: &OwnedFd, bytes: usize) -> io::Result<*const u8> {
    // SAFETY: a new mapping, which replaces none.
    let content = unsafe {
        libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if content == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(content.cast()) }
}
