//! The pages of a file that is sent: whether they are in memory, and the read that brings them there.
//!
//! Called by [`crate::response_writer`] before each part of a file. Invariant: `sendfile(2)` and
//! `pread(2)` on the event loop find the pages in memory, so that a slow disk delays the clients of its
//! files alone.

use outboard_reactor::on_disk_thread;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, ReadWriteFlags, fcntl_dupfd_cloexec, pread, preadv2};
use std::io::IoSliceMut;

/// The bytes that are loaded at once.
pub(crate) const PART_BYTES: u64 = 512 << 10;
/// On a slow disk the first pages may have been reclaimed when the last ones arrive.
const LOADS_MAX: usize = 8;
/// Memory is reclaimed by larger pieces than pages, so that one look suffices for so many bytes.
const BYTES_PER_LOOK: u64 = 128 << 10;

/// Waits until the pages of a part of a file are in memory. A failure to read is reported by the
/// system call that sends them.
pub(crate) async fn load(file: BorrowedFd<'_>, offset: u64, len: u64) {
    for _ in 0..LOADS_MAX {
        if are_in_memory(file, offset, len) {
            return;
        }
        // Without another descriptor the loop reads the pages itself.
        let Ok(file) = fcntl_dupfd_cloexec(file, 0) else { return };
        let is_read = on_disk_thread(move || {
            let mut buffer = vec![0; PART_BYTES as usize];
            let (mut offset, end) = (offset, offset + len);
            while offset < end {
                match pread(&file, &mut buffer[..], offset) {
                    Ok(0) => return false,
                    Ok(count) => offset += count as u64,
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
            true
        });
        if !is_read.await {
            return;
        }
    }
}

/// A look at a page that is missing reads that page alone, so that several looks are needed when two
/// clients ask for the same part.
fn are_in_memory(file: BorrowedFd<'_>, offset: u64, len: u64) -> bool {
    let last = offset + len.saturating_sub(1);
    let mut looks = (offset..last).step_by(BYTES_PER_LOOK as usize);
    looks.all(|at| is_in_memory(file, at)) && is_in_memory(file, last)
}

/// Whether a byte can be read without a wait. True beyond the end, and on file systems that cannot
/// tell.
fn is_in_memory(file: BorrowedFd<'_>, at: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT);
    read != Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, open};

    /// A file of three parts that is on the disk and not in memory, where the disk allows that.
    fn cold_file() -> OwnedFd {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(std::env::temp_dir(), flags, Mode::RUSR).unwrap();
        rustix::io::pwrite(&file, &vec![b'x'; 3 * PART_BYTES as usize], 0).unwrap();
        fsync(&file).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        file
    }

    #[test]
    fn a_part_is_in_memory_once_it_is_loaded() {
        run(async {
            let file = cold_file();
            load(file.as_fd(), PART_BYTES, PART_BYTES).await;
            assert!(are_in_memory(file.as_fd(), PART_BYTES, PART_BYTES));
        })
        .unwrap();
    }

    #[test]
    fn a_part_beyond_the_end_is_not_waited_for() {
        run(async {
            let file = cold_file();
            assert!(are_in_memory(file.as_fd(), 3 * PART_BYTES, PART_BYTES));
            load(file.as_fd(), u64::from(u32::MAX), PART_BYTES).await;
        })
        .unwrap();
    }
}
