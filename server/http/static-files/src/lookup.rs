//! [`Lookup`]: what a path is, and [`find`], which asks the file system.
//!
//! Called by [`crate::Root`] for paths that are not in its cache, and by [`crate::ColdLookup`] in another
//! thread.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::entry::Entry;
use crate::htaccess::Restriction;
use crate::opened::Opened;
use crate::refusal::{ForbiddenReason, NotInMemory, Refusal};
use crate::resolve::Resolver;
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
    /// A symbolic link below the root has led to another path of it, where other rules may hold.
    Linked {
        /// The path without links, which ends with a slash if it is a directory.
        real: Arc<[u8]>,
        /// What is there.
        to: Target<F>,
    },
    /// The lookup failed.
    Error(LookupError),
}

/// What is served or run at the end of a link.
#[derive(Debug, Clone)]
pub enum Target<F = Rc<Entry>> {
    /// As [`Lookup::File`].
    File(F),
    /// As [`Lookup::Private`].
    Private(F),
    /// As [`Lookup::Restricted`].
    Restricted(F),
    /// As [`Lookup::Directory`].
    Directory,
    /// As [`Lookup::Script`].
    Script,
}

impl<F> From<Target<F>> for Lookup<F> {
    fn from(target: Target<F>) -> Self {
        match target {
            Target::File(file) => Self::File(file),
            Target::Private(file) => Self::Private(file),
            Target::Restricted(file) => Self::Restricted(file),
            Target::Directory => Self::Directory,
            Target::Script => Self::Script,
        }
    }
}

impl<F> Lookup<F> {
    /// What a path leads to, and the path without links if it has one. Where no rule depends on a path, the
    /// latter can be ignored.
    pub fn followed(self) -> (Self, Option<Arc<[u8]>>) {
        match self {
            Self::Linked { real, to } => (to.into(), Some(real)),
            found => (found, None),
        }
    }
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
            Self::Linked { real, to: Target::File(file) } => {
                Lookup::Linked { real, to: Target::File(form(file)) }
            }
            Self::Linked { real, to: Target::Private(file) } => {
                Lookup::Linked { real, to: Target::Private(form(file)) }
            }
            Self::Linked { real, to: Target::Restricted(file) } => {
                Lookup::Linked { real, to: Target::Restricted(form(file)) }
            }
            Self::Linked { real, to: Target::Directory } => {
                Lookup::Linked { real, to: Target::Directory }
            }
            Self::Linked { real, to: Target::Script } => {
                Lookup::Linked { real, to: Target::Script }
            }
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
    let (handle, real) = resolver.open_handle(relative)?;
    let found = match FileType::from_raw_mode(rustix::fs::fstat(handle)?.st_mode) {
        FileType::Directory => Target::Directory,
        FileType::RegularFile => {
            let open = || Opened::read(resolver, relative, rules);
            let kind = |path| rules.names.classify(last_component(path));
            let is_private = real.as_deref().is_some_and(|real| kind(real) == NameKind::Private);
            // Those of the link, and those of the file that it leads to.
            let mut restriction = rules.restriction(resolver, relative)?;
            if let Some(real) = &real {
                restriction = restriction.max(rules.restriction(resolver, self::relative(real))?);
            }
            match kind(relative) {
                NameKind::Script | NameKind::Source if restriction != Restriction::None => {
                    return Err(Refusal::Forbidden(ForbiddenReason::Htaccess));
                }
                NameKind::Script => Target::Script,
                NameKind::Source => return Err(Refusal::Forbidden(ForbiddenReason::PhpSource)),
                _ if restriction == Restriction::Denied => Target::Restricted(open()?),
                NameKind::Plain if !is_private => Target::File(open()?),
                NameKind::Private | NameKind::Plain => Target::Private(open()?),
            }
        }
        _ => return Err(Refusal::Forbidden(ForbiddenReason::NotRegular)),
    };
    let Some(mut real) = real else { return Ok(found.into()) };
    if rules.has_dot_name(&real) {
        return Err(Refusal::Forbidden(ForbiddenReason::DotFile));
    }
    if matches!(found, Target::Directory) && !real.ends_with(b"/") {
        real.push(b'/');
    }
    Ok(Lookup::Linked { real: real.into(), to: found })
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
