//! [`Http3Endpoint`]: the QUIC endpoint of a listener, and [`Http3Socket`]: what it needs.
//!
//! Started by the listener of each thread. Invariant: a full server accepts no connection.

use super::task::{PROTOCOL, serve};
use super::windows::{RECEIVE_WINDOW_BYTES, SEND_WINDOW_BYTES};
use crate::listener_context::ListenerContext;
use crate::multiplexed::Accepted;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use outboard_log::{Level, Reason};
use outboard_quic::{Application, Connection, Endpoint, Member, Settings};
use outboard_reactor::{Peer, spawn};
use rustix::fd::OwnedFd;
use rustix::net::{self, SocketType, sockopt};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// As for HTTP/2.
const MAX_STREAMS: u32 = 128;
/// What a client may send of a request before it is read, if the connection's window allows it.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// This fraction of the memory of connections is kept free by closing idle ones: a client cannot wait to be
/// accepted, as one of TCP does.
const FREE_SHARE: usize = 16;

/// The UDP socket of a thread.
#[derive(Debug)]
pub struct Http3Socket(Member);

impl Http3Socket {
    /// Takes inherited sockets or binds some: one for each thread.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub(crate) fn for_threads(
        threads: usize,
        inherited: &[OwnedFd],
        local: SocketAddr,
    ) -> io::Result<Vec<Self>> {
        let found = inherited.iter().filter(|socket| is_at(socket, local));
        let mut sockets: Vec<OwnedFd> = found.map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        if sockets.is_empty() {
            sockets = outboard_quic::bind(local, threads)?;
        }
        for thread in sockets.len()..threads {
            sockets.push(sockets[thread % sockets.len()].try_clone()?);
        }
        sockets.truncate(threads);
        Ok(outboard_quic::members(sockets, inherited)?.into_iter().map(Self).collect())
    }
}

fn is_at(socket: &OwnedFd, wanted: SocketAddr) -> bool {
    sockopt::socket_type(socket) == Ok(SocketType::DGRAM)
        && net::getsockname(socket)
            .is_ok_and(|name| SocketAddr::try_from(name).is_ok_and(|at| at == wanted))
}

/// The settings of a listener, which a reload replaces.
pub(crate) type CurrentContext = RefCell<Arc<ListenerContext>>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Http3Endpoint {
    endpoint: Endpoint,
    server: Rc<ServerContext>,
}

impl Http3Endpoint {
    /// Serves the connections of a socket.
    ///
    /// # Errors
    /// The settings of TLS cannot be used, or the event loop cannot watch the socket.
    pub(crate) fn start<S: Service>(
        service: &Rc<S>,
        contexts: &Rc<CurrentContext>,
        socket: Http3Socket,
    ) -> io::Result<Self> {
        let server = service.context().clone();
        let settings = settings(&server, &contexts.borrow())?;
        let application = Server { service: service.clone(), contexts: contexts.clone() };
        let endpoint = Endpoint::start(socket.0, &settings, Rc::new(application))?;
        Ok(Self { endpoint, server })
    }

    /// Replaces the settings for new connections.
    pub(crate) fn configure(&self, context: &ListenerContext) {
        let changed = settings(&self.server, context)
            .and_then(|settings| self.endpoint.set(&settings).map_err(io::Error::other));
        if let Err(error) = changed {
            let text = format!("HTTP/3 continues with the certificates that it has: {error}");
            self.server.log(Level::Error, &text);
        }
    }

    /// A duplicate of its socket, and a relay, for a server that takes over.
    pub(crate) fn sockets(&self) -> io::Result<[OwnedFd; 2]> {
        self.endpoint.sockets()
    }

    /// Accepts no more connections.
    pub(crate) fn stop(&self) {
        self.endpoint.stop();
    }
}

fn settings(server: &ServerContext, context: &ListenerContext) -> io::Result<Settings> {
    let tls = context.tls.as_ref().ok_or_else(|| io::Error::other("HTTP/3 needs certificates"))?;
    let limits = server.limits();
    Ok(Settings {
        tls: tls.for_quic(&[PROTOCOL]),
        max_streams: MAX_STREAMS,
        stream_window_bytes: STREAM_WINDOW_BYTES,
        connection_window_bytes: RECEIVE_WINDOW_BYTES,
        send_window_bytes: SEND_WINDOW_BYTES,
        // The task of a connection closes it first if it is idle; this is for clients that are gone.
        idle_timeout_ms: limits.idle_timeout_ms.max(limits.write_timeout_ms),
    })
}

/// What the endpoint calls.
struct Server<S> {
    service: Rc<S>,
    contexts: Rc<CurrentContext>,
}

impl<S: Service> Application for Server<S> {
    fn admits(&self, remote: SocketAddr) -> bool {
        let server = self.service.context();
        let listener = self.contexts.borrow().clone();
        let peer = PeerInfo::new(Peer::Tcp(remote));
        if let Some(reason) = self.service.refuses(&listener, peer.ip()) {
            server.reject(&peer.text, reason);
            return false;
        }
        !server.is_draining()
            && !server.connections.is_full(&server.limits())
            && !server.memory.connections().has_reached_its_limit()
    }

    fn failed(&self) {
        self.service.context().counters.borrow_mut().tls.failed += 1;
    }

    fn accepted(&self, quic: Rc<Connection>) {
        let server = self.service.context().clone();
        let remote = Peer::Tcp(quic.remote_address());
        let peer = PeerInfo::new(remote);
        let listener = self.contexts.borrow().clone();
        let address = listener.limited_address(remote);
        let limits = listener.limits.as_ref();
        let entry = server.connections.open_at(limits, address, &server.limits());
        let Some(entry) = entry else {
            server.reject(&peer.text, Reason::TooManyConnections);
            return quic.close(0, "");
        };
        server.counters.borrow_mut().connections += 1;
        let memory = server.memory.connections();
        if memory.held_bytes() > memory.limit_bytes() - memory.limit_bytes() / FREE_SHARE {
            server.connections.close_one_idle();
        }
        let accepted = Accepted { server, listener, peer, entry };
        spawn(serve(self.service.clone(), accepted, quic));
    }
}
