//! The opcode caches.

use crate::endpoint::{Description, Endpoint, Failure, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Get>()];

/// The opcode cache of each app, as PHP's `opcache_get_status(false)` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Get {}

/// The reply to [`Get`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caches {
    /// By the name of the app.
    pub apps: BTreeMap<String, Cache>,
}

/// The cache of one app, or why there is no report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Cache {
    /// No report.
    Failed(Failure),
    /// PHP's report.
    Report(Box<Report>),
}

/// PHP's report; further keys of it are passed on as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Report {
    /// Whether the cache takes no further scripts.
    pub cache_full: bool,
    /// Shared memory.
    pub memory_usage: MemoryUsage,
    /// Interned strings.
    pub interned_strings_usage: StringsUsage,
    /// Counters since PHP's start.
    pub opcache_statistics: Statistics,
    /// Whatever else PHP reports.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// Shared memory of the cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryUsage {
    /// Bytes of scripts.
    pub used_memory: u64,
    /// Bytes free.
    pub free_memory: u64,
    /// Bytes of replaced scripts, free after a restart of the cache.
    pub wasted_memory: u64,
    /// Whatever else PHP reports.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// Memory of interned strings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StringsUsage {
    /// Bytes of the buffer.
    pub buffer_size: u64,
    /// Bytes used.
    pub used_memory: u64,
    /// Whatever else PHP reports.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// Counters of the cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Statistics {
    /// Scripts in the cache.
    pub num_cached_scripts: u64,
    /// Keys in its hash table.
    pub num_cached_keys: u64,
    /// Keys that the table has room for.
    pub max_cached_keys: u64,
    /// Lookups that found a script.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Restarts because memory ran out.
    pub oom_restarts: u64,
    /// Restarts because the hash table was full.
    pub hash_restarts: u64,
    /// Restarts by `opcache_reset()`.
    pub manual_restarts: u64,
    /// Whatever else PHP reports.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

impl Endpoint for Get {
    type Reply = Caches;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/opcache";
}
