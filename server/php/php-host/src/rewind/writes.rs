//! [`Writes`]: which pages of a snapshot this process has written to.
//!
//! Created in each worker, asked after each request. Two ways, by what the kernel permits:
//!
//! * `userfaultfd` with asynchronous write protection and `PAGEMAP_SCAN` (Linux 6.7, ioctl_pagemap_scan(2)):
//!   the kernel notes the first write to a protected page, for about 0.7 µs, and lists such pages without
//!   looking at any other.
//! * The page map (proc_pid_pagemap(5)): a page that was written to is no longer one of the snapshot's file.
//!   It needs no permission, and reads one entry for each page that is in use.
//!
//! Invariant: every page that differs from the snapshot is reported; one that does not may be reported too.
//! A page stays reported until [`Writes::forget`], so the pages that every request writes cost no fault.

use super::snapshot::{PAGE_BYTES, Region};
use crate::process;
use outboard_ring::control::WritesBy;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The variable that has the page map used, for tests.
const BY_PAGE_MAP: &str = "OUTBOARD_REWIND_BY_PAGE_MAP";

/// How the kernel tells.
#[derive(Debug)]
enum Way {
    /// The protection lasts for as long as the descriptor.
    WriteProtection(OwnedFd),
    PageMap,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Writes {
    way: Way,
    page_map: PageMap,
    found: Vec<Range<usize>>,
    /// What a scan returns.
    buffer: Vec<PageRegion>,
}

/// The page map of this process.
#[derive(Debug)]
pub(super) struct PageMap {
    file: File,
    /// What one reading returns.
    entries: Vec<u64>,
}

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const PM_SCAN_WP_MATCHING: u64 = 1;
const PAGE_IS_WPALLOWED: u64 = 1;
const PAGE_IS_WRITTEN: u64 = 2;

/// Of linux/userfaultfd.h.
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFD_USER_MODE_ONLY: i32 = 1;
const UFFDIO_REGISTER_MODE_WP: u64 = 2;
/// `_IOWR(0xaa, 0x3f, struct uffdio_api)` and `_IOWR(0xaa, 0x00, struct uffdio_register)`.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;

#[repr(C)]
struct ApiArguments {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct RegisterArguments {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// Bits of an entry of the page map.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
/// Not written to since it was protected; also of a page that is not in use.
const PROTECTED: u64 = 1 << 57;

/// Entries of one reading, and ranges of one scan.
const BATCH: usize = 4096;

impl Writes {
    /// How writes will be found in this process and its forks.
    pub(super) fn probe() -> io::Result<WritesBy> {
        let page = Page::map()?;
        let regions = [page.region()];
        let mut writes = Self::watch(&regions, &regions[0].addresses)?;
        page.write();
        writes.find(&regions, &regions[0].addresses)?;
        if writes.found != [regions[0].addresses.clone()] {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel does not tell what was written",
            ));
        }
        Ok(match writes.way {
            Way::WriteProtection(_) => WritesBy::WriteProtection,
            Way::PageMap => WritesBy::PageMap,
        })
    }

    /// Notes writes to these regions from now on. The pages that the process has copies of already are found.
    pub(super) fn watch(regions: &[Region], span: &Range<usize>) -> io::Result<Self> {
        let mut writes = Self {
            way: Way::PageMap,
            page_map: PageMap::open()?,
            found: Vec::new(),
            buffer: vec![PageRegion::default(); BATCH],
        };
        // Before they are protected: then the page map has an entry for each page, in use or not.
        writes.read_all(regions)?;
        if std::env::var_os(BY_PAGE_MAP).is_none()
            && let Ok(descriptor) = protect(regions)
        {
            writes.way = Way::WriteProtection(descriptor);
            // Linux before 6.7 has no such scan.
            if writes.protect_all(span).is_err() {
                writes.way = Way::PageMap;
            }
        }
        Ok(writes)
    }

    /// Watches a region that was mapped again, or since.
    pub(super) fn watch_again(&mut self, region: &Region) -> io::Result<()> {
        if let Way::WriteProtection(descriptor) = &self.way {
            register(descriptor, region)?;
        }
        Ok(())
    }

