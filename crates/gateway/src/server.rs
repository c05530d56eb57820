//! The server: start, reload, drain.
//!
//! Called by the command line. Invariants: addresses are bound before PHP is started, so that a
//! port in use is reported immediately; a reload that fails at any point changes nothing.

mod control_signals;
mod development;
mod generation_builder;
mod heap;
mod htaccess;

use crate::datagrams;
use crate::gateway::{Gateway, memory_limit_bytes};
use crate::generation::Generation;
use crate::listeners::{self, ConfiguredListener};
use crate::logs;
pub use crate::options::{AdminSocket, Load, Options};
use crate::privileges::{self, Privileges};
pub use crate::server_error::ServerError;
use crate::server_event::{self, Ready, ServerEvent};
use control_signals::{Command, ControlSignals};
use generation_builder::GenerationBuilder;
use outboard_buffer::Memory;
use outboard_config::{Config, Diagnostics};
use outboard_http_server::{BindError, BoundListener, Role};
use outboard_log::{Level, Opener};
use outboard_php_pool::pool::StartError;
use outboard_reactor::{self as reactor, Interest, Source, blocking, now_ms, spawn};
use outboard_stream_server::BoundDatagram;
use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;
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
    let configured = ConfiguredListener::of(&config, &Opener::default())?;
    let mut privileges = privileges::drop_root(&mut config, &options)?;
    options.sockets.append(&mut privileges.sockets);
    let privileges = Rc::new(privileges);
    let served = reactor::run(serve_on_loop(config, configured, options, privileges.clone()));
    privileges.remove_leftovers();
    served.map_err(ServerError::Io)?
}

async fn serve_on_loop(
    config: Config,
    configured: Vec<ConfiguredListener>,
    options: Options,
    privileges: Rc<Privileges>,
) -> Result<(), ServerError> {
    let signals = ControlSignals::catch().map_err(ServerError::Io)?;
    let memory = Memory::new(memory_limit_bytes(config.limits.memory));
    let Options { name, host_binary, load, .. } = options;
    let rings = Rc::default();
    let builder = GenerationBuilder { name, host_binary, memory, rings, load, privileges };
    let (generation, sinks) = builder.open(1, config, None).await?;
    let gateway = Gateway::new(generation, sinks, builder.memory.clone());
    gateway.adopt(builder.name.clone(), options.sockets);
    builder.privileges.warnings.iter().for_each(|warning| gateway.server.log(Level::Warn, warning));
    if let Some(spawner) = &builder.privileges.spawner {
        let watched = spawner.watch().and_then(|fd| Source::new(fd, Interest::Read));
        spawn(stop_without_spawner(gateway.clone(), watched.map_err(ServerError::Io)?));
    }
    reactor::watch_memory(builder.rings.source());
    let admin_socket = listeners::listen_first(&gateway, configured, options.admin_socket)?;
    let sockets = datagrams::bind_new(&gateway, &gateway.generation().config.listeners)?;
    gateway.datagrams.borrow_mut().extend(sockets);
    datagrams::share(&gateway);
    if let Some(outcome) = wait_ready_or_stop(&gateway, &signals).await {
        listeners::stop(&gateway);
        return outcome.map_err(ServerError::Php);
    }
    spawn(flush_logs(gateway.clone()));
    spawn(heap::trim_regularly(gateway.clone()));
    spawn(htaccess::report(gateway.clone()));
    development::configure(&gateway);
    gateway.ready.set(true);
    (options.notify)(&ServerEvent::Ready(ready_facts(&gateway, admin_socket)));
    if let Some(period_ms) = options.alive_every_ms {
        spawn(server_event::notify_alive(options.notify.clone(), period_ms));
    }
    handle_commands(&gateway, &signals, &builder, &options.notify).await;
    (options.notify)(&ServerEvent::Stopping);
    drain(&gateway).await;
    gateway.sinks.borrow().all().for_each(|sink| sink.finish());
    if gateway.lost_spawner.get() { Err(ServerError::Spawner) } else { Ok(()) }
}

async fn wait_ready(generation: &Generation) -> Result<(), StartError> {
    for pool in generation.pools() {
        pool.ready().await?;
    }
    Ok(())
}

