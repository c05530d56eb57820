//! A directory that files are served from, and the lookup of request paths in it. Called by the
//! gateway's router for every request that may be a file; most lookups hit the open-file cache.
//!
//! Invariant: a path's bytes are checked (dots, NUL) before the kernel sees it, and every path in the
//! cache has passed the check.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::cache::{Cache, Cached};
use crate::entry::{Entry, EntryRules};
use crate::resolve::{self, ForbiddenReason, HANDLE, Refusal, Resolver, Tree};
use crate::source::{NameKind, SourceNames};
use crate::{RootOptions, head};

/// Why a root was not opened: a configuration error, or a kernel that is too old.
#[derive(Debug)]
#[non_exhaustive]
pub enum RootError {
    /// A directory is missing, is not a directory, or may not be entered.
    Directory {
        /// The root, or one of its `symlink_targets`.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A header value in the options contains a control character.
    HeaderValue {
        /// The option.
        option: String,
    },
    /// openat2(2) is missing: Linux before 5.6, or a filter on system calls.
    NoOpenat2 {
        /// The system's error.
        error: std::io::Error,
    },
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, error } => {
                write!(f, "cannot open the directory {}: {error}", path.display())
            }
            Self::HeaderValue { option } => {
                write!(f, "{option} contains a control character and cannot be sent in a header")
            }
            Self::NoOpenat2 { error } => write!(
                f,
                "the system call openat2 does not work here ({error}): static files need Linux 5.6 \
                 or later and a container that allows it"
            ),
        }
    }
}

impl std::error::Error for RootError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Directory { error, .. } | Self::NoOpenat2 { error } => Some(error),
            Self::HeaderValue { .. } => None,
        }
    }
}

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
pub enum Lookup {
    /// A regular file to serve.
    File(Rc<Entry>),
    /// A regular file with a private name: a database, a backup, a log, a key.
    Private(Rc<Entry>),
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

impl From<Refusal> for Lookup {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::NotFound,
            Refusal::Forbidden(reason) => Self::Forbidden(reason),
            Refusal::Failed(errno) => Self::Error(LookupError { errno }),
        }
    }
}

/// A directory and the rules by which its files are served. For one thread.
#[derive(Debug)]
pub struct Root {
    /// The given path, absolute. May be a link that a deployment moves.
    path: PathBuf,
    resolver: RefCell<Resolver>,
    cache: RefCell<Cache<Lookup>>,
    rules: Rc<EntryRules>,
    /// When to check again whether `path` still leads to the same directory.
    check_root_at_ms: Cell<u64>,
}

impl Root {
    /// Opens a directory. Links in `path` itself are followed.
    pub fn open(path: &Path, options: RootOptions) -> Result<Self, RootError> {
        resolve::probe().map_err(|errno| RootError::NoOpenat2 { error: errno.into() })?;
        check_header_values(&options)?;
        let open = |path: &Path| {
            Tree::open(path)
                .map_err(|errno| RootError::Directory { path: path.into(), error: errno.into() })
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| RootError::Directory { path: path.into(), error })?;
        let targets = options.symlink_targets.iter().map(|path| open(path));
        let resolver = Resolver {
            root: open(&absolute)?,
            symlinks: options.symlinks,
            targets: targets.collect::<Result<_, _>>()?,
        };
        Ok(Self {
            path: absolute,
            resolver: RefCell::new(resolver),
            cache: RefCell::new(Cache::new(options.cache_capacity)),
            rules: Rc::new(EntryRules {
                names: SourceNames::new(
                    &options.php_suffixes,
                    &options.source_suffixes,
                    options.private_names,
                ),
                boundary_key: RandomState::new(),
                options,
            }),
            check_root_at_ms: Cell::new(0),
        })
    }

    /// The given path, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks up a path, which is decoded, normalised and begins with a slash. `now_ms` is any monotonic
    /// clock.
    pub fn lookup(&self, path: &[u8], now_ms: u64) -> Lookup {
        self.follow_moved_root(now_ms);
        // A separate statement, so that the cache is not borrowed in the arms.
        let cached = self.cache.borrow_mut().get(path, now_ms);
        match cached {
            Cached::Fresh(found) => return found,
            Cached::Stale(found) if self.is_current(&found, path) => {
                return self.store(path, found, now_ms);
            }
            Cached::Stale(_) | Cached::Unknown => {}
        }
        if let Some(lookup) = self.refuse_by_name(path) {
            return lookup;
        }
        let found = match self.find(path) {
            Lookup::Error(error) if error.is_out_of_files() => {
                self.clear_cache();
                self.find(path)
            }
            found => found,
        };
        self.store(path, found, now_ms)
    }

