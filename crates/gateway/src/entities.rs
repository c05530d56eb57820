//! The entity store over HTTP: who may use it, what is asked for, and what is answered.
//!
//! Called by the turn for requests to the store's path or its own listener, by the admin socket,
//! and by workers. What is kept and how is `outboard_entity_store`'s. Invariants: nobody gets in who was
//! not named; an answer to a write follows its being as durable as the namespace promises.

mod batch;
mod call;
pub(crate) mod operate;
mod owner;
mod pressure;
mod record;

use crate::answer::error_headers;
use crate::connection::Connection;
use crate::generation::Generation;
use crate::header_block::HeaderBlock;
use crate::listener::Serves;
use crate::turn::{Answered, Turn, told};
use call::Resource;
use outboard_config as config;
use outboard_entity_store::{
    Durability, Engine, Mode, Namespace, NamespaceSettings, Overload, RedisSettings, Settings,
    Store, StoreError, probe,
};
use outboard_http1::{Method, split_host_port};
use outboard_log::Reason;
use outboard_log::{ErrorLog, Level};
use outboard_reactor::{blocking, spawn};
use pressure::Pressure;
use std::net::IpAddr;
use std::rc::Rc;

pub(crate) use batch::{Answer, answer as answer_worker};
pub(crate) use call::Call;
pub(crate) use operate::operate;
pub(crate) use owner::Owner;
#[cfg(fuzzing)]
pub(crate) use {batch::Batch, record::Tags};

/// Where the store is on a listener of its own and on the admin socket.
const OWN_PREFIX: &str = "/v0";

/// The store of a generation: the same for all, with who may use it in this one.
#[derive(Debug)]
pub(crate) struct Entities {
    store: Rc<Store>,
    config: config::Entities,
    /// For the bodies of writes.
    limits: config::Limits,
    pressure: Pressure,
}

impl Entities {
    /// Opens the store, or takes over the predecessor's.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn open(
        config: &config::Config,
        predecessor: Option<&Generation>,
        log: &Rc<ErrorLog>,
    ) -> Result<Option<Rc<Self>>, String> {
        let before = predecessor.and_then(|generation| generation.entities.as_ref());
        let Some(entities) = &config.entities else { return Ok(None) };
        let store = match before {
            Some(before) if before.config.storage == entities.storage => before.store.clone(),
            Some(_) => return Err("how [kv] are kept changes with a restart only".to_owned()),
            None => open(&entities.storage, log)?,
        };
        let limits = config::Limits {
            body_bytes: entities.max_value_bytes,
            body_memory_bytes: entities.max_value_bytes,
            ..config.limits.clone()
        };
        let pressure = Pressure::new(entities.storage.queue_timeout_ms);
        Ok(Some(Rc::new(Self { store, config: entities.clone(), limits, pressure })))
    }

    /// All namespaces.
    pub(crate) fn namespaces(&self) -> &[Rc<Namespace>] {
        self.store.namespaces()
    }

    /// One of them.
    pub(crate) fn namespace(&self, name: &str) -> Option<&Rc<Namespace>> {
        self.store.namespace(name)
    }

    /// The part of the path below the store's, if it is the store's.
    fn below<'p>(&self, serves: Serves, path: &'p [u8]) -> Option<&'p [u8]> {
        let prefix = match serves {
            Serves::Apps => self.config.path.as_deref()?,
            _ => OWN_PREFIX,
        };
        path.strip_prefix(prefix.as_bytes()).filter(|below| below.starts_with(b"/"))
    }

    /// Whether the present request may read and write.
    fn admits(&self, connection: &mut Connection, turn: &Turn) -> Result<(), Reason> {
        if self.config.trusted_clients.trusts(turn.client_ip(connection)) {
            return if is_rebound(connection) { Err(Reason::EntityForbidden) } else { Ok(()) };
        }
        let Some(token) = &self.config.token else { return Err(Reason::EntityForbidden) };
        let buffers = connection.buffers();
        let given = buffers.head.header(&buffers.input, b"authorization").unwrap_or_default();
        let given = given.strip_prefix(b"Bearer ").unwrap_or_default().trim_ascii();
        if is_same(given, token.as_bytes()) { Ok(()) } else { Err(Reason::EntityToken) }
    }
}

/// Whether a browser on this machine could have been led here by a page of somebody else, whose name
/// leads to this address since (DNS rebinding). Who is meant to come by its address writes the
/// address, `localhost`, or a name without dots, which no other page has.
fn is_rebound(connection: &mut Connection) -> bool {
    // On a listener of the apps the path has named whom it trusts, and names have dots.
    let is_own = connection.listener.serves == Serves::Entities;
    let is_local = is_own && connection.ends.peer_ip().is_some_and(|ip| ip.is_loopback());
    let buffers = connection.buffers();
    let host = split_host_port(buffers.head.host(&buffers.input).unwrap_or_default()).0;
    let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    let is_address = std::str::from_utf8(bare).is_ok_and(|host| host.parse::<IpAddr>().is_ok());
    let below_localhost = host.to_ascii_lowercase().ends_with(b".localhost");
    is_local && !is_address && !below_localhost && host.contains(&b'.')
}

/// Compares in a time that tells nothing about where the two differ.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differ = given.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

