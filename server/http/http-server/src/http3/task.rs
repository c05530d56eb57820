//! The task of a connection of HTTP/3.
//!
//! Spawned by `endpoint` for each QUIC connection; it starts a task for each request. Invariants: the number of streams
//! and their memory are bounded, and a stream for which `limits.memory` has no room is refused; a stream whose client
//! reads nothing for `limits.write_timeout` is reset; a head takes no longer than `limits.header_timeout`; nothing more
//! is read of a request that is not read.

use super::link::{Link, Next};
use super::stream::Stream;
use super::windows::{RECEIVE_WINDOW_BYTES, SEND_WINDOW_BYTES};
use crate::early_data::EarlyData;
use crate::multiplexed::{self, Accepted, Requests, Sizes, Turns};
use crate::service::Service;
use outboard_http1::Version;
use outboard_http3::{ErrorCode, RequestHead, StreamError};
use outboard_log::Level;
use outboard_quic::{Connection, Event};
use outboard_tls::{QuicSession, SessionFacts};
use std::rc::Rc;
use std::task::Poll;

/// The ALPN protocol (RFC 9114 3.1).
pub(super) const PROTOCOL: &[u8] = b"h3";
/// What a connection has without its streams is its state and both windows.
const SIZES: Sizes = Sizes {
    connection_bytes: (64 << 10) + SEND_WINDOW_BYTES as usize + RECEIVE_WINDOW_BYTES as usize,
    stream_bytes: 28 << 10,
};

/// Serves a connection until it closes, or is idle for `limits.idle_timeout`.
pub(super) async fn serve<S: Service>(service: Rc<S>, accepted: Accepted, quic: Rc<Connection>) {
    let mut task = Task::new(service, accepted, quic);
    let end = multiplexed::run(&mut task).await;
    task.link.close_all();
    if !task.requests.early.is_over() {
        task.requests.server.counters.borrow_mut().tls.failed += 1;
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
    requests: Requests<S>,
    link: Rc<Link>,
}

impl<S: Service> Task<S> {
    fn new(service: Rc<S>, accepted: Accepted, quic: Rc<Connection>) -> Self {
        let early = EarlyData::of_quic(quic.has_proven_address());
        let requests = Requests::new(service, accepted, early, &SIZES);
        let link = Link::new(quic, requests.head_bytes(), requests.memory.clone());
        Self { requests, link }
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
        if self.requests.peer.tls.is_some() && self.requests.server.is_draining() {
            self.leave();
        }
        Ok(())
    }

    /// Announces that no more requests are accepted.
    fn leave(&mut self) {
        if self.requests.leave() {
            self.link.send_goaway();
        }
    }

    /// The handshake is complete, or the client has sent early data.
    fn settle(&mut self) -> Result<(), End> {
        if self.requests.early.is_over() {
            return Ok(());
        }
        if self.requests.peer.tls.is_none() {
            let facts = self.negotiated()?;
            self.requests.peer.tls = Some(Rc::new(facts));
            self.link.open_control_stream().map_err(End::Closing)?;
        }
        if let Some(facts) =
            self.requests.peer.tls.as_deref().filter(|_| !self.link.quic.is_handshaking())
        {
            self.requests.server.counters.borrow_mut().established(facts);
            self.requests.end_handshake();
        }
        Ok(())
    }

    /// What the handshake has negotiated.
    fn negotiated(&self) -> Result<SessionFacts, End> {
        let negotiated = self.link.quic.negotiated();
        let settings =
            self.requests.listener.tls.as_ref().filter(|_| negotiated.protocol == PROTOCOL);
        let settings = settings.ok_or(End::Closing(ErrorCode::GENERAL_PROTOCOL_ERROR))?;
        let session = QuicSession {
            server_name: negotiated.server_name.as_deref(),
            cipher: negotiated.cipher,
            is_resumed: negotiated.is_resumed,
            client_chain: &negotiated.client_chain,
        };
        SessionFacts::of_quic(&session, settings).map_err(|error| {
            let text = format!("no TLS with {}: {error}", self.requests.peer.text);
            self.requests.server.log(Level::Debug, &text);
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

    /// A request has begun; one that has no room is refused.
    fn begun(&mut self, id: u64, head: &RequestHead, is_end: bool) {
        let open = |held| Stream::open(&self.link, id, held, is_end);
        if !self.requests.begin((Version::Http3, head, is_end), open) {
            self.link.reset(id, ErrorCode::REQUEST_REJECTED);
        }
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
        let open = |held| Stream::open(&self.link, id, held, true);
        match self.requests.begin_too_large(open) {
            true => self.link.quic.stop(id, ErrorCode::NO_ERROR.0),
            false => self.link.reset(id, ErrorCode::REQUEST_REJECTED),
        }
    }
}

impl<S: Service> Turns for Task<S> {
    type End = End;

    fn poll_turn(&mut self) -> Poll<End> {
        loop {
            if let Err(end) = self.turn() {
                return Poll::Ready(end);
            }
            self.link.flush();
            if self.requests.is_leaving() && self.link.is_idle() {
                return Poll::Ready(End::Closing(ErrorCode::NO_ERROR));
            }
            if self.requests.entry.must_close() {
                // It was idle longest and makes room for others.
                return Poll::Ready(End::Closing(ErrorCode::NO_ERROR));
            }
            if self.link.is_idle() {
                self.requests.entry.set_idle();
            }
            if self.link.quic.poll_changed().is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn check(&mut self) -> Option<End> {
        let (write_timeout_ms, header_timeout_ms, idle_timeout_ms) = {
            let limits = self.requests.server.limits();
            (limits.write_timeout_ms, limits.header_timeout_ms, limits.idle_timeout_ms)
        };
        self.link.check(write_timeout_ms, header_timeout_ms);
        let is_late = self.requests.is_older_than(header_timeout_ms);
        if !self.requests.early.is_over() && is_late {
            return Some(End::Closing(ErrorCode::REQUEST_CANCELLED));
        }
        if !self.link.is_idle() {
            self.requests.used();
            return None;
        }
        self.link.windows.narrow();
        if self.requests.idle_ms() >= idle_timeout_ms {
            self.leave();
            self.link.changed();
        }
        None
    }
}
