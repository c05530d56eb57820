//! HTTP/3 (RFC 9114): the task of a connection.
//!
//! Spawned by `http3/endpoint` for each QUIC connection. `outboard-http3` implements the protocol and
//! `outboard-quic` the transport; this task moves bytes between them, and starts a task for each request.
//! Invariants: the number of streams and their memory are bounded, and a stream for which `limits.memory`
//! has no room is refused; a stream whose client reads nothing for `limits.write_timeout` is reset; a head
//! takes no longer than `limits.header_timeout`; nothing more is read of a request that is not read.

mod control_stream;
mod endpoint;
mod link;
mod open;
mod resets;
mod stream;
mod windows;

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::{Entry, Kind};
use crate::early_data::EarlyData;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use crate::transport::Transport;
use link::{Link, Next};
use outboard_buffer::{Account, Held};
use outboard_http1::Version;
use outboard_http3::{ErrorCode, RequestHead, StreamError};
use outboard_log::{Level, Reason};
use outboard_quic::Event;
use outboard_reactor::{now_ms, with_deadline};
use outboard_tls::{QuicSession, SessionFacts};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use stream::Stream;

pub(crate) use endpoint::Http3Endpoint;
pub use endpoint::Http3Socket;

/// The ALPN protocol (RFC 9114 3.1).
const PROTOCOL: &[u8] = b"h3";
/// Memory of a stream: its task, its buffers, and data that waits.
const STREAM_BYTES: usize = 28 << 10;
/// Memory of a connection without its streams: of its state, and of both windows.
const CONNECTION_BYTES: usize =
    (64 << 10) + SEND_WINDOW_BYTES as usize + RECEIVE_WINDOW_BYTES as usize;
/// What is stored of responses until the client acknowledges it, and what a client may send before it is
/// read. The link widens both while there is memory for it.
const SEND_WINDOW_BYTES: u64 = 64 << 10;
const RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// The interval of checks whether the connection is idle or a stream has stalled.
const CHECK_MS: u64 = 1_000;

/// A connection that is to be served by HTTP/3.
struct Accepted {
    server: Rc<ServerContext>,
    listener: Rc<ListenerContext>,
    quic: Rc<outboard_quic::Connection>,
    peer: PeerInfo,
    entry: Entry,
}

