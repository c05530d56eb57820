//! Settings of a store.

use std::fmt;
use std::path::PathBuf;

/// Settings of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where records are stored.
    pub engine: Engine,
    /// Which threads wait for disks.
    pub mode: Mode,
    /// Which requests are rejected under overload.
    pub overload: Overload,
    /// Size of the record cache over all namespaces, in bytes; the block cache may use as much
    /// again.
    pub cache_bytes: usize,
    /// Size at which the write buffer of a namespace is sealed, in bytes; twice that at most is in
    /// memory.
    pub buffer_bytes: u64,
    /// The most reads of a namespace that wait for a disk.
    pub reads_waiting: usize,
    /// The most writes of a namespace that wait for a disk.
    pub writes_waiting: usize,
    /// The target queueing delay, in milliseconds.
    pub wait_ms: u64,
    /// The namespaces.
    pub namespaces: Vec<NamespaceSettings>,
}

impl Settings {
    /// The defaults.
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

/// Where records are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// Files in this folder, which is created if it does not exist.
    Folder(PathBuf),
    /// Redis, which decides the durability.
    Redis(RedisSettings),
}

/// A Redis, or a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// Some of the nodes, `host:port`; they know the others.
    pub nodes: Vec<String>,
    /// The user; `None` for `default`.
    pub user: Option<String>,
    /// The password, if Redis requires one.
    pub password: Option<String>,
    /// The prefix of all keys.
    pub prefix: String,
    /// How many nodes have a record: the primary and its replicas.
    pub copies: u32,
    /// How long a write waits for replicas, in milliseconds.
    pub ack_wait_ms: u64,
    /// How long requests are retried while nodes do not reply, in milliseconds.
    pub timeout_ms: u64,
}

/// The password is omitted.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// One namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSettings {
    /// Letters, digits, `-` and `_`: the name is also that of a folder.
    pub name: String,
    /// The durability of a write.
    pub durability: Durability,
    /// The memory limit of a namespace in memory, in bytes.
    pub memory_max_bytes: usize,
}

impl NamespaceSettings {
    /// A namespace with a memory limit of 64 MiB.
    pub fn new(name: &str, durability: Durability) -> Self {
        Self { name: name.to_owned(), durability, memory_max_bytes: 64 << 20 }
    }
}

/// The durability of a write when its result is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The write is synced to disk: nothing that was confirmed is lost.
    Always,
    /// The write is in the page cache, and synced within this many milliseconds: a crash of the
    /// server loses nothing, a crash of the machine at most this.
    Interval(u64),
    /// The write is in memory, and lost when the server stops.
    Memory,
}

/// Which threads wait for disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Threads of the store; concurrent writes are committed together.
    Asynchronous,
    /// The calling thread, one request at a time: for comparison only.
    Synchronous,
}

/// Which requests are rejected under overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// The newest: accepted requests keep their latency.
    RejectNewest,
    /// The oldest: its client has probably given up.
    DropOldest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_redis_is_in_no_message() {
        let redis = RedisSettings {
            nodes: vec!["h:6379".into()],
            user: Some("app".into()),
            password: Some("hunter2".into()),
            prefix: "p:".into(),
            copies: 1,
            ack_wait_ms: 0,
            timeout_ms: 0,
        };
        let settings = Settings { engine: Engine::Redis(redis), ..Settings::new(PathBuf::new()) };
        let text = format!("{settings:?}");
        assert!(text.contains("h:6379") && !text.contains("hunter2"), "{text}");
    }
}
