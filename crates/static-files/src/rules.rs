//! [`EntryRules`]: what a root's entries have in common. Shared by them, and by lookups in other threads.

use std::hash::RandomState;

use crate::options::RootOptions;
use crate::source::SourceNames;

/// The rules of a root for its entries.
#[derive(Debug)]
pub(crate) struct EntryRules {
    pub(crate) options: RootOptions,
    pub(crate) names: SourceNames,
    pub(crate) boundary_key: RandomState,
}
