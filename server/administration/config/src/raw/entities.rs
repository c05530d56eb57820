//! `[kv]`: the entity store.

use super::table::table;
use crate::scalar::{
    Address, AppName, As, ByteSize, FilePath, Peer, Period, PlainText, Secret, UrlPath,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

table! {
    /// The entity store: key-value records, available over HTTP and to PHP.
    pub(crate) struct Entities {
        /// Where records are stored.
        pub(crate) engine: EntityEngine = EntityEngine::Disk,
        /// Data directory of the `disk` engine. Default: none, which disables the `disk` engine.
        #[schemars(extend("x-alias" = ["dir", "path_to_data"]))]
        pub(crate) data_dir: Option<FilePath> = None,
        /// URL path prefix of the HTTP API on every listener, such as `/v0`. Default: none.
        pub(crate) path: Option<UrlPath> = None,
        /// Address of a separate listener for the HTTP API, under `/v0`. Default: none.
        pub(crate) listen: Option<Address> = None,
        /// Bearer token that allows a client to read and write (`Authorization: Bearer TOKEN`).
        pub(crate) token: Option<PlainText> = None,
        /// Peers that can read and write without a token. Default: local peers, over `listen` only and
        /// if the file sets no token and has one app. (PHP of several apps is local, too.)
        pub(crate) trusted_clients: Option<Vec<Peer>> = None,
        /// When a write to the namespace `default` is acknowledged.
        #[schemars(extend("x-alias" = ["appendfsync", "fsync"]))]
        pub(crate) durability: Durability = Durability::Interval,
        /// With durability `interval`: time between syncs to disk.
        #[schemars(extend("x-minimum" = "1ms"))]
        pub(crate) interval: Period = Period(1_000),
        /// Maximum size of a value; larger values get 413.
        #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "64 MiB", "x-alias" = ["proto-max-bulk-len"]))]
        pub(crate) max_value: ByteSize = ByteSize(1 << 20),
        /// Memory for recently used records. The cache of file blocks uses the same amount again.
        #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1024 GiB", "x-alias" = ["maxmemory", "cache"]))]
        pub(crate) cache_size: ByteSize = ByteSize(64 << 20),
        /// Memory for writes that are not yet in a sorted file, per namespace; up to four times as much
        /// while the disk is behind.
        #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1 GiB"))]
        pub(crate) write_buffer: ByteSize = ByteSize(16 << 20),
        /// Maximum number of reads waiting for the disk, and the same number of writes.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub(crate) queue_length: u32 = 4096,
        /// Target queueing delay of reads and writes. While the delay stays above it, some requests are
        /// refused with 503.
        #[schemars(extend("x-minimum" = "1ms"))]
        pub(crate) queue_timeout: Period = Period(5),
        /// Which requests are refused under overload.
        pub(crate) overload: Overload = Overload::RejectNewest,
        /// How disk operations run.
        pub(crate) mode: EntityMode = EntityMode::Asynchronous,
        /// Connection to Redis, for engine `redis`.
        pub(crate) redis: EntityRedis = EntityRedis::default(),
        /// Additional namespaces, by name.
        #[schemars(extend("propertyNames" = { "format": <AppName as crate::scalar::Scalar>::NAME }))]
        pub(crate) namespace: BTreeMap<String, EntityNamespace> = BTreeMap::new(),
    }
}

/// Where records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum EntityEngine {
    /// In files of this server, in `data_dir`.
    Disk,
    /// In Redis or Valkey, a single server or a cluster; see `kv.redis`.
    Redis,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Durability {
    /// After it is synced to disk.
    Always,
    /// After it is written to the operating system; it is synced to disk within `interval`.
    Interval,
    /// After it is in memory; it is lost when the server stops.
    Memory,
}

/// Which requests are refused under overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Overload {
    /// The newest.
    RejectNewest,
    /// The one that has waited longest.
    DropOldest,
}

/// How disk operations run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EntityMode {
    /// In threads of the store.
    Asynchronous,
    /// In the gateway's thread, one at a time, which blocks the server. For comparison only.
    Synchronous,
}

table! {
    /// The Redis server or cluster that stores the records. Durability is as configured on its nodes.
    #[derive(PartialEq, Eq)]
    pub struct EntityRedis {
        /// Some nodes of the cluster, as `host:port`; the others are discovered. Without a cluster: the
        /// one server.
        #[serde(with = "As::<Vec<PlainText>>")]
        pub nodes: Vec<String> = Vec::new(),
        /// User name. Default: `default`.
        #[serde(with = "As::<Option<PlainText>>")]
        pub user: Option<String> = None,
        /// Password. Default: none.
        pub password: Option<Secret> = None,
        /// Prefix of all keys.
        #[serde(with = "As::<PlainText>")]
        pub prefix: String = "outboard:".to_owned(),
        /// Number of nodes that hold a record, including the primary. A write over HTTP is acknowledged
        /// once more than half of them have it, unless the request sets `ack`.
        #[schemars(range(min = 1, max = 16))]
        pub replicas: u32 = 1,
        /// Maximum time a write waits for this acknowledgement; then it gets 504.
        #[schemars(extend("x-minimum" = "1ms"))]
        #[serde(rename = "ack_timeout", with = "As::<Period>")]
        pub ack_timeout_ms: u64 = 1_000,
        /// Maximum time for retries while a node does not respond, for example during a failover; then
        /// the request gets 504.
        #[schemars(extend("x-minimum" = "1ms"))]
        #[serde(rename = "timeout", with = "As::<Period>")]
        pub timeout_ms: u64 = 5_000,
    }
}

table! {
    /// A namespace of the entity store.
    #[derive(PartialEq, Eq)]
    pub struct EntityNamespace {
        /// When a write is acknowledged.
        pub durability: Durability = Durability::Interval,
        /// With durability `interval`: time between syncs to disk.
        #[schemars(extend("x-minimum" = "1ms"))]
        #[serde(rename = "interval", with = "As::<Period>")]
        pub interval_ms: u64 = 1_000,
        /// With durability `memory`: maximum memory of all records; writes that do not fit get 507.
        #[schemars(extend("x-minimum" = "64 KiB", "x-maximum" = "1024 GiB"))]
        #[serde(rename = "max_memory", with = "As::<ByteSize>")]
        pub max_memory_bytes: u64 = 64 << 20,
        /// Its name.
        #[serde(skip)]
        pub name: String = String::new(),
    }
}