/// Serves a connection until it closes, or is idle for `limits.idle_timeout`.
async fn serve<S: Service>(service: Rc<S>, accepted: Accepted) {
    let mut task = Task::new(service, accepted);
    let end = task.run().await;
    task.link.close_all();
    if !task.early.is_over() {
        task.server.counters.borrow_mut().tls.failed += 1;
    }
    if let End::Closing(code) = end {
        task.link.quic.close(code.0, "");
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// This side closes it.
    Closing(ErrorCode),
    /// It is closed.
    Lost,
}

/// The state of the task.
struct Task<S> {
    service: Rc<S>,
    server: Rc<ServerContext>,
    listener: Rc<ListenerContext>,
    peer: PeerInfo,
    /// Released before the entry: what waits for a connection to close may be short of memory as well.
    _held: Held,
    entry: Entry,
    memory: Rc<Account>,
    link: Rc<Link>,
    early: EarlyData,
    last_used_ms: u64,
    began_ms: u64,
    is_leaving: bool,
}

impl<S: Service> Task<S> {
    fn new(service: Rc<S>, accepted: Accepted) -> Self {
        let Accepted { server, listener, quic, peer, entry } = accepted;
        let memory = server.memory.of_connection();
        let held = server.memory.connections().hold(CONNECTION_BYTES);
        let limits = server.head_limits();
        let head_bytes = limits.request_line_bytes.saturating_add(limits.header_bytes);
        let early = EarlyData::of_quic(quic.has_proven_address());
        let link = Link::new(quic, head_bytes, memory.clone());
        Self {
            service,
            server,
            listener,
            peer,
            _held: held,
            entry,
            memory,
            link,
            early,
            last_used_ms: now_ms(),
            began_ms: now_ms(),
            is_leaving: false,
        }
    }

    async fn run(&mut self) -> End {
        loop {
            let turn = poll_fn(|_| self.poll_turn());
            match with_deadline(now_ms() + CHECK_MS, turn).await {
                Ok(end) => return end,
                Err(_) => {
                    if let Some(end) = self.check() {
                        return end;
                    }
                }
            }
        }
    }

    /// Reads and writes as much as possible without waiting.
    fn poll_turn(&mut self) -> Poll<End> {
        loop {
            if let Err(end) = self.turn() {
                return Poll::Ready(end);
            }
            self.link.flush();
            if self.is_leaving && self.link.is_idle() {
                return Poll::Ready(End::Closing(ErrorCode::NO_ERROR));
            }
            if self.entry.must_close() {
                // It was idle longest and makes room for others.
                return Poll::Ready(End::Closing(ErrorCode::NO_ERROR));
            }
            if self.link.is_idle() {
                self.entry.set_idle();
            }
            if self.link.quic.poll_changed().is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn turn(&mut self) -> Result<(), End> {
        while let Some(event) = self.link.quic.next_event() {
            match event {
                Event::Connected => self.settle()?,
                Event::Readable(id) => {
                    self.settle()?;
                    self.read(id)?;
                }
                Event::Writable(id) => self.link.writable(id),
                Event::Finished(id) => self.link.finished(id),
                Event::Stopped(id, _) => self.link.stopped_by_client(id).map_err(End::Closing)?,
                Event::Closed(_) => return Err(End::Lost),
            }
        }
        while let Some(id) = self.link.next_to_read() {
            self.read(id)?;
        }
        if self.peer.tls.is_some() && self.server.is_draining() {
            self.leave();
        }
        Ok(())
    }

    /// Announces that no more requests are accepted.
    fn leave(&mut self) {
        if !std::mem::replace(&mut self.is_leaving, true) {
            self.link.send_goaway();
        }
    }

    /// The handshake is complete, or the client has sent early data.
    fn settle(&mut self) -> Result<(), End> {
        if self.early.is_over() {
            return Ok(());
        }
        if self.peer.tls.is_none() {
            let facts = self.negotiated()?;
            self.peer.tls = Some(Rc::new(facts));
            self.link.open_control_stream().map_err(End::Closing)?;
        }
        if let Some(facts) = self.peer.tls.as_deref().filter(|_| !self.link.quic.is_handshaking()) {
            self.server.counters.borrow_mut().established(facts);
            self.early.end(&self.service);
        }
        Ok(())
    }

    /// What the handshake has negotiated.
    fn negotiated(&self) -> Result<SessionFacts, End> {
        let negotiated = self.link.quic.negotiated();
        let settings = self.listener.tls.as_ref().filter(|_| negotiated.protocol == PROTOCOL);
        let settings = settings.ok_or(End::Closing(ErrorCode::GENERAL_PROTOCOL_ERROR))?;
        let session = QuicSession {
            server_name: negotiated.server_name.as_deref(),
            cipher: negotiated.cipher,
            is_resumed: negotiated.is_resumed,
            client_chain: &negotiated.client_chain,
        };
        SessionFacts::of_quic(&session, settings).map_err(|error| {
            let text = format!("no TLS with {}: {error}", self.peer.text);
            self.server.log(Level::Debug, &text);
            End::Closing(ErrorCode::REQUEST_REJECTED)
        })
    }

    /// Reads a stream, and handles what it means while no part of the engine is borrowed.
    fn read(&mut self, id: u64) -> Result<(), End> {
        loop {
            let next = self.link.read(id).map_err(End::Closing)?;
            let Some(events) = next else { return Ok(()) };
            for event in events {
                match event {
                    Next::Head(id, head, is_end) => self.begun(id, &head, is_end),
                    Next::Error(id, error) => self.failed(id, error).map_err(End::Closing)?,
                }
            }
        }
    }

    /// A request has begun.
    fn begun(&mut self, id: u64, head: &RequestHead, is_end: bool) {
        let Some(mut connection) = self.open(id, is_end) else { return };
        let composed = connection.compose_head(Version::Http3, head, is_end);
        let refusal = composed.err().map(|error| (Reason::from(error), error.reason()));
        self.early.serve(&self.service, connection, refusal);
    }

    /// A request violates the protocol or the limits.
    ///
    /// # Errors
    /// The code to close the connection with.
    fn failed(&mut self, id: u64, error: StreamError) -> Result<(), ErrorCode> {
        match error {
            // The client could not know that no more requests are accepted.
            StreamError::Refused => self.link.reset(id, error.code()),
            StreamError::FieldsTooLarge if !self.link.is_open(id) => self.begun_too_large(id),
            _ => self.link.reset_provoked(id, error.code())?,
        }
        Ok(())
    }

    /// A request has begun whose head exceeds the limits.
    fn begun_too_large(&mut self, id: u64) {
        let refusal = Some((Reason::HeadersTooLarge, "headers_too_long"));
        if let Some(connection) = self.open(id, true) {
            self.link.quic.stop(id, ErrorCode::NO_ERROR.0);
            self.early.serve(&self.service, connection, refusal);
        }
    }

    /// Counts a stream; one that has no room was not processed and may be sent again (RFC 9114 4.1.1).
    fn open(&mut self, id: u64, is_end: bool) -> Option<Connection> {
        self.entry.set_busy();
        self.last_used_ms = now_ms();
        match self.try_open() {
            Ok((held, entry)) => {
                let stream = Stream::open(&self.link, id, held, is_end);
                let transport = Transport::Message(Box::new(stream));
                let (server, listener) = (self.server.clone(), self.listener.clone());
                let peer = self.peer.clone();
                let client = Client::new(server, listener, transport, peer, entry);
                Some(Connection::new(client))
            }
            Err(reason) => {
                self.link.reset(id, ErrorCode::REQUEST_REJECTED);
                self.server.reject(&self.peer.text, reason);
                None
            }
        }
    }

    fn try_open(&mut self) -> Result<(Held, Entry), Reason> {
        let held = self.memory.try_hold(STREAM_BYTES).ok_or(Reason::MemoryFull)?;
        let address = self.listener.limited_address(self.peer.address);
        let connections = &self.server.connections;
        let entry = connections.open(Kind::Stream, address, &self.server.limits());
        Ok((held, entry.ok_or(Reason::TooManyConnections)?))
    }

    /// Checks, once a second, what no event reports.
    fn check(&mut self) -> Option<End> {
        let (write_timeout_ms, header_timeout_ms, idle_timeout_ms) = {
            let limits = self.server.limits();
            (limits.write_timeout_ms, limits.header_timeout_ms, limits.idle_timeout_ms)
        };
        self.link.check(write_timeout_ms, header_timeout_ms);
        if !self.early.is_over() && now_ms() - self.began_ms >= header_timeout_ms {
            return Some(End::Closing(ErrorCode::REQUEST_CANCELLED));
        }
        if !self.link.is_idle() {
            self.last_used_ms = now_ms();
            return None;
        }
        self.link.windows.narrow();
        if now_ms() - self.last_used_ms >= idle_timeout_ms {
            self.leave();
            self.link.changed();
        }
        None
    }
}
