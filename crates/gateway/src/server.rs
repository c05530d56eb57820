//! The life of the server: start, reload, drain.
//!
//! Called by the command line. Invariants: addresses are bound before PHP is started, so that a
//! taken port is said at once; a reload that fails at any point leaves everything as it was.

mod development;
mod generation_builder;
mod heap;
mod htaccess;
mod orders;
mod rings;

use crate::gateway::{Gateway, memory_limit_bytes};
use crate::generation::Generation;
use crate::life::{self, Life, Ready};
use crate::listeners::{self, Wanted};
pub use crate::options::{AdminSocket, Load, Options};
use crate::privileges::{self, Identity};
pub use crate::server_error::ServerError;
use generation_builder::GenerationBuilder;
use orders::{Order, Orders};
use outboard_buffer::Memory;
use outboard_config::{Config, Diagnostics};
use outboard_http_server::Role;
use outboard_log::Level;
use outboard_log::Opener;
use outboard_php_pool::pool::StartError;
use outboard_reactor::{self as reactor, Interest, Source, blocking, now_ms, spawn};
use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::Poll;

/// Reads what a configuration names and the server needs from its start on: certificates with
/// their keys. Nothing is started.
///
/// # Errors
/// What [`serve`] would not start with.
pub fn check(config: &Config) -> Result<(), ServerError> {
    listeners::check(config)
}

/// Runs a server until it is told to stop.
///
/// # Errors
/// Why it did not start.
pub fn serve(mut config: Config, mut options: Options) -> Result<(), ServerError> {
    // Keys are root's, often.
    let wanted = Wanted::of(&config, &Opener::default())?;
    let mut identity = privileges::assume(&mut config, &options)?;
    options.sockets.append(&mut identity.sockets);
    let identity = Rc::new(identity);
    let served = reactor::run(serve_on_loop(config, wanted, options, identity.clone()));
    identity.leave();
    served.map_err(ServerError::Io)?
}

async fn serve_on_loop(
    config: Config,
    wanted: Vec<Wanted>,
    options: Options,
    identity: Rc<Identity>,
) -> Result<(), ServerError> {
    let orders = Orders::catch().map_err(ServerError::Io)?;
    let memory = Memory::new(memory_limit_bytes(config.limits.memory));
    let Options { name, host_binary, load, .. } = options;
    let kit = GenerationBuilder { name, host_binary, memory, load, identity };
    let (generation, sinks) = kit.open(1, config, None).await?;
    let gateway = Gateway::new(generation, sinks, kit.memory.clone());
    gateway.adopt(kit.name.clone(), options.sockets);
    kit.identity.warnings.iter().for_each(|warning| gateway.server.log(Level::Warn, warning));
    if let Some(spawner) = &kit.identity.spawner {
        let watched = spawner.watch().and_then(|fd| Source::new(fd, Interest::Read));
        spawn(stop_without_spawner(gateway.clone(), watched.map_err(ServerError::Io)?));
    }
    reactor::watch_memory(rings::Rings::new(gateway.clone()));
    let admin_socket = listeners::listen_first(&gateway, wanted, options.admin_socket)?;
    if let Some(unstarted) = wait_ready_or_stop(&gateway, &orders).await {
        listeners::stop(&gateway);
        return unstarted.map_err(ServerError::Php);
    }
    spawn(flush_logs(gateway.clone()));
    spawn(heap::give_back(gateway.clone()));
    spawn(htaccess::tell(gateway.clone()));
    development::configure(&gateway);
    gateway.ready.set(true);
    (options.tell)(&Life::Ready(ready_facts(&gateway, admin_socket)));
    if let Some(period_ms) = options.alive_every_ms {
        spawn(life::tell_alive(options.tell.clone(), period_ms));
    }
    attend(&gateway, &orders, &kit, &options.tell).await;
    (options.tell)(&Life::Stopping);
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

/// Waits until everything serves; otherwise says what came of it instead: a failure, or somebody
/// who wanted it stopped before.
async fn wait_ready_or_stop(
    gateway: &Rc<Gateway>,
    orders: &Orders,
) -> Option<Result<(), StartError>> {
    let generation = gateway.generation();
    match unless_stopped(gateway, orders, wait_ready(&generation)).await {
        None => Some(Ok(())),
        Some(outcome) => outcome.err().map(Err),
    }
}

/// Without its spawner a gateway that gave up root can start no PHP, and only root can start one.
async fn stop_without_spawner(gateway: Rc<Gateway>, spawner: Source) {
    poll_fn(|_| spawner.poll_hangup()).await;
    gateway.server.log(Level::Error, "the spawner has gone, and with it all PHP: stopping");
    gateway.lost_spawner.set(true);
    gateway.control.stop.set();
}

fn ready_facts(gateway: &Gateway, admin_socket: Option<PathBuf>) -> Ready {
    let generation = gateway.generation();
    let listeners = gateway.listeners.borrow();
    let serving =
        listeners.iter().filter(|bound| matches!(bound.role(), Role::Apps | Role::Entities));
    let apps = generation.apps.iter().map(|app| {
        (app.config.name.clone(), app.pool.status().php_version, app.config.root.clone())
    });
    Ready {
        listeners: serving.map(|bound| bound.url()).collect(),
        admin_socket,
        apps: apps.collect(),
    }
}

async fn attend(
    gateway: &Rc<Gateway>,
    orders: &Orders,
    kit: &GenerationBuilder,
    tell: &life::Listener,
) {
    loop {
        match orders.next(gateway).await {
            Order::Stop => return,
            Order::ReopenLogs => reopen_logs(gateway),
            Order::Reload => {
                let waiters = gateway.control.take_reload_waiters();
                tell(&Life::Reloading);
                let Some(outcome) = unless_stopped(gateway, orders, reload(gateway, kit)).await
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
                        &format!("reload given up, everything stays as it was: {error}"),
                    ),
                }
                let outcome = outcome.map_err(|error| error.to_string());
                tell(&Life::Reloaded(outcome.clone()));
                waiters.iter().for_each(|waiter| waiter.complete(outcome.clone()));
            }
        }
    }
}

