//! [`Common`]: what an app has in common with its other threads and with the rest of the server.
//!
//! Passed to [`App::open`](super::App::open) by the builder of a generation. Invariant: nothing here has a default,
//! since an empty table of limits admits everything.

use crate::access::RateLimits;
use crate::upstreams::Upstreams;
use outboard_page_cache::Pages;
use outboard_php_pool::freshness::Snapshots;
use outboard_static_files::CompressedFiles;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) caches: Caches,
    pub(crate) rate_limits: Rc<RateLimits>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) snapshots: Arc<Snapshots>,
}

/// Where pages and compressed files of an app are kept.
#[derive(Debug)]
pub(crate) enum Caches {
    /// In new caches; `is_first` if no generation was before this one.
    Own { is_first: bool },
    /// In those of the lead.
    OfLead(SharedCaches),
}

/// What the threads keep together for an app.
#[derive(Debug, Clone)]
pub(crate) struct SharedCaches {
    pub(super) pages: Option<Arc<Pages>>,
    pub(super) compressed_files: Option<Arc<CompressedFiles>>,
}
