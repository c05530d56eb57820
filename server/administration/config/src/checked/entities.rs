//! The entity store.

use super::{Context, Forwarding, ListenAddress, Secret, listen};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, Peer};
use std::path::PathBuf;

pub use crate::raw::{Durability, EntityMode, Overload};

/// The name of the namespace that always exists.
const DEFAULT: &str = "default";

/// The entity store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entities {
    /// Storage settings, which a reload cannot change.
    pub storage: EntityStorage,
    /// URL path prefix of the HTTP API on every listener; `None`: none.
    pub path: Option<String>,
    /// Address of a separate listener for the HTTP API.
    pub listen: Option<ListenAddress>,
    /// Bearer token that allows a client to read and write.
    pub token: Option<String>,
    /// Peers that can read and write without a token.
    pub trusted_clients: Forwarding,
    /// Maximum size of a value; larger values get 413.
    pub max_value_bytes: u64,
}

/// Storage settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityStorage {
    /// Where records are stored.
    pub engine: EntityEngine,
    /// How disk operations run.
    pub mode: EntityMode,
    /// Which requests are refused under overload.
    pub overload: Overload,
    /// Memory for recently used records.
    pub cache_bytes: u64,
    /// Memory for writes that are not yet in a sorted file, per namespace.
    pub write_buffer_bytes: u64,
    /// Maximum number of reads waiting for the disk, and the same number of writes.
    pub queue_length: u32,
    /// Target queueing delay.
    pub queue_timeout_ms: u64,
    /// The namespaces; the first is `default`.
    pub namespaces: Vec<EntityNamespace>,
}

/// Where records are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityEngine {
    /// In files of this server, in this directory, which is created if missing.
    Disk(PathBuf),
    /// In Redis or Valkey.
    Redis(EntityRedis),
}

impl EntityEngine {
    /// Whether other gateways can have the same records.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Redis(_))
    }
}

/// A Redis server or cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRedis {
    /// Some of the nodes, `host:port`.
    pub nodes: Vec<String>,
    /// User name.
    pub user: Option<String>,
    /// Password.
    pub password: Option<Secret>,
    /// Prefix of all keys.
    pub prefix: String,
    /// Number of nodes that hold a record.
    pub replicas: u32,
    /// Maximum time a write waits for replicas.
    pub ack_timeout_ms: u64,
    /// Maximum time for retries.
    pub timeout_ms: u64,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityNamespace {
    /// Its name.
    pub name: String,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Time between syncs to disk.
    pub interval_ms: u64,
    /// In memory: maximum memory of all records.
    pub max_memory_bytes: u64,
}

/// `apps`: how many there are.
pub(super) fn entities(
    raw: &raw::Entities,
    apps: usize,
    context: &mut Context<'_>,
) -> Option<Entities> {
    let engine = engine(raw, context)?;
    check_access(raw, context);
    let on_this_machine = [Peer::Unix].into_iter().chain(loopback()).collect();
    let trusted = match (&raw.trusted_clients, &raw.listen) {
        (Some(trusted), _) => trusted.clone(),
        // With a token, every client needs it.
        (None, Some(_)) if raw.token.is_some() => Vec::new(),
        // PHP of several apps is local, too, and must not see the records of another app.
        (None, Some(_)) if raw.path.is_none() && apps <= 1 => on_this_machine,
        (None, _) => Vec::new(),
    };
    let address = raw.listen.as_ref().map(|address| {
        listen::address(address, listen::DEFAULT_SOCKET_MODE, &["kv", "listen"], context)
    });
    Some(Entities {
        storage: EntityStorage {
            engine,
            mode: raw.mode,
            overload: raw.overload,
            cache_bytes: raw.cache_size.0,
            write_buffer_bytes: raw.write_buffer.0,
            queue_length: raw.queue_length,
            queue_timeout_ms: raw.queue_timeout.0,
            namespaces: namespaces(raw, context),
        },
        path: raw.path.as_ref().map(|path| path.0.trim_end_matches('/').to_owned()),
        listen: address,
        token: raw.token.as_ref().map(|token| token.0.clone()),
        trusted_clients: listen::forwarding(&trusted, &[]),
        max_value_bytes: raw.max_value.0,
    })
}

/// Namespaces that apps refer to must exist.
pub(super) fn check_owners(
    raw: &raw::File,
    entities: Option<&Entities>,
    context: &mut Context<'_>,
) {
    let known = |name: &str| {
        entities.is_some_and(|entities| {
            entities.storage.namespaces.iter().any(|namespace| namespace.name == name)
        })
    };
    for (app, raw) in &raw.app {
        for (index, name) in raw.kv_namespaces.iter().flatten().enumerate() {
            if !known(&name.0) {
                let fault = Fault::new(format!("the entity store has no namespace `{}`", name.0))
                    .hint(format!("add [kv.namespace.{}]", name.0));
                let step = index.to_string();
                context.value(&["app", app, "kv_namespaces", &step], Kind::Conflict, fault);
            }
        }
    }
}

