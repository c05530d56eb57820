//! [`Endpoint`]: the task that receives and sends the datagrams of all connections, and has their timers.
//!
//! Started by the application for each address. Invariants: a connection is driven after each of its
//! datagrams, timers and writes; if the socket accepts no more, connections wait in a list; a connection is
//! removed when it is drained (RFC 9000 10.2).

mod handover;
mod incoming;

use crate::connection::{Connection, Flush};
use crate::member::{Mailboxes, Member, ThreadIds};
use crate::passed_on::PassedOn;
use crate::relay::{Description, Relay};
use crate::settings::{InvalidSettings, Settings};
use crate::socket::{Received, Socket};
use crate::timers::Timers;
use crate::tokens::Tokens;
use bytes::BytesMut;
use outboard_reactor::{Event, is_spent, sleep, spawn, spend};
use quinn_proto::{ConnectionHandle, DatagramEvent, EndpointConfig};
use rustix::fd::OwnedFd;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// What serves the connections of an endpoint.
pub trait Application {
    /// Whether a client may begin a connection now.
    fn admits(&self, remote: SocketAddr) -> bool;

    /// A client has begun a connection, whose handshake follows.
    fn accepted(&self, connection: Rc<Connection>);

    /// The first message of a client's handshake was refused: there is no connection.
    fn failed(&self);
}

/// A bound address. Dropped, it still serves its connections.
pub struct Endpoint(Rc<Shared>);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.socket.local).finish()
    }
}

/// The state of an endpoint.
pub(crate) struct Shared {
    pub(crate) proto: RefCell<quinn_proto::Endpoint>,
    pub(crate) socket: Socket,
    mailboxes: Mailboxes,
    tokens: Tokens,
    pub(crate) application: Rc<dyn Application>,
    pub(crate) connections: RefCell<HashMap<usize, Rc<Connection>>>,
    /// Handshakes that are not complete.
    pub(crate) handshakes: Cell<usize>,
    timers: RefCell<Timers<usize>>,
    /// Connections that have something to send.
    ready: RefCell<VecDeque<usize>>,
    /// Set when the task has to look again.
    changed: Event,
    is_stopped: Cell<bool>,
    /// To the processes that have the sockets too, in an upgrade.
    predecessor: RefCell<Option<Relay>>,
    successor: RefCell<Option<Relay>>,
    /// When the task wakes up.
    armed: Cell<Option<Instant>>,
}

impl Endpoint {
    /// Serves the connections that arrive at the socket of this thread.
    ///
    /// # Errors
    /// The settings cannot be used, or the event loop cannot watch the socket.
    pub fn start(
        member: Member,
        settings: &Settings,
        application: Rc<dyn Application>,
    ) -> io::Result<Self> {
        let Member { socket, mailboxes, predecessor, tokens } = member;
        let predecessor = predecessor.map(Relay::new).transpose()?;
        let server = settings.of_server(&tokens).map_err(io::Error::other)?;
        let (epoch, thread) = (mailboxes.epoch, mailboxes.thread);
        let mut config = EndpointConfig::default();
        config.cid_generator(move || Box::new(ThreadIds { epoch, thread }));
        let socket = Socket::new(socket)?;
        // RFC 8899: larger datagrams are tried, unless a router could cut them into pieces.
        let finds_mtu = !socket.may_fragment();
        let proto = quinn_proto::Endpoint::new(Arc::new(config), Some(server), finds_mtu, None);
        let shared = Rc::new(Shared {
            proto: RefCell::new(proto),
            socket,
            mailboxes,
            tokens,
            application,
            connections: RefCell::default(),
            handshakes: Cell::new(0),
            timers: RefCell::default(),
            ready: RefCell::default(),
            changed: Event::default(),
            is_stopped: Cell::new(false),
            predecessor: RefCell::new(predecessor),
            successor: RefCell::default(),
            armed: Cell::new(None),
        });
        spawn(run(shared.clone()));
        Ok(Self(shared))
    }

