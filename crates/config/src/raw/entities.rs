//! `entities`: the entity store.

use crate::scalar::{Address, AppName, ByteSize, FilePath, Peer, Period, PlainText, UrlPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The entity store: records under names, over HTTP and for PHP.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Entities {
    /// Who keeps the records.
    pub(crate) engine: EntityEngine,
    /// Where `disk` keeps them; absent: there is no entity store, unless Redis keeps it.
    #[schemars(extend("x-former" = ["folder"], "x-alias" = ["dir", "path_to_data"]))]
    pub(crate) data_dir: Option<FilePath>,
    /// The beginning of the paths under which every listener answers for it, such as `/v0`;
    /// absent: none does.
    pub(crate) path: Option<UrlPath>,
    /// A listener that answers for it alone, under `/v0`; absent: there is none.
    pub(crate) listen: Option<Address>,
    /// Who sends `Authorization: Bearer` with this may read and write.
    pub(crate) token: Option<PlainText>,
    /// Peers that may read and write without a token; absent: those on this machine, over `listen`
    /// alone and if there are no token and but one app; PHP of several apps is on this machine, too.
    #[schemars(extend("x-former" = ["trusted"]))]
    pub(crate) trusted_clients: Option<Vec<Peer>>,
    /// What an answer to a write promises in the namespace `default`.
    #[schemars(extend("x-alias" = ["appendfsync", "fsync"]))]
    pub(crate) durability: Durability,
    /// With durability `interval`: how often what was written is synced to the disk.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) interval: Period,
    /// The longest value; longer: 413.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "64 MiB", "x-alias" = ["proto-max-bulk-len"]))]
    pub(crate) max_value: ByteSize,
    /// Memory for records that were read or written lately; as much again is used for blocks of
    /// files.
    #[schemars(extend("x-former" = ["memory"], "x-minimum" = "64 KiB", "x-maximum" = "1024 GiB", "x-alias" = ["maxmemory", "cache"]))]
    pub(crate) cache_size: ByteSize,
    /// Memory of what was written and is not yet in a sorted file, per namespace; up to four times
    /// that while the disk is behind.
    #[schemars(extend("x-former" = ["buffer"], "x-minimum" = "64 KiB", "x-maximum" = "1 GiB"))]
    pub(crate) write_buffer: ByteSize,
    /// Reads that may wait for a disk; as many writes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) queue_length: u32,
    /// How long reads and writes should wait for their turn at most; when they wait longer all the
    /// time, some are refused (503).
    #[schemars(extend("x-former" = ["wait"], "x-minimum" = "1ms"))]
    pub(crate) queue_timeout: Period,
    /// What is refused when too much waits.
    pub(crate) overload: Overload,
    /// How disks are waited for.
    pub(crate) mode: EntityMode,
    /// Where Redis is, with engine `redis`.
    pub(crate) redis: EntityRedis,
    /// Further namespaces, each under its name.
    #[schemars(extend("propertyNames" = { "format": <AppName as crate::scalar::Scalar>::NAME }))]
    pub(crate) namespace: BTreeMap<String, EntityNamespace>,
}

/// Who keeps the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum EntityEngine {
    /// This server, in `data_dir`.
    Disk,
    /// Redis or Valkey, alone or a cluster: see `kv.redis`.
    Redis,
}

/// What an answer to a write promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Durability {
    /// It is on the disk.
    Always,
    /// The operating system has it, and the disk within the interval.
    Interval,
    /// It is in memory, and gone with the server.
    Memory,
}

/// What is refused when too much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Overload {
    /// What comes last.
    RejectNewest,
    /// What has waited longest.
    DropOldest,
}

/// How disks are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EntityMode {
    /// By threads of the store's own.
    Asynchronous,
    /// By the whole server, one request at a time: for comparison only.
    Synchronous,
}

/// The Redis that keeps the records, or a cluster of them. What an answer promises is what its
/// nodes were told to do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EntityRedis {
    /// Some of the nodes, as `host:port`; they know the others. Without a cluster: the one.
    pub(crate) nodes: Vec<PlainText>,
    /// Who we are there; absent: `default`.
    pub(crate) user: Option<PlainText>,
    /// The password, if one is wanted.
    pub(crate) password: Option<PlainText>,
    /// What all keys begin with.
    pub(crate) prefix: PlainText,
    /// How many nodes have a record, the primary among them. More than half of them have to have a
    /// write over HTTP before it is answered, unless the request says otherwise with `ack`.
    #[schemars(range(min = 1, max = 16), extend("x-former" = ["copies"]))]
    pub(crate) replicas: u32,
    /// How long a write waits for that; then: 504.
    #[schemars(extend("x-former" = ["ack_wait"], "x-minimum" = "1ms"))]
    pub(crate) ack_timeout: Period,
    /// How long something is tried again while a node does not answer, such as until another has
    /// taken its place; then: 504.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) timeout: Period,
}

/// A namespace of the entity store.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EntityNamespace {
    /// What an answer to a write promises.
    pub(crate) durability: Durability,
    /// With durability `interval`: how often what was written is synced to the disk.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) interval: Period,
    /// With durability `memory`: the memory of all records; what does not fit is refused (507).
    #[schemars(extend("x-former" = ["memory"], "x-minimum" = "64 KiB", "x-maximum" = "1024 GiB"))]
    pub(crate) max_memory: ByteSize,
}

impl Default for Entities {
    fn default() -> Self {
        Entities {
            engine: EntityEngine::Disk,
            redis: EntityRedis::default(),
            data_dir: None,
            path: None,
            listen: None,
            token: None,
            trusted_clients: None,
            durability: Durability::Interval,
            interval: Period(1_000),
            max_value: ByteSize(1 << 20),
            cache_size: ByteSize(64 << 20),
            write_buffer: ByteSize(16 << 20),
            queue_length: 4096,
            queue_timeout: Period(5),
            overload: Overload::RejectNewest,
            mode: EntityMode::Asynchronous,
            namespace: BTreeMap::new(),
        }
    }
}

impl Default for EntityRedis {
    fn default() -> Self {
        EntityRedis {
            nodes: Vec::new(),
            user: None,
            password: None,
            prefix: PlainText("outboard:".to_owned()),
            replicas: 1,
            ack_timeout: Period(1_000),
            timeout: Period(5_000),
        }
    }
}

impl Default for EntityNamespace {
    fn default() -> Self {
        EntityNamespace {
            durability: Durability::Interval,
            interval: Period(1_000),
            max_memory: ByteSize(64 << 20),
        }
    }
}
