//! [`Lookup`]: what a path is, and [`find`], which asks the file system.
//!
//! Called by [`crate::Root`] for paths that are not in its cache, and by [`crate::ColdLookup`] in another
//! thread.

use std::fmt;
use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::entry::Entry;
use crate::htaccess::Restriction;
use crate::opened::Opened;
use crate::resolve::{ForbiddenReason, HANDLE, NotInMemory, Refusal, Resolver};
use crate::rules::EntryRules;
use crate::source::NameKind;

/// A lookup failed: too many open files, an I/O error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupError {
    errno: Errno,
}

impl LookupError {
    /// Whether the process or the system has run out of descriptors.
    pub fn is_out_of_files(self) -> bool {
        matches!(self.errno, Errno::MFILE | Errno::NFILE)
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot open the file: {}", std::io::Error::from(self.errno))
    }
}

impl std::error::Error for LookupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.errno)
    }
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub enum Lookup<F = Rc<Entry>> {
    /// A regular file to serve.
    File(F),
    /// A regular file with a private name: a database, a backup, a log, a key.
    Private(F),
    /// A regular file that a `.htaccess` file denies to visitors; a script may have it sent.
    Restricted(F),
    /// A directory. Redirect the client if the path does not end in a slash.
    Directory,
    /// A PHP script to run. The gateway need not be able to read it.
    Script,
    /// No file.
    NotFound,
    /// A file that must not be served.
    Forbidden(ForbiddenReason),
    /// The lookup failed.
    Error(LookupError),
}

impl<F> Lookup<F> {
    /// The same with another form of its file.
    pub(crate) fn map<G>(self, form: impl FnOnce(F) -> G) -> Lookup<G> {
        match self {
            Self::File(file) => Lookup::File(form(file)),
            Self::Private(file) => Lookup::Private(form(file)),
            Self::Restricted(file) => Lookup::Restricted(form(file)),
            Self::Directory => Lookup::Directory,
            Self::Script => Lookup::Script,
            Self::NotFound => Lookup::NotFound,
            Self::Forbidden(reason) => Lookup::Forbidden(reason),
            Self::Error(error) => Lookup::Error(error),
        }
    }

    /// Whether the process or the system has run out of descriptors.
    pub(crate) fn is_out_of_files(&self) -> bool {
        matches!(self, Self::Error(error) if error.is_out_of_files())
    }
}

/// Looks a path up in the file system, without a cache.
pub(crate) fn find(
    resolver: &Resolver,
    path: &[u8],
    rules: &EntryRules,
) -> Result<Lookup<Opened>, NotInMemory> {
    match try_find(resolver, relative(path), rules) {
        Ok(found) => Ok(found),
        Err(Refusal::NotInMemory) => Err(NotInMemory),
        Err(Refusal::NotFound) => Ok(Lookup::NotFound),
        Err(Refusal::Forbidden(reason)) => Ok(Lookup::Forbidden(reason)),
        Err(Refusal::Failed(errno)) => Ok(Lookup::Error(LookupError { errno })),
    }
}

fn try_find(
    resolver: &Resolver,
    relative: &[u8],
    rules: &EntryRules,
) -> Result<Lookup<Opened>, Refusal> {
    let handle = resolver.open(relative, HANDLE)?;
    match FileType::from_raw_mode(rustix::fs::fstat(handle)?.st_mode) {
        FileType::Directory => Ok(Lookup::Directory),
        FileType::RegularFile => {
            let open = || Opened::read(resolver, relative, rules);
            let kind = rules.names.classify(last_component(relative));
            match (kind, rules.restriction(resolver, relative)?) {
                (_, Restriction::None) => {}
                (NameKind::Script | NameKind::Source, _) => {
                    return Err(Refusal::Forbidden(ForbiddenReason::Htaccess));
                }
                (_, Restriction::NoPhp) => {}
                (_, Restriction::Denied) => return open().map(Lookup::Restricted),
            }
            match kind {
                NameKind::Script => Ok(Lookup::Script),
                NameKind::Source => Err(Refusal::Forbidden(ForbiddenReason::PhpSource)),
                NameKind::Private => open().map(Lookup::Private),
                NameKind::Plain => open().map(Lookup::File),
            }
        }
        _ => Err(Refusal::Forbidden(ForbiddenReason::NotRegular)),
    }
}

/// A path for openat2(2) without all of its leading slashes: with [`crate::Symlinks::Always`] a second
/// one would mean the root of the file system.
pub(crate) fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    &path[start..]
}

fn last_component(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
}
