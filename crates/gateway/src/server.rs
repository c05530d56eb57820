//! The life of the server: start, reload, drain.
//!
//! Called by the command line. Invariants: addresses are bound before PHP is started, so that a
//! taken port is said at once; a reload that fails at any point leaves everything as it was.

use crate::app::App;
use crate::development;
use crate::entities::Entities;
use crate::fetch::Fetches;
use crate::gateway::{Gateway, Rings};
use crate::generation::{self, Generation, Logs, Sinks, memory_budget_bytes};
use crate::identity;
use crate::life::{self, Life, Ready};
use crate::listener::{BindError, Bound, ListenerFacts, Serves};
use crate::log::Level;
use crate::page_cache::Purges;
use crate::php_settings;
use crate::pool::{Pool, PoolSettings, StartError};
use crate::tasks::keep::Keep;
use crate::tasks::{self, Tasks};
use crate::upgrade::Protocol;
use outboard_config::{Config, Count, Diagnostics, Forwarding, ListenAddress, Metrics};
use outboard_reactor::{self as reactor, Interest, Signals, Source, blocking, now_ms, spawn};
use outboard_ring::doorbell::Doorbell;
use outboard_supervisor::memory;
use rustix::process::geteuid;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// How to run a server.
pub struct Options {
    /// Reads the configuration, at start and at each reload.
    pub load: Arc<dyn Fn() -> Result<Config, Diagnostics> + Send + Sync>,
    /// What a named server is called, in titles of processes and in its status.
    pub name: Option<String>,
    /// An admin socket beside, or instead of, the configured one.
    pub admin_socket: Option<AdminSocket>,
    /// The PHP host when the configuration does not say.
    pub host_binary: PathBuf,
    /// Sockets that were bound for this server by somebody else; those whose address is configured
    /// are listened on.
    pub sockets: Vec<OwnedFd>,
    /// Hears how it goes.
    pub tell: life::Listener,
    /// How often it is told that the loop turns.
    pub alive_every_ms: Option<u64>,
    /// Protocols beside HTTP that connections can be switched to.
    pub protocols: Vec<Box<dyn Protocol>>,
}

/// The admin socket that the command line asks for.
#[derive(Debug, Clone)]
pub enum AdminSocket {
    /// When the configuration names none, and may be missing: another server of this user has it
    /// then.
    IfFree(PathBuf),
    /// In any case; without it the server does not start.
    Always(PathBuf),
}

