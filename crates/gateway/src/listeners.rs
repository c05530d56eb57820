//! The listeners of a gateway together: those that a configuration wants, and those that there are.
//!
//! Called by the server at start, reload and stop. Invariant: of two configurations in a row, what
//! both want is never closed, and what the second cannot have changes nothing.

use crate::gateway::Gateway;
use crate::options::AdminSocket;
use crate::server_error::ServerError;
use outboard_config::{Config, ListenAddress, Listener, Metrics};
use outboard_http_server::{BindError, BoundListener, ListenerContext, Role};
use outboard_log::Level;
use outboard_log::Opener;
use outboard_spawner::users;
use outboard_tls::{CertificateFiles, ServerSettings};
use rustix::fs::chown;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Needs not be written in a URL.
pub(crate) const HTTPS_PORT: u16 = 443;

/// A listener that a configuration wants.
pub(crate) struct Wanted {
    address: ListenAddress,
    context: Rc<ListenerContext>,
}

impl Wanted {
    /// The listeners of a configuration, those for metrics among them, with their certificates.
    ///
    /// # Errors
    /// A certificate or key that cannot be used.
    pub(crate) fn of(config: &Config, opener: &Opener) -> Result<Vec<Self>, ServerError> {
        Ok(Self::with(config, certificates(config, opener).map_err(ServerError::setup)?))
    }

    /// The same, with what [`certificates`] has read.
    pub(crate) fn with(config: &Config, certificates: Vec<Certificates>) -> Vec<Self> {
        let apps = config.listeners.iter().zip(certificates).map(|(listener, tls)| {
            let context = ListenerContext {
                forwarding: listener.forwarding.clone(),
                tls,
                redirects_to_https: listener.redirects_to_https,
                ..ListenerContext::plain(Role::Apps)
            };
            Self { address: listener.address.clone(), context: Rc::new(context) }
        });
        let others = beside_apps(config).into_iter().map(|(address, serves)| Self {
            address,
            context: Rc::new(ListenerContext::plain(serves)),
        });
        apps.chain(others).collect()
    }

    /// Several may be where any port is free; elsewhere an address is one listener's.
    fn is(&self, bound: &BoundListener) -> bool {
        let any_port = matches!(self.address, ListenAddress::Tcp(address) if address.port() == 0);
        self.address == bound.address && (!any_port || self.context.role == bound.role())
    }
}

/// What a listener shows; `None` for one that does not speak TLS.
pub(crate) type Certificates = Option<Arc<ServerSettings>>;

/// Reads what each listener of a configuration shows. There may be very many, so a reload does it beside
/// the loop.
///
/// # Errors
/// A certificate or key that cannot be used.
pub(crate) fn certificates(config: &Config, opener: &Opener) -> Result<Vec<Certificates>, String> {
    config.listeners.iter().map(|listener| tls(listener, opener)).collect()
}

fn tls(listener: &Listener, opener: &Opener) -> Result<Certificates, String> {
    if listener.certificates.is_empty() {
        return Ok(None);
    }
    let files = listener.certificates.iter().map(|certificate| CertificateFiles {
        chain: certificate.certificate.clone(),
        key: certificate.key.clone(),
    });
    let files: Vec<CertificateFiles> = files.collect();
    let open = |path: &Path| opener.read(path);
    Ok(Some(Arc::new(ServerSettings::read(&files, &[b"h2", b"http/1.1"], &open)?)))
}

fn beside_apps(config: &Config) -> Vec<(ListenAddress, Role)> {
    let metrics = match &config.admin.metrics {
        Some(Metrics::Listen(address)) => Some((address.clone(), Role::Metrics)),
        _ => None,
    };
    let entities = config.entities.as_ref().and_then(|entities| entities.listen.clone());
    metrics.into_iter().chain(entities.map(|address| (address, Role::Entities))).collect()
}

/// Reads what the listeners of a configuration need, and keeps nothing of it.
///
/// # Errors
/// A certificate or key that cannot be used.
pub(crate) fn check(config: &Config) -> Result<(), ServerError> {
    Wanted::of(config, &Opener::default()).map(drop)
}