    /// Whether [`Writes::forget`] suffices to have pages no longer reported. Otherwise their copies must be
    /// dropped.
    pub(super) fn is_protecting(&self) -> bool {
        matches!(self.way, Way::WriteProtection(_))
    }

    /// The written pages of the regions, all of which lie in `span`, in order. Some ranges reach beyond the
    /// regions.
    pub(super) fn find(&mut self, regions: &[Region], span: &Range<usize>) -> io::Result<()> {
        self.found.clear();
        match self.way {
            Way::WriteProtection(_) => self.scan(span, 0)?,
            Way::PageMap => self.read_all(regions)?,
        }
        Ok(())
    }

    /// What was found last.
    pub(super) fn found(&self) -> &[Range<usize>] {
        &self.found
    }

    /// Finds the same by the page map, whichever way it is otherwise; native code may have ended that.
    pub(super) fn read_all(&mut self, regions: &[Region]) -> io::Result<()> {
        self.found.clear();
        for region in regions {
            for page in self.page_map.copies(&region.addresses)? {
                push(&mut self.found, page..page + PAGE_BYTES);
            }
        }
        Ok(())
    }

    /// Reports no page any more that is not written to again.
    pub(super) fn forget(&mut self, span: &Range<usize>) -> io::Result<()> {
        self.found.clear();
        if self.is_protecting() { self.scan(span, PM_SCAN_WP_MATCHING) } else { Ok(()) }
    }

    /// Protects pages that are not in use yet as well: a first look at one is no write.
    fn protect_all(&mut self, span: &Range<usize>) -> io::Result<()> {
        let mut arguments = ScanArguments {
            size: size_of::<ScanArguments>() as u64,
            flags: PM_SCAN_WP_MATCHING,
            start: span.start as u64,
            end: span.end as u64,
            category_mask: PAGE_IS_WPALLOWED,
            ..ScanArguments::default()
        };
        // SAFETY: the kernel writes to `arguments` alone, since there is no place for ranges.
        match unsafe {
            libc::ioctl(self.page_map.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut arguments)
        } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn scan(&mut self, span: &Range<usize>, flags: u64) -> io::Result<()> {
        let mut at = span.start as u64;
        while at < span.end as u64 {
            let mut arguments = ScanArguments {
                size: size_of::<ScanArguments>() as u64,
                flags,
                start: at,
                end: span.end as u64,
                vec: self.buffer.as_mut_ptr().addr() as u64,
                vec_len: self.buffer.len() as u64,
                category_mask: PAGE_IS_WPALLOWED | PAGE_IS_WRITTEN,
                return_mask: PAGE_IS_WRITTEN,
                ..ScanArguments::default()
            };
            // SAFETY: the kernel writes at most `vec_len` elements to `buffer`, and to `arguments`.
            let count = unsafe {
                libc::ioctl(self.page_map.file.as_raw_fd(), PAGEMAP_SCAN, &raw mut arguments)
            };
            let Ok(count) = usize::try_from(count) else {
                return Err(io::Error::last_os_error());
            };
            let ranges = self.buffer[..count.min(self.buffer.len())].iter();
            self.found.extend(ranges.map(|range| range.start as usize..range.end as usize));
            if arguments.walk_end <= at {
                return Err(Errno::INVAL.into());
            }
            at = arguments.walk_end;
        }
        Ok(())
    }
}

impl PageMap {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { file: process::open_of_self("/proc/self/pagemap")?, entries: vec![0; BATCH] })
    }

    /// The pages of the range that this process has copies of, those aside that are known to be unwritten.
    pub(super) fn copies(&mut self, addresses: &Range<usize>) -> io::Result<Vec<usize>> {
        let entries = &mut self.entries;
        let mut copies = Vec::new();
        let mut at = addresses.start;
        while at < addresses.end {
            let wanted = ((addresses.end - at) / PAGE_BYTES).min(entries.len());
            let offset = (at / PAGE_BYTES * size_of::<u64>()) as u64;
            let buffer = &mut entries[..wanted];
            // SAFETY: a buffer of integers is one of bytes, for which every content is valid.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(
                    buffer.as_mut_ptr().cast::<u8>(),
                    size_of_val(buffer),
                )
            };
            let got = rustix::io::pread(&self.file, bytes, offset)? / size_of::<u64>();
            if got == 0 {
                return Err(Errno::NODATA.into());
            }
            for entry in &entries[..got] {
                // A page in swap space is a copy, since those of the file are shared memory (bit 61).
                if entry & (PRESENT | SWAPPED) != 0 && entry & (OF_FILE | PROTECTED) == 0 {
                    copies.push(at);
                }
                at += PAGE_BYTES;
            }
        }
        Ok(copies)
    }
}

