//! [`Mapping`]: what a process has at a range of its addresses, as proc_pid_maps(5) lists it.
//!
//! Used by the snapshot, which copies what is private and writable, and by the check of the address space.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;

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
        let name = match columns.next() {
            Some("[stack]") => Name::Stack,
            Some(special) if special.starts_with("[v") => Name::Kernel,
            _ => Name::Other,
        };
        let is_private = flags.get(3) == Some(&b'p');
        Some(Self { addresses, protection, is_private, inode, offset, name })
    }
}

/// The mappings of this process, in the order of their addresses.
pub(super) fn read() -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string("/proc/self/maps")?;
    parse(&text).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a line of /proc/self/maps"))
}

fn parse(text: &str) -> Option<Vec<Mapping>> {
    text.lines().map(Mapping::parse).collect()
}

/// What of `range` is in none of `others`, which are in order and do not overlap.
pub(super) fn without(range: &Range<usize>, others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut rest = Vec::new();
    let mut at = range.start;
    for other in others {
        if other.end <= at || other.start >= range.end {
            continue;
        }
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
