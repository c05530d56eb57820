//! [`Content`]: the bytes of a file, in memory or by its descriptor.
//!
//! Read by [`crate::opened`] for the file and its pre-compressed siblings. Invariant: bytes in memory are
//! those of one version of the file.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::refusal::{ForbiddenReason, Refusal, errno_of};
use crate::resolve::{READ, Resolver};
use crate::source::SourceNames;
use crate::stamp::Stamp;

/// How often a small file is read again if it changes during the read.
const READS_MAX: u32 = 3;

/// The bytes of a representation.
#[derive(Debug, Clone)]
pub enum Content {
    /// A small body in memory.
    Memory(Rc<[u8]>),
    /// A larger body, for sendfile(2) with an explicit offset. A file that is truncated in place ends
    /// early; the connection must then be closed.
    File(Rc<OwnedFd>),
}

/// The bytes before they are shared: another thread may have read them.
#[derive(Debug)]
pub(crate) enum Bytes {
    Memory(Vec<u8>),
    File(OwnedFd),
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        match bytes {
            Bytes::Memory(bytes) => Self::Memory(bytes.into()),
            Bytes::File(file) => Self::File(Rc::new(file)),
        }
    }
}

/// Opens a regular file, and reads it if it is small.
pub(crate) fn read(
    resolver: &Resolver,
    relative: &[u8],
    names: &SourceNames,
    small_file_bytes: u64,
) -> Result<(Bytes, Stamp), Refusal> {
    let file = File::from(resolver.open(relative, READ)?);
    if !names.is_empty() && is_php_by_its_own_name(&file, names) {
        return Err(Refusal::Forbidden(ForbiddenReason::PhpSource));
    }
    for _ in 0..READS_MAX {
        let stamp = stamp_of(&file, resolver)?;
        if stamp.size > small_file_bytes {
            return Ok((large(file), stamp));
        }
        let mut bytes = vec![0; usize::try_from(stamp.size).map_err(|_| Errno::NOMEM)?];
        let is_whole = match resolver.may_wait {
            true => fill(&file, &mut bytes)?,
            false => fill_from_memory(&file, &mut bytes)?,
        };
        if is_whole && stamp_of(&file, resolver)? == stamp {
            return Ok((Bytes::Memory(bytes), stamp));
        }
    }
    // The file is being written. It is sent as it is at the time of sending.
    let stamp = stamp_of(&file, resolver)?;
    Ok((large(file), stamp))
}

/// Reads from the start of the file; false if it became shorter.
fn fill(file: &File, bytes: &mut [u8]) -> Result<bool, Refusal> {
    match file.read_exact_at(bytes, 0) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(errno_of(&error).into()),
    }
}

/// The same without waiting. A file system that cannot tell may wait.
fn fill_from_memory(file: &File, bytes: &mut [u8]) -> Result<bool, Refusal> {
    let wanted = bytes.len();
    match preadv2(file, &mut [IoSliceMut::new(bytes)], 0, ReadWriteFlags::NOWAIT) {
        Ok(count) if count == wanted => Ok(true),
        // It became shorter, or the rest is not in memory.
        Ok(_) => Err(Refusal::NotInMemory),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Err(Refusal::NotInMemory),
        Err(error) => Err(error.into()),
    }
}

/// A file that is sent from its descriptor, part by part. Each part is read whole by a thread if it is not
/// in memory. Reading ahead in addition would take the event loop tens of milliseconds, since it may
/// be set to many megabytes (`read_ahead_kb` of the disk).
fn large(file: File) -> Bytes {
    // The first read would mark a page for reading ahead. The process that touches that page reads ahead
    // and marks another, regardless of the advice by then (page_cache_async_ra).
    // A failure costs speed only.
    let _ = fadvise(&file, 0, None, Advice::Random);
    let probe = preadv2(&file, &mut [IoSliceMut::new(&mut [0])], 0, ReadWriteFlags::NOWAIT);
    if probe == Err(Errno::OPNOTSUPP) {
        // Nobody can tell what is in memory, so the loop itself reads, and reading ahead helps it.
        let _ = fadvise(&file, 0, None, Advice::Normal);
    }
    Bytes::File(file.into())
}

/// Whether the file's real name is a PHP name, which a link may hide. Without /proc only the requested
/// name is known.
fn is_php_by_its_own_name(file: &File, names: &SourceNames) -> bool {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(link).ok();
    let name = path.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| names.is_php(name.as_bytes()))
}

fn stamp_of(file: &File, resolver: &Resolver) -> Result<Stamp, Refusal> {
    let stat = rustix::fs::fstat(file)?;
    if resolver.users.is_foreign(&stat) {
        return Err(Refusal::Forbidden(ForbiddenReason::OtherApp));
    }
    Stamp::of_file(&stat).ok_or(Refusal::Forbidden(ForbiddenReason::NotRegular))
}
