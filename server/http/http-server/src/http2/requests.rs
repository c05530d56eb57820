//! What a connection has received: the frames of the engine, and the requests that begin with them.
//!
//! Called by the task of the connection. Invariants: no part of the engine is borrowed while a request
//! begins; a stream is counted before it has a task.

use super::stream::Stream;
use super::{STREAM_BYTES, Task};
use crate::client::Client;
use crate::connection::Connection;
use crate::connections::{Entry, Kind};
use crate::service::Service;
use crate::transport::Transport;
use outboard_buffer::Held;
use outboard_http1::Version;
use outboard_http2::{ConnectionError, ErrorCode, Event, StreamKey};
use outboard_log::Reason;
use outboard_reactor::now_ms;

/// What is left to do for an event.
enum Next {
    /// A request, and whether it has no body.
    Head(StreamKey, bool),
    HeadTooLarge(StreamKey),
    /// Data of a request that no task reads.
    Unread(StreamKey, usize),
    Nothing,
}

impl<S: Service> Task<S> {
    /// Processes the received frames.
    pub(super) fn process(&mut self) -> Result<(), ConnectionError> {
        let mut received = std::mem::take(&mut self.input);
        let mut consumed = 0;
        let processed = loop {
            match self.next_event(&received, &mut consumed) {
                Ok(Some(next)) => self.handle(next),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        received.drain(..consumed);
        self.input = received;
        processed
    }

    fn next_event(
        &mut self,
        received: &[u8],
        consumed: &mut usize,
    ) -> Result<Option<Next>, ConnectionError> {
        let mut engine = self.link.engine();
        let mut rest = &received[*consumed..];
        let event = engine.receive(&mut rest, now_ms());
        let next = match event {
            Ok(None) => Ok(None),
            Err(error) => Err(error),
            Ok(Some(event)) => Ok(Some(match event {
                Event::Head { stream, head, is_end } => {
                    std::mem::swap(head, &mut self.head);
                    Next::Head(stream, is_end)
                }
                Event::HeadTooLarge { stream } => Next::HeadTooLarge(stream),
                Event::Data { stream, data, is_end } => {
                    match self.link.received(stream, data, is_end) {
                        true => Next::Nothing,
                        false => Next::Unread(stream, data.len()),
                    }
                }
                Event::Trailers { stream, .. } => {
                    self.link.received(stream, &[], true);
                    Next::Nothing
                }
                Event::Reset { stream, .. } => {
                    self.link.close(stream);
                    Next::Nothing
                }
                _ => Next::Nothing,
            })),
        };
        *consumed = received.len() - rest.len();
        next
    }

    /// Handles an event while no part of the engine is borrowed.
    fn handle(&mut self, next: Next) {
        match next {
            Next::Head(stream, is_end) => self.begun(stream, is_end),
            Next::HeadTooLarge(stream) => self.begun_too_large(stream),
            Next::Unread(stream, bytes) => self.link.engine().release(stream, bytes),
            Next::Nothing => {}
        }
    }

    /// A request has begun.
    fn begun(&mut self, key: StreamKey, is_end: bool) {
        let Some(mut connection) = self.open(key, is_end) else { return };
        let composed = connection.compose_head(Version::Http2, &self.head, is_end);
        let refusal = composed.err().map(|error| (Reason::from(error), error.reason()));
        self.early.serve(&self.service, connection, refusal);
    }

    /// A request has begun whose head exceeds the limits.
    fn begun_too_large(&mut self, key: StreamKey) {
        let refusal = Some((Reason::HeadersTooLarge, "headers_too_long"));
        if let Some(connection) = self.open(key, true) {
            self.early.serve(&self.service, connection, refusal);
        }
    }

    /// Counts a stream; one that has no room was not processed and may be sent again (RFC 9113 8.7).
    fn open(&mut self, key: StreamKey, is_end: bool) -> Option<Connection> {
        self.entry.set_busy();
        self.last_used_ms = now_ms();
        match self.try_open() {
            Ok((held, entry)) => {
                let stream = Stream::open(&self.link, key, held, is_end);
                let transport = Transport::Message(Box::new(stream));
                let (server, listener) = (self.server.clone(), self.listener.clone());
                let peer = self.peer.clone();
                let client = Client::new(server, listener, transport, peer, entry);
                Some(Connection::new(client))
            }
            Err(reason) => {
                self.link.engine().reset(key, ErrorCode::REFUSED_STREAM);
                self.server.reject(&self.peer.text, reason);
                None
            }
        }
    }

    fn try_open(&self) -> Result<(Held, Entry), Reason> {
        let held = self.memory.try_hold(STREAM_BYTES).ok_or(Reason::MemoryFull)?;
        let address = self.listener.limited_address(self.peer.address);
        let connections = &self.server.connections;
        let entry = connections.open(Kind::Stream, address, &self.server.limits());
        Ok((held, entry.ok_or(Reason::TooManyConnections)?))
    }
}
