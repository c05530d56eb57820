//! The listeners of a gateway: those that a configuration names, and those that are bound.
//!
//! Called by the server at start, reload and stop. Invariants: a listener that the old and the new
//! configuration name is never closed; if a new address cannot be bound, nothing changes.

mod handover;
mod http3;
mod joined;
mod tls;

use crate::certificates::TlsState;
use crate::gateway::Gateway;
use crate::options::AdminSocket;
use crate::server_error::ServerError;
use crate::shards;
use crate::streams;
use outboard_config::{Config, ListenAddress, Listener, Metrics};
use outboard_http_server::{
    BindError, BoundListener, Http3Socket, ListenerContext, ListenerLimits, ListeningSocket, Role,
};
use outboard_log::{Level, Opener};
use outboard_spawner::users;
use rustix::fs::chown;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use handover::{files, leave_files, sockets};
pub(crate) use joined::{JoinedListener, join, joined};
pub(crate) use tls::{Certificates, certificates, refresh_regularly};

/// The default port, which URLs omit.
pub(crate) const HTTPS_PORT: u16 = 443;

/// A listener that a configuration names.
pub(crate) struct ConfiguredListener {
    address: ListenAddress,
    context: Arc<ListenerContext>,
}

impl ConfiguredListener {
    /// The listeners of a configuration, including those for metrics and the store, with their
    /// certificates.
    ///
    /// # Errors
    /// A certificate or key that cannot be used.
    pub(crate) fn of(config: &Config, opener: &Opener) -> Result<Vec<Self>, ServerError> {
        let certificates = certificates(config, opener, &TlsState::new());
        Ok(Self::with(config, certificates.map_err(ServerError::setup)?))
    }

    /// The same, with the result of [`certificates`].
    pub(crate) fn with(config: &Config, certificates: Vec<Certificates>) -> Vec<Self> {
        let listeners = config.listeners.iter().zip(certificates);
        let connected = listeners.filter(|(listener, _)| !streams::is_datagram(listener));
        let apps = connected.map(|(listener, tls)| Self {
            address: listener.address.clone(),
            context: context_of(listener, tls),
        });
        let others = without_apps(config).into_iter().map(|(address, role)| Self {
            address,
            context: Arc::new(ListenerContext::plain(role)),
        });
        apps.chain(others).collect()
    }

    /// Whether it is bound as `bound`. Several listeners may have port 0; any other address has
    /// one.
    fn is(&self, bound: &BoundListener) -> bool {
        let any_port = matches!(self.address, ListenAddress::Tcp(address) if address.port() == 0);
        self.address == bound.address && (!any_port || self.context.role == bound.role())
    }
}

/// The settings of connections to a listener.
fn context_of(listener: &Listener, tls: Certificates) -> Arc<ListenerContext> {
    let stream = streams::receiver(listener);
    let role = if stream.is_some() { Role::Streams } else { Role::Apps };
    Arc::new(ListenerContext {
        forwarding: listener.forwarding.clone(),
        admission: listener.admission.clone(),
        limits: limits_of(listener),
        proxy_protocol: listener.proxy_protocol.clone(),
        tls: tls.settings,
        issued: tls.issued,
        redirects_to_https: listener.redirects_to_https,
        http3: listener.http3,
        stream,
        ..ListenerContext::plain(role)
    })
}

fn limits_of(listener: &Listener) -> Option<ListenerLimits> {
    let (max, max_of_address) = (listener.max_connections, listener.connections_per_ip);
    let limits = ListenerLimits { name: listener.name.as_str().into(), max, max_of_address };
    (max.is_some() || max_of_address.is_some()).then_some(limits)
}

fn without_apps(config: &Config) -> Vec<(ListenAddress, Role)> {
    let metrics = match &config.admin.metrics {
        Some(Metrics::Listen(address)) => Some((address.clone(), Role::Metrics)),
        _ => None,
    };
    let entities = config.entities.as_ref().and_then(|entities| entities.listen.clone());
    let dashboard =
        config.admin.dashboard.as_ref().map(|one| (one.listen.clone(), Role::Dashboard));
    let entities = entities.map(|address| (address, Role::Entities));
    metrics.into_iter().chain(entities).chain(dashboard).collect()
}

/// Checks that the certificates of a configuration can be read.
///
/// # Errors
/// A certificate or key that cannot be used.
pub(crate) fn check(config: &Config) -> Result<(), ServerError> {
    ConfiguredListener::of(config, &Opener::default()).map(drop)
}

