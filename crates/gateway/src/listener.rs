//! Listening sockets: binding, accepting, and living on across reloads.
//!
//! Called by the gateway. Invariants: a socket that the next generation wants as well is never
//! closed, so a reload loses no connection; at the connection limit the kernel's backlog queues
//! until somebody who waits has left; a flood of connections leaves others their turn.

mod admission;
mod handshake;
pub(crate) mod set;

use crate::client::Ends;
use crate::connection::Connection;
use crate::connections::{Entry, Kind, counted_as};
use crate::gateway::Gateway;
use crate::http2;
use crate::wire::Wire;
use handshake::Spoken;
use outboard_config::{Forwarding, ListenAddress};
use outboard_log::{Level, Reason};
use outboard_reactor::{Accepted, Event, Listener, Peer, Stream, sleep, spawn};
use outboard_tls::ServerSettings;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// What a connection takes between two requests: its task, its place in the loop.
const CONNECTION_BYTES: usize = 6 << 10;
/// The same with a TLS session.
const TLS_CONNECTION_BYTES: usize = 24 << 10;

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    /// The apps.
    Apps,
    /// The entity store alone.
    Entities,
    /// Status, reload, metrics.
    Admin,
    /// Metrics alone, for a collector.
    Metrics,
}

/// What the connections of a listener need to know of it.
#[derive(Debug)]
pub(crate) struct ListenerFacts {
    pub(crate) serves: Serves,
    pub(crate) forwarding: Forwarding,
    /// For listeners that speak TLS.
    pub(crate) tls: Option<Arc<ServerSettings>>,
    /// Whether clients are sent to a listener that does.
    pub(crate) redirects_to_https: bool,
}

impl ListenerFacts {
    /// A listener for operators.
    pub(crate) fn plain(serves: Serves) -> Self {
        Self { serves, forwarding: Forwarding::default(), tls: None, redirects_to_https: false }
    }

    /// Whose share a peer's connections count for; a proxy speaks for many.
    pub(crate) fn limited_address(&self, peer: Peer) -> Option<IpAddr> {
        let is_for_clients = matches!(self.serves, Serves::Apps | Serves::Entities);
        let ip = match peer {
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
            Peer::Unix => None,
        };
        if is_for_clients && !self.forwarding.trusts(ip) { counted_as(peer) } else { None }
    }
}

/// A bound socket that is being accepted from.
#[derive(Debug)]
pub(crate) struct Bound {
    /// As configured: what a reload compares.
    pub(crate) address: ListenAddress,
    /// Where it really is, when port 0 was asked for.
    pub(crate) local: Option<SocketAddr>,
    facts: RefCell<Rc<ListenerFacts>>,
    stop: Event,
    unlink: Option<std::path::PathBuf>,
}

/// An address cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    address: ListenAddress,
    source: io::Error,
}

