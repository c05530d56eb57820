//! [`Descriptor`]: a descriptor of the start, which a request may close, replace, read from or set otherwise.
//!
//! Recorded and put back by the process's state. Invariant: afterwards its number is of the same file, with the
//! same flags, at the same position.

use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, fstat, seek};
use rustix::io::{DupFlags, FdFlags, dup3, fcntl_dupfd_cloexec, fcntl_getfd};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Numbers of descriptors between those of the start are filled, so that a new one has a higher number. With
/// more than this, the process is not rewound.
const DESCRIPTORS_MAX: RawFd = 1024;

/// A descriptor of the start.
#[derive(Debug)]
pub(super) struct Descriptor {
    number: RawFd,
    /// Another one of the same file, in case that the request closes the first.
    copy: OwnedFd,
    is_closed_by_exec: bool,
    device: u64,
    inode: u64,
    /// Such as whether it blocks; the program shares them with all who have the file open by this descriptor.
    flags: OFlags,
    /// Of a regular file or a directory.
    position: Option<u64>,
}

impl Descriptor {
    pub(super) fn of(number: RawFd) -> Option<Self> {
        // SAFETY: the kernel refuses a closed descriptor; the process has one thread.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let status = fstat(borrowed).ok()?;
        let kind = FileType::from_raw_mode(status.st_mode);
        let has_position = matches!(kind, FileType::RegularFile | FileType::Directory);
        let position = if has_position { seek(borrowed, SeekFrom::Current(0)).ok() } else { None };
        Some(Self {
            number,
            copy: fcntl_dupfd_cloexec(borrowed, 3).ok()?,
            is_closed_by_exec: fcntl_getfd(borrowed).ok()?.contains(FdFlags::CLOEXEC),
            device: status.st_dev,
            inode: status.st_ino,
            flags: fcntl_getfl(borrowed).ok()?,
            position,
        })
    }

    /// Has the number name its file again, at its position.
    pub(super) fn restore(&self) -> rustix::io::Result<()> {
        // SAFETY: as above.
        let borrowed = unsafe { BorrowedFd::borrow_raw(self.number) };
        let is_same =
            fstat(borrowed).is_ok_and(|now| (now.st_dev, now.st_ino) == (self.device, self.inode));
        if !is_same {
            let flags = if self.is_closed_by_exec { DupFlags::CLOEXEC } else { DupFlags::empty() };
            // SAFETY: what the number names now belongs to the request; it is not closed here a second time.
            let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(self.number) });
            dup3(&self.copy, &mut target, flags)?;
        }
        if fcntl_getfl(borrowed)? != self.flags {
            fcntl_setfl(borrowed, self.flags)?;
        }
        if let Some(position) = self.position {
            // It has had this position before.
            let _ = seek(borrowed, SeekFrom::Start(position));
        }
        Ok(())
    }
}

/// The numbers of all open descriptors.
pub(crate) fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let listing = fs::read_dir("/proc/self/fd")?;
    let numbers = listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<RawFd> = numbers.filter(|number| *number < DESCRIPTORS_MAX).collect();
    // The listing's own is closed by now.
    // SAFETY: the kernel refuses a closed descriptor.
    let is_open = |number: &RawFd| fcntl_getfd(unsafe { BorrowedFd::borrow_raw(*number) }).is_ok();
    Ok(numbers.into_iter().filter(is_open).collect())
}

/// Opens something for each unused number below the highest.
pub(super) fn fill_gaps() -> io::Result<()> {
    let highest = open_descriptors()?.into_iter().max().unwrap_or(2);
    loop {
        let filler = File::open("/dev/null")?;
        if filler.as_raw_fd() > highest {
            return Ok(());
        }
        // Open for as long as the process lives.
        std::mem::forget(filler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn the_open_descriptors_are_listed() {
        let file = tempfile();
        assert!(open_descriptors().unwrap().contains(&file.as_raw_fd()));
    }

    #[test]
    fn a_descriptor_that_was_closed_or_replaced_is_put_back() {
        let mut file = tempfile();
        file.write_all(b"0123456789").unwrap();
        file.seek(std::io::SeekFrom::Start(4)).unwrap();
        let number = file.as_raw_fd();
        let known = Descriptor::of(number).unwrap();
        let position = || seek(&known.copy, SeekFrom::Current(0)).unwrap();
        known.restore().unwrap();
        assert_eq!(position(), 4);

        file.seek(std::io::SeekFrom::Start(9)).unwrap();
        let mut number_of_other = ManuallyDrop::new(OwnedFd::from(file));
        dup3(File::open("/dev/zero").unwrap(), &mut number_of_other, DupFlags::CLOEXEC).unwrap();
        known.restore().unwrap();
        let mut again = File::from(ManuallyDrop::into_inner(number_of_other));
        let mut rest = String::new();
        again.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "456789");
    }

    fn tempfile() -> File {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
    }
}
