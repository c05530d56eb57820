//! The listeners of a gateway together: those that a configuration wants, and those that there are.
//!
//! Called by the server at start, reload and stop. Invariant: of two configurations in a row, what
//! both want is never closed, and what the second cannot have changes nothing.

use super::{BindError, Bound, ListenerFacts, Serves};
use crate::gateway::Gateway;
use crate::log::Level;
use crate::server::AdminSocket;
use outboard_config::{Config, Forwarding, ListenAddress, Metrics};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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

/// Binds everything at start.
pub(crate) fn listen_first(
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

/// Binds the addresses that the present generation does not have.
pub(crate) fn bind_new(
    gateway: &Rc<Gateway>,
    config: &Config,
) -> Result<Vec<Rc<Bound>>, BindError> {
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

pub(crate) fn take_over(gateway: &Gateway, config: &Config, fresh: Vec<Rc<Bound>>) {
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

/// Accepts nothing any more.
pub(crate) fn stop(gateway: &Gateway) {
    for bound in gateway.listeners.borrow().iter() {
        bound.stop();
    }
}
