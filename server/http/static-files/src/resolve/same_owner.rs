//! The walk of [`crate::Symlinks::SameOwner`]. The kernel has no such policy, so each component is
//! opened separately and each link's owner is compared with its target's.
//!
//! Invariant: every step starts at an open directory and never follows a link, so a concurrent rename
//! can change the result but never skip a comparison.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::tree::{HANDLE, Tree};
use crate::refusal::{ForbiddenReason, Refusal};

/// The kernel's own limit (path_resolution(7)).
const LINKS_MAX: u32 = 40;

enum Step {
    /// Open this component.
    Enter(Vec<u8>),
    /// A link of this user ends here: the owner must be the same.
    OwnedBy(u32),
    /// The path continues, at least with a slash: this must be a directory.
    Directory,
}

struct Place {
    fd: OwnedFd,
    stat: Stat,
}

impl Place {
    fn open(
        from: impl std::os::fd::AsFd,
        name: &[u8],
        resolve: ResolveFlags,
    ) -> Result<Self, Errno> {
        let flags = HANDLE | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat2(from, name, flags, Mode::empty(), resolve)?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    fn is(&self, kind: FileType) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == kind
    }
}

/// `resolve` is what each step adds to its flags: whether it may wait.
pub(super) fn open(
    root: &Tree,
    relative: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Refusal> {
    let mut steps = Vec::new();
    push(&mut steps, relative);
    let mut here = Place::open(&root.fd, b".", resolve)?;
    // How to reopen the present file for reading.
    let mut reopen = (Place::open(&root.fd, b".", resolve)?, b".".to_vec());
    let mut links = 0;
    while let Some(step) = steps.pop() {
        match step {
            Step::OwnedBy(user) if here.stat.st_uid != user => {
                return Err(Refusal::Forbidden(ForbiddenReason::SymlinkOwner));
            }
            Step::Directory if !here.is(FileType::Directory) => return Err(Refusal::NotFound),
            Step::OwnedBy(_) | Step::Directory => {}
            Step::Enter(name) => {
                let next = Place::open(&here.fd, &name, resolve)?;
                if !next.is(FileType::Symlink) {
                    reopen = (std::mem::replace(&mut here, next), name);
                    continue;
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(Refusal::Forbidden(ForbiddenReason::SymlinkLoop));
                }
                // An empty path reads the descriptor's own link.
                let target = rustix::fs::readlinkat(&next.fd, "", Vec::new())?;
                steps.push(Step::OwnedBy(next.stat.st_uid));
                push(&mut steps, target.as_bytes());
                if target.as_bytes().starts_with(b"/") {
                    here = Place::open(CWD, b"/", resolve)?;
                    reopen = (Place::open(CWD, b"/", resolve)?, b".".to_vec());
                }
            }
        }
    }
    if flags.contains(OFlags::PATH) {
        return Ok(here.fd);
    }
    let (directory, name) = reopen;
    let flags = flags | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(&directory.fd, name, flags, Mode::empty(), resolve)?)
}

/// Pushes a path's components onto the stack, the first on top.
fn push(steps: &mut Vec<Step>, path: &[u8]) {
    if path.ends_with(b"/") {
        steps.push(Step::Directory);
    }
    let components = path.split(|&byte| byte == b'/').rev();
    let named = components.filter(|name| !name.is_empty() && *name != b".");
    steps.extend(named.map(|name| Step::Enter(name.to_vec())));
}
