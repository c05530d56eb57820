//! [`Mapping`]: what a process has at a range of its addresses, as proc_pid_maps(5) lists it.
//!
//! Used by the snapshot, which copies what is private and writable, and by the check of the address space. The
//! kernel is asked for one mapping after the other (`PROCMAP_QUERY`, since Linux 6.11), which takes a fifth of
//! the time that the text takes: most of that is the names of files, which nobody needs here.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;

/// One line of `/proc/self/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) addresses: Range<usize>,
    /// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC` of mmap(2).
    pub(super) protection: i32,
    pub(super) is_private: bool,
    /// Of the file; 0 without one.
    inode: u64,
    /// Where the first address is in the file, in bytes.
    offset: usize,
    pub(super) name: Name,
}

/// What the last column says of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// The stack of the first thread, which the kernel extends.
    Stack,
    /// `[vvar]`, `[vdso]` and others that belong to the kernel.
    Kernel,
    /// A file, the heap of brk(2), memory without a name.
    Other,
}

impl Mapping {
    pub(super) fn is_writable(&self) -> bool {
        self.protection & libc::PROT_WRITE != 0
    }

    /// Whether nobody may use the addresses, so that there is nothing to put back but that.
    pub(super) fn is_reserved(&self) -> bool {
        self.protection == libc::PROT_NONE && self.is_private && self.inode == 0
    }

    /// Whether both have the same memory at the addresses that they share.
    pub(super) fn is_same_memory(&self, other: &Self) -> bool {
        let place = |mapping: &Self| mapping.addresses.start.wrapping_sub(mapping.offset);
        self.protection == other.protection
            && self.is_private == other.is_private
            && self.inode == other.inode
            && (self.inode == 0 || place(self) == place(other))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut columns = line.split_ascii_whitespace();
        let (start, end) = columns.next()?.split_once('-')?;
        let addresses =
            usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let flags = columns.next()?.as_bytes();
        let has = |at: usize, letter: u8, flag: i32| {
            if flags.get(at) == Some(&letter) { flag } else { 0 }
        };
        let protection = has(0, b'r', libc::PROT_READ)
            | has(1, b'w', libc::PROT_WRITE)
            | has(2, b'x', libc::PROT_EXEC);
        let offset = usize::from_str_radix(columns.next()?, 16).ok()?;
        let inode = columns.nth(1)?.parse().ok()?;
        let name = Name::of(columns.next().unwrap_or_default().as_bytes());
        let is_private = flags.get(3) == Some(&b'p');
        Some(Self { addresses, protection, is_private, inode, offset, name })
    }
}

/// The mappings of this process, in the order of their addresses.
pub(super) fn read() -> io::Result<Vec<Mapping>> {
    let mut maps = File::open("/proc/self/maps")?;
    if let Ok(found) = query_all(&maps) {
        return Ok(found);
    }
    let mut text = String::new();
    io::Read::read_to_string(&mut maps, &mut text)?;
    parse(&text).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a line of /proc/self/maps"))
}

/// `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: libc::c_ulong = 0xc068_6611;
/// The mapping of an address, or the next one.
const COVERING_OR_NEXT: u64 = 0x10;
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const SHARED: u64 = 8;

/// Longer than `[vvar_vclock]` and such; the longest name that anonymous memory can be given has 80 bytes.
const NAME_BYTES: usize = 128;

fn query_all(maps: &File) -> io::Result<Vec<Mapping>> {
    let mut found = Vec::with_capacity(1024);
    let mut address = 0;
    loop {
        let mut query = Query { address, flags: COVERING_OR_NEXT, ..Query::default() };
        match ask(maps, &mut query) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(found),
            Err(error) => return Err(error),
        }
        // Only those without a file can have a name that matters.
        let name = if query.inode == 0 { name_at(maps, query.start)? } else { Name::Other };
        found.push(query.mapping(name));
        address = query.end;
    }
}

fn ask(maps: &File, query: &mut Query) -> io::Result<()> {
    query.size = size_of::<Query>() as u64;
    // SAFETY: the kernel reads and writes the structure, which has its layout, and at most `name_size` bytes at
    // `name`.
    match unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY, &raw mut *query) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn name_at(maps: &File, address: u64) -> io::Result<Name> {
    let mut name = [0_u8; NAME_BYTES];
    let mut query = Query {
        address,
        name: name.as_mut_ptr().addr() as u64,
        name_size: NAME_BYTES as u32,
        ..Query::default()
    };
    ask(maps, &mut query)?;
    let len = (query.name_size as usize).saturating_sub(1).min(NAME_BYTES);
    Ok(Name::of(&name[..len]))
}

impl Query {
    fn mapping(&self, name: Name) -> Mapping {
        let has = |bit: u64, flag: i32| if self.vma_flags & bit == 0 { 0 } else { flag };
        Mapping {
            addresses: self.start as usize..self.end as usize,
            protection: has(READABLE, libc::PROT_READ)
                | has(WRITABLE, libc::PROT_WRITE)
                | has(EXECUTABLE, libc::PROT_EXEC),
            is_private: self.vma_flags & SHARED == 0,
            inode: self.inode,
            offset: self.offset as usize,
            name,
        }
    }
}

impl Name {
    fn of(name: &[u8]) -> Self {
        match name {
            b"[stack]" => Self::Stack,
            special if special.starts_with(b"[v") => Self::Kernel,
            _ => Self::Other,
        }
    }
}

fn parse(text: &str) -> Option<Vec<Mapping>> {
    text.lines().map(Mapping::parse).collect()
}

