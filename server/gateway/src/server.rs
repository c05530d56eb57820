//! The server: start, reload, drain.
//!
//! Called by the command line. Invariants: addresses are bound before PHP is started, so that a
//! port in use is reported immediately; a reload that fails at any point changes nothing.

mod app_processes;
mod control_signals;
mod development;
mod drain;
mod follower;
mod followers;
mod generation_builder;
pub(crate) mod generation_shards;
mod handover;
mod heap;
mod htaccess;
mod lead;
mod log_files;
mod prepared;
mod reload;
mod started_pools;
mod upgrade;

use crate::certificates::{self, TlsState};
use crate::dashboard;
use crate::datagrams;
use crate::gateway::{Gateway, SharedByThreads, memory_limit_bytes};
use crate::gathering;
use crate::generation::Generation;
use crate::listeners::{self, Certificates, ConfiguredListener};
pub use crate::options::{AdminSocket, Load, Options};
use crate::privileges::{self, Privileges};
pub use crate::server_error::ServerError;
use crate::server_event::{self, Ready, ServerEvent};
use crate::shards::{self, ShardHandle};
use crate::upgrade_link::UpgradeLink;
use crate::upstream_watch;
use control_signals::{Command, ControlSignals};
use drain::{drain, end_tunnels_at_stop};
use follower::{Seed, do_work};
use followers::Followers;
use generation_builder::GenerationBuilder;
use generation_shards::{GenerationShards, LEAD};
use lead::Lead;
use log_files::{flush_logs, reopen_logs};
use outboard_buffer::{Memory, MemoryLimits};
use outboard_config::Config;
use outboard_http_server::{BindError, Role};
use outboard_log::{Level, Opener};
use outboard_reactor::{self as reactor, Interest, Share, Source, spawn};
use outboard_upgrade::Successor;
use reload::reload;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Checks the files that a configuration names and that are needed at the start: certificates and
/// keys. Nothing is started.
///
/// # Errors
/// An error with which [`serve`] would not start.
pub fn check(config: &Config) -> Result<(), ServerError> {
    listeners::check(config)
}

/// Runs a server until it is stopped.
///
/// # Errors
/// Why it did not start, or had to stop.
pub fn serve(mut config: Config, mut options: Options) -> Result<(), ServerError> {
    // Often only root can read the keys.
    let tls = TlsState::new();
    let certificates = listeners::certificates(&config, &Opener::default(), &tls);
    let certificates = (certificates.map_err(ServerError::setup)?, tls);
    let mut privileges = privileges::drop_root(&mut config, &options)?;
    options.sockets.append(&mut privileges.sockets);
    let privileges = Arc::new(privileges);
    let served = reactor::run(serve_on_loop(config, certificates, options, privileges.clone()));
    privileges.remove_leftovers();
    served.map_err(ServerError::Io)?
}