/// Why a server did not start, or a reload was given up.
#[derive(Debug)]
pub enum ServerError {
    /// The configuration is wrong.
    Config(Diagnostics),
    /// An address cannot be listened on.
    Bind(BindError),
    /// PHP does not start.
    Php(StartError),
    /// A folder, file or user of the configuration cannot be used.
    Setup(String),
    /// The event loop failed.
    Io(io::Error),
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(diagnostics) => diagnostics.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Php(error) => error.fmt(f),
            Self::Setup(message) => f.write_str(message),
            Self::Io(error) => write!(f, "the event loop failed: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<BindError> for ServerError {
    fn from(error: BindError) -> Self {
        Self::Bind(error)
    }
}

/// Runs a server until it is told to stop.
///
/// # Errors
/// Why it did not start.
pub fn serve(config: Config, mut options: Options) -> Result<(), ServerError> {
    let as_root = identity::assume(&config, options.admin_socket.as_ref(), &options.sockets)?;
    options.sockets.extend(as_root);
    reactor::run(serve_on_loop(config, options)).map_err(ServerError::Io)?
}

async fn serve_on_loop(config: Config, options: Options) -> Result<(), ServerError> {
    let doorbell = Doorbell::nonblocking().map_err(ServerError::Io)?;
    let ring = doorbell.try_clone().map_err(ServerError::Io)?;
    let watched = Source::new(ring.into_fd(), Interest::ReadEdge).map_err(ServerError::Io)?;
    let signals = Caught::new().map_err(ServerError::Io)?;
    let kit = Kit { name: options.name, host_binary: options.host_binary, load: options.load };
    let (generation, sinks) = open_generation(1, config, None, &doorbell, &kit)?;
    let gateway = Gateway::new(generation, sinks, doorbell, options.protocols);
    gateway.adopt(kit.name.clone(), options.sockets);
    tell_who_serves(&gateway);
    reactor::watch_memory(Rings(gateway.clone()));
    let admin_socket = listen_first(&gateway, options.admin_socket)?;
    if let Some(unstarted) = wait_ready_or_stop(&gateway, &signals).await {
        stop_listening(&gateway);
        return unstarted.map_err(ServerError::Php);
    }
    spawn(flush_logs(gateway.clone()));
    development::follow(&gateway);
    gateway.ready.set(true);
    (options.tell)(&Life::Ready(ready_facts(&gateway, admin_socket)));
    if let Some(period_ms) = options.alive_every_ms {
        spawn(life::tell_alive(options.tell.clone(), period_ms));
    }
    attend(&gateway, &signals, &kit, &options.tell).await;
    (options.tell)(&Life::Stopping);
    drain(&gateway).await;
    drop(watched);
    Ok(())
}

impl From<StartError> for ServerError {
    fn from(error: StartError) -> Self {
        Self::Php(error)
    }
}

/// What every generation is made with.
struct Kit {
    name: Option<String>,
    host_binary: PathBuf,
    load: Arc<dyn Fn() -> Result<Config, Diagnostics> + Send + Sync>,
}

/// Opens logs and folders and starts the pools of a configuration.
fn open_generation(
    number: u32,
    config: Config,
    predecessor: Option<&Generation>,
    doorbell: &Doorbell,
    kit: &Kit,
) -> Result<(Generation, Sinks), ServerError> {
    let mut sinks = Sinks::default();
    let cannot_log = |error: io::Error| ServerError::Setup(format!("cannot open a log: {error}"));
    let server_logs = sinks.logs(&config.log).map_err(cannot_log)?;
    let upstream = generation::upstream(&config, predecessor);
    let entities = Entities::open(&config, predecessor, &server_logs.error);
    let entities = entities.map_err(ServerError::Setup)?;
    let mut apps = Vec::new();
    for app in &config.apps {
        let logs = Rc::new(sinks.logs(&app.log).map_err(cannot_log)?);
        let mut settings = pool_settings(app, &kit.host_binary)?;
        if let Some(name) = &kit.name {
            settings.host.app = title(name, app, &config);
        }
        let tasks = match &app.tasks {
            None => None,
            Some(tasks) => {
                let settings = task_pool_settings(app, tasks, &settings)?;
                let pool = start_pool(settings, doorbell, &logs)?;
                Some(start_tasks(app, tasks, pool, entities.as_deref(), predecessor, &logs))
            }
        };
        let pool = start_pool(settings, doorbell, &logs)?;
        let is_first = predecessor.is_none();
        let opened =
            App::open(app.clone(), pool.clone(), tasks.clone(), logs, upstream.clone(), is_first);
        let opened = opened.map_err(|error| {
            pool.retire(0);
            tasks.iter().for_each(|tasks| tasks.pool.retire(0));
            ServerError::Setup(format!("app {}: {error}", app.name))
        })?;
        let operations = Fetches::new(upstream.clone(), entities.clone());
        let operations = Purges::before(operations, opened.page_cache.clone());
        let operations = tasks::before(operations, tasks);
        opened.pools().for_each(|pool| pool.set_operations(operations.clone()));
        apps.push(Rc::new(opened));
    }
    let logs = Rc::<Logs>::new(server_logs);
    Ok((Generation::new(number, config, apps, logs, upstream, entities), sinks))
}

/// What the processes of a named server's app are called.
fn title(name: &str, app: &outboard_config::App, config: &Config) -> String {
    if config.apps.len() == 1 { name.to_owned() } else { format!("{name}/{}", app.name) }
}

fn pool_settings(
    app: &outboard_config::App,
    host_binary: &std::path::Path,
) -> Result<PoolSettings, ServerError> {
    let pool = &app.pool;
    let count = |count: Count| match count {
        Count::Auto => None,
        Count::Fixed(number) => Some(number as usize),
    };
    Ok(PoolSettings {
        app: app.name.clone(),
        host_binary: app.php.host_binary.clone().unwrap_or(host_binary.to_owned()),
        host: php_settings::of(app).map_err(ServerError::Setup)?,
        min: count(pool.min),
        max: count(pool.max),
        memory_budget_bytes: memory_budget_bytes(
            pool.memory_budget,
            memory::machine_bytes().unwrap_or(1 << 30),
        ),
        spare: pool.spare as usize,
        queue_length: pool.queue_length as usize,
        queue_timeout_ms: pool.queue_timeout_ms,
        loopback_slots: pool.loopback_slots as usize,
        idle_timeout_ms: pool.idle_timeout_ms,
        recycle_requests: pool.recycle_requests.map(u64::from),
        recycle_jitter_percent: pool.recycle_jitter_percent,
        recycle_memory_bytes: pool.recycle_memory_bytes,
        deadline_ms: app.limits.request_deadline_ms,
        slow_ms: (app.log.slow.to != outboard_config::LogTarget::Off)
            .then_some(app.log.slow.after_ms),
        start_timeout_ms: pool.start_timeout_ms,
    })
}

/// As many workers as are asked for, always, and no queue of their own: tasks wait elsewhere.
fn task_pool_settings(
    app: &outboard_config::App,
    tasks: &outboard_config::Tasks,
    of_app: &PoolSettings,
) -> Result<PoolSettings, ServerError> {
    let workers = tasks.workers as usize;
    let mut host = php_settings::of_tasks(app, tasks).map_err(ServerError::Setup)?;
    host.app = format!("{}:tasks", of_app.host.app);
    Ok(PoolSettings {
        app: format!("{}:tasks", app.name),
        host,
        min: Some(workers),
        max: Some(workers),
        spare: 0,
        queue_length: workers * tasks.concurrency as usize,
        queue_timeout_ms: tasks.timeout_ms,
        loopback_slots: 0,
        deadline_ms: tasks.timeout_ms,
        slow_ms: None,
        ..of_app.clone()
    })
}

/// The tasks of an app; those that the last gateway has left come first.
fn start_tasks(
    app: &outboard_config::App,
    config: &outboard_config::Tasks,
    pool: Rc<Pool>,
    entities: Option<&Entities>,
    predecessor: Option<&Generation>,
    logs: &Logs,
) -> Rc<Tasks> {
    let name = config.namespace.as_deref();
    let namespace = name.and_then(|name| entities?.namespace(name).cloned());
    let keep = namespace.map(|namespace| Keep::new(namespace, &app.name));
    let tasks = Tasks::start(&app.name, config.clone(), pool, keep, logs.error.clone());
    let before = predecessor.and_then(|before| {
        let found = before.tasks().find(|before| before.app() == app.name);
        found.cloned()
    });
    tasks.resume(before.as_ref());
    tasks
}

fn start_pool(
    settings: PoolSettings,
    doorbell: &Doorbell,
    logs: &Logs,
) -> Result<Rc<Pool>, ServerError> {
    let doorbell = doorbell.try_clone().map_err(ServerError::Io)?;
    Ok(Pool::start(settings, doorbell, logs.error.clone(), logs.slow.clone()))
}

async fn wait_ready(generation: &Generation) -> Result<(), StartError> {
    for pool in generation.pools() {
        pool.ready().await?;
    }
    Ok(())
}

/// Waits until everything serves; otherwise says what came of it instead: a failure, or somebody
/// who wanted it stopped before.
async fn wait_ready_or_stop(
    gateway: &Rc<Gateway>,
    signals: &Caught,
) -> Option<Result<(), StartError>> {
    let generation = gateway.generation();
    let mut ready = std::pin::pin!(wait_ready(&generation));
    poll_fn(|context| {
        if signals.want_stop(gateway) {
            return Poll::Ready(Some(Ok(())));
        }
        ready.as_mut().poll(context).map(|outcome| outcome.err().map(Err))
    })
    .await
}

/// The sockets that a configuration wants, those for metrics among them.
fn wanted(config: &Config) -> Vec<(ListenAddress, ListenerFacts)> {
    let facts = |serves, forwarding| ListenerFacts { serves, forwarding };
    let apps = config.listeners.iter().map(|listener| {
        (listener.address.clone(), facts(Serves::Apps, listener.forwarding.clone()))
    });
    let metrics = match &config.admin.metrics {
        Some(Metrics::Listen(address)) => {
            Some((address.clone(), facts(Serves::Metrics, Forwarding::default())))
        }
        _ => None,
    };
    let entities = config.entities.as_ref().and_then(|entities| entities.listen.clone());
    let entities =
        entities.map(|address| (address, facts(Serves::Entities, Forwarding::default())));
    apps.chain(metrics).chain(entities).collect()
}

/// The addresses that a configuration wants.
pub(crate) fn addresses(config: &Config) -> Vec<ListenAddress> {
    wanted(config).into_iter().map(|(address, _)| address).collect()
}

/// Who has configured a user does not expect root.
fn tell_who_serves(gateway: &Gateway) {
    let generation = gateway.generation();
    let config = &generation.config;
    if geteuid().is_root() && config.user.is_some() && identity::is_of_several_users(config) {
        let text =
            "the gateway stays root: apps run as different users, which root alone can start";
        gateway.note(Level::Warn, text);
    }
}

/// Binds everything at start.
fn listen_first(
    gateway: &Rc<Gateway>,
    asked: Option<AdminSocket>,
) -> Result<Option<PathBuf>, BindError> {
    let generation = gateway.generation();
    let backlog = generation.config.io.backlog;
    for (address, facts) in wanted(&generation.config) {
        let bound = Bound::start(gateway, address, facts, backlog)?;
        gateway.listeners.borrow_mut().push(bound);
    }
    let configured = generation.config.admin.socket.clone();
    if let Some(path) = &configured {
        listen_for_orders(gateway, path)?;
    }
    match (asked, configured) {
        (None, configured) | (Some(AdminSocket::IfFree(_)), configured @ Some(_)) => Ok(configured),
        (Some(AdminSocket::Always(path)), configured) => {
            if configured.as_ref() != Some(&path) {
                listen_for_orders(gateway, &path)?;
            }
            Ok(Some(path))
        }
        (Some(AdminSocket::IfFree(path)), None) => match listen_for_orders(gateway, &path) {
            Ok(()) => Ok(Some(path)),
            Err(error) => {
                gateway.note(Level::Warn, &format!("no admin socket: {error}"));
                Ok(None)
            }
        },
    }
}

fn listen_for_orders(gateway: &Rc<Gateway>, path: &Path) -> Result<(), BindError> {
    let facts = ListenerFacts { serves: Serves::Admin, forwarding: Forwarding::default() };
    let address = ListenAddress::Unix { path: path.to_owned(), mode: 0o600 };
    let bound = Bound::start(gateway, address, facts, 16)?;
    gateway.listeners.borrow_mut().push(bound);
    Ok(())
}

fn ready_facts(gateway: &Gateway, admin_socket: Option<PathBuf>) -> Ready {
    let generation = gateway.generation();
    let listeners = gateway.listeners.borrow();
    let serving =
        listeners.iter().filter(|bound| matches!(bound.serves(), Serves::Apps | Serves::Entities));
    let apps = generation.apps.iter().map(|app| {
        (app.config.name.clone(), app.pool.status().php_version, app.config.root.clone())
    });
    Ready {
        listeners: serving.map(|bound| bound.url()).collect(),
        admin_socket,
        apps: apps.collect(),
    }
}

/// The signals that a server acts on.
struct Caught {
    terminate: Signals,
    interrupt: Signals,
    reload: Signals,
    reopen: Signals,
}

/// What the main task was asked to do.
enum Wish {
    Stop,
    Reload,
    ReopenLogs,
}

impl Caught {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: Signals::catch(reactor::signals::TERMINATE)?,
            interrupt: Signals::catch(reactor::signals::INTERRUPT)?,
            reload: Signals::catch(reactor::signals::HANGUP)?,
            reopen: Signals::catch(reactor::signals::USER_1)?,
        })
    }

    /// Whether the server is to stop; the current task is woken when it is.
    fn want_stop(&self, gateway: &Gateway) -> bool {
        let asked = [self.terminate.poll(), self.interrupt.poll(), gateway.wishes.stop.poll()];
        asked.iter().any(Poll::is_ready)
    }

    async fn next(&self, gateway: &Gateway) -> Wish {
        poll_fn(|_| {
            if self.want_stop(gateway) {
                return Poll::Ready(Wish::Stop);
            }
            if self.reload.poll().is_ready() || gateway.wishes.reload.poll().is_ready() {
                return Poll::Ready(Wish::Reload);
            }
            self.reopen.poll().map(|()| Wish::ReopenLogs)
        })
        .await
    }
}

