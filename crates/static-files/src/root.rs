//! A folder that files are served from: what a request path names in it. Called by the gateway's
//! router for every request that may be a file, so the answer comes from the open-file cache
//! nearly always.
//!
//! Invariant: a path is looked at by its bytes once (dots, NUL) before the kernel ever sees it, and
//! every path in the cache has passed that.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::cache::{Cache, Memory};
use crate::entry::{Entry, EntryRules};
use crate::resolve::{self, ForbiddenReason, HANDLE, Refusal, Resolver, Tree};
use crate::source::{NameKind, SourceNames};
use crate::{RootOptions, head};

/// Why a root was not opened: a mistake of the operator, or a kernel that is too old.
#[derive(Debug)]
#[non_exhaustive]
pub enum RootError {
    /// A folder is missing, is no folder, or may not be entered.
    Folder {
        /// The root, or one of its `symlink_targets`.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A header value in the options contains a control character.
    HeaderValue {
        /// The option and the extension it is for.
        option: String,
    },
    /// openat2(2) is missing: Linux before 5.6, or a filter on system calls.
    NoOpenat2 {
        /// What the system said.
        error: std::io::Error,
    },
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, error } => {
                write!(f, "cannot open the folder {}: {error}", path.display())
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
            Self::Folder { error, .. } | Self::NoOpenat2 { error } => Some(error),
            Self::HeaderValue { .. } => None,
        }
    }
}

/// The system failed to say what a path names: too many open files, an I/O error.
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

impl std::error::Error for LookupError {}

/// What a path names.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// A regular file to be served.
    File(Rc<Entry>),
    /// A regular file whose name says that visitors are not meant to have it: a database, a backup,
    /// a log, a key.
    Private(Rc<Entry>),
    /// A folder. If the path does not end in a slash, the client is to be sent to where it does.
    Directory,
    /// A PHP script to be run. It need not be readable for the gateway.
    Script,
    /// Nothing.
    NotFound,
    /// Something that must not be served.
    Forbidden(ForbiddenReason),
    /// The system failed.
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

/// A folder and the rules by which its files are served. For one thread.
#[derive(Debug)]
pub struct Root {
    /// As given, made absolute. May be a link that a deployment moves.
    path: PathBuf,
    resolver: RefCell<Resolver>,
    cache: RefCell<Cache<Lookup>>,
    entry_rules: EntryRules,
    dot_files: bool,
    dot_names: Vec<String>,
    cache_valid_ms: u64,
    negative_valid_ms: u64,
    /// When to look again whether `path` still leads to the same folder.
    check_root_at_ms: Cell<u64>,
}

impl Root {
    /// Opens a folder. Links in `path` itself are followed.
    pub fn open(path: &Path, options: RootOptions) -> Result<Self, RootError> {
        resolve::probe().map_err(|errno| RootError::NoOpenat2 { error: errno.into() })?;
        check_header_values(&options)?;
        let open = |path: &Path| {
            Tree::open(path)
                .map_err(|errno| RootError::Folder { path: path.into(), error: errno.into() })
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| RootError::Folder { path: path.into(), error })?;
        let targets = options.symlink_targets.iter().map(|path| open(path));
        let resolver = Resolver {
            root: open(&absolute)?,
            symlinks: options.symlinks,
            targets: targets.collect::<Result<_, _>>()?,
        };
        let mime_overrides = options.mime_overrides.into_iter().map(|(extension, value)| {
            (extension.trim_start_matches('.').to_ascii_lowercase(), value)
        });
        Ok(Self {
            path: absolute,
            resolver: RefCell::new(resolver),
            cache: RefCell::new(Cache::new(options.cache_capacity)),
            entry_rules: EntryRules {
                precompressed: options.precompressed,
                mime_overrides: mime_overrides.collect(),
                cache_control: options.cache_control.map(Rc::from),
                small_file_bytes: options.small_file_bytes,
                names: SourceNames::new(
                    &options.php_suffixes,
                    &options.source_suffixes,
                    options.private_names,
                ),
                boundary_key: RandomState::new(),
            },
            dot_files: options.dot_files,
            dot_names: options.dot_names,
            cache_valid_ms: options.cache_valid_ms,
            negative_valid_ms: options.negative_valid_ms,
            check_root_at_ms: Cell::new(0),
        })
    }

    /// The folder as it was given, made absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says what a path names. The path is decoded, normalised and begins with a slash; `now_ms`
    /// is any clock that does not run backwards.
    pub fn lookup(&self, path: &[u8], now_ms: u64) -> Lookup {
        self.follow_moved_root(now_ms);
        // Asked for first, so that the cache is free again in the arms.
        let memory = self.cache.borrow_mut().get(path, now_ms);
        match memory {
            Memory::Fresh(found) => return found,
            Memory::Stale(found) if self.is_current(&found, path) => {
                return self.remember(path, found, now_ms);
            }
            Memory::Stale(_) | Memory::Unknown => {}
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
        self.remember(path, found, now_ms)
    }

    /// Splits a path at the first script in it: `/a/index.php/x/y` into `/a/index.php` and `/x/y`
    /// (PATH_INFO, RFC 3875 section 4.1.5). A file of another kind in the middle is no script:
    /// `/image.jpg/x.php` names nothing.
    pub fn split_script<'a>(&self, path: &'a [u8], now_ms: u64) -> Option<(&'a [u8], &'a [u8])> {
        let ends = memchr::memchr_iter(b'/', path).skip(1).chain(std::iter::once(path.len()));
        for end in ends {
            let (candidate, rest) = path.split_at(end);
            if !self.entry_rules.names.is_script(candidate) {
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

    /// Forgets what was found, closing the descriptors that no answer is using.
    pub fn clear_cache(&self) {
        self.cache.borrow_mut().clear();
    }

    /// A deployment may have moved the link that the root is, or replaced the folder.
    fn follow_moved_root(&self, now_ms: u64) {
        if now_ms < self.check_root_at_ms.get() {
            return;
        }
        self.check_root_at_ms.set(now_ms.saturating_add(self.cache_valid_ms));
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let mut resolver = self.resolver.borrow_mut();
        let held = rustix::fs::fstat(&resolver.root.fd).map(identity);
        if rustix::fs::stat(&self.path).map(identity) != held {
            // While there is no folder at all, the old one answers as long as it lives.
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

    fn remember(&self, path: &[u8], found: Lookup, now_ms: u64) -> Lookup {
        let valid_ms = match found {
            Lookup::File(_) | Lookup::Private(_) | Lookup::Directory | Lookup::Script => {
                self.cache_valid_ms
            }
            Lookup::NotFound | Lookup::Forbidden(_) => self.negative_valid_ms,
            Lookup::Error(_) => return found,
        };
        self.cache.borrow_mut().put(path, found.clone(), now_ms.saturating_add(valid_ms));
        found
    }

    /// Judges a path by its bytes alone.
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
        self.dot_files || self.dot_names.iter().any(|served| served.as_bytes() == name)
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
                let open = || Entry::open(&resolver, relative, &self.entry_rules).map(Rc::new);
                let found = match self.entry_rules.names.classify(last_component(relative)) {
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

/// A path as openat2(2) wants it. Every leading slash goes: with [`crate::Symlinks::Always`] a
/// second one would mean the root of the file system.
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
    let cache_control =
        options.cache_control.iter().map(|value| ("`cache_control`".to_owned(), value));
    for (option, value) in types.chain(cache_control) {
        if !head::is_value(value.as_bytes()) {
            return Err(RootError::HeaderValue { option });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