async fn serve_on_loop(
    config: Config,
    (certificates, tls): (Vec<Certificates>, TlsState),
    options: Options,
    privileges: Arc<Privileges>,
) -> Result<(), ServerError> {
    let signals = ControlSignals::catch().map_err(ServerError::Io)?;
    let threads = shards::count(&config);
    let limits = MemoryLimits::new(threads, memory_limit_bytes(config.limits.memory));
    let share = Share { index: LEAD, count: threads };
    let link = options.link.map(|(end, facts)| UpgradeLink::open(end, facts));
    let builder = GenerationBuilder {
        name: options.name,
        host_binary: options.host_binary,
        memory: Memory::of_shard(&limits),
        server: SharedByThreads::new(&config, threads),
        rings: Rc::default(),
        recent: Rc::default(),
        privileges,
        share,
        link: link.transpose().map_err(ServerError::Io)?,
    };
    let shared = GenerationShards::new(&config, threads, None);
    let mut seed = Seed { number: 1, config: config.clone(), shared: shared.clone() };
    let (generation, sinks) = builder.open(1, config, None, &shared).await?;
    seed.shared.share(&generation, &sinks);
    open_bans(&generation);
    let gateway = Gateway::new(generation, sinks, builder.memory.clone(), &builder.server, share);
    gateway.adopt(builder.name.clone(), options.sockets);
    watch(&gateway, &builder).map_err(ServerError::Io)?;
    certificates::obtain(&gateway, &seed.config, &tls).map_err(ServerError::setup)?;
    let listen = || {
        let configured = ConfiguredListener::with(&seed.config, certificates.clone());
        listen(&gateway, configured, options.admin_socket.clone())
    };
    // With a predecessor, connections are its own until this server can serve them.
    let listening = options.predecessor.is_none().then(listen).transpose()?;
    let (handle, work) = ShardHandle::new();
    let started = Followers::start(&builder, &limits, &handle).map_err(ServerError::Io)?;
    let (followers, handles) = started;
    gateway.shards.set_own(handle.clone());
    spawn(do_work(gateway.clone(), work));
    let (load, starter) = (options.load, options.starter);
    let lead = Lead { gateway: gateway.clone(), builder, followers, load, starter, tls };
    if let Some(outcome) = wait_ready_or_stop(&lead, &signals, &seed).await {
        listeners::stop(&gateway);
        return outcome;
    }
    if !handover::take_over(&lead, options.predecessor.as_deref(), &signals).await? {
        return Ok(());
    }
    let admin_socket = listening.map_or_else(listen, Ok)?;
    lead.followers.activate(|| listeners::joined(&gateway, &seed.config, &certificates)).await;
    followers::introduce(&gateway, handle, handles).await;
    gathering::steer_again(&gateway);
    drop(seed);
    start_regular_work(&lead);
    gateway.ready.set(true);
    if let Some(predecessor) = &options.predecessor {
        let replaced = upgrade::replace(&lead, predecessor, options.files).await;
        replaced.map_err(ServerError::Io)?;
    }
    (options.notify)(&ServerEvent::Ready(ready_facts(&gateway, admin_socket)));
    if let Some(period_ms) = options.alive_every_ms {
        spawn(server_event::notify_alive(gateway.clone(), options.notify.clone(), period_ms));
    }
    let successor = handle_commands(&lead, &signals, &options.notify).await;
    end(&lead, signals, successor, &options.notify).await
}

/// Reports what the server cannot do with its rights, and watches what it depends on.
fn watch(gateway: &Rc<Gateway>, builder: &GenerationBuilder) -> io::Result<()> {
    let privileges = &builder.privileges;
    privileges.warnings.iter().for_each(|warning| gateway.server.log(Level::Warn, warning));
    if let Some(spawner) = &privileges.spawner {
        let watched = spawner.watch().and_then(|fd| Source::new(fd, Interest::Read));
        spawn(stop_without_spawner(gateway.clone(), watched?));
    }
    reactor::watch_memory(builder.rings.source());
    Ok(())
}

/// Starts what is done from time to time, while the server serves.
fn start_regular_work(lead: &Lead) {
    let gateway = &lead.gateway;
    spawn(flush_logs(gateway.clone()));
    spawn(dashboard::record_regularly(gateway.clone()));
    spawn(heap::trim_regularly(gateway.clone()));
    spawn(htaccess::report(gateway.clone()));
    let opener = lead.builder.privileges.opener();
    spawn(listeners::refresh_regularly(gateway.clone(), opener));
    upstream_watch::watch(gateway);
    development::configure(gateway);
    app_processes::configure(gateway, &lead.builder);
}

/// Completes the running requests, of which a successor may serve the next ones.
async fn end(
    lead: &Lead,
    signals: ControlSignals,
    successor: Option<Successor>,
    notify: &server_event::Listener,
) -> Result<(), ServerError> {
    let gateway = &lead.gateway;
    let is_upgraded = successor.is_some();
    gateway.control.end(if is_upgraded {
        "another process serves now"
    } else {
        "the server stops"
    });
    match &successor {
        Some(new) => notify(&ServerEvent::HandedOver { pid: new.pid() }),
        None => notify(&ServerEvent::Stopping),
    }
    gateway.server.log(Level::Info, "stopping: completing running requests");
    if is_upgraded {
        spawn(end_tunnels_at_stop(gateway.clone(), signals));
    }
    // The other threads drain while this one does.
    let drained = lead.followers.drain(is_upgraded);
    if let Some(successor) = successor {
        successor.leave_to();
    }
    drain(gateway, is_upgraded).await;
    for reply in drained {
        reply.await;
    }
    gateway.server.log(Level::Info, "stopped");
    gateway.sinks.borrow().all().for_each(|sink| sink.finish());
    if gateway.lost_spawner.get() { Err(ServerError::Spawner) } else { Ok(()) }
}

