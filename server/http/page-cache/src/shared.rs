//! A reference of one shard to a page: what its requests hold while they use it.
//!
//! A shard counts its references to a page by itself and has one of those that all shards count:
//! otherwise each hit would write to a cache line that the hits of other shards write to.

use crate::entry::Entry;
use crate::store::Stored;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub struct Shared(Rc<OfShard>);

/// The reference that all shards count.
#[derive(Debug)]
struct OfShard(Arc<Stored>);

impl Shared {
    /// The entry as the store has it.
    pub(crate) fn stored(&self) -> &Arc<Stored> {
        &self.0.0
    }
}

impl From<Arc<Stored>> for Shared {
    fn from(stored: Arc<Stored>) -> Self {
        Self(Rc::new(OfShard(stored)))
    }
}

impl From<Entry> for Shared {
    fn from(entry: Entry) -> Self {
        Arc::new(Stored::without_store(entry)).into()
    }
}

impl Deref for Shared {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0.0
    }
}