    /// Replaces the settings for new connections.
    ///
    /// # Errors
    /// They cannot be used; the settings before remain.
    pub fn set(&self, settings: &Settings) -> Result<(), InvalidSettings> {
        let server = settings.of_server(&self.0.tokens)?;
        self.0.proto.borrow_mut().set_server_config(Some(server));
        Ok(())
    }

    /// The actual address.
    pub fn local_address(&self) -> SocketAddr {
        self.0.socket.local
    }

    /// A duplicate of its socket, and a relay, for a process that takes over.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn sockets(&self) -> io::Result<[OwnedFd; 2]> {
        let Mailboxes { epoch, thread, .. } = self.0.mailboxes;
        let local = self.0.socket.local;
        let (own, other) = Relay::pair(Description { local, thread, epoch })?;
        self.0.successor.replace(Some(own));
        self.0.changed.set();
        Ok([self.0.socket.duplicate()?, other])
    }

    /// Connections that are not closed.
    pub fn open_connections(&self) -> usize {
        self.0.connections.borrow().len()
    }

    /// Refuses new connections, or leaves them to a successor. The socket is closed after the last connection.
    pub fn stop(&self) {
        self.0.is_stopped.set(true);
        self.0.changed.set();
    }
}

type Timer = Option<Pin<Box<dyn Future<Output = ()>>>>;