/// Reads the bans of the configured file, at start. Without them the server would rather serve.
fn open_bans(generation: &Generation) {
    // systemd.exec(5): several directories are separated by colons.
    let own = std::env::var("STATE_DIRECTORY").ok();
    let own = own.and_then(|all| Some(Path::new(all.split(':').next()?).join("bans")));
    let Some(path) = generation.config.bans_file.clone().or(own) else { return };
    if let Err(error) = generation.access.open_bans(path.clone()) {
        let text = format!("bans do not survive a restart: {}: {error}", path.display());
        generation.logs.error.note(Level::Error, &text);
    }
}

/// Waits until everything is ready: `None`. Otherwise the failure of a pool, or `Ok` if the server
/// was stopped before.
async fn wait_ready_or_stop(
    lead: &Lead,
    signals: &ControlSignals,
    seed: &Seed,
) -> Option<Result<(), ServerError>> {
    let generation = lead.gateway.generation();
    let ready = async {
        generation.ready().await?;
        lead.followers.prepare(seed).await
    };
    match unless_stopped(&lead.gateway, signals, ready).await {
        None => Some(Ok(())),
        Some(outcome) => outcome.err().map(Err),
    }
}

/// Without its spawner a gateway without root's privileges cannot start PHP, and only root can
/// start one.
async fn stop_without_spawner(gateway: Rc<Gateway>, spawner: Source) {
    poll_fn(|_| spawner.poll_hangup()).await;
    gateway.server.log(Level::Error, "the spawner has exited, and with it all PHP: stopping");
    gateway.lost_spawner.set(true);
    gateway.control.stop.set();
}

fn ready_facts(gateway: &Gateway, admin_socket: Option<PathBuf>) -> Ready {
    let generation = gateway.generation();
    let listeners = gateway.listeners.borrow();
    let serving = listeners
        .iter()
        .filter(|bound| matches!(bound.role(), Role::Apps | Role::Entities | Role::Streams));
    let apps = generation.apps.iter().map(|app| {
        (app.config.name.clone(), app.pool().status().php_version, app.config.root.clone())
    });
    Ready {
        listeners: serving
            .map(|bound| bound.url())
            .chain(gateway.datagrams.borrow().iter().map(|bound| bound.name()))
            .collect(),
        admin_socket,
        apps: apps.collect(),
    }
}

/// Until the server stops, or has a successor.
async fn handle_commands(
    lead: &Lead,
    signals: &ControlSignals,
    notify: &server_event::Listener,
) -> Option<Successor> {
    let gateway = &lead.gateway;
    loop {
        match signals.next(gateway).await {
            Command::Stop => return None,
            Command::ReopenLogs => spawn(reopen_logs(gateway.clone())),
            Command::Upgrade => {
                if let Some(successor) = upgrade::upgraded(lead, signals).await {
                    return Some(successor);
                }
            }
            Command::Reload => {
                let waiters = gateway.control.take_reload_waiters();
                notify(&ServerEvent::Reloading);
                let Some(outcome) = unless_stopped(gateway, signals, reload(lead)).await else {
                    let outcome = Err("the server stops".to_owned());
                    waiters.iter().for_each(|waiter| waiter.complete(outcome.clone()));
                    return None;
                };
                match &outcome {
                    Ok(number) => {
                        gateway.server.log(Level::Info, &format!("generation {number} is active"))
                    }
                    Err(error) => error.lines().iter().for_each(|line| {
                        let text = format!("the reload failed, nothing has changed: {line}");
                        gateway.server.log(Level::Error, &text);
                    }),
                }
                let outcome = outcome.map_err(|error| error.to_string());
                notify(&ServerEvent::Reloaded(outcome.clone()));
                waiters.iter().for_each(|waiter| waiter.complete(outcome.clone()));
            }
        }
    }
}

/// Binds everything at the start.
fn listen(
    gateway: &Rc<Gateway>,
    configured: Vec<ConfiguredListener>,
    admin: Option<AdminSocket>,
) -> Result<Option<PathBuf>, BindError> {
    let admin_socket = listeners::listen_first(gateway, configured, admin)?;
    let sockets = datagrams::bind_new(gateway, &gateway.generation().config.listeners)?;
    gateway.datagrams.borrow_mut().extend(sockets);
    datagrams::share(gateway);
    Ok(admin_socket)
}

/// Completes `work`; `None` if the server is stopped meanwhile.
async fn unless_stopped<T>(
    gateway: &Gateway,
    signals: &ControlSignals,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        if signals.should_stop(gateway) {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

#[cfg(test)]
mod tests;