/// Those of the mappings, which are in order, that share addresses with this range.
pub(super) fn within<'a>(
    mappings: &'a [Mapping],
    range: &Range<usize>,
) -> impl Iterator<Item = &'a Mapping> {
    let end = range.end;
    let first = mappings.partition_point(|mapping| mapping.addresses.end <= range.start);
    mappings[first..].iter().take_while(move |mapping| mapping.addresses.start < end)
}

/// The same addresses in order, those that follow each other or overlap as one range.
pub(super) fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// What of `range` is in none of `others`, which are in order and do not overlap.
pub(super) fn without(range: &Range<usize>, others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut rest = Vec::new();
    let mut at = range.start;
    let first = others.partition_point(|other| other.end <= at);
    for other in others[first..].iter().take_while(|other| other.start < range.end) {
        if other.start > at {
            rest.push(at..other.start);
        }
        at = other.end;
    }
    if at < range.end {
        rest.push(at..range.end);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let text = "55d0c6a00000-55d0c6a21000 rw-p 00000000 00:00 0                          [heap]\n\
                    7f1c00000000-7f1c08000000 rw-s 00000000 00:01 1034    /dev/zero (deleted)\n\
                    7f1c10000000-7f1c10002000 r-xp 00001000 fe:00 17 /usr/lib/a file.so\n\
                    7ffd7b8a0000-7ffd7b8c1000 rw-p 00000000 00:00 0     [stack]\n\
                    7ffd7b9d0000-7ffd7b9d2000 r-xp 00000000 00:00 0     [vdso]\n";
        let found = parse(text).unwrap();
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(
            found[0],
            Mapping {
                addresses: 0x55d0_c6a0_0000..0x55d0_c6a2_1000,
                protection: read_write,
                is_private: true,
                inode: 0,
                offset: 0,
                name: Name::Other,
            }
        );
        assert_eq!((found[2].inode, found[2].offset), (17, 0x1000));
        assert!(!found[1].is_private && found[1].is_writable());
        assert!(!found[2].is_writable());
        let names: Vec<Name> = found.iter().map(|mapping| mapping.name).collect();
        assert_eq!(names, [Name::Other, Name::Other, Name::Other, Name::Stack, Name::Kernel]);
        assert_eq!(parse("55d0c6a00000 rw-p"), None);
    }

    #[test]
    fn parts_of_one_mapping_are_the_same_memory() {
        let of = |line| Mapping::parse(line).unwrap();
        let whole = of("10000-20000 rw-p 00005000 00:01 7 /memfd:outboard snapshot (deleted)");
        for (line, is_same) in [
            ("11000-12000 rw-p 00006000 00:01 7 /memfd:outboard snapshot (deleted)", true),
            ("11000-12000 rw-p 00007000 00:01 7 /memfd:outboard snapshot (deleted)", false),
            ("11000-12000 r--p 00006000 00:01 7 /memfd:outboard snapshot (deleted)", false),
            ("11000-12000 rw-s 00006000 00:01 7 /memfd:outboard snapshot (deleted)", false),
            ("11000-12000 rw-p 00000000 00:00 0", false),
        ] {
            assert_eq!(whole.is_same_memory(&of(line)), is_same, "{line}");
        }
        assert!(
            of("10000-20000 rw-p 00000000 00:00 0")
                .is_same_memory(&of("12000-13000 rw-p 00000000 00:00 0"))
        );
    }

    #[test]
    fn the_own_mappings_are_in_order() {
        let found = read().unwrap();
        assert!(found.windows(2).all(|pair| pair[0].addresses.end <= pair[1].addresses.start));
        let local = 0;
        let address = std::ptr::from_ref(&local).addr();
        assert!(
            found
                .iter()
                .any(|mapping| mapping.addresses.contains(&address) && mapping.is_writable())
        );
    }

    #[test]
    fn the_kernel_says_the_same_either_way() {
        let maps = File::open("/proc/self/maps").unwrap();
        // Room for what reading the text maps.
        drop(vec![0_u8; 1 << 20]);
        let Ok(asked) = query_all(&maps) else {
            return;
        };
        let listed = parse(&std::fs::read_to_string("/proc/self/maps").unwrap()).unwrap();
        // The page of old system calls is in the list alone; it belongs to no process.
        let known: Vec<&Mapping> = listed
            .iter()
            .filter(|mapping| mapping.name != Name::Kernel || asked.contains(mapping))
            .collect();
        let same = asked.iter().filter(|mapping| known.contains(mapping)).count();
        assert!(asked.len() > 10 && same + 2 >= asked.len(), "{asked:#x?}\n{listed:#x?}");
        assert!(asked.iter().any(|mapping| mapping.name == Name::Stack));
        assert!(asked.iter().any(|mapping| mapping.name == Name::Kernel));
    }

    #[test]
    fn ranges_that_follow_each_other_or_overlap_are_one() {
        assert_eq!(joined(vec![30..40, 0..10, 10..20, 5..8, 32..50]), [0..20, 30..50]);
        assert_eq!(joined(Vec::new()), []);
    }

    #[test]
    fn what_remains_of_a_range() {
        let rest = |others: &[Range<usize>]| {
            let rest = without(&(10..20), others);
            rest.into_iter().map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        assert_eq!(rest(&[]), [(10, 20)]);
        assert_eq!(rest(&[5..12, 14..15, 18..30]), [(12, 14), (15, 18)]);
        assert_eq!(rest(&[0..10, 20..21]), [(10, 20)]);
        let everything = 0..40;
        assert_eq!(rest(std::slice::from_ref(&everything)), []);
    }
}