async fn attend(gateway: &Rc<Gateway>, signals: &Caught, kit: &Kit, tell: &life::Listener) {
    loop {
        match signals.next(gateway).await {
            Wish::Stop => return,
            Wish::ReopenLogs => reopen_logs(gateway),
            Wish::Reload => {
                let askers = gateway.wishes.reload_askers.take();
                tell(&Life::Reloading);
                let outcome = reload(gateway, kit).await;
                match &outcome {
                    Ok(number) => gateway.note(Level::Info, &format!("generation {number} serves")),
                    Err(error) => gateway.note(
                        Level::Error,
                        &format!("reload given up, everything stays as it was: {error}"),
                    ),
                }
                let outcome = outcome.map_err(|error| error.to_string());
                tell(&Life::Reloaded(outcome.clone()));
                askers.iter().for_each(|asker| asker.tell(outcome.clone()));
            }
        }
    }
}

/// Starts a successor beside the present generation, checks it, swaps it in.
async fn reload(gateway: &Rc<Gateway>, kit: &Kit) -> Result<u32, ServerError> {
    let load = kit.load.clone();
    let config = blocking(move || load()).await.map_err(ServerError::Config)?;
    let present = gateway.generation();
    let number = present.number + 1;
    let (successor, sinks) =
        open_generation(number, config, Some(&present), &gateway.doorbell, kit)?;
    gateway.pools.borrow_mut().extend(successor.pools().cloned());
    let checked = match wait_ready(&successor).await {
        Ok(()) => bind_new(gateway, &successor.config).map_err(ServerError::from),
        Err(error) => Err(error.into()),
    };
    let fresh = match checked {
        Ok(fresh) => fresh,
        Err(error) => {
            successor.tasks().for_each(|tasks| tasks.stop());
            successor.pools().for_each(|pool| pool.retire(0));
            return Err(error);
        }
    };
    let drain_timeout_ms = successor.config.drain_timeout_ms;
    take_over_listeners(gateway, &successor.config, fresh);
    gateway.swap(successor, sinks, drain_timeout_ms);
    development::follow(gateway);
    Ok(number)
}

