//! The entity store.

use super::app::App;
use super::context::Context;
use super::forwarding::Forwarding;
use super::listen::{self, ListenAddress};
use crate::diagnostic::Kind;
use crate::raw::{self, Durability, EntityMode, EntityNamespace, EntityRedis, Overload};
use crate::scalar::{Fault, Peer};
use std::path::PathBuf;

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
        (Some(trusted), _) => context.peers(&["kv", "trusted_clients"], trusted),
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
        trusted_clients: Forwarding::new(&trusted, &[]),
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

/// Persistent tasks need a namespace that survives a restart.
pub(super) fn check_namespaces(
    apps: &[App],
    entities: Option<&Entities>,
    context: &mut Context<'_>,
) {
    for app in apps {
        let Some(name) = app.tasks.as_ref().and_then(|tasks| tasks.kv_namespace.as_deref()) else {
            continue;
        };
        let found = entities.and_then(|entities| {
            entities.storage.namespaces.iter().find(|namespace| namespace.name == name)
        });
        let fault = match found {
            None if entities.is_none() => Fault::new("`kv_namespace` needs the entity store")
                .hint("add [kv] with data_dir =  \"/var/lib/outboard/entities\""),
            None => Fault::new(format!("the entity store has no namespace `{name}`"))
                .hint(format!("add [kv.namespace.{name}]")),
            Some(found) if found.durability == Durability::Memory => Fault::new(format!(
                "the namespace `{name}` is in memory and lost when the gateway stops"
            ))
            .hint("set durability = \"always\" or \"interval\""),
            // Each gateway would recover, and run, the tasks of the others.
            Some(_) if entities.is_some_and(|one| one.storage.engine.is_shared()) => Fault::new(
                "the entity store is in Redis, which other gateways can use: each would run all of its tasks",
            )
            .hint("let one gateway keep tasks: [kv] with data_dir there, or no kv_namespace"),
            Some(_) => continue,
        };
        context.value(&["app", &app.name, "tasks", "kv_namespace"], Kind::Conflict, fault);
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
        let port = node.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            let fault = Fault::new(format!("`{node}` is not host:port"));
            context.value(&["kv", "redis", "nodes"], Kind::BadValue, fault);
        }
    }
    redis.clone()
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
    let further = raw
        .namespace
        .iter()
        .map(|(name, namespace)| EntityNamespace { name: name.clone(), ..namespace.clone() });
    std::iter::once(first).chain(further).collect()
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, valid};
    use crate::*;

    #[test]
    fn an_entity_store_is_a_directory_or_redis() {
        let entities = |text: &str| valid(&format!("{APP}[kv]\n{text}")).entities;
        assert_eq!(entities(""), None);
        let disk = entities("data_dir = \"kv\"").unwrap().storage.engine;
        assert_eq!(disk, EntityEngine::Disk("/srv/www/kv".into()));
        let redis = entities("engine = \"redis\"\n[kv.redis]\nnodes = [\"[::1]:6379\", \"h:1\"]\n");
        let EntityEngine::Redis(redis) = redis.unwrap().storage.engine else { panic!("no Redis") };
        assert_eq!((redis.nodes.len(), redis.replicas), (2, 1));
    }

    #[test]
    fn settings_of_the_other_engine_are_an_error() {
        let error = |text: &str, kind: Kind, line: usize, words: &str| {
            assert_error(&format!("{APP}[kv]\n{text}"), kind, line, words);
        };
        error("path = \"/v0\"\n", Kind::MissingKey, 4, "no data directory");
        error("engine = \"redis\"\n", Kind::MissingKey, 4, "no Redis nodes");
        let redis = "engine = \"redis\"\ndurability = \"always\"\n[kv.redis]\nnodes = [\"h\"]\n";
        error(redis, Kind::BadValue, 5, "for the engine `disk`");
        error(redis, Kind::BadValue, 7, "not host:port");
    }

    #[test]
    fn tasks_are_kept_in_a_store_of_the_gateway_alone() {
        let tasks = "[app.site.tasks]\nworkers = 1\nscript = \"www/index.php\"\nkv_namespace = \"default\"\n";
        let redis =
            "[kv]\nengine = \"redis\"\nlisten = \"127.0.0.1:1\"\n[kv.redis]\nnodes = [\"h:1\"]\n";
        let text = format!("{APP}{tasks}{redis}");
        assert_error(&text, Kind::Conflict, 6, "in Redis, which other gateways can use");
    }

    #[test]
    fn an_app_uses_only_the_namespaces_it_names() {
        let store =
            "[kv]\ndata_dir = \"records\"\nlisten = \"127.0.0.1:1\"\n[kv.namespace.orders]\n";
        let alone = valid(&format!("{APP}{store}"));
        assert_eq!(alone.apps[0].kv_namespaces, None);
        assert!(alone.entities.unwrap().trusted_clients.trusts(Some([127, 0, 0, 1].into())));
        let two = format!(
            "{APP}path = \"/a\"\nkv_namespaces = [\"orders\"]\n[app.two]\nroot = \"two\"\n"
        );
        let config = valid(&format!("{two}{store}"));
        assert_eq!(config.apps[0].kv_namespaces.as_deref(), Some(&["orders".to_owned()][..]));
        assert_eq!(config.apps[1].kv_namespaces.as_deref(), Some(&[][..]));
        assert!(!config.entities.unwrap().trusted_clients.trusts(Some([127, 0, 0, 1].into())));
        let unknown = format!("{APP}kv_namespaces = [\"default\", \"order\"]\n{store}");
        assert_error(&unknown, Kind::Conflict, 3, "no namespace `order`");
    }
}