/// The addresses that a configuration names, and how many threads listen on each.
pub(crate) fn addresses(config: &Config) -> Vec<(ListenAddress, usize)> {
    let threads = shards::count(config);
    let connected = config.listeners.iter().filter(|listener| !streams::is_datagram(listener));
    let apps = connected.map(|listener| (listener.address.clone(), threads));
    apps.chain(without_apps(config).into_iter().map(|(address, _)| (address, 1))).collect()
}

/// Binds everything at start.
pub(crate) fn listen_first(
    gateway: &Rc<Gateway>,
    configured: Vec<ConfiguredListener>,
    requested: Option<AdminSocket>,
) -> Result<Option<PathBuf>, BindError> {
    let generation = gateway.generation();
    let backlog = generation.config.io.backlog;
    for ConfiguredListener { address, context } in configured {
        let bound = start(gateway, &address, context, backlog)?;
        gateway.listeners.borrow_mut().push(bound);
    }
    let admin_path = generation.config.admin.socket.clone();
    if let Some(path) = &admin_path {
        listen_admin(gateway, path)?;
    }
    match (requested, admin_path) {
        (None, admin_path) | (Some(AdminSocket::IfFree(_)), admin_path @ Some(_)) => Ok(admin_path),
        (Some(AdminSocket::Always(path)), admin_path) => {
            if admin_path.as_ref() != Some(&path) {
                listen_admin(gateway, &path)?;
            }
            Ok(Some(path))
        }
        (Some(AdminSocket::IfFree(path)), None) => match listen_admin(gateway, &path) {
            Ok(()) => Ok(Some(path)),
            Err(error) => {
                gateway.server.log(Level::Warn, &format!("no admin socket: {error}"));
                Ok(None)
            }
        },
    }
}

/// [`start_once`]. Where the kernel chooses the port of TCP, that of UDP may be taken: then it chooses again.
fn start(
    gateway: &Rc<Gateway>,
    address: &ListenAddress,
    context: Arc<ListenerContext>,
    backlog: u32,
) -> Result<Rc<BoundListener>, BindError> {
    let is_chosen = matches!(address, ListenAddress::Tcp(address) if address.port() == 0);
    let mut choices = if is_chosen { 10 } else { 1 };
    loop {
        choices -= 1;
        match start_once(gateway, address, context.clone(), backlog) {
            Err(error) if choices > 0 && error.is_in_use() => {}
            started => return started,
        }
    }
}

/// Takes inherited sockets or binds some, and starts to accept on the first one. The others are for the
/// other threads.
fn start_once(
    gateway: &Rc<Gateway>,
    address: &ListenAddress,
    context: Arc<ListenerContext>,
    backlog: u32,
) -> Result<Rc<BoundListener>, BindError> {
    let threads = if context.role == Role::Apps { gateway.share.count } else { 1 };
    let inherited = gateway.sockets.borrow();
    let sockets = ListeningSocket::for_shards(threads, &inherited, address, backlog)?;
    let mut sockets = sockets.into_iter();
    let first = sockets.next().expect("a socket for each thread");
    let bound = BoundListener::start(gateway, first, context)?;
    let others: Vec<ListeningSocket> = sockets.collect();
    let http3 = http3::bind_missing(gateway, &bound, &bound.context());
    if let Err(error) = http3.and_then(|sockets| http3::serve(gateway, &bound, sockets)) {
        bound.stop();
        return Err(error);
    }
    gateway.sockets_for_others.borrow_mut().push((actual_address(&bound), others));
    Ok(bound)
}

fn listen_admin(gateway: &Rc<Gateway>, path: &Path) -> Result<(), BindError> {
    let context = Arc::new(ListenerContext::plain(Role::Admin));
    let config = &gateway.generation().config;
    let address = admin_address(config, path);
    let bound = start(gateway, &address, context, 16)?;
    gateway.listeners.borrow_mut().push(bound);
    set_group(config, path).map_err(|source| BindError::new(address, source))
}

/// An admin socket is accessible to the server's own user, and to a group if one is named.
pub(crate) fn admin_address(config: &Config, path: &Path) -> ListenAddress {
    let mode = if config.admin.group.is_some() { 0o660 } else { 0o600 };
    ListenAddress::Unix { path: path.to_owned(), mode }
}

