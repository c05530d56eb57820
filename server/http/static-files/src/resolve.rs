//! Opens paths below a root under its symbolic link policy. The kernel enforces the policy during the
//! walk (openat2(2)), so there is no race between check and open. Called by [`crate::Root`].
//!
//! Invariant: a resolver that may not wait opens only paths whose directories and file are in the kernel's
//! caches (`RESOLVE_CACHED`), so that the event loop does not wait for a disk.

mod same_owner;
mod tree;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use outboard_trusted_path::{self as trusted_path, Users};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::options::Symlinks;
use crate::refusal::{ForbiddenReason, NotInMemory, Refusal, errno_of};

pub(crate) use tree::{HANDLE, Tree};

/// Reads a regular file; a FIFO or a terminal in its place blocks nothing.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A root and the policy by which links below it are followed. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    pub(crate) root: Arc<Tree>,
    pub(crate) symlinks: Symlinks,
    pub(crate) targets: Arc<[Tree]>,
    pub(crate) users: Arc<Users>,
    pub(crate) may_wait: bool,
    /// Whether a link that leads to another directory now is not followed there.
    pub(crate) is_pinned: bool,
}

impl Resolver {
    /// Opens a path relative to the root. The path must not begin with a slash.
    pub(crate) fn open(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Refusal> {
        debug_assert!(!relative.starts_with(b"/"));
        let resolve = ResolveFlags::NO_MAGICLINKS | self.cached();
        let opened = match self.symlinks {
            Symlinks::InsideRoot => {
                let beneath = resolve | ResolveFlags::BENEATH;
                match self.root.open_beneath(relative, flags, beneath) {
                    Err(Errno::XDEV) if self.may_wait => self.open_by_real_path(relative, flags),
                    // Every component of the real path is read.
                    Err(Errno::XDEV) => Err(Refusal::NotInMemory),
                    result => result.map_err(Refusal::from),
                }
            }
            Symlinks::SameOwner => same_owner::open(&self.root, relative, flags, self.cached()),
            Symlinks::Always => {
                let beneath = resolve | ResolveFlags::BENEATH;
                match self.root.open_beneath(relative, flags, beneath) {
                    Err(Errno::XDEV) if self.may_wait => self.open_anywhere(relative, flags),
                    Err(Errno::XDEV) => Err(Refusal::NotInMemory),
                    result => result.map_err(Refusal::from),
                }
            }
        };
        opened.map_err(|refusal| match refusal {
            Refusal::Failed(Errno::AGAIN) if !self.may_wait => Refusal::NotInMemory,
            refusal => refusal,
        })
    }

    /// Opens a path relative to the root for its identity, and reports its path below the root, with a slash
    /// first, if a link has led to another one there.
    pub(crate) fn open_handle(
        &self,
        relative: &[u8],
    ) -> Result<(OwnedFd, Option<Vec<u8>>), Refusal> {
        let without_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let direct = self.root.open_beneath(relative, HANDLE, without_links | self.cached());
        match direct {
            Err(Errno::AGAIN) if !self.may_wait => Err(Refusal::NotInMemory),
            Err(Errno::LOOP) => {
                let handle = self.open(relative, HANDLE)?;
                let real = self.path_below(&handle)?;
                Ok((handle, real))
            }
            direct => Ok((direct?, None)),
        }
    }

    /// The path of a descriptor below the root; `None` if it is elsewhere.
    fn path_below(&self, handle: &OwnedFd) -> Result<Option<Vec<u8>>, Refusal> {
        let path = |fd: &OwnedFd| {
            let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
            // Without /proc no rule for the real path can be applied.
            std::fs::read_link(link).map_err(|_| Refusal::Forbidden(ForbiddenReason::SymlinkEscape))
        };
        let (root, real) = (path(&self.root.fd)?, path(handle)?);
        let real = real.as_os_str().as_bytes();
        let deleted = b" (deleted)";
        if real.ends_with(deleted) || root.as_os_str().as_bytes().ends_with(deleted) {
            return Err(Refusal::NotFound);
        }
        let root = root.as_os_str().as_bytes();
        let root = root.strip_suffix(b"/").unwrap_or(root);
        Ok(match real.strip_prefix(root) {
            Some(b"") => Some(b"/".to_vec()),
            Some(below) if below.starts_with(b"/") => Some(below.to_vec()),
            _ => None,
        })
    }

    /// The result of stat(2) for a path, following every link; only for comparison with a known stamp.
    pub(crate) fn peek(&self, relative: &[u8]) -> Result<Option<Stat>, NotInMemory> {
        self.stat(&self.root.fd, relative)
    }

    /// The directory that `path` leads to, if that is not the root any more.
    pub(crate) fn moved_root(&self, path: &Path) -> Result<Option<Tree>, NotInMemory> {
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        let current = rustix::fs::fstat(&self.root.fd).ok().map(identity);
        if self.stat(CWD, path.as_os_str().as_bytes())?.map(identity) == current {
            return Ok(None);
        }
        // While there is no directory, the old one remains in use.
        if !self.may_wait {
            return Err(NotInMemory);
        }
        let moved = Tree::open(path, &self.users).ok();
        Ok(moved.filter(|tree| !self.is_pinned || tree.path == self.root.path))
    }

    fn stat(&self, from: impl AsFd, path: &[u8]) -> Result<Option<Stat>, NotInMemory> {
        if self.may_wait {
            return Ok(rustix::fs::statat(from, path, AtFlags::empty()).ok());
        }
        match rustix::fs::openat2(from, path, HANDLE, Mode::empty(), ResolveFlags::CACHED) {
            Ok(handle) => Ok(rustix::fs::fstat(handle).ok()),
            Err(Errno::AGAIN) => Err(NotInMemory),
            Err(_) => Ok(None),
        }
    }

    fn cached(&self) -> ResolveFlags {
        if self.may_wait { ResolveFlags::empty() } else { ResolveFlags::CACHED }
    }

    /// Opens a path whose link left the root, through directories that are not private to another app.
    fn open_anywhere(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Refusal> {
        let written = self.root.path.join(std::ffi::OsStr::from_bytes(relative));
        let handle = trusted_path::open_any(&written, &self.users)?.fd;
        if flags.contains(OFlags::PATH) {
            return Ok(handle);
        }
        let again = format!("/proc/self/fd/{}", handle.as_raw_fd());
        Ok(rustix::fs::open(again, flags, Mode::empty())?)
    }

    /// Opens a path whose link left the root. Its real path may lie in an allowed tree, or in the root
    /// itself if the link is absolute. The real path is only a hint: it is opened beneath that tree and
    /// without any link.
    fn open_by_real_path(&self, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Refusal> {
        let outside = Refusal::Forbidden(ForbiddenReason::SymlinkEscape);
        let written = self.root.path.join(std::ffi::OsStr::from_bytes(relative));
        let real = std::fs::canonicalize(written).map_err(|error| match errno_of(&error) {
            // Do not reveal whether a file exists outside.
            Errno::ACCESS => outside,
            errno => errno.into(),
        })?;
        for tree in std::iter::once(&*self.root).chain(self.targets.iter()) {
            if let Ok(rest) = real.strip_prefix(&tree.path) {
                let resolve =
                    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
                return Ok(tree.open_beneath(rest.as_os_str().as_bytes(), flags, resolve)?);
            }
        }
        Err(outside)
    }
}

/// Checks that the kernel and its system call filters support openat2(2) (Linux 5.6).
pub(crate) fn probe() -> Result<(), Errno> {
    rustix::fs::openat2(CWD, ".", HANDLE, Mode::empty(), ResolveFlags::empty()).map(drop)
}

/// Whether the kernel can report that a path is not in memory (Linux 5.12).
pub(crate) fn knows_what_is_in_memory() -> bool {
    let opened = rustix::fs::openat2(CWD, ".", HANDLE, Mode::empty(), ResolveFlags::CACHED);
    matches!(opened, Ok(_) | Err(Errno::AGAIN))
}