/// Binds the addresses that the present generation does not have.
fn bind_new(gateway: &Rc<Gateway>, config: &Config) -> Result<Vec<Rc<Bound>>, BindError> {
    let mut fresh = Vec::new();
    for (address, facts) in wanted(config) {
        let known = gateway.listeners.borrow().iter().any(|bound| bound.address == address);
        if known {
            continue;
        }
        match Bound::start(gateway, address, facts, config.io.backlog) {
            Ok(bound) => fresh.push(bound),
            Err(error) => {
                fresh.iter().for_each(|bound| bound.stop());
                return Err(error);
            }
        }
    }
    Ok(fresh)
}

fn take_over_listeners(gateway: &Gateway, config: &Config, fresh: Vec<Rc<Bound>>) {
    let wanted = wanted(config);
    let mut listeners = gateway.listeners.borrow_mut();
    listeners.retain(|bound| {
        let found = wanted.iter().find(|(address, _)| *address == bound.address);
        match found {
            Some((_, facts)) => bound.set_forwarding(facts.forwarding.clone()),
            None if bound.serves() == Serves::Admin => {}
            None => bound.stop(),
        }
        found.is_some() || bound.serves() == Serves::Admin
    });
    listeners.extend(fresh);
}

fn reopen_logs(gateway: &Gateway) {
    for sink in gateway.sinks.borrow().all() {
        if let Err(error) = sink.reopen() {
            gateway.note(Level::Error, &format!("cannot reopen a log: {error}"));
        }
    }
}