/// Makes the configured group the group of an admin socket.
///
/// # Errors
/// There is no such group, or this user may not change the group of files to it.
pub(crate) fn set_group(config: &Config, path: &Path) -> io::Result<()> {
    let Some(name) = &config.admin.group else { return Ok(()) };
    let group = users::group_id(name).map_err(io::Error::other)?;
    // Root did it before it dropped its privileges.
    if std::fs::metadata(path)?.gid() == group.as_raw() {
        return Ok(());
    }
    Ok(chown(path, None, Some(group))?)
}

/// What a reload has bound, and nobody serves yet.
#[derive(Default)]
pub(crate) struct Fresh {
    listeners: Vec<Rc<BoundListener>>,
    /// For listeners that were there before, by their address.
    http3: Vec<(ListenAddress, Vec<Http3Socket>)>,
}

impl Fresh {
    /// Closes everything, with the sockets for other threads.
    pub(crate) fn abandon(self, gateway: &Gateway) {
        self.listeners.iter().for_each(|bound| bound.stop());
        gateway.sockets_for_others.borrow_mut().clear();
        gateway.http3_for_others.borrow_mut().clear();
    }
}

/// Binds the addresses that are not bound yet.
///
/// # Errors
/// An address cannot be bound; nothing stays bound then.
pub(crate) fn bind_new(
    gateway: &Rc<Gateway>,
    configured: &[ConfiguredListener],
    backlog: u32,
) -> Result<Fresh, BindError> {
    let mut fresh = Fresh::default();
    for one in configured {
        if let Err(error) = bind_one(gateway, one, backlog, &mut fresh) {
            fresh.abandon(gateway);
            return Err(error);
        }
    }
    Ok(fresh)
}

fn bind_one(
    gateway: &Rc<Gateway>,
    one: &ConfiguredListener,
    backlog: u32,
    fresh: &mut Fresh,
) -> Result<(), BindError> {
    let present = gateway.listeners.borrow().iter().find(|bound| one.is(bound)).cloned();
    match present {
        None => fresh.listeners.push(start(gateway, &one.address, one.context.clone(), backlog)?),
        Some(bound) => {
            let sockets = http3::bind_missing(gateway, &bound, &one.context)?;
            fresh.http3.push((actual_address(&bound), sockets));
        }
    }
    Ok(())
}

/// Adds the new listeners, reconfigures those that remain, and stops those that are not configured
/// any more.
pub(crate) fn take_over(gateway: &Rc<Gateway>, configured: &[ConfiguredListener], fresh: Fresh) {
    let Fresh { listeners: fresh, mut http3 } = fresh;
    let mut left: Vec<&ConfiguredListener> = configured.iter().collect();
    let mut listeners = gateway.listeners.borrow_mut();
    listeners.retain(|bound| {
        if bound.role() == Role::Admin {
            return true;
        }
        let found = left.iter().position(|one| one.is(bound));
        match found {
            Some(at) => {
                bound.set_context(left.remove(at).context.clone());
                let sockets = http3.iter().position(|(at, _)| *at == actual_address(bound));
                let sockets = sockets.map(|at| http3.swap_remove(at).1).unwrap_or_default();
                if let Err(error) = http3::serve(gateway, bound, sockets) {
                    gateway.server.log(Level::Error, &error.to_string());
                }
            }
            None => bound.stop(),
        }
        found.is_some()
    });
    listeners.extend(fresh);
}

/// The port that clients without TLS are redirected to.
pub(crate) fn https_port(gateway: &Gateway) -> Option<u16> {
    let listeners = gateway.listeners.borrow();
    let mut ports = listeners.iter().filter_map(|bound| bound.https_port());
    let first = ports.next()?;
    Some(if ports.any(|port| port == HTTPS_PORT) { HTTPS_PORT } else { first })
}

/// The address with the actual port.
fn actual_address(bound: &BoundListener) -> ListenAddress {
    bound.local.map_or_else(|| bound.address.clone(), ListenAddress::Tcp)
}

/// Stops accepting connections.
pub(crate) fn stop(gateway: &Gateway) {
    for bound in gateway.listeners.borrow().iter() {
        bound.stop();
    }
}

/// Waits until the connections that were in the backlogs of stopped listeners are accepted.
pub(crate) async fn closed(gateway: &Gateway) {
    let listeners = gateway.listeners.borrow().clone();
    for bound in listeners {
        bound.closed().await;
    }
}

#[cfg(test)]
mod tests;