/// `None` if the store is disabled.
fn engine(raw: &raw::Entities, context: &mut Context<'_>) -> Option<EntityEngine> {
    match (raw.engine, &raw.data_dir) {
        (raw::EntityEngine::Redis, _) => return Some(EntityEngine::Redis(redis(raw, context))),
        (raw::EntityEngine::Disk, Some(directory)) => {
            return Some(EntityEngine::Disk(context.absolute(directory)));
        }
        (raw::EntityEngine::Disk, None) => {}
    }
    for key in ["path", "listen", "namespace"] {
        if context.places.wrote(&["kv", key]) {
            let fault = Fault::new("the entity store has no data directory")
                .hint("add data_dir = \"/var/lib/outboard/entities\", or engine = \"redis\"");
            context.key(&["kv", key], Kind::MissingKey, fault);
        }
    }
    None
}

fn redis(raw: &raw::Entities, context: &mut Context<'_>) -> EntityRedis {
    for key in ["data_dir", "durability", "interval", "cache_size", "write_buffer", "mode"] {
        if context.places.wrote(&["kv", key]) {
            let fault = Fault::new(format!("`{key}` is for the engine `disk`"))
                .hint("configure this in Redis itself");
            context.key(&["kv", key], Kind::BadValue, fault);
        }
    }
    for name in raw.namespace.keys() {
        let place = ["kv", "namespace", name, "durability"];
        if context.places.wrote(&place) {
            let fault = Fault::new("durability cannot be set per namespace in Redis")
                .hint("configure Redis itself: appendonly, appendfsync");
            context.key(&place, Kind::BadValue, fault);
        }
    }
    let redis = &raw.redis;
    if redis.nodes.is_empty() {
        let fault = Fault::new("no Redis nodes are configured")
            .hint("add [kv.redis] nodes = [\"127.0.0.1:6379\"]");
        context.value(&["kv", "engine"], Kind::MissingKey, fault);
    }
    for node in &redis.nodes {
        let port = node.0.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            let fault = Fault::new(format!("`{}` is not host:port", node.0));
            context.value(&["kv", "redis", "nodes"], Kind::BadValue, fault);
        }
    }
    EntityRedis {
        nodes: redis.nodes.iter().map(|node| node.0.clone()).collect(),
        user: redis.user.as_ref().map(|user| user.0.clone()),
        password: redis.password.as_ref().map(|password| Secret(password.0.clone())),
        prefix: redis.prefix.0.clone(),
        replicas: redis.replicas,
        ack_timeout_ms: redis.ack_timeout.0,
        timeout_ms: redis.timeout.0,
    }
}

fn loopback() -> impl Iterator<Item = Peer> {
    use crate::scalar::Scalar;
    let read = |text| Peer::read(crate::scalar::Written::Text(text));
    ["127.0.0.0/8", "::1"].into_iter().filter_map(move |text| read(text).ok())
}

/// The listeners of the apps are reachable by all clients, so a path on them needs a token or
/// trusted clients.
fn check_access(raw: &raw::Entities, context: &mut Context<'_>) {
    if raw.path.is_some() && raw.token.is_none() && raw.trusted_clients.is_none() {
        let fault = Fault::new("the entity store has a path but no authorised clients")
            .hint("add token = \"…\" or trusted_clients = [\"10.0.0.0/8\"]; behind a proxy every client can look local");
        context.value(&["kv", "path"], Kind::MissingKey, fault);
    }
    if raw.token.as_ref().is_some_and(|token| token.0.len() < 16) {
        let fault = Fault::new("the token is too short")
            .hint("use at least 16 characters: openssl rand -hex 32");
        context.value(&["kv", "token"], Kind::BadValue, fault);
    }
}

fn namespaces(raw: &raw::Entities, context: &mut Context<'_>) -> Vec<EntityNamespace> {
    if raw.namespace.contains_key(DEFAULT) {
        let fault =
            Fault::new("the namespace `default` is configured in [kv]").hint("move its keys there");
        context.key(&["kv", "namespace", DEFAULT], Kind::Duplicate, fault);
    }
    let first = EntityNamespace {
        name: DEFAULT.to_owned(),
        durability: raw.durability,
        interval_ms: raw.interval.0,
        max_memory_bytes: raw.cache_size.0,
    };
    let further = raw.namespace.iter().map(|(name, namespace)| EntityNamespace {
        name: name.clone(),
        durability: namespace.durability,
        interval_ms: namespace.interval.0,
        max_memory_bytes: namespace.max_memory.0,
    });
    std::iter::once(first).chain(further).collect()
}
