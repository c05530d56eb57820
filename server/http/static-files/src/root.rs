//! A directory that files are served from, and the lookup of request paths in it. Called by the
//! gateway's router for every request that may be a file; most lookups hit the open-file cache.
//!
//! Invariants: a path's bytes are checked (dots, NUL) before the kernel sees it, and every path in the
//! cache, and of a [`ColdLookup`], has passed the check; [`Root::lookup_in_memory`] does not wait for a
//! disk.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::{Cache, Cached};
use crate::cold::{ColdLookup, ColdResult};
use crate::entry::Entry;
use crate::head;
use crate::htaccess::Restriction;
use crate::listing::UnreadListing;
use crate::lookup::{Lookup, find, relative};
use crate::opened::Opened;
use crate::options::RootOptions;
use crate::refusal::{ForbiddenReason, NotInMemory};
use crate::resolve::{self, Resolver, Tree};
use crate::rules::EntryRules;
use crate::source::SourceNames;

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

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The path of a script, and the rest of the path of a request.
pub type ScriptPath<'a> = (&'a [u8], &'a [u8]);

/// A directory and the rules by which its files are served. For one thread.
#[derive(Debug)]
pub struct Root {
    /// Unique in this process.
    id: u64,
    /// The given path, absolute. May be a link that a deployment moves.
    path: Arc<Path>,
    resolver: RefCell<Resolver>,
    cache: RefCell<Cache<Lookup>>,
    rules: Arc<EntryRules>,
    /// When to check again whether `path` still leads to the same directory.
    check_root_at_ms: Cell<u64>,
}

