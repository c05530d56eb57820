//! `maintenance` of an app: a page in place of the app.

use super::table::table;
use crate::scalar::{FilePath, PathPattern, Peer, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maintenance: whether it is on, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum MaintenanceEntry {
    /// Whether it is on.
    Switch(bool),
    /// A table.
    Table(Box<Maintenance>),
}

impl Default for MaintenanceEntry {
    fn default() -> Self {
        Self::Switch(false)
    }
}

table! {
    /// Maintenance: clients get 503 and a page in place of the app.
    pub(crate) struct Maintenance {
        /// File that switches it on for as long as the file exists, which takes effect within a second, without a
        /// reload; relative to the configuration file. A file that cannot be looked for counts as existing.
        /// Default: it is on.
        pub(crate) file: Option<FilePath> = None,
        /// When clients may try again, for `Retry-After`.
        pub(crate) retry_after: Period = Period(300_000),
        /// The page: a file relative to the root, read at start and at each reload. Default: a built-in one.
        #[schemars(extend("x-alias" = ["error_page", "ErrorDocument"]))]
        pub(crate) page: Option<FilePath> = None,
        /// Paths of files that are served meanwhile, such as images of the page. No script runs there.
        pub(crate) assets: Vec<PathPattern> = Vec::new(),
        /// Networks whose clients get the app. `"unix"` stands for peers on a Unix socket.
        #[schemars(extend("x-alias" = ["whitelist", "except"]))]
        pub(crate) allow: Vec<Peer> = Vec::new(),
    }
}
