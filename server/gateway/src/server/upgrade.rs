//! The upgrade: a newer program takes over the sockets of this server.
//!
//! Called by the server on the lead, as the old server ([`upgraded`]) and as the new one ([`replace`]).
//! Invariants: until the new server accepts connections nothing has changed; what only one process can
//! have open (the entity store, tasks) moves by a [`Handover`].

use super::control_signals::ControlSignals;
use super::handover::Handover;
use super::lead::Lead;
use super::unless_stopped;
use crate::gateway::Gateway;
use crate::listeners;
use outboard_entity_store::StoreError;
use outboard_log::Level;
use outboard_reactor::{now_ms, with_deadline};
use outboard_upgrade::{Predecessor, Stage, Starter, Successor, Verdict};
use rustix::fs::fstat;
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

/// PHP that preloads an application is ready sooner.
const READY_MS: u64 = 120_000;

/// Why there was no upgrade.
#[derive(Debug)]
enum UpgradeError {
    /// The entity store cannot be closed.
    Store(StoreError),
    /// No program can be started.
    Start(io::Error),
    /// The sockets cannot be handed over.
    Sockets(io::Error),
    /// The new program does not start, as it says.
    NotReady(String),
    /// The server stops.
    Stopping,
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "the entity store cannot be handed over: {error}"),
            Self::Start(error) => write!(f, "the new program cannot be started: {error}"),
            Self::Sockets(error) => write!(f, "the sockets cannot be handed over: {error}"),
            Self::Stopping => f.write_str("the server stops"),
            Self::NotReady(why) => write!(f, "the new program does not start: {}", why.trim_end()),
        }
    }
}

impl std::error::Error for UpgradeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(error) | Self::Sockets(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::NotReady(_) | Self::Stopping => None,
        }
    }
}

/// The new server, which accepts connections; `None`: everything is as before.
pub(super) async fn upgraded(lead: &Lead, signals: &ControlSignals) -> Option<Successor> {
    let gateway = &lead.gateway;
    let waiters = gateway.control.take_upgrade_waiters();
    gateway.server.log(Level::Info, "upgrading: starting the new program");
    let outcome = unless_stopped(gateway, signals, start(lead)).await;
    let outcome = outcome.unwrap_or_else(|| Err(UpgradeError::Stopping));
    match &outcome {
        Ok(successor) => {
            let text = format!("process {} has taken over", successor.pid());
            gateway.server.log(Level::Info, &text);
        }
        Err(error) => {
            let text = format!("the upgrade failed, nothing has changed: {error}");
            gateway.server.log(Level::Error, &text);
        }
    }
    let reply = match &outcome {
        Ok(successor) => Ok(successor.pid()),
        Err(error) => Err(error.to_string()),
    };
    waiters.iter().for_each(|waiter| waiter.complete(reply.clone()));
    outcome.ok()
}

/// Starts the program that is at this one's path now, and waits until it accepts connections.
///
/// # Errors
/// It does not; everything is as before.
async fn start(lead: &Lead) -> Result<Successor, UpgradeError> {
    let gateway = &lead.gateway;
    let Some(starter) = &lead.starter else {
        let why = "this server is not one of `outboard serve`";
        return Err(UpgradeError::Start(io::Error::other(why)));
    };
    let sockets = sockets(gateway).await.map_err(UpgradeError::Sockets)?;
    let (handover, link) = Handover::begin(gateway).map_err(UpgradeError::Sockets)?.unzip();
    let successor = starter.start().map_err(UpgradeError::Start)?;
    let attempt = Attempt(Some(starter));
    let files = listeners::files(gateway).chain(lead.builder.privileges.files());
    successor.bequeath(&sockets, link, files.collect()).map_err(UpgradeError::Sockets)?;
    let ready = ready(&successor, handover.as_ref());
    let too_late = |_| {
        let text = format!("it was not ready within {} s", READY_MS / 1000);
        Err(UpgradeError::NotReady(text))
    };
    with_deadline(now_ms() + READY_MS, ready).await.unwrap_or_else(too_late)?;
    attempt.succeed();
    if let Some(handover) = handover {
        handover.complete();
    }
    listeners::leave_files(gateway);
    lead.builder.privileges.leave_files();
    Ok(successor)
}

/// Waits until the new server accepts connections, and hands over what it waits for.
async fn ready(successor: &Successor, handover: Option<&Handover>) -> Result<(), UpgradeError> {
    loop {
        match (successor.stage().await.map_err(UpgradeError::NotReady)?, handover) {
            (Stage::Ready, _) => return Ok(()),
            (Stage::Prepared, Some(handover)) => {
                handover.release().await.map_err(UpgradeError::Store)?;
                successor.released();
            }
            (Stage::Acquired, Some(handover)) => {
                handover.send_memory().await.map_err(UpgradeError::Store)?;
                successor.complete();
            }
            (Stage::Prepared | Stage::Acquired, None) => {}
        }
    }
}

/// The sockets of all threads, in the order of the threads, and those that none uses now; each once.
async fn sockets(gateway: &Rc<Gateway>) -> io::Result<Vec<OwnedFd>> {
    let mut all = listeners::sockets(gateway)?;
    let of_followers = |follower: Rc<Gateway>| async move { listeners::sockets(&follower) };
    for sockets in gateway.shards.on_followers(of_followers).await {
        all.extend(sockets?);
    }
    // Not what connects this server to its predecessor.
    let is_relay = |socket: &OwnedFd| socket_type(socket) == Ok(SocketType::SEQPACKET);
    for unused in gateway.sockets.borrow().iter().filter(|socket| !is_relay(socket)) {
        all.push(unused.try_clone()?);
    }
    let mut seen = HashSet::new();
    let mut once = Vec::new();
    for socket in all {
        let stat = fstat(&socket)?;
        if seen.insert((stat.st_dev, stat.st_ino)) {
            once.push(socket);
        }
    }
    Ok(once)
}

/// An upgrade that ends with the new process unless it succeeds. A stop of the server may drop it anywhere.
struct Attempt<'a>(Option<&'a Starter>);

impl Attempt<'_> {
    fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(starter) = self.0 {
            starter.kill();
        }
    }
}

/// As the new server, which accepts connections already: the old one stops. If it goes on, this one stops.
pub(super) async fn replace(
    lead: &Lead,
    predecessor: &Predecessor,
    files: Vec<PathBuf>,
) -> io::Result<()> {
    let Lead { gateway, builder, .. } = lead;
    match predecessor.replace().await? {
        Verdict::Ours => {
            builder.privileges.own_files(files);
            gateway.server.log(Level::Info, "the new program has taken over");
            if let Some(link) = &builder.link {
                link.succeed();
            }
        }
        Verdict::GivenUp => {
            gateway.server.log(Level::Error, "the running server has given up the upgrade");
            listeners::leave_files(gateway);
            gateway.control.stop.set();
        }
    }
    Ok(())
}
