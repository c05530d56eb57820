//! Arguments of `cache`: the page cache.

use super::admin::AdminArguments;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Hit rate and memory of the cache.
    Stats(CacheSelector),
    /// Cached pages, at most 1000.
    List {
        #[command(flatten)]
        pick: CacheSelector,
        /// Only URLs or paths with this prefix.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// All variants of a page, with their headers.
    Get {
        #[command(flatten)]
        pick: CacheSelector,
        /// The URL, or its path with the query.
        url: String,
    },
    /// Render pages of recent hits again, and report those that depend on the visitor.
    ///
    /// Exit code 0: none was found, 1: some were found, or the request failed.
    Audit {
        #[command(flatten)]
        pick: CacheSelector,
        /// Maximum number of pages.
        #[arg(long, value_name = "COUNT", default_value_t = 16)]
        sample: usize,
    },
    /// Purge pages; when this returns, none of them is served any more.
    Purge(PurgeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CacheSelector {
    /// The app [default: every app with a cache].
    #[arg(long, value_name = "NAME")]
    pub(crate) app: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// A URL, or a path with its query string for every host.
    #[arg(required_unless_present_any = ["prefix", "tag", "all"])]
    pub(crate) url: Option<String>,
    /// All URLs or paths with this prefix.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// All pages with this tag. May be given more than once.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// All pages.
    #[arg(long)]
    pub(crate) all: bool,
    /// Serve the old pages while new ones are rendered.
    #[arg(long)]
    pub(crate) soft: bool,
    #[command(flatten)]
    pub(crate) pick: CacheSelector,
}