/// Waits until everything is ready: `None`. Otherwise the failure of a pool, or `Ok` if the server
/// was stopped before.
async fn wait_ready_or_stop(
    gateway: &Rc<Gateway>,
    signals: &ControlSignals,
) -> Option<Result<(), StartError>> {
    let generation = gateway.generation();
    match unless_stopped(gateway, signals, wait_ready(&generation)).await {
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
        (app.config.name.clone(), app.pool.status().php_version, app.config.root.clone())
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

async fn handle_commands(
    gateway: &Rc<Gateway>,
    signals: &ControlSignals,
    builder: &GenerationBuilder,
    notify: &server_event::Listener,
) {
    loop {
        match signals.next(gateway).await {
            Command::Stop => return,
            Command::ReopenLogs => spawn(reopen_logs(gateway.clone())),
            Command::Reload => {
                let waiters = gateway.control.take_reload_waiters();
                notify(&ServerEvent::Reloading);
                let Some(outcome) =
                    unless_stopped(gateway, signals, reload(gateway, builder)).await
                else {
                    let outcome = Err("the server stops".to_owned());
                    return waiters.iter().for_each(|waiter| waiter.complete(outcome.clone()));
                };
                match &outcome {
                    Ok(number) => {
                        gateway.server.log(Level::Info, &format!("generation {number} is active"))
                    }
                    Err(error) => gateway.server.log(
                        Level::Error,
                        &format!("the reload failed, nothing has changed: {error}"),
                    ),
                }
                let outcome = outcome.map_err(|error| error.to_string());
                notify(&ServerEvent::Reloaded(outcome.clone()));
                waiters.iter().for_each(|waiter| waiter.complete(outcome.clone()));
            }
        }
    }
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

/// Starts a successor of the active generation, waits until it is ready, and activates it.
async fn reload(gateway: &Rc<Gateway>, builder: &GenerationBuilder) -> Result<u32, ServerError> {
    let load = builder.load.clone();
    let opener = builder.privileges.opener();
    let loaded = blocking(move || {
        let config = load(&|path| opener.read(path))?;
        let certificates = listeners::certificates(&config, &opener);
        Ok::<_, Diagnostics>((config, certificates))
    });
    let (mut config, certificates) = loaded.await.map_err(ServerError::Config)?;
    builder.privileges.set_php_user(&mut config);
    let configured = ConfiguredListener::with(&config, certificates.map_err(ServerError::setup)?);
    let present = gateway.generation();
    let number = present.number + 1;
    let (successor, sinks) = builder.open(number, config, Some(&present)).await?;
    gateway.pools.borrow_mut().extend(successor.pools().cloned());
    let checked = match wait_ready(&successor).await {
        Ok(()) => bind_new(gateway, &configured, &successor.config).map_err(ServerError::from),
        Err(error) => Err(error.into()),
    };
    let (fresh, sockets) = match checked {
        Ok(fresh) => fresh,
        Err(error) => {
            successor.tasks().for_each(|tasks| tasks.stop());
            successor.pools().for_each(|pool| pool.retire(0));
            return Err(error);
        }
    };
    let drain_timeout_ms = successor.config.drain_timeout_ms;
    listeners::take_over(gateway, &configured, fresh);
    datagrams::take_over(gateway, &successor.config.listeners, sockets);
    gateway.swap(successor, sinks, drain_timeout_ms);
    datagrams::share(gateway);
    development::configure(gateway);
    Ok(number)
}

/// Sockets of addresses that were not bound before.
type NewSockets = (Vec<Rc<BoundListener>>, Vec<Rc<BoundDatagram>>);

/// Binds the addresses that only the new configuration names.
fn bind_new(
    gateway: &Rc<Gateway>,
    configured: &[ConfiguredListener],
    config: &Config,
) -> Result<NewSockets, BindError> {
    let fresh = listeners::bind_new(gateway, configured, config.io.backlog)?;
    match datagrams::bind_new(gateway, &config.listeners) {
        Ok(sockets) => Ok((fresh, sockets)),
        Err(error) => {
            fresh.iter().for_each(|bound| bound.stop());
            Err(error)
        }
    }
}

async fn reopen_logs(gateway: Rc<Gateway>) {
    let sinks = gateway.sinks.borrow().all().cloned().collect();
    if let Err(error) = logs::reopen(sinks).await {
        gateway.server.log(Level::Error, &format!("cannot reopen a log: {error}"));
    }
}

/// Log lines are written in batches, after at most a quarter of a second.
async fn flush_logs(gateway: Rc<Gateway>) {
    let mut waiting = gateway.server.memory.logs().hold(0);
    loop {
        reactor::activity().await;
        reactor::sleep(250).await;
        gateway.sinks.borrow().flush(&mut waiting);
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
    }
}

/// Completes requests that have started, within the drain timeout.
async fn drain(gateway: &Rc<Gateway>) {
    gateway.server.log(Level::Info, "stopping: completing running requests");
    listeners::stop(gateway);
    datagrams::stop(gateway);
    gateway.server.drain();
    gateway.generation().tasks().for_each(|tasks| tasks.stop());
    let drain_timeout_ms = gateway.generation().config.drain_timeout_ms;
    let until_ms = now_ms() + drain_timeout_ms;
    while gateway.server.open_connections() > 0 && now_ms() < until_ms {
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
    gateway.server.log(Level::Info, "stopped");
    for sink in gateway.sinks.borrow().all() {
        sink.flush();
    }
}

/// The time for killed workers to be reaped.
const KILL_GRACE_MS: u64 = 500;

#[cfg(test)]
mod tests;