impl BindError {
    pub(crate) fn new(address: ListenAddress, source: io::Error) -> Self {
        Self { address, source }
    }
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot listen on {}: {}", self.address, self.source)?;
        match self.source.kind() {
            io::ErrorKind::AddrInUse => {
                f.write_str("; another server listens there: stop it or choose another address")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("; ports below 1024 and foreign folders need the right to use them")
            }
            io::ErrorKind::AddrNotAvailable => f.write_str("; no interface has this address"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Bound {
    /// Binds and begins to accept.
    pub(crate) fn start(
        gateway: &Rc<Gateway>,
        address: ListenAddress,
        facts: Rc<ListenerFacts>,
        backlog: u32,
    ) -> Result<Rc<Self>, BindError> {
        let failed = |source| BindError { address: address.clone(), source };
        let (socket, unlink) = match handed_over(&gateway.sockets.borrow(), &address) {
            Some(socket) => (socket.map_err(failed)?, None),
            None => bind(&address, backlog).map_err(failed)?,
        };
        let local = net::getsockname(&socket).ok().and_then(|any| SocketAddr::try_from(any).ok());
        let listener = Listener::new(socket).map_err(failed)?;
        let bound = Rc::new(Self {
            address,
            local,
            facts: RefCell::new(facts),
            stop: Event::default(),
            unlink,
        });
        spawn(accept_all(gateway.clone(), bound.clone(), listener));
        Ok(bound)
    }

    /// The address as people write it, with the real port.
    pub(crate) fn name(&self) -> String {
        self.local.map_or_else(|| self.address.to_string(), |local| local.to_string())
    }

    pub(crate) fn serves(&self) -> Serves {
        self.facts.borrow().serves
    }

    /// As a browser wants it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.facts.borrow().tls.is_some() { "https" } else { "http" };
        match self.local {
            Some(local) if local.ip().is_unspecified() => {
                format!("{scheme}://localhost:{}/", local.port())
            }
            Some(local) => format!("{scheme}://{local}/"),
            None => self.address.to_string(),
        }
    }

    /// Where it speaks TLS to the network's clients.
    pub(crate) fn https_port(&self) -> Option<u16> {
        self.facts.borrow().tls.as_ref()?;
        self.local.map(|local| local.port())
    }

    /// What connections from now on are told.
    pub(crate) fn set_facts(&self, facts: Rc<ListenerFacts>) {
        self.facts.replace(facts);
    }

    /// Stops accepting and closes the socket.
    pub(crate) fn stop(&self) {
        self.stop.set();
        if let Some(path) = &self.unlink {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn accept_all(gateway: Rc<Gateway>, bound: Rc<Bound>, listener: Listener) {
    loop {
        let accepted = {
            let mut accept = std::pin::pin!(listener.accept());
            std::future::poll_fn(|context| {
                if bound.stop.poll().is_ready() {
                    return Poll::Ready(None);
                }
                // The operator gets in when it is full: that is when it matters.
                let is_for_clients = matches!(bound.serves(), Serves::Apps | Serves::Entities);
                let is_full = gateway.connections.is_full(&gateway.limits())
                    || gateway.memory.connections().has_reached_its_limit();
                if is_for_clients && is_full {
                    if listener.poll_incoming().is_ready() {
                        gateway.connections.make_room();
                    }
                    return Poll::Pending;
                }
                Future::poll(accept.as_mut(), context).map(Some)
            })
            .await
        };
        match accepted {
            None => return,
            Some(Ok(Accepted { stream, peer })) => {
                if bound.serves() == Serves::Admin
                    && let Err(why) = admission::of(&gateway.generation().config, &stream)
                {
                    gateway.note(Level::Warn, &why);
                    continue;
                }
                let (facts, ends) = (bound.facts.borrow().clone(), Ends::new(peer));
                let address = facts.limited_address(peer);
                let entry = gateway.connections.open(Kind::Connection, address, &gateway.limits());
                match entry {
                    Some(entry) => {
                        gateway.counters.borrow_mut().connections += 1;
                        spawn(welcome(gateway.clone(), facts, stream, ends, entry));
                    }
                    None => gateway.turn_away(&ends.peer_text, Reason::TooManyConnections),
                }
            }
            Some(Err(error)) => {
                let text = format!("cannot accept connections: {error}; trying again");
                gateway.note(Level::Error, &text);
                sleep(100).await;
            }
        }
    }
}

/// Serves a client, once it speaks TLS if it has to.
async fn welcome(
    gateway: Rc<Gateway>,
    facts: Rc<ListenerFacts>,
    stream: Stream,
    mut ends: Ends,
    entry: Entry,
) {
    let bytes = if facts.tls.is_some() { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
    let is_for_clients = matches!(facts.serves, Serves::Apps | Serves::Entities);
    let _held = is_for_clients.then(|| gateway.memory.connections().hold(bytes));
    let wire = match &facts.tls {
        None => Wire::Plain(stream),
        // Boxed, so that connections without TLS have no room for it.
        Some(settings) => {
            let handshake = Box::pin(handshake::of(&gateway, stream, settings.clone()));
            match entry.while_waiting(handshake).await {
                None => return,
                Some(Ok((Spoken::Http1(wire), chosen))) => {
                    ends.chosen = chosen;
                    wire
                }
                Some(Ok((Spoken::Http2(session), chosen))) => {
                    ends.chosen = chosen;
                    return Box::pin(http2::serve(gateway, facts, session, ends, entry)).await;
                }
                Some(Err(why)) => {
                    let text = format!("no TLS with {}: {why}", ends.peer_text);
                    return gateway.note(Level::Debug, &text);
                }
            }
        }
    };
    Connection::new(gateway, facts, wire, ends, entry).serve().await;
}

/// A socket with this address that was bound for us. It stays open beside the one that is
/// returned: after a reload that drops the address, another may want it again.
fn handed_over(sockets: &[OwnedFd], address: &ListenAddress) -> Option<io::Result<OwnedFd>> {
    sockets.iter().find(|socket| is_at(socket, address)).map(OwnedFd::try_clone)
}

/// Whether one of them has this address.
pub(crate) fn is_among(sockets: &[OwnedFd], address: &ListenAddress) -> bool {
    sockets.iter().any(|socket| is_at(socket, address))
}

fn is_at(socket: &OwnedFd, address: &ListenAddress) -> bool {
    let Ok(name) = net::getsockname(socket) else { return false };
    match address {
        ListenAddress::Tcp(wanted) => SocketAddr::try_from(name).is_ok_and(|at| at == *wanted),
        ListenAddress::Unix { path, .. } => net::SocketAddrUnix::try_from(name)
            .is_ok_and(|at| at.path_bytes() == Some(path.as_os_str().as_encoded_bytes())),
    }
}

/// A socket from before the server was who it is now, and its path.
pub(crate) struct Prebound {
    pub(crate) socket: OwnedFd,
    pub(crate) path: Option<std::path::PathBuf>,
}

/// Binds an address for [`Bound::start`] to find; nothing when any free port will do, which takes
/// no rights.
///
/// # Errors
/// That it cannot be listened on.
pub(crate) fn bind_before(
    address: &ListenAddress,
    backlog: u32,
) -> Result<Option<Prebound>, BindError> {
    if matches!(address, ListenAddress::Tcp(address) if address.port() == 0) {
        return Ok(None);
    }
    let failed = |source| BindError { address: address.clone(), source };
    let (socket, path) = bind(address, backlog).map_err(failed)?;
    Ok(Some(Prebound { socket, path }))
}

fn bind(
    address: &ListenAddress,
    backlog: u32,
) -> io::Result<(OwnedFd, Option<std::path::PathBuf>)> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    match address {
        ListenAddress::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, address)?;
            net::listen(&socket, backlog)?;
            Ok((socket, None))
        }
        ListenAddress::Unix { path, mode } => {
            remove_dead_socket(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            net::bind(&socket, &net::SocketAddrUnix::new(path)?)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
            net::listen(&socket, backlog)?;
            Ok((socket, Some(path.clone())))
        }
    }
}

/// A socket file that nobody listens on any more is left behind by a killed server.
fn remove_dead_socket(path: &Path) -> io::Result<()> {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(_) => Ok(()),
    }
}
