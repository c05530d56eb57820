//! [`BoundListener`]: a listening socket whose connections are accepted and served.
//!
//! The gateway starts one per address and stops it if a reload no longer configures it. Invariants: at the
//! connection limit new connections stay in the kernel's backlog until an idle one has closed; a
//! flood of connections does not keep other tasks from running.
//!
//! When a socket closes, the kernel resets the connections in its backlog, also if other shards still listen
//! on the address. So those that wait are accepted first. What remains is a connection that completes its
//! handshake between the last accept(2) and close(2); with `net.ipv4.tcp_migrate_req` (Linux 5.14) the kernel
//! passes it to another shard's socket, if there is one with `SO_REUSEPORT` left.

mod handover;
mod handshake;
mod http3_sockets;
mod name;
mod proxy_header;
mod socket;
mod steering;

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::Entry;
use crate::http1;
use crate::http2;
use crate::http3::Http3Endpoint;
use crate::listener_context::{ListenerContext, Role};
use crate::multiplexed;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use crate::transport::Transport;
use crate::upgrade::Upgraded;
use handshake::Negotiated;
use outboard_config::ListenAddress;
use outboard_log::{Level, Reason};
use outboard_reactor::{
    Accepted, Event, Listener, Peer, Stream, now_ms, share_turn, sleep, spawn, with_deadline,
};
use outboard_tls::ServerSettings;
use rustix::net;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;

pub use socket::{
    BindError, InheritedListener, ListeningSocket, bind_before, bind_http3_before, is_among,
    is_among_datagrams,
};

/// Memory of an idle connection: its task and its place in the event loop.
const CONNECTION_BYTES: usize = 6 << 10;
/// Memory of an idle connection with TLS.
const TLS_CONNECTION_BYTES: usize = 24 << 10;
/// How long a connection that was accepted from a closing socket has for its first byte, which is often
/// there already.
const FIRST_BYTE_MS: u64 = 100;

/// See the module.
#[derive(Debug)]
pub struct BoundListener {
    /// As configured; a reload compares it.
    pub address: ListenAddress,
    /// The actual address, with the port.
    pub local: Option<SocketAddr>,
    context: Rc<RefCell<Arc<ListenerContext>>>,
    stop: Event,
    closed: Event,
    backlog: u32,
    /// Whether other shards accept from the same queue.
    is_duplicate: bool,
    /// Its socket, while connections are accepted.
    listener: Weak<Listener>,
    /// The file of a Unix socket, which is removed with it.
    unlink: RefCell<Option<PathBuf>>,
    http3: RefCell<Option<Http3Endpoint>>,
}

impl BoundListener {
    /// Starts to accept the connections of a socket.
    ///
    /// # Errors
    /// The event loop cannot watch the socket.
    pub fn start<S: Service>(
        service: &Rc<S>,
        socket: ListeningSocket,
        context: Arc<ListenerContext>,
    ) -> Result<Rc<Self>, BindError> {
        let ListeningSocket { address, socket, is_duplicate, backlog, unlink } = socket;
        let local = net::getsockname(&socket).ok().and_then(|any| SocketAddr::try_from(any).ok());
        let listener = if is_duplicate { Listener::shared(socket) } else { Listener::new(socket) };
        let listener = Rc::new(listener.map_err(|source| BindError::new(address.clone(), source))?);
        let bound = Rc::new(Self {
            address,
            local,
            context: Rc::new(RefCell::new(context)),
            stop: Event::default(),
            closed: Event::default(),
            backlog,
            is_duplicate,
            listener: Rc::downgrade(&listener),
            unlink: RefCell::new(unlink),
            http3: RefCell::default(),
        });
        spawn(accept_all(service.clone(), bound.clone(), listener));
        Ok(bound)
    }

    /// The purpose.
    pub fn role(&self) -> Role {
        self.context.borrow().role
    }

    /// The port, if it uses TLS.
    pub fn https_port(&self) -> Option<u16> {
        let context = self.context.borrow();
        context.tls.as_ref().filter(|_| context.role == Role::Apps)?;
        self.local.map(|local| local.port())
    }

    /// The settings of TLS, if it uses TLS.
    pub fn tls(&self) -> Option<Arc<ServerSettings>> {
        self.context.borrow().tls.clone()
    }

    /// Replaces the settings for new connections. Without HTTP/3 in them it is not served any more.
    pub fn set_context(&self, context: Arc<ListenerContext>) {
        let mut http3 = self.http3.borrow_mut();
        match &*http3 {
            Some(present) if context.http3 => present.configure(&context),
            Some(present) => {
                present.stop();
                *http3 = None;
            }
            None => {}
        }
        self.context.replace(context);
    }

    /// The settings for new connections.
    pub fn context(&self) -> Arc<ListenerContext> {
        self.context.borrow().clone()
    }

