//! [`open`]: the walk from `/` to the end of a path, one component after another.
//!
//! Invariants: those of the crate; a walk ends after [`LINKS_MAX`] links.

use crate::Users;
use rustix::fd::OwnedFd;
use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel's own limit (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// A descriptor for the path (`O_PATH`), and the path without links.
#[derive(Debug)]
pub struct Opened {
    /// It can be the start of further lookups, but not read.
    pub fd: OwnedFd,
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// Why a path was not opened.
#[derive(Debug)]
pub enum Refusal {
    /// A link that PHP may have made leads out of its directory.
    Link {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A directory on the way is private to another app.
    Foreign(PathBuf),
    /// The system's error.
    System(Errno),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { link, to } => write!(
                f,
                "the symbolic link {} leads out of its directory, and PHP can change it: write {} in the \
                 configuration, or let root own the link and all directories of its path",
                link.display(),
                to.display()
            ),
            Self::Foreign(path) => {
                write!(f, "{} belongs to the group of another app's user", path.display())
            }
            Self::System(errno) => io::Error::from(*errno).fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::System(errno) => errno.into(),
            refusal => Self::new(io::ErrorKind::PermissionDenied, refusal),
        }
    }
}

/// Opens a path of the configuration, which is absolute.
///
/// # Errors
/// See [`Refusal`].
pub fn open(path: &Path, users: &Users) -> Result<Opened, Refusal> {
    Walk::start(users, false)?.run(path)
}

/// Opens a path with whatever links it has, unless a directory on the way is private to another app.
///
/// # Errors
/// As [`open`].
pub fn open_any(path: &Path, users: &Users) -> Result<Opened, Refusal> {
    Walk::start(users, true)?.run(path)
}

enum Step {
    Enter(OsString),
    /// The end of this link's target.
    EndOf(Link),
}

struct Link {
    path: PathBuf,
    /// The directory that its target has to lie below: device and inode.
    below: (u64, u64),
}

struct Place {
    fd: OwnedFd,
    stat: Stat,
    name: OsString,
}

impl Place {
    fn is(&self, kind: FileType) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == kind
    }

    fn identity(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }
}

struct Walk<'u> {
    users: &'u Users,
    follows_all: bool,
    /// From `/` to the present place.
    places: Vec<Place>,
    steps: Vec<Step>,
    links: u32,
}

impl<'u> Walk<'u> {
    fn start(users: &'u Users, follows_all: bool) -> Result<Self, Errno> {
        let root = place(CWD, OsStr::new("/"))?;
        let root = Place { name: OsString::new(), ..root };
        Ok(Self { users, follows_all, places: vec![root], steps: Vec::new(), links: 0 })
    }

    fn run(mut self, path: &Path) -> Result<Opened, Refusal> {
        self.push(path);
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Enter(name) if name == ".." => self.places.truncate(self.depth().max(1)),
                Step::Enter(name) => self.enter(&name)?,
                Step::EndOf(link) => self.check_end(link)?,
            }
        }
        let path = self.path();
        let last = self.places.pop().expect("the root is never removed");
        debug_assert!(!last.is(FileType::Symlink), "a result is never a link");
        let is_directory = last.is(FileType::Directory);
        Ok(Opened { fd: last.fd, path, is_directory })
    }

    /// The components of a path, the first on top. Those of a link's target come before what followed it.
    fn push(&mut self, path: &Path) {
        let components = path.as_os_str().as_bytes().rsplit(|&byte| byte == b'/');
        let named = components.filter(|name| !name.is_empty() && *name != b".");
        self.steps.extend(named.map(|name| Step::Enter(OsStr::from_bytes(name).to_owned())));
    }

    fn enter(&mut self, name: &OsStr) -> Result<(), Refusal> {
        let here = &self.places[self.depth()];
        let next = place(&here.fd, name)?;
        if !next.is(FileType::Symlink) {
            let is_private = self.follows_all && self.users.is_foreign(&next.stat);
            self.places.push(next);
            return match is_private {
                true => Err(Refusal::Foreign(self.path())),
                false => Ok(()),
            };
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        // What a link of proc(5) leads to is not what its text names.
        let not_magic = ResolveFlags::NO_MAGICLINKS;
        if let Err(Errno::LOOP) =
            openat2(&here.fd, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), not_magic)
        {
            return Err(Errno::LOOP.into());
        }
        // An empty path reads the descriptor's own link.
        let target = readlinkat(&next.fd, "", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if !self.follows_all && self.is_changeable(&next) {
            let below = here.identity();
            self.steps.push(Step::EndOf(Link { path: self.path().join(name), below }));
        }
        if target.is_absolute() {
            self.places.truncate(1);
        }
        self.push(&target);
        Ok(())
    }

    /// Whether PHP may have made this link, or moved it here with a directory above.
    fn is_changeable(&self, link: &Place) -> bool {
        self.users.own(&link.stat) || self.places.iter().any(|at| self.users.can_change(&at.stat))
    }

    fn check_end(&self, link: Link) -> Result<(), Refusal> {
        match self.places.iter().any(|at| at.identity() == link.below) {
            true => Ok(()),
            false => Err(Refusal::Link { link: link.path, to: self.path() }),
        }
    }

    fn depth(&self) -> usize {
        self.places.len() - 1
    }

    fn path(&self) -> PathBuf {
        let names = self.places.iter().skip(1).map(|at| at.name.as_os_str());
        Path::new("/").join(names.collect::<PathBuf>())
    }
}

fn place(from: impl rustix::fd::AsFd, name: &OsStr) -> Result<Place, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(from, name, flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    Ok(Place { fd, stat, name: name.to_owned() })
}

#[cfg(test)]
mod tests;
