//! [`Tree`]: an open directory, below which paths are opened.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use outboard_trusted_path::{self as trusted_path, Users};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// openat2(2) returns EAGAIN when a rename races with a `..`; more often, it is an attack.
const RACES_MAX: u32 = 16;

/// Identifies a file without permission to read it and without waking a FIFO or a device.
pub(crate) const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// An open directory with its real path.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) fd: OwnedFd,
    pub(crate) path: Arc<Path>,
}

impl Tree {
    /// Opens a directory that the operator named; follows links that no PHP user can have made.
    pub(crate) fn open(path: &Path, users: &Users) -> Result<Self, trusted_path::Refusal> {
        let trusted_path::Opened { fd, path, .. } = trusted_path::open(path, users)?;
        let fd = rustix::fs::openat(fd, ".", HANDLE | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { fd, path: path.into() })
    }

    pub(super) fn open_beneath(
        &self,
        relative: &[u8],
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd, Errno> {
        let relative = if relative.is_empty() { b"." } else { relative };
        let most_races = if resolve.contains(ResolveFlags::CACHED) { 0 } else { RACES_MAX };
        let mut races = 0;
        loop {
            match rustix::fs::openat2(&self.fd, relative, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if races < most_races => races += 1,
                Err(Errno::INTR) if races < RACES_MAX => races += 1,
                result => return result,
            }
        }
    }
}
