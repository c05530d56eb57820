//! The walk behind [`crate::Symlinks::SameOwner`]: the kernel has no such policy, so each component
//! is opened by itself and each link's owner compared with the owner of what it led to.
//!
//! Invariant: every step is taken from an open folder and never through a link, so a path swapped
//! meanwhile can change what is found but never skip a comparison.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{ForbiddenReason, HANDLE, Refusal, Tree};

/// The kernel's own limit (path_resolution(7)).
const LINKS_MAX: u32 = 40;

enum Step {
    /// Go to this component.
    Enter(Vec<u8>),
    /// A link of this user has been followed to its end: the owner here must be the same.
    OwnedBy(u32),
    /// The path goes on, if only by a slash: this must be a folder.
    Folder,
}

struct Place {
    fd: OwnedFd,
    stat: Stat,
}

impl Place {
    fn open(from: impl std::os::fd::AsFd, name: &[u8]) -> Result<Self, Errno> {
        let fd = rustix::fs::openat(from, name, HANDLE | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    fn is(&self, kind: FileType) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == kind
    }
}

pub(super) fn open(root: &Tree, relative: &[u8], flags: OFlags) -> Result<OwnedFd, Refusal> {
    let mut steps = Vec::new();
    push(&mut steps, relative);
    let mut here = Place::open(&root.fd, b".")?;
    // How the present place can be opened once more, for reading.
    let mut reopen = (Place::open(&root.fd, b".")?, b".".to_vec());
    let mut links = 0;
    while let Some(step) = steps.pop() {
        match step {
            Step::OwnedBy(user) if here.stat.st_uid != user => {
                return Err(Refusal::Forbidden(ForbiddenReason::SymlinkOwner));
            }
            Step::Folder if !here.is(FileType::Directory) => return Err(Refusal::NotFound),
            Step::OwnedBy(_) | Step::Folder => {}
            Step::Enter(name) => {
                let next = Place::open(&here.fd, &name)?;
                if !next.is(FileType::Symlink) {
                    reopen = (std::mem::replace(&mut here, next), name);
                    continue;
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(Refusal::Forbidden(ForbiddenReason::SymlinkLoop));
                }
                // An empty path reads the link that the descriptor itself is.
                let target = rustix::fs::readlinkat(&next.fd, "", Vec::new())?;
                steps.push(Step::OwnedBy(next.stat.st_uid));
                push(&mut steps, target.as_bytes());
                if target.as_bytes().starts_with(b"/") {
                    here = Place::open(CWD, b"/")?;
                    reopen = (Place::open(CWD, b"/")?, b".".to_vec());
                }
            }
        }
    }
    if flags.contains(OFlags::PATH) {
        return Ok(here.fd);
    }
    let (folder, name) = reopen;
    Ok(rustix::fs::openat(&folder.fd, name, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

/// Lays a path's components on the stack, first on top.
fn push(steps: &mut Vec<Step>, path: &[u8]) {
    if path.ends_with(b"/") {
        steps.push(Step::Folder);
    }
    let components = path.split(|&byte| byte == b'/').rev();
    let named = components.filter(|name| !name.is_empty() && *name != b".");
    steps.extend(named.map(|name| Step::Enter(name.to_vec())));
}
