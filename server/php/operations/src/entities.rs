//! The entity store of a generation: its namespaces, the apps' rights to them, batches of workers.
//!
//! Opened with each generation, used by the gateway's HTTP API and by [`crate::fetch`] for workers. The
//! storage itself is `outboard_entity_store`.

mod batch;
mod execute;
mod owner;
mod pressure;

use outboard_config as config;
use outboard_entity_store::{
    Durability, Engine, Mode, Namespace, NamespaceSettings, OpenError, Overload, RedisSettings,
    Remote, Settings, Store, StoreError, probe,
};
use outboard_log::{ErrorLog, Level, Reason};
use outboard_reactor::{blocking, spawn};
use std::path::Path;
use std::rc::Rc;

#[cfg(fuzzing)]
pub(crate) use batch::Batch;
pub(crate) use execute::{BatchResult, execute as execute_batch};
pub use owner::Owner;
pub use pressure::Pressure;

/// The store of the server that this one takes over from.
#[derive(Debug)]
pub struct Elsewhere<'a> {
    /// Its directory; `None`: it has none that one process only can have open.
    pub folder: Option<&'a Path>,
    /// Its namespaces.
    pub namespaces: &'a [String],
    /// The way to it.
    pub remote: &'a Rc<Remote>,
}

impl Elsewhere<'_> {
    /// Whether this configuration names the same store, with all namespaces.
    fn is(&self, storage: &config::EntityStorage) -> bool {
        let names = |name: &String| storage.namespaces.iter().any(|one| one.name == *name);
        match (&storage.engine, self.folder) {
            (config::EntityEngine::Disk(folder), Some(there)) => {
                is_same(folder, there) && self.namespaces.iter().all(names)
            }
            _ => false,
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The store with a generation's rules of access.
#[derive(Debug)]
pub struct Entities {
    /// `None` on other threads than the lead's.
    store: Option<Rc<Store>>,
    /// Its configuration.
    pub config: config::Entities,
    /// Limits of the bodies of writes.
    pub limits: config::Limits,
    /// Admits requests over HTTP.
    pub pressure: Pressure,
}

impl Entities {
    /// Opens the store, or shares that of the predecessor, or calls that of another process.
    ///
    /// # Errors
    /// A sentence for the administrator.
    pub fn open(
        config: &config::Config,
        predecessor: Option<&Rc<Self>>,
        elsewhere: Option<Elsewhere<'_>>,
        log: &Rc<ErrorLog>,
    ) -> Result<Option<Rc<Self>>, String> {
        let changed = || Err("the storage of [kv] can be changed with a restart only".to_owned());
        let elsewhere = elsewhere.filter(|there| there.folder.is_some());
        let Some(entities) = &config.entities else {
            return if elsewhere.is_some() { changed() } else { Ok(None) };
        };
        let store = match predecessor.map(|before| &**before) {
            Some(Self { store: Some(store), config, .. }) if config.storage == entities.storage => {
                store.clone()
            }
            Some(_) => return changed(),
            None => match elsewhere {
                None => open(&entities.storage, log)?,
                Some(there) if there.is(&entities.storage) => {
                    Rc::new(Store::remote(&settings(&entities.storage), there.remote))
                }
                Some(_) => return changed(),
            },
        };
        Ok(Some(Self::new(config, entities, Some(store))))
    }

    /// The rules of access, for a thread that has the lead read and write.
    pub fn without_store(config: &config::Config) -> Option<Rc<Self>> {
        Some(Self::new(config, config.entities.as_ref()?, None))
    }

    fn new(
        config: &config::Config,
        entities: &config::Entities,
        store: Option<Rc<Store>>,
    ) -> Rc<Self> {
        let limits = config::Limits {
            body_bytes: entities.max_value_bytes,
            body_memory_bytes: entities.max_value_bytes,
            ..config.limits.clone()
        };
        let pressure = Pressure::new(entities.storage.queue_timeout_ms);
        Rc::new(Self { store, config: entities.clone(), limits, pressure })
    }

    /// The store, on the lead's thread.
    pub fn store(&self) -> Option<&Rc<Store>> {
        self.store.as_ref()
    }

    /// Opens the store that another process has closed.
    ///
    /// # Errors
    /// As [`Store::acquire`].
    pub fn acquire(&self, log: &ErrorLog) -> Result<(), OpenError> {
        let Some(store) = &self.store else { return Ok(()) };
        store.acquire()?;
        note_findings(store, log);
        Ok(())
    }

    /// All namespaces.
    pub fn namespaces(&self) -> &[Rc<Namespace>] {
        self.store.as_deref().map_or(&[], Store::namespaces)
    }

    /// One of them.
    pub fn namespace(&self, name: &str) -> Option<&Rc<Namespace>> {
        self.store.as_deref()?.namespace(name)
    }
}

fn settings(storage: &config::EntityStorage) -> Settings {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let namespaces = storage.namespaces.iter().map(|namespace| NamespaceSettings {
        name: namespace.name.clone(),
        durability: match namespace.durability {
            config::Durability::Always => Durability::Always,
            config::Durability::Interval => Durability::Interval(namespace.interval_ms),
            config::Durability::Memory => Durability::Memory,
        },
        memory_max_bytes: bytes(namespace.max_memory_bytes),
    });
    Settings {
        mode: match storage.mode {
            config::EntityMode::Asynchronous => Mode::Asynchronous,
            config::EntityMode::Synchronous => Mode::Synchronous,
        },
        overload: match storage.overload {
            config::Overload::RejectNewest => Overload::RejectNewest,
            config::Overload::DropOldest => Overload::DropOldest,
        },
        cache_bytes: bytes(storage.cache_bytes),
        buffer_bytes: storage.write_buffer_bytes,
        reads_waiting: storage.queue_length as usize,
        writes_waiting: storage.queue_length as usize,
        wait_ms: storage.queue_timeout_ms,
        namespaces: namespaces.collect(),
        engine: engine(&storage.engine),
    }
}

fn open(storage: &config::EntityStorage, log: &Rc<ErrorLog>) -> Result<Rc<Store>, String> {
    let settings = settings(storage);
    let store = Store::open(&settings).map_err(|error| error.to_string())?;
    if let Engine::Redis(redis) = settings.engine {
        let log = log.clone();
        // Redis may start later, but a wrong password should be reported at once.
        spawn(async move {
            if let Err(why) = blocking(move || probe(&redis)).await {
                let text = format!("entities: Redis cannot be used: {why}");
                log.note(Level::Error, &text);
            }
        });
    }
    note_findings(&store, log);
    Ok(Rc::new(store))
}

fn note_findings(store: &Store, log: &ErrorLog) {
    for namespace in store.namespaces() {
        for finding in namespace.stats().findings {
            log.note(Level::Error, &format!("entities: {finding}"));
        }
    }
}

fn engine(engine: &config::EntityEngine) -> Engine {
    match engine {
        config::EntityEngine::Disk(directory) => Engine::Folder(directory.clone()),
        config::EntityEngine::Redis(redis) => Engine::Redis(RedisSettings {
            nodes: redis.nodes.clone(),
            user: redis.user.clone(),
            password: redis.password.as_ref().map(|config::Secret(password)| password.clone()),
            prefix: redis.prefix.clone(),
            copies: redis.replicas,
            ack_wait_ms: redis.ack_timeout_ms,
            timeout_ms: redis.timeout_ms,
        }),
    }
}

/// The reason for an error of the store.
pub fn reason(error: &StoreError) -> Reason {
    match error {
        StoreError::Overloaded => Reason::EntityOverload,
        StoreError::ConditionFailed { .. } => Reason::EntityCondition,
        StoreError::InvalidKey { .. } | StoreError::NotANumber => Reason::EntityRequest,
        StoreError::Full => Reason::EntityFull,
        StoreError::TooFewCopies { .. } => Reason::EntityCopies,
        StoreError::Unreachable(_) => Reason::EntityUnreachable,
        _ => Reason::EntityFailed,
    }
}