async fn run(shared: Rc<Shared>) {
    let mut timer: Timer = None;
    let mut buffer = Vec::new();
    poll_fn(|context| shared.poll_turn(context, &mut timer, &mut buffer)).await;
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }

    /// Receives and sends as much as possible without waiting.
    fn poll_turn(
        self: &Rc<Self>,
        context: &mut Context<'_>,
        timer: &mut Timer,
        buffer: &mut Vec<u8>,
    ) -> Poll<()> {
        loop {
            while !self.is_left() && self.socket.receive(|received| self.receive(&received, buffer))
            {
                self.drive_ready();
            }
            self.receive_relayed(buffer);
            self.receive_passed_on(context, buffer);
            self.expire();
            if self.socket.flush() {
                self.drive_ready();
            }
            if self.is_stopped() && self.connections.borrow().is_empty() {
                return Poll::Ready(());
            }
            let is_waiting = self.socket.is_blocked() || !self.ready.borrow().is_empty();
            let is_writable = is_waiting && self.socket.poll_writable().is_ready();
            let is_due = self.poll_timer(context, timer);
            if !is_writable && !is_due && self.changed.poll().is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether the next timer may have expired; otherwise the task is woken then. A timer that was moved
    /// on, as almost every datagram does, is found when the earlier time has come.
    fn poll_timer(&self, context: &mut Context<'_>, timer: &mut Timer) -> bool {
        let next = self.timers.borrow().next();
        if self.is_earlier(next) {
            self.armed.set(next);
            *timer = next.map(|next| {
                let left = next.saturating_duration_since(Instant::now());
                let left_ms = u64::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
                Box::pin(sleep(left_ms.max(1))) as Pin<Box<dyn Future<Output = ()>>>
            });
        }
        let Some(sleeping) = timer else { return false };
        let is_due = sleeping.as_mut().poll(context).is_ready();
        if is_due {
            *timer = None;
            self.armed.set(None);
        }
        is_due
    }

    /// Whether a timer expires before the task wakes up.
    fn is_earlier(&self, timer: Option<Instant>) -> bool {
        timer.is_some_and(|at| self.armed.get().is_none_or(|armed| at < armed))
    }

    /// Handles datagrams of this thread, and passes on those of others.
    fn receive(self: &Rc<Self>, received: &Received<'_>, buffer: &mut Vec<u8>) {
        let &Received { from, to, ecn, datagrams, segment_bytes } = received;
        let mut left = BytesMut::from(datagrams);
        while !left.is_empty() {
            let datagram = left.split_to(segment_bytes.min(left.len()));
            let one = PassedOn { from, to, ecn, datagram };
            self.sort(one, buffer);
        }
    }

    fn receive_passed_on(self: &Rc<Self>, context: &mut Context<'_>, buffer: &mut Vec<u8>) {
        while !is_spent() {
            let Poll::Ready(passed_on) = self.mailboxes.poll_next(context) else { return };
            spend(passed_on.datagram.len());
            self.handle(passed_on, buffer);
            self.drive_ready();
        }
        // The rest follows in the next turn.
        context.waker().wake_by_ref();
    }

    fn handle(self: &Rc<Self>, datagram: PassedOn, buffer: &mut Vec<u8>) {
        buffer.clear();
        let PassedOn { from, to, ecn, datagram } = datagram;
        let event = self.proto.borrow_mut().handle(Instant::now(), from, to, ecn, datagram, buffer);
        match event {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connection(handle.0) {
                    connection.inner.borrow_mut().handle_event(event);
                    self.mark_ready(handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                incoming::decide(self, incoming, buffer)
            }
            // One that is lost is requested again.
            Some(DatagramEvent::Response(_)) if self.socket.is_blocked() => {}
            Some(DatagramEvent::Response(response)) => self.socket.send(&response, buffer),
        }
    }

    fn expire(&self) {
        let now = Instant::now();
        loop {
            let expired = self.timers.borrow_mut().expire(now);
            let Some(key) = expired else { return };
            if let Some(connection) = self.connection(key) {
                connection.inner.borrow_mut().handle_timeout(now);
                self.mark_ready(connection.handle);
            }
        }
    }

    fn connection(&self, key: usize) -> Option<Rc<Connection>> {
        self.connections.borrow().get(&key).cloned()
    }

    /// Has a connection driven.
    pub(crate) fn mark_ready(&self, handle: ConnectionHandle) {
        if let Some(connection) = self.connection(handle.0)
            && !connection.is_ready.replace(true)
        {
            self.ready.borrow_mut().push_back(handle.0);
        }
    }

    /// Drives the connections that have something to send, in turn, until the socket is full.
    fn drive_ready(&self) {
        let mut buffer = Vec::new();
        let mut left = self.ready.borrow().len();
        while left > 0 || !is_spent() {
            left = left.saturating_sub(1);
            if self.socket.is_blocked() {
                return;
            }
            let next = self.ready.borrow_mut().pop_front();
            let Some(connection) = next.and_then(|key| self.connection(key)) else {
                if next.is_none() {
                    return;
                }
                continue;
            };
            connection.is_ready.set(false);
            self.drive(&connection, &mut buffer);
        }
    }

    /// Exchanges the events of a connection and of the endpoint, and sends a batch of datagrams.
    fn drive(&self, connection: &Connection, buffer: &mut Vec<u8>) {
        let mut inner = connection.inner.borrow_mut();
        while let Some(event) = inner.poll_endpoint_events() {
            let reply = self.proto.borrow_mut().handle_event(connection.handle, event);
            if let Some(event) = reply {
                inner.handle_event(event);
            }
        }
        buffer.clear();
        let transmit = inner.poll_transmit(Instant::now(), self.socket.batch(), buffer);
        let key = connection.handle.0;
        self.timers.borrow_mut().set(key, inner.poll_timeout());
        if !inner.is_handshaking() && connection.is_handshaking.replace(false) {
            self.handshakes.set(self.handshakes.get() - 1);
        }
        let is_drained = inner.is_drained();
        drop(inner);
        if let Some(transmit) = transmit {
            self.socket.send(&transmit, buffer);
            self.mark_ready(connection.handle);
        }
        if is_drained {
            self.timers.borrow_mut().set(key, None);
            self.connections.borrow_mut().remove(&key);
            if connection.is_handshaking.replace(false) {
                self.handshakes.set(self.handshakes.get() - 1);
            }
        }
        connection.changed.set();
    }
}

impl Flush for Shared {
    fn flush(&self, handle: ConnectionHandle) {
        self.mark_ready(handle);
        if !self.socket.is_blocked() {
            self.drive_ready();
        }
        let is_late = self.is_earlier(self.timers.borrow().next());
        if is_late || !self.ready.borrow().is_empty() || self.is_stopped() {
            self.changed.set();
        }
    }
}
