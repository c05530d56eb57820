//! [`Requests`]: what a connection with many requests at a time knows, apart from its protocol.
//!
//! Owned by the task of a connection of HTTP/2 or HTTP/3. Invariants: a stream is counted, and its memory held,
//! before it has a task; one for which there is no room was not processed and may be sent again (RFC 9113 8.7,
//! RFC 9114 4.1.1).

use crate::client::Client;
use crate::connection::Connection;
use crate::connections::{Entry, Kind};
use crate::early_data::EarlyData;
use crate::listener_context::ListenerContext;
use crate::message_stream::MessageStream;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use crate::transport::Transport;
use outboard_buffer::{Account, Held};
use outboard_http_semantics::RequestHead;
use outboard_http1::Version;
use outboard_log::Reason;
use outboard_reactor::now_ms;
use std::rc::Rc;
use std::sync::Arc;

/// A connection that is to be served.
pub(crate) struct Accepted {
    pub(crate) server: Rc<ServerContext>,
    pub(crate) listener: Arc<ListenerContext>,
    pub(crate) peer: PeerInfo,
    pub(crate) entry: Entry,
}

/// What a protocol needs of memory.
pub(crate) struct Sizes {
    /// Without its streams.
    pub(crate) connection_bytes: usize,
    /// A stream: its task, its buffers, and data that waits.
    pub(crate) stream_bytes: usize,
}

/// See the module.
pub(crate) struct Requests<S> {
    service: Rc<S>,
    pub(crate) server: Rc<ServerContext>,
    pub(crate) listener: Arc<ListenerContext>,
    pub(crate) peer: PeerInfo,
    /// Released before the entry: what waits for a connection to close may be short of memory as well.
    _held: Held,
    pub(crate) entry: Entry,
    pub(crate) memory: Rc<Account>,
    stream_bytes: usize,
    pub(crate) early: EarlyData,
    last_used_ms: u64,
    began_ms: u64,
    is_leaving: bool,
}

impl<S: Service> Requests<S> {
    pub(crate) fn new(service: Rc<S>, accepted: Accepted, early: EarlyData, sizes: &Sizes) -> Self {
        let Accepted { server, listener, peer, entry } = accepted;
        Self {
            service,
            memory: server.memory.of_connection(),
            _held: server.memory.connections().hold(sizes.connection_bytes),
            server,
            listener,
            peer,
            entry,
            stream_bytes: sizes.stream_bytes,
            early,
            last_used_ms: now_ms(),
            began_ms: now_ms(),
            is_leaving: false,
        }
    }

    /// The largest head of a request.
    pub(crate) fn head_bytes(&self) -> usize {
        let limits = self.server.head_limits();
        limits.request_line_bytes.saturating_add(limits.header_bytes)
    }

    /// A request has begun, whose stream `open` makes. False if it is refused, because there is no room for it.
    #[must_use]
    pub(crate) fn begin<M: MessageStream + 'static>(
        &mut self,
        (version, head, is_end): (Version, &RequestHead, bool),
        open: impl FnOnce(Held) -> M,
    ) -> bool {
        let Some(mut connection) = self.open(open) else { return false };
        let composed = connection.compose_head(version, head, is_end);
        let refusal = composed.err().map(|error| (Reason::from(error), error.reason()));
        self.early.serve(&self.service, connection, refusal);
        true
    }

    /// A request has begun whose head exceeds the limits. False if there is no room even for the response.
    #[must_use]
    pub(crate) fn begin_too_large<M: MessageStream + 'static>(
        &mut self,
        open: impl FnOnce(Held) -> M,
    ) -> bool {
        let Some(connection) = self.open(open) else { return false };
        let refusal = Some((Reason::HeadersTooLarge, "headers_too_long"));
        self.early.serve(&self.service, connection, refusal);
        true
    }

    fn open<M: MessageStream + 'static>(
        &mut self,
        open: impl FnOnce(Held) -> M,
    ) -> Option<Connection> {
        self.entry.set_busy();
        self.used();
        let (held, entry) = match self.count() {
            Ok(counted) => counted,
            Err(reason) => {
                self.server.reject(&self.peer.text, reason);
                return None;
            }
        };
        let transport = Transport::Message(Box::new(open(held)));
        let (server, listener) = (self.server.clone(), self.listener.clone());
        Some(Connection::new(Client::new(server, listener, transport, self.peer.clone(), entry)))
    }

    fn count(&self) -> Result<(Held, Entry), Reason> {
        let held = self.memory.try_hold(self.stream_bytes).ok_or(Reason::MemoryFull)?;
        let address = self.listener.limited_address(self.peer.address);
        let connections = &self.server.connections;
        let entry = connections.open(Kind::Stream, address, &self.server.limits());
        Ok((held, entry.ok_or(Reason::TooManyConnections)?))
    }

    /// The handshake is complete: requests that have waited for it are served.
    pub(crate) fn end_handshake(&mut self) {
        self.early.end(&self.service);
    }

    /// Whether the connection is older than this.
    pub(crate) fn is_older_than(&self, age_ms: u64) -> bool {
        now_ms() - self.began_ms >= age_ms
    }

    /// There is a request.
    pub(crate) fn used(&mut self) {
        self.last_used_ms = now_ms();
    }

    /// How long there has been no request, as seen by calls of [`Self::used`].
    pub(crate) fn idle_ms(&self) -> u64 {
        now_ms() - self.last_used_ms
    }

    /// Whether the end was announced.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// The end is to be announced; false if it was already.
    pub(crate) fn leave(&mut self) -> bool {
        !std::mem::replace(&mut self.is_leaving, true)
    }
}
