//! Opens paths below a root under its symbolic link policy. The kernel enforces the policy during the
//! walk (openat2(2)), so there is no race between check and open. Called by [`crate::Root`].
//!
//! Invariant: a resolver that may not wait opens only paths whose directories and file are in the kernel's
//! caches (`RESOLVE_CACHED`), so that the event loop does not wait for a disk.

mod same_owner;

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use outboard_trusted_path::{self as trusted_path, Users};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::Symlinks;

/// openat2(2) returns EAGAIN when a rename races with a `..`; more often, it is an attack.
const RACES_MAX: u32 = 16;

/// Identifies a file without permission to read it and without waking a FIFO or a device.
pub(crate) const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Reads a regular file; a FIFO or a terminal in its place blocks nothing.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Why a path that names something is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForbiddenReason {
    /// A component is `.` or `..`: the path was not normalised.
    Traversal,
    /// A component begins with a dot.
    DotFile,
    /// A symbolic link leads out of the root and of every directory that links may lead into.
    SymlinkEscape,
    /// A symbolic link and its target belong to different users.
    SymlinkOwner,
    /// The path has a loop of symbolic links, or too many of them.
    SymlinkLoop,
    /// A FIFO, a socket or a device.
    NotRegular,
    /// A PHP source that is not run, or a copy of one.
    PhpSource,
    /// The gateway's user may not read the file or enter its directory.
    Unreadable,
    /// A `.htaccess` file of its directories denies it.
    Htaccess,
    /// The gateway's user may, as a member of the group of another app's user.
    OtherApp,
}

impl ForbiddenReason {
    /// A stable name for logs and counters.
    pub fn code(self) -> &'static str {
        match self {
            Self::Traversal => "path_traversal",
            Self::DotFile => "dot_file",
            Self::SymlinkEscape => "symlink_escape",
            Self::SymlinkOwner => "symlink_owner",
            Self::SymlinkLoop => "symlink_loop",
            Self::NotRegular => "not_regular",
            Self::PhpSource => "php_source",
            Self::Unreadable => "unreadable",
            Self::Htaccess => "htaccess",
            Self::OtherApp => "other_app",
        }
    }

    /// What the operator can do, by configuration key.
    pub fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::DotFile => "name it in `static.allow_dotfiles` to serve it",
            Self::SymlinkEscape => {
                "set `static.symlinks = \"owner\"` to follow links whose target has the same \
                 owner, or \"always\" to follow all"
            }
            Self::SymlinkOwner => {
                "give the link the owner of its target (chown -h), or set \
                 `static.symlinks = \"always\"`"
            }
            Self::PhpSource => "name the suffix in `php.extensions` if it is to be run",
            Self::Unreadable => "let the gateway's user read the file and enter its directories",
            Self::Htaccess => {
                "a `.htaccess` file denies it: `outboard check` names them; change that file, or set \
                 `static.htaccess = false` with `deny` for what is to be denied"
            }
            Self::OtherApp => "let all users read the file, or the group of the app's own user",
            Self::Traversal | Self::SymlinkLoop | Self::NotRegular => return None,
        })
    }
}

impl fmt::Display for ForbiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traversal => "the path contains `.` or `..`",
            Self::DotFile => "the path contains a name that begins with a dot",
            Self::SymlinkEscape => "a symbolic link leads out of the root",
            Self::SymlinkOwner => "a symbolic link and its target belong to different users",
            Self::SymlinkLoop => "too many symbolic links",
            Self::NotRegular => "the path names neither a file nor a directory",
            Self::PhpSource => "the path names a PHP source",
            Self::Unreadable => "permission denied",
            Self::Htaccess => "a `.htaccess` file denies it",
            Self::OtherApp => "the file is private to the group of another app's user",
        })
    }
}

/// Why a path was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotFound,
    Forbidden(ForbiddenReason),
    Failed(Errno),
    /// The result would have to be waited for.
    NotInMemory,
}

/// The result of a resolver that may not wait, where it would have to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotInMemory;

impl From<NotInMemory> for Refusal {
    fn from(NotInMemory: NotInMemory) -> Self {
        Self::NotInMemory
    }
}

impl From<trusted_path::Refusal> for Refusal {
    fn from(refusal: trusted_path::Refusal) -> Self {
        match refusal {
            trusted_path::Refusal::Link { .. } => Self::Forbidden(ForbiddenReason::SymlinkEscape),
            trusted_path::Refusal::Foreign(_) => Self::Forbidden(ForbiddenReason::OtherApp),
            trusted_path::Refusal::System(errno) => errno.into(),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            // EINVAL is a NUL byte in the path.
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => Self::NotFound,
            Errno::ACCESS | Errno::PERM => Self::Forbidden(ForbiddenReason::Unreadable),
            Errno::LOOP => Self::Forbidden(ForbiddenReason::SymlinkLoop),
            Errno::XDEV => Self::Forbidden(ForbiddenReason::SymlinkEscape),
            other => Self::Failed(other),
        }
    }
}

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

    fn open_beneath(
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

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