/// The addresses that a configuration wants.
pub(crate) fn addresses(config: &Config) -> Vec<ListenAddress> {
    let apps = config.listeners.iter().map(|listener| listener.address.clone());
    apps.chain(beside_apps(config).into_iter().map(|(address, _)| address)).collect()
}

/// Binds everything at start.
pub(crate) fn listen_first(
    gateway: &Rc<Gateway>,
    wanted: Vec<Wanted>,
    asked: Option<AdminSocket>,
) -> Result<Option<PathBuf>, BindError> {
    let generation = gateway.generation();
    let backlog = generation.config.io.backlog;
    for Wanted { address, context } in wanted {
        let bound =
            BoundListener::start(gateway, &gateway.sockets.borrow(), address, context, backlog)?;
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
                gateway.server.log(Level::Warn, &format!("no admin socket: {error}"));
                Ok(None)
            }
        },
    }
}

fn listen_for_orders(gateway: &Rc<Gateway>, path: &Path) -> Result<(), BindError> {
    let context = Rc::new(ListenerContext::plain(Role::Admin));
    let config = &gateway.generation().config;
    let address = for_orders(config, path);
    let bound =
        BoundListener::start(gateway, &gateway.sockets.borrow(), address.clone(), context, 16)?;
    gateway.listeners.borrow_mut().push(bound);
    give_to_group(config, path).map_err(|source| BindError::new(address, source))
}

/// An admin socket is for the server's own user, and for a group if one is named.
pub(crate) fn for_orders(config: &Config, path: &Path) -> ListenAddress {
    let mode = if config.admin.group.is_some() { 0o660 } else { 0o600 };
    ListenAddress::Unix { path: path.to_owned(), mode }
}

/// Lets the members of the configured group open an admin socket.
///
/// # Errors
/// There is no such group, or it is not for this user to give files to.
pub(crate) fn give_to_group(config: &Config, path: &Path) -> io::Result<()> {
    let Some(name) = &config.admin.group else { return Ok(()) };
    let group = users::group_id(name).map_err(io::Error::other)?;
    // Root has done it before it gave itself up.
    if std::fs::metadata(path)?.gid() == group.as_raw() {
        return Ok(());
    }
    Ok(chown(path, None, Some(group))?)
}

/// Binds the addresses that the present generation does not have.
pub(crate) fn bind_new(
    gateway: &Rc<Gateway>,
    wanted: &[Wanted],
    backlog: u32,
) -> Result<Vec<Rc<BoundListener>>, BindError> {
    let mut fresh = Vec::new();
    for one in wanted {
        if gateway.listeners.borrow().iter().any(|bound| one.is(bound)) {
            continue;
        }
        match BoundListener::start(
            gateway,
            &gateway.sockets.borrow(),
            one.address.clone(),
            one.context.clone(),
            backlog,
        ) {
            Ok(bound) => fresh.push(bound),
            Err(error) => {
                fresh.iter().for_each(|bound| bound.stop());
                return Err(error);
            }
        }
    }
    Ok(fresh)
}

/// Puts the fresh listeners beside those that are still wanted, and ends the others.
pub(crate) fn take_over(gateway: &Gateway, wanted: &[Wanted], fresh: Vec<Rc<BoundListener>>) {
    let mut left: Vec<&Wanted> = wanted.iter().collect();
    let mut listeners = gateway.listeners.borrow_mut();
    listeners.retain(|bound| {
        if bound.role() == Role::Admin {
            return true;
        }
        let found = left.iter().position(|wanted| wanted.is(bound));
        match found {
            Some(at) => bound.set_context(left.remove(at).context.clone()),
            None => bound.stop(),
        }
        found.is_some()
    });
    listeners.extend(fresh);
}

/// The port that clients are sent to who come without TLS.
pub(crate) fn https_port(gateway: &Gateway) -> Option<u16> {
    let listeners = gateway.listeners.borrow();
    let mut ports = listeners.iter().filter_map(|bound| bound.https_port());
    let first = ports.next()?;
    Some(if ports.any(|port| port == HTTPS_PORT) { HTTPS_PORT } else { first })
}

/// Accepts nothing any more.
pub(crate) fn stop(gateway: &Gateway) {
    for bound in gateway.listeners.borrow().iter() {
        bound.stop();
    }
}