/// Does what may take its time; `None` when somebody wants the server stopped meanwhile.
async fn unless_stopped<T>(
    gateway: &Gateway,
    orders: &Orders,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        if orders.want_stop(gateway) {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// Starts a successor beside the present generation, checks it, swaps it in.
async fn reload(gateway: &Rc<Gateway>, kit: &GenerationBuilder) -> Result<u32, ServerError> {
    let load = kit.load.clone();
    let opener = kit.identity.opener();
    let loaded = blocking(move || {
        let config = load(&|path| opener.read(path))?;
        let certificates = listeners::certificates(&config, &opener);
        Ok::<_, Diagnostics>((config, certificates))
    });
    let (mut config, certificates) = loaded.await.map_err(ServerError::Config)?;
    kit.identity.settle(&mut config);
    let wanted = Wanted::with(&config, certificates.map_err(ServerError::setup)?);
    let present = gateway.generation();
    let number = present.number + 1;
    let (successor, sinks) = kit.open(number, config, Some(&present)).await?;
    gateway.pools.borrow_mut().extend(successor.pools().cloned());
    let checked = match wait_ready(&successor).await {
        Ok(()) => listeners::bind_new(gateway, &wanted, successor.config.io.backlog)
            .map_err(ServerError::from),
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
    listeners::take_over(gateway, &wanted, fresh);
    gateway.swap(successor, sinks, drain_timeout_ms);
    development::configure(gateway);
    Ok(number)
}

fn reopen_logs(gateway: &Gateway) {
    for sink in gateway.sinks.borrow().all() {
        if let Err(error) = sink.reopen() {
            gateway.server.log(Level::Error, &format!("cannot reopen a log: {error}"));
        }
    }
}

/// Access lines reach their file within a moment, without a write a request.
async fn flush_logs(gateway: Rc<Gateway>) {
    let mut waiting = gateway.server.memory.logs().hold(0);
    loop {
        reactor::sleep(250).await;
        gateway.sinks.borrow().flush(&mut waiting);
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
    }
}

/// Finishes what has begun, within the drain time-out.
async fn drain(gateway: &Rc<Gateway>) {
    gateway.server.log(Level::Info, "stopping: finishing what has begun");
    listeners::stop(gateway);
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

/// For killed workers to be reaped.
const KILL_GRACE_MS: u64 = 500;
