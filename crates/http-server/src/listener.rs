//! [`BoundListener`]: a listening socket whose connections are accepted and served.
//!
//! The gateway starts one per address and stops it if a reload no longer configures it. Invariants: at the
//! connection limit new connections stay in the kernel's backlog until an idle one has closed; a
//! flood of connections does not keep other tasks from running.

mod handshake;
mod socket;

use crate::connection::Connection;
use crate::connections::{Entry, Kind};
use crate::http1;
use crate::http2;
use crate::listener_context::{ListenerContext, Role};
use crate::peer::PeerInfo;
use crate::service::Service;
use crate::transport::Transport;
use crate::upgrade::Upgraded;
use handshake::Negotiated;
use outboard_config::ListenAddress;
use outboard_log::{Level, Reason};
use outboard_reactor::{Accepted, Event, Listener, Stream, sleep, spawn};
use rustix::fd::OwnedFd;
use rustix::net;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::Poll;

pub use socket::{BindError, InheritedListener, bind_before, is_among};

/// Memory of an idle connection: its task and its place in the event loop.
const CONNECTION_BYTES: usize = 6 << 10;
/// Memory of an idle connection with TLS.
const TLS_CONNECTION_BYTES: usize = 24 << 10;

/// See the module.
#[derive(Debug)]
pub struct BoundListener {
    /// As configured; a reload compares it.
    pub address: ListenAddress,
    /// The actual address, with the port.
    pub local: Option<SocketAddr>,
    context: RefCell<Rc<ListenerContext>>,
    stop: Event,
    unlink: Option<PathBuf>,
}

impl BoundListener {
    /// Takes an inherited socket or binds one, and starts to accept.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start<S: Service>(
        service: &Rc<S>,
        inherited: &[OwnedFd],
        address: ListenAddress,
        context: Rc<ListenerContext>,
        backlog: u32,
    ) -> Result<Rc<Self>, BindError> {
        let failed = |source| BindError::new(address.clone(), source);
        let (socket, unlink) = match socket::inherited(inherited, &address) {
            Some(socket) => (socket.map_err(failed)?, None),
            None => socket::bind(&address, backlog).map_err(failed)?,
        };
        let local = net::getsockname(&socket).ok().and_then(|any| SocketAddr::try_from(any).ok());
        let listener = Listener::new(socket).map_err(failed)?;
        let bound = Rc::new(Self {
            address,
            local,
            context: RefCell::new(context),
            stop: Event::default(),
            unlink,
        });
        spawn(accept_all(service.clone(), bound.clone(), listener));
        Ok(bound)
    }

    /// The address in text, with the actual port.
    pub fn name(&self) -> String {
        self.local.map_or_else(|| self.address.to_string(), |local| local.to_string())
    }

    /// The purpose.
    pub fn role(&self) -> Role {
        self.context.borrow().role
    }

    /// A URL for a browser.
    pub fn url(&self) -> String {
        let scheme = match (self.role(), self.context.borrow().tls.is_some()) {
            (Role::Streams, false) => "tcp",
            (Role::Streams, true) => "tls",
            (_, false) => "http",
            (_, true) => "https",
        };
        match self.local {
            Some(local) if local.ip().is_unspecified() => {
                format!("{scheme}://localhost:{}/", local.port())
            }
            Some(local) => format!("{scheme}://{local}/"),
            None => self.address.to_string(),
        }
    }

    /// The port, if it uses TLS.
    pub fn https_port(&self) -> Option<u16> {
        let context = self.context.borrow();
        context.tls.as_ref().filter(|_| context.role == Role::Apps)?;
        self.local.map(|local| local.port())
    }

    /// Replaces the settings for new connections.
    pub fn set_context(&self, context: Rc<ListenerContext>) {
        self.context.replace(context);
    }

    /// Stops accepting and closes the socket.
    pub fn stop(&self) {
        self.stop.set();
        if let Some(path) = &self.unlink {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn accept_all<S: Service>(service: Rc<S>, bound: Rc<BoundListener>, listener: Listener) {
    let server = service.context().clone();
    loop {
        let accepted = {
            let mut accept = std::pin::pin!(listener.accept());
            std::future::poll_fn(|context| {
                if bound.stop.poll().is_ready() {
                    return Poll::Ready(None);
                }
                // A full server admits its operator: that is when it matters.
                let is_full = server.connections.is_full(&server.limits())
                    || server.memory.connections().has_reached_its_limit();
                if bound.role().is_for_clients() && is_full {
                    if listener.poll_incoming().is_ready() {
                        server.connections.make_room();
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
                let listener = bound.context.borrow().clone();
                if !service.admits(&listener, &stream) {
                    continue;
                }
                let address = listener.limited_address(peer);
                let peer = PeerInfo::new(peer);
                let entry = server.connections.open(Kind::Connection, address, &server.limits());
                match entry {
                    Some(entry) => {
                        server.counters.borrow_mut().connections += 1;
                        spawn(serve(service.clone(), listener, stream, peer, entry));
                    }
                    None => server.reject(&peer.text, Reason::TooManyConnections),
                }
            }
            Some(Err(error)) => {
                let text = format!("cannot accept connections: {error}; trying again");
                server.log(Level::Error, &text);
                sleep(100).await;
            }
        }
    }
}

/// Serves a connection, after the TLS handshake if there is one.
async fn serve<S: Service>(
    service: Rc<S>,
    listener: Rc<ListenerContext>,
    stream: Stream,
    mut peer: PeerInfo,
    entry: Entry,
) {
    let server = service.context().clone();
    let bytes = if listener.tls.is_some() { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
    let _held = listener.role.is_for_clients().then(|| server.memory.connections().hold(bytes));
    let transport = match &listener.tls {
        None => Transport::Plain(stream),
        // Boxed, so that connections without TLS need no memory for it.
        Some(settings) => {
            let handshake = Box::pin(handshake::perform(&server, stream, settings.clone()));
            match entry.while_idle(handshake).await {
                None => return,
                Some(Ok((Negotiated::Http1(transport), certificate))) => {
                    peer.chosen = certificate;
                    transport
                }
                Some(Ok((Negotiated::Http2(session), certificate))) => {
                    peer.chosen = certificate;
                    return Box::pin(http2::serve(service, listener, session, peer, entry)).await;
                }
                Some(Err(why)) => {
                    let text = format!("no TLS with {}: {why}", peer.text);
                    return server.log(Level::Debug, &text);
                }
            }
        }
    };
    if let Some(port) = &listener.stream {
        let stream = Upgraded::new(transport, Vec::new(), server);
        return Box::pin(service.serve_stream(port, stream, peer, entry)).await;
    }
    http1::serve(service, Connection::new(server, listener, transport, peer, entry)).await;
}

#[cfg(test)]
mod tests;