    /// Accepts what waits in the socket's backlog, and closes the socket.
    pub fn stop(&self) {
        self.stop.set();
        self.http3.take().iter().for_each(Http3Endpoint::stop);
        if let Some(path) = self.unlink.take() {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Waits until a listener that was stopped has closed its socket, which takes a few turns of the loop.
    /// One task waits for it.
    pub async fn closed(&self) {
        self.closed.wait().await;
    }
}

async fn accept_all<S: Service>(service: Rc<S>, bound: Rc<BoundListener>, listener: Rc<Listener>) {
    loop {
        match next(&service, &bound, &listener).await {
            None => break,
            Some(Ok(Accepted { stream, peer })) => {
                if let Some((context, peer, entry)) = admit(&service, &bound, &stream, peer) {
                    spawn(serve(service.clone(), context, stream, peer, entry));
                }
            }
            Some(Err(error)) => {
                let text = format!("cannot accept connections: {error}; trying again");
                service.context().log(Level::Error, &text);
                sleep(100).await;
            }
        }
    }
    accept_rest(&service, &bound, &listener).await;
    drop(listener);
    bound.closed.set();
}

/// Whether no client may be accepted now. A full server admits its operator: that is when it matters.
fn is_full(server: &ServerContext, bound: &BoundListener) -> bool {
    bound.role().is_for_clients()
        && (server.connections.is_full(&server.limits())
            || server.memory.connections().has_reached_its_limit())
}

/// Waits for a connection, and for room for it; `None` if the listener is stopped.
async fn next<S: Service>(
    service: &Rc<S>,
    bound: &BoundListener,
    listener: &Listener,
) -> Option<io::Result<Accepted>> {
    let server = service.context();
    let mut accept = pin!(listener.accept());
    poll_fn(|context| {
        if bound.stop.poll().is_ready() {
            return Poll::Ready(None);
        }
        if is_full(server, bound) {
            if listener.poll_incoming().is_pending() {
                return Poll::Pending;
            }
            server.connections.make_room(context);
            // Another shard may have made room before this task was known to wait.
            if is_full(server, bound) {
                return Poll::Pending;
            }
        }
        accept.as_mut().poll(context).map(Some)
    })
    .await
}

/// Accepts what waits in the backlog of a socket that closes.
async fn accept_rest<S: Service>(service: &Rc<S>, bound: &BoundListener, listener: &Listener) {
    for _ in 0..bound.backlog {
        if is_full(service.context(), bound) {
            return;
        }
        let Ok(Some(Accepted { stream, peer })) = listener.try_accept() else { return };
        if let Some((context, peer, entry)) = admit(service, bound, &stream, peer) {
            let service = service.clone();
            spawn(async move {
                // An idle connection closes at once if the server stops.
                let until_ms = now_ms() + FIRST_BYTE_MS;
                let _ = with_deadline(until_ms, stream.source().readable()).await;
                serve(service, context, stream, peer, entry).await;
            });
        }
        share_turn(CONNECTION_BYTES).await;
    }
}

/// Counts a connection; `None` if it is not to be served.
fn admit<S: Service>(
    service: &Rc<S>,
    bound: &BoundListener,
    stream: &Stream,
    peer: Peer,
) -> Option<(Arc<ListenerContext>, PeerInfo, Entry)> {
    let (server, context) = (service.context(), bound.context.borrow().clone());
    if !service.admits(&context, stream) {
        return None;
    }
    let address = context.limited_address(peer);
    let peer = PeerInfo::new(peer);
    // The clients of a proxy are counted when they are known.
    let address = address.filter(|_| !context.expects_proxy_header(&peer));
    if context.role.is_for_clients()
        && !context.expects_proxy_header(&peer)
        && let Some(reason) = service.refuses(&context, peer.ip())
    {
        server.reject(&peer.text, reason);
        return None;
    }
    let entry = server.connections.open_at(context.limits.as_ref(), address, &server.limits());
    match entry {
        Some(_) => server.counters.borrow_mut().connections += 1,
        None => server.reject(&peer.text, Reason::TooManyConnections),
    }
    Some((context, peer, entry?))
}

/// Serves a connection, after the TLS handshake if there is one.
async fn serve<S: Service>(
    service: Rc<S>,
    listener: Arc<ListenerContext>,
    stream: Stream,
    mut peer: PeerInfo,
    mut entry: Entry,
) {
    let server = service.context().clone();
    let bytes = if listener.tls.is_some() { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
    if listener.role.is_for_clients() {
        entry.hold(server.memory.connections().hold(bytes));
    }
    if listener.expects_proxy_header(&peer) {
        let named = Box::pin(proxy_header::name_client(
            &service,
            &listener,
            &stream,
            (&mut peer, &mut entry),
        ));
        if !named.await {
            return;
        }
    }
    let transport = match &listener.tls {
        None => Transport::Plain(stream),
        // Boxed, so that connections without TLS need no memory for it.
        Some(settings) => {
            let client = peer.ip();
            let handshake = handshake::perform(&server, stream, settings.clone(), client);
            let handshake = Box::pin(handshake);
            match entry.while_idle(handshake).await {
                None => return,
                Some(Ok((Negotiated::Http1(transport), facts))) => {
                    peer.tls = Some(facts);
                    transport
                }
                Some(Ok((Negotiated::Http2(transport), facts))) => {
                    peer.tls = Some(facts);
                    let accepted = multiplexed::Accepted { server, listener, peer, entry };
                    let served = http2::serve(service, accepted, transport, Vec::new());
                    return Box::pin(served).await;
                }
                Some(Err(why)) => {
                    server.counters.borrow_mut().tls.failed += 1;
                    let text = format!("no TLS with {}: {why}", peer.text);
                    return server.log(Level::Debug, &text);
                }
            }
        }
    };
    let client = Client::new(server, listener, transport, peer, entry);
    if client.listener.stream.is_some() {
        return Box::pin(service.serve_stream(Upgraded::new(client, Vec::new()))).await;
    }
    http1::serve(service, Connection::new(client)).await;
}

#[cfg(test)]
mod tests;