/// Access lines reach their file within a moment, without a write a request.
async fn flush_logs(gateway: Rc<Gateway>) {
    loop {
        reactor::sleep(250).await;
        for sink in gateway.sinks.borrow().all() {
            sink.flush();
        }
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
    }
}

fn stop_listening(gateway: &Gateway) {
    for bound in gateway.listeners.borrow().iter() {
        bound.stop();
    }
}

/// Finishes what has begun, within the drain time-out.
async fn drain(gateway: &Rc<Gateway>) {
    gateway.note(Level::Info, "stopping: finishing what has begun");
    stop_listening(gateway);
    gateway.drain();
    gateway.generation().tasks().for_each(|tasks| tasks.stop());
    let drain_timeout_ms = gateway.generation().config.drain_timeout_ms;
    let until_ms = now_ms() + drain_timeout_ms;
    while gateway.connections() > 0 && now_ms() < until_ms {
        reactor::sleep(10).await;
    }
    for pool in gateway.pools.borrow().iter() {
        pool.retire(until_ms.saturating_sub(now_ms()));
    }
    let is_busy = || {
        gateway.pools.borrow().iter().any(|pool| !pool.is_gone())
            || gateway.generation().tasks().any(|tasks| tasks.is_writing())
    };
    while is_busy() && now_ms() < until_ms + KILL_GRACE_MS {
        reactor::sleep(10).await;
    }
    gateway.note(Level::Info, "stopped");
    for sink in gateway.sinks.borrow().all() {
        sink.flush();
    }
}

/// For killed workers to be reaped.
const KILL_GRACE_MS: u64 = 500;