fn open(storage: &config::EntityStorage, log: &Rc<ErrorLog>) -> Result<Rc<Store>, String> {
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
    let settings = Settings {
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
    };
    let store = Store::open(&settings).map_err(|error| error.to_string())?;
    if let Engine::Redis(redis) = settings.engine {
        let log = log.clone();
        // A Redis that comes up later is waited for; a wrong password is to be read before that.
        spawn(async move {
            if let Err(why) = blocking(move || probe(&redis)).await {
                let text = format!("entities: Redis cannot be used so far: {why}");
                log.note(Level::Error, &text);
            }
        });
    }
    for namespace in store.namespaces() {
        for finding in namespace.stats().findings {
            log.note(Level::Error, &format!("entities: {finding}"));
        }
    }
    Ok(Rc::new(store))
}

fn engine(engine: &config::EntityEngine) -> Engine {
    match engine {
        config::EntityEngine::Disk(folder) => Engine::Folder(folder.clone()),
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

/// Answers the present request if it is for the store.
pub(crate) async fn attempt(
    connection: &mut Connection,
    turn: &Turn,
    generation: &Generation,
) -> Option<Answered> {
    let serves = connection.listener.serves;
    let entities = match (&generation.entities, serves) {
        (Some(entities), _) => entities.clone(),
        // The listener is about to close.
        (None, Serves::Entities) => {
            return Some(refuse(connection, turn, Reason::Draining).await);
        }
        (None, _) => return None,
    };
    let buffers = connection.buffers();
    let below = match entities.below(serves, &buffers.path) {
        Some(below) => below.to_vec(),
        None if serves == Serves::Entities => Vec::new(),
        None => return None,
    };
    if let Err(reason) = entities.admits(connection, turn) {
        return Some(refuse(connection, turn, reason).await);
    }
    Some(answer(connection, turn, &entities, &below).await)
}

/// Answers a request by somebody who may ask.
async fn answer(
    connection: &mut Connection,
    turn: &Turn,
    entities: &Entities,
    below: &[u8],
) -> Answered {
    let call = {
        let buffers = connection.buffers();
        let query = buffers.head.query(&buffers.input).unwrap_or_default();
        Call::read(below, query)
    };
    let Ok(call) = call else {
        return refuse(connection, turn, Reason::EntityRequest).await;
    };
    let Some(namespace) = entities.namespace(call.namespace()) else {
        return refuse(connection, turn, Reason::EntityRequest).await;
    };
    match call.resource {
        Resource::Status if !matches!(turn.asked.method, Method::Get | Method::Head) => {
            refuse(connection, turn, Reason::EntityMethod).await
        }
        Resource::Status => plain(connection, turn, 200, &HeaderBlock::default(), b"ok\n").await,
        Resource::Entity(_) if !entities.pressure.admits() => overloaded(connection, turn).await,
        Resource::Entity(asked) => {
            record::answer(connection, turn, entities, namespace, asked).await
        }
        Resource::Range { start, end } => {
            record::range(connection, turn, namespace, start, end).await
        }
    }
}

/// Answers with a line that says why, for programs rather than browsers; counts and logs it.
async fn refuse(connection: &mut Connection, turn: &Turn, reason: Reason) -> Answered {
    let text = told(connection, turn);
    connection.gateway.log_refusal(None, turn.request_id, reason, &text);
    connection.gateway.counters.borrow_mut().refused(reason);
    if matches!(reason, Reason::ClientGone | Reason::WriteTimeout | Reason::BodyCut) {
        return Answered::broken(reason.status(), 0);
    }
    let mut headers = error_headers(reason, true);
    headers.remove(b"Content-Type");
    headers.add(b"Content-Type", b"text/plain; charset=utf-8").expect("a constant header");
    let line = format!("{}: {}\n", reason.code(), reason.text());
    plain(connection, turn, reason.status(), &headers, line.as_bytes()).await
}

async fn plain(
    connection: &mut Connection,
    turn: &Turn,
    status: u16,
    headers: &HeaderBlock,
    body: &[u8],
) -> Answered {
    let sent = connection.respond(turn.asked, status, headers, body).await;
    Answered { sent, status, body_bytes: body.len() as u64 }
}

/// What the store could not do, as a reason to refuse.
fn reason(error: &StoreError) -> Reason {
    match error {
        StoreError::Overloaded => Reason::EntityOverload,
        StoreError::ConditionFailed { .. } => Reason::EntityCondition,
        StoreError::NoName { .. } | StoreError::NotANumber => Reason::EntityRequest,
        StoreError::Full => Reason::EntityFull,
        StoreError::TooFewCopies { .. } => Reason::EntityCopies,
        StoreError::Unreachable(_) => Reason::EntityUnreachable,
        _ => Reason::EntityFailed,
    }
}

/// Answers what the store could not do.
async fn fail(connection: &mut Connection, turn: &Turn, error: &StoreError) -> Answered {
    let reason = reason(error);
    match reason {
        // One line for each would be one more thing to do too much of; they are counted.
        Reason::EntityOverload => return overloaded(connection, turn).await,
        Reason::EntityUnreachable | Reason::EntityFailed => {
            connection.gateway.note(Level::Error, &format!("entities: {error}"));
        }
        _ => {}
    }
    refuse(connection, turn, reason).await
}

async fn overloaded(connection: &mut Connection, turn: &Turn) -> Answered {
    let reason = Reason::EntityOverload;
    connection.gateway.counters.borrow_mut().refused(reason);
    let mut headers = HeaderBlock::default();
    let lines: [(&[u8], &[u8]); 2] =
        [(b"Retry-After", b"1"), (b"X-Outboard-Reason", reason.code().as_bytes())];
    for (name, value) in lines {
        headers.add(name, value).expect("a constant header");
    }
    plain(connection, turn, reason.status(), &headers, b"").await
}
