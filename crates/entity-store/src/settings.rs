//! How a store is run.

use std::fmt;
use std::path::PathBuf;

/// A store: who keeps the records, and what it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Who keeps the records.
    pub engine: Engine,
    /// How disks are waited for.
    pub mode: Mode,
    /// What is refused when more comes than can be done.
    pub overload: Overload,
    /// Memory for records that were read or written lately, over all namespaces; as much again is
    /// used for blocks of files. Bytes.
    pub cache_bytes: usize,
    /// Memory of what was written and is not yet in a sorted file, per namespace and twice that at
    /// most. Bytes.
    pub buffer_bytes: u64,
    /// Most reads of a namespace that may wait for a disk.
    pub reads_waiting: usize,
    /// Most writes of a namespace that may wait for a disk.
    pub writes_waiting: usize,
    /// How long a read or write should wait for its turn at most, in milliseconds.
    pub wait_ms: u64,
    /// The namespaces; others do not exist.
    pub namespaces: Vec<NamespaceSettings>,
}

impl Settings {
    /// What holds unless told otherwise.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            engine: Engine::Folder(folder),
            mode: Mode::Asynchronous,
            overload: Overload::RejectNewest,
            cache_bytes: 64 << 20,
            buffer_bytes: 16 << 20,
            reads_waiting: 4096,
            writes_waiting: 4096,
            wait_ms: 5,
            namespaces: vec![NamespaceSettings::new("default", Durability::Interval(1000))],
        }
    }
}

/// Who keeps the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// This store itself, in a folder; made if it is not there.
    Folder(PathBuf),
    /// Redis; namespaces have the durability that it gives them.
    Redis(RedisSettings),
}

/// A Redis, or a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// Some of the nodes, `host:port`; they know the others.
    pub nodes: Vec<String>,
    /// Who we are there; `None` for `default`.
    pub user: Option<String>,
    /// The password, if one is wanted.
    pub password: Option<String>,
    /// What all keys begin with.
    pub prefix: String,
    /// How many nodes have a record: the primary and its replicas.
    pub copies: u32,
    /// How long a write waits for copies, milliseconds.
    pub ack_wait_ms: u64,
    /// How long something is tried again while nodes do not answer, milliseconds.
    pub timeout_ms: u64,
}

/// Without the password, which is shown to nobody.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// One namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSettings {
    /// Letters, digits, `-` and `_`: it names a folder.
    pub name: String,
    /// What an answer to a write promises.
    pub durability: Durability,
    /// Most memory of a namespace in memory, bytes.
    pub memory_max_bytes: usize,
}

impl NamespaceSettings {
    /// A namespace with a memory budget of 64 MiB.
    pub fn new(name: &str, durability: Durability) -> Self {
        Self { name: name.to_owned(), durability, memory_max_bytes: 64 << 20 }
    }
}

/// What an answer to a write promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk: nothing that is answered is ever lost.
    Always,
    /// It is with the operating system, and on the disk within so many milliseconds: a crash of
    /// the server loses nothing, one of the machine at most that.
    Interval(u64),
    /// It is in memory, and gone with the server.
    Memory,
}

/// How disks are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By threads of the store's own; writes that come together are committed together.
    Asynchronous,
    /// By whoever asks, one at a time: for comparison only.
    Synchronous,
}

/// What is refused when more comes than can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// What comes last: what was accepted keeps its speed.
    RejectNewest,
    /// What has waited longest: its client has probably given up.
    DropOldest,
}
