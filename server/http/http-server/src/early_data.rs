//! Early data (RFC 8470): requests that arrive before the client's handshake is complete, so that a network
//! may have recorded them.
//!
//! Called by the front ends. Invariant: before the handshake is complete a request is served only if it may be
//! served twice, and if the address that it comes from is that of its client; others wait for the end of the
//! handshake.

use crate::connection::Connection;
use crate::message;
use crate::request::Request;
use crate::service::Service;
use outboard_http1::{BodyFraming, Method};
use outboard_log::Reason;
use outboard_reactor::{now_ms, spawn, with_deadline};
use std::future::poll_fn;
use std::rc::Rc;

impl Connection {
    /// Waits for the end of the handshake, unless the request may be served before; false if there is none.
    pub(crate) async fn await_handshake(&mut self) -> bool {
        let client = &self.client;
        self.request.is_early = client.transport.is_early();
        if !self.request.is_early || self.request.may_be_early() {
            return true;
        }
        let until_ms = now_ms() + client.context.limits().header_timeout_ms;
        let confirmed = poll_fn(|_| client.transport.poll_handshake());
        let confirmed = with_deadline(until_ms, Box::pin(confirmed)).await;
        self.request.is_early = false;
        matches!(confirmed, Ok(Ok(())))
    }
}

impl Request {
    /// Whether the request changes nothing (RFC 9110 9.2.1) and is complete. What follows an upgrade is not.
    fn may_be_early(&self) -> bool {
        let is_safe = matches!(self.method(), Method::Get | Method::Head | Method::Options);
        let has_body = !matches!(self.body_framing(), BodyFraming::None | BodyFraming::Length(0));
        is_safe && !has_body && self.header(b"upgrade").is_none()
    }
}

/// The requests of a connection that has many at a time, until its handshake is complete.
#[derive(Default)]
pub(crate) struct EarlyData {
    is_over: bool,
    /// Whether the address of the client may be another's, for which rules, rates and logs would take it.
    is_unproven: bool,
    waiting: Vec<(Connection, Refusal)>,
}

/// Why a request is not processed.
type Refusal = Option<(Reason, &'static str)>;

impl EarlyData {
    /// For a connection whose handshake is complete, or not.
    pub(crate) fn new(is_early: bool) -> Self {
        Self { is_over: !is_early, ..Self::default() }
    }

    /// For a connection of QUIC. Its first datagram may have any source address (RFC 9000 8.1); the handshake of TCP
    /// has proven it.
    pub(crate) fn of_quic(has_proven_address: bool) -> Self {
        Self { is_unproven: !has_proven_address, ..Self::default() }
    }

    /// Whether requests wait for the handshake.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Serves a request now or after the handshake; one that is refused is not processed.
    pub(crate) fn serve<S: Service>(
        &mut self,
        service: &Rc<S>,
        mut connection: Connection,
        refusal: Refusal,
    ) {
        if !self.is_over {
            if self.is_unproven || (refusal.is_none() && !connection.request.may_be_early()) {
                return self.waiting.push((connection, refusal));
            }
            connection.request.is_early = true;
        }
        spawn(message::serve(service.clone(), connection, refusal));
    }

    /// The handshake is complete.
    pub(crate) fn end<S: Service>(&mut self, service: &Rc<S>) {
        self.is_over = true;
        for (connection, refusal) in std::mem::take(&mut self.waiting) {
            spawn(message::serve(service.clone(), connection, refusal));
        }
    }
}