/// A page of a file, mapped as a snapshot's is.
struct Page(*mut u8);

impl Page {
    fn map() -> io::Result<Self> {
        let file = memfd_create(c"outboard probe", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, PAGE_BYTES as u64)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: a new mapping, which replaces none.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE_BYTES, protection, flags, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self(memory.cast()))
        }
    }

    fn region(&self) -> Region {
        let start = self.0.addr();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Region { addresses: start..start + PAGE_BYTES, protection, offset: Some(0) }
    }

    fn write(&self) {
        // SAFETY: mapped and writable.
        unsafe { self.0.write_volatile(1) };
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and used by nothing else.
        unsafe { libc::munmap(self.0.cast(), PAGE_BYTES) };
    }
}

/// Adds a page, to the last range if it follows that.
fn push(found: &mut Vec<Range<usize>>, page: Range<usize>) {
    match found.last_mut() {
        Some(last) if last.end == page.start => last.end = page.end,
        _ => found.push(page),
    }
}

/// Has writes to the regions noted, without a handler in this process.
fn protect(regions: &[Region]) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_userfaultfd,
            libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor without another owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
    let mut api = ApiArguments {
        api: UFFD_API,
        features: UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
        ioctls: 0,
    };
    // SAFETY: the kernel reads and writes the structure, which has its layout.
    if unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_API, &raw mut api) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for region in regions {
        register(&descriptor, region)?;
    }
    Ok(descriptor)
}

fn register(descriptor: &OwnedFd, region: &Region) -> io::Result<()> {
    let mut arguments = RegisterArguments {
        start: region.addresses.start as u64,
        len: region.addresses.len() as u64,
        mode: UFFDIO_REGISTER_MODE_WP,
        ioctls: 0,
    };
    // SAFETY: the kernel reads and writes the structure, which has its layout. Protected memory stays readable
    // and writable, since the kernel resolves the faults itself.
    match unsafe { libc::ioctl(descriptor.as_raw_fd(), UFFDIO_REGISTER, &raw mut arguments) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<ScanArguments>(), 96);
        assert_eq!(size_of::<PageRegion>(), 24);
        assert_eq!(size_of::<ApiArguments>(), 24);
        assert_eq!(size_of::<RegisterArguments>(), 32);
    }

    #[test]
    fn both_ways_find_what_was_written() {
        for is_protecting in [true, false] {
            let page = Page::map().unwrap();
            let (region, other) = (page.region(), Page::map().unwrap());
            let span = region.addresses.clone();
            let regions = [region];
            let mut writes = Writes::watch(&regions, &span).unwrap();
            if !is_protecting {
                writes.way = Way::PageMap;
            }
            // SAFETY: mapped; reading is no write.
            unsafe { page.0.read_volatile() };
            other.write();
            writes.find(&regions, &span).unwrap();
            assert!(writes.found().is_empty());
            for _ in 0..2 {
                page.write();
                writes.find(&regions, &span).unwrap();
                assert_eq!(writes.found(), slice::from_ref(&span));
            }
            if writes.is_protecting() {
                writes.forget(&span).unwrap();
                writes.find(&regions, &span).unwrap();
                assert!(writes.found().is_empty());
                page.write();
                writes.find(&regions, &span).unwrap();
                assert_eq!(writes.found(), slice::from_ref(&span));
            }
        }
    }

    #[test]
    fn pages_in_a_row_are_one_range() {
        let mut found = Vec::new();
        for page in [0..1, 1..2, 5..6] {
            push(&mut found, page);
        }
        assert_eq!(found, [0..2, 5..6]);
    }
}