impl Root {
    /// Opens a directory. Links in `path` itself are followed.
    pub fn open(path: &Path, options: RootOptions) -> Result<Self, RootError> {
        resolve::probe().map_err(|errno| RootError::NoOpenat2 { error: errno.into() })?;
        check_header_values(&options)?;
        let open = |path: &Path| {
            Tree::open(path, &options.users).map_err(|refusal| RootError::Directory {
                path: path.into(),
                error: refusal.into(),
            })
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| RootError::Directory { path: path.into(), error })?;
        let targets = options.symlink_targets.iter().map(|path| open(path));
        let resolver = Resolver {
            root: Arc::new(open(&absolute)?),
            symlinks: options.symlinks,
            targets: targets.collect::<Result<_, _>>()?,
            users: options.users.clone(),
            is_pinned: options.is_pinned,
            may_wait: !resolve::knows_what_is_in_memory(),
        };
        Ok(Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            path: absolute.into(),
            resolver: RefCell::new(resolver),
            cache: RefCell::new(Cache::new(options.cache_capacity)),
            rules: Arc::new(EntryRules {
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

    /// The path of the directory that is in use, without links.
    pub fn real_path(&self) -> Arc<Path> {
        self.resolver.borrow().root.path.clone()
    }

    /// Looks up a path, which is decoded, normalised and begins with a slash. `now_ms` is any monotonic
    /// clock. May wait for a disk.
    pub fn lookup(&self, path: &[u8], now_ms: u64) -> Lookup {
        match self.lookup_in_memory(path, now_ms) {
            Ok(found) => found,
            Err(cold) => self.complete(cold.run(), now_ms),
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// The lookup, if the file or a directory of its path is not in memory, or the kernel cannot tell
    /// that it is. Another thread may run it; [`Root::complete`] takes its result.
    pub fn lookup_in_memory(&self, path: &[u8], now_ms: u64) -> Result<Lookup, Box<ColdLookup>> {
        self.try_lookup(path, now_ms).or_else(|NotInMemory| {
            // The root's own directory may have been missing before the path was checked.
            self.refuse_by_name(path).ok_or_else(|| self.cold_lookup(path))
        })
    }

    /// The names in a directory, to be read by another thread. The path is one that [`Root::lookup`] has found to be a
    /// directory.
    pub fn listing(&self, path: &[u8]) -> UnreadListing {
        let resolver = Resolver { may_wait: true, ..self.resolver.borrow().clone() };
        UnreadListing { path: path.into(), resolver, rules: self.rules.clone() }
    }

    /// A number that the lookups of this root share, and those of no other.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn cold_lookup(&self, path: &[u8]) -> Box<ColdLookup> {
        Box::new(ColdLookup {
            path: path.into(),
            root: self.id,
            root_path: self.path.clone(),
            resolver: self.resolver.borrow().clone(),
            rules: self.rules.clone(),
        })
    }

    fn try_lookup(&self, path: &[u8], now_ms: u64) -> Result<Lookup, NotInMemory> {
        self.follow_moved_root(now_ms)?;
        // A separate statement, so that the cache is not borrowed in the arms.
        let cached = self.cache.borrow_mut().get(path, now_ms);
        match cached {
            Cached::Fresh(found) => return Ok(found),
            Cached::Stale(found) if self.is_current(&found, path)? => {
                return Ok(self.store(path, found, now_ms));
            }
            Cached::Stale(_) | Cached::Unknown => {}
        }
        if let Some(lookup) = self.refuse_by_name(path) {
            return Ok(lookup);
        }
        let find = || find(&self.resolver.borrow(), path, &self.rules);
        let mut found = find()?;
        if found.is_out_of_files() {
            self.clear_cache();
            found = find()?;
        }
        Ok(self.store(path, self.entered(found), now_ms))
    }

    /// The result of a lookup that another thread has run.
    pub fn complete(&self, result: ColdResult, now_ms: u64) -> Lookup {
        let ColdResult { path, found, moved_root } = result;
        if let Some(root) = moved_root {
            self.replace_root(root);
        }
        self.check_root_later(now_ms);
        // Requests for the same file share its bytes.
        if let Cached::Fresh(found) = self.cache.borrow_mut().get(&path, now_ms) {
            return found;
        }
        if !found.is_out_of_files() {
            return self.store(&path, self.entered(found), now_ms);
        }
        self.clear_cache();
        self.try_lookup(&path, now_ms).unwrap_or_else(|NotInMemory| self.entered(found))
    }

    /// A result with the entry of its file.
    fn entered(&self, found: Lookup<Opened>) -> Lookup {
        found.map(|opened| Rc::new(Entry::new(opened, &self.rules)))
    }

    /// Splits a path at its first script: `/a/index.php/x/y` into `/a/index.php` and `/x/y` (PATH_INFO,
    /// RFC 3875 4.1.5). A file of another kind in the middle ends the search, so `/image.jpg/x.php`
    /// has no script. `lookup` is one of the root's.
    ///
    /// # Errors
    /// Those of `lookup`.
    pub fn split_script<'a, E>(
        &self,
        path: &'a [u8],
        lookup: impl Fn(&[u8]) -> Result<Lookup, E>,
    ) -> Result<Option<ScriptPath<'a>>, E> {
        let ends = memchr::memchr_iter(b'/', path).skip(1).chain(std::iter::once(path.len()));
        for end in ends {
            let (candidate, rest) = path.split_at(end);
            if !self.rules.names.is_script(candidate) {
                continue;
            }
            match lookup(candidate)? {
                Lookup::Script => return Ok(Some((candidate, rest))),
                Lookup::Directory => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Clears the cache, which closes the descriptors that no response uses.
    pub fn clear_cache(&self) {
        self.cache.borrow_mut().clear();
    }

    /// Reopens the root if a deployment has moved its link or replaced its directory.
    fn follow_moved_root(&self, now_ms: u64) -> Result<(), NotInMemory> {
        if now_ms < self.check_root_at_ms.get() {
            return Ok(());
        }
        let moved = self.resolver.borrow().moved_root(&self.path)?;
        self.check_root_later(now_ms);
        if let Some(root) = moved {
            self.replace_root(Arc::new(root));
        }
        Ok(())
    }

    fn check_root_later(&self, now_ms: u64) {
        self.check_root_at_ms.set(now_ms.saturating_add(self.rules.options.cache_valid_ms));
    }

    fn replace_root(&self, root: Arc<Tree>) {
        self.resolver.borrow_mut().root = root;
        self.clear_cache();
    }

    fn is_current(&self, found: &Lookup, path: &[u8]) -> Result<bool, NotInMemory> {
        match found {
            Lookup::File(entry) | Lookup::Private(entry) | Lookup::Restricted(entry) => {
                let (resolver, path) = (self.resolver.borrow(), relative(path));
                Ok(entry.is_current(&resolver, path)?
                    && matches!(found, Lookup::Restricted(_))
                        == (self.rules.restriction(&resolver, path)? == Restriction::Denied))
            }
            _ => Ok(false),
        }
    }

    fn store(&self, path: &[u8], found: Lookup, now_ms: u64) -> Lookup {
        let valid_ms = match found {
            Lookup::File(_)
            | Lookup::Private(_)
            | Lookup::Restricted(_)
            | Lookup::Directory
            | Lookup::Script
            | Lookup::Linked { .. } => self.rules.options.cache_valid_ms,
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
                [b'.', ..] if !self.rules.serves_dot_name(component) => {
                    return Some(Lookup::Forbidden(ForbiddenReason::DotFile));
                }
                _ => {}
            }
        }
        None
    }
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
