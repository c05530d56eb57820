//! [`ColdLookup`]: a lookup that may wait for a disk, to be run by another thread.
//!
//! Returned by [`crate::Root::lookup_in_memory`]. Invariants: its path has been checked like
//! those of other lookups; it has its own handles of the root, so that it needs nothing of the requests'
//! thread.

use std::path::Path;
use std::sync::Arc;

use crate::lookup::{Lookup, find};
use crate::opened::Opened;
use crate::resolve::{Resolver, Tree};
use crate::rules::EntryRules;

/// See the module.
#[derive(Debug)]
pub struct ColdLookup {
    pub(crate) path: Box<[u8]>,
    /// Identifies the root.
    pub(crate) root: u64,
    /// The root as it was given.
    pub(crate) root_path: Arc<Path>,
    pub(crate) resolver: Resolver,
    pub(crate) rules: Arc<EntryRules>,
}

/// The result of a [`ColdLookup`], for [`crate::Root::complete`].
#[derive(Debug)]
pub struct ColdResult {
    pub(crate) path: Box<[u8]>,
    pub(crate) found: Lookup<Opened>,
    /// The root, if a deployment has moved it.
    pub(crate) moved_root: Option<Arc<Tree>>,
}

impl ColdLookup {
    /// The path.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// A number that the lookups of one root share, and those of no other.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Looks the path up, and waits for the disk.
    pub fn run(self) -> ColdResult {
        let Self { path, root_path, mut resolver, rules, .. } = self;
        resolver.may_wait = true;
        let never = "a resolver that may wait reports no need to wait";
        let moved_root = resolver.moved_root(&root_path).expect(never).map(Arc::new);
        if let Some(root) = &moved_root {
            resolver.root = root.clone();
        }
        let found = find(&resolver, &path, &rules).expect(never);
        ColdResult { path, found, moved_root }
    }
}
