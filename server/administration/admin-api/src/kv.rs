//! The key-value store. `GET /kv/backup` replies with a backup and not with JSON; `/v0/…` is the
//! same as over HTTP.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] =
    &[describe::<Stats>(), describe::<Restore>(), describe::<Compact>()];

/// Path of the endpoint that replies with a backup: of one `namespace`, from `start` to before `end`.
pub const BACKUP_PATH: &str = "/kv/backup";

/// Counters and sizes of the namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stats {
    /// One namespace only.
    pub namespace: Option<String>,
}

/// The reply to [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Namespaces {
    /// Each of them.
    pub namespaces: Vec<NamespaceStats>,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceStats {
    /// Name of the namespace.
    pub namespace: String,
    /// When a write is acknowledged.
    pub durability: String,
    /// Records on disk, about.
    pub records: u64,
    /// Sorted files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Bytes in the write buffer and in no sorted file yet.
    pub buffered_bytes: u64,
    /// Records in memory.
    pub cached_records: u64,
    /// Their bytes.
    pub cached_bytes: u64,
    /// Writes since start.
    pub writes: u64,
    /// Commits since start; one commit holds many writes.
    pub commits: u64,
    /// Writes refused since start.
    pub writes_refused: u64,
    /// Writes in the queue.
    pub writes_waiting: u64,
    /// Reads that needed the disk.
    pub reads_from_disk: u64,
    /// Reads refused since start.
    pub reads_refused: u64,
    /// Reads in the queue.
    pub reads_waiting: u64,
    /// Files that failed their checksum.
    pub damaged: Vec<String>,
    /// Findings of the recovery at the last start.
    pub findings: Vec<String>,
}

/// Writes the records of a backup, which is the body of the request, 80 MiB at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Restore {
    /// Into this namespace. Default: `default`.
    pub namespace: Option<String>,
}

/// The reply to [`Restore`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// Records written.
    pub restored: usize,
}

/// Merges the sorted files of a namespace, and replies when that is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Compact {
    /// This namespace. Default: `default`.
    pub namespace: Option<String>,
}

/// The reply to [`Compact`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// The namespace.
    pub compacted: String,
}

impl Endpoint for Stats {
    type Reply = Namespaces;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/kv/stats";
}

impl Endpoint for Restore {
    type Reply = Restored;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/kv/restore";
}

impl Endpoint for Compact {
    type Reply = Compacted;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/kv/compact";
}