    /// Splits a path at its first script: `/a/index.php/x/y` into `/a/index.php` and `/x/y` (PATH_INFO,
    /// RFC 3875 4.1.5). A file of another kind in the middle ends the search, so `/image.jpg/x.php`
    /// has no script.
    pub fn split_script<'a>(&self, path: &'a [u8], now_ms: u64) -> Option<(&'a [u8], &'a [u8])> {
        let ends = memchr::memchr_iter(b'/', path).skip(1).chain(std::iter::once(path.len()));
        for end in ends {
            let (candidate, rest) = path.split_at(end);
            if !self.rules.names.is_script(candidate) {
                continue;
            }
            match self.lookup(candidate, now_ms) {
                Lookup::Script => return Some((candidate, rest)),
                Lookup::Directory => {}
                _ => return None,
            }
        }
        None
    }

    /// Clears the cache, which closes the descriptors that no response uses.
    pub fn clear_cache(&self) {
        self.cache.borrow_mut().clear();
    }

    /// Reopens the root if a deployment has moved its link or replaced its directory.
    fn follow_moved_root(&self, now_ms: u64) {
        if now_ms < self.check_root_at_ms.get() {
            return;
        }
        self.check_root_at_ms.set(now_ms.saturating_add(self.rules.options.cache_valid_ms));
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let mut resolver = self.resolver.borrow_mut();
        let current = rustix::fs::fstat(&resolver.root.fd).map(identity);
        if rustix::fs::stat(&self.path).map(identity) != current {
            // While there is no directory, the old one remains in use.
            if let Ok(tree) = Tree::open(&self.path) {
                resolver.root = tree;
                self.clear_cache();
            }
        }
    }

    fn is_current(&self, found: &Lookup, path: &[u8]) -> bool {
        match found {
            Lookup::File(entry) | Lookup::Private(entry) => {
                entry.is_current(&self.resolver.borrow(), relative(path))
            }
            _ => false,
        }
    }

    fn store(&self, path: &[u8], found: Lookup, now_ms: u64) -> Lookup {
        let valid_ms = match found {
            Lookup::File(_) | Lookup::Private(_) | Lookup::Directory | Lookup::Script => {
                self.rules.options.cache_valid_ms
            }
            Lookup::NotFound | Lookup::Forbidden(_) => self.rules.options.negative_valid_ms,
            Lookup::Error(_) => return found,
        };
        self.cache.borrow_mut().insert(path, found.clone(), now_ms.saturating_add(valid_ms));
        found
    }

    /// Refuses a path by its bytes.
    fn refuse_by_name(&self, path: &[u8]) -> Option<Lookup> {
        let is_absolute = path.first() == Some(&b'/');
        if !is_absolute || memchr::memchr(0, path).is_some() {
            return Some(Lookup::NotFound);
        }
        for component in relative(path).split(|&byte| byte == b'/') {
            match component {
                b"." | b".." => return Some(Lookup::Forbidden(ForbiddenReason::Traversal)),
                [b'.', ..] if !self.serves_dot_name(component) => {
                    return Some(Lookup::Forbidden(ForbiddenReason::DotFile));
                }
                _ => {}
            }
        }
        None
    }

    fn serves_dot_name(&self, name: &[u8]) -> bool {
        self.rules.options.dot_files
            || self.rules.options.allow_dotfiles.iter().any(|served| served.as_bytes() == name)
    }

    fn find(&self, path: &[u8]) -> Lookup {
        let resolver = self.resolver.borrow();
        let relative = relative(path);
        let kind = resolver
            .open(relative, HANDLE)
            .and_then(|handle| Ok(FileType::from_raw_mode(rustix::fs::fstat(handle)?.st_mode)));
        match kind {
            Err(refusal) => refusal.into(),
            Ok(FileType::Directory) => Lookup::Directory,
            Ok(FileType::RegularFile) => {
                let open = || Entry::open(&resolver, relative, &self.rules).map(Rc::new);
                let found = match self.rules.names.classify(last_component(relative)) {
                    NameKind::Script => Ok(Lookup::Script),
                    NameKind::Source => Ok(Lookup::Forbidden(ForbiddenReason::PhpSource)),
                    NameKind::Private => open().map(Lookup::Private),
                    NameKind::Plain => open().map(Lookup::File),
                };
                found.unwrap_or_else(Lookup::from)
            }
            Ok(_) => Lookup::Forbidden(ForbiddenReason::NotRegular),
        }
    }
}

/// A path for openat2(2) without all of its leading slashes: with [`crate::Symlinks::Always`] a second
/// one would mean the root of the file system.
fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    &path[start..]
}

fn last_component(path: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..])
}

fn check_header_values(options: &RootOptions) -> Result<(), RootError> {
    let types = options.mime_overrides.iter().map(|(extension, value)| {
        (format!("the content type of `{extension}` in `mime_overrides`"), value)
    });
    let headers = options.headers.iter().map(|(name, value)| (format!("the header {name}"), value));
    match types.chain(headers).find(|(_, value)| !head::is_value(value.as_bytes())) {
        Some((option, _)) => Err(RootError::HeaderValue { option }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
