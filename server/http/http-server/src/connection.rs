//! [`Connection`]: a client connection: the request that it is at, and the writer of its response.
//!
//! [`crate::http1`] drives it, or [`crate::message`] for a single request.
//! Invariant: an idle connection holds no buffers.

use crate::buffers::Buffers;
use crate::client::{Client, Read};
use crate::listener_context::Role;
use crate::request::Request;
use crate::response_facts::RequestFacts;
use crate::response_writer::ResponseWriter;
use crate::transport::Transport;
use crate::upgrade::UpgradeHandler;
use outboard_http_semantics::RequestHead;
use outboard_http1::{ControlData, HeadError, HeadLimits, HeadStatus, Version};
use outboard_log::Reason;
use outboard_reactor::{self as reactor, with_deadline};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Who has the client of a connection: itself, its request and its response.
const OWNERS: usize = 3;

/// See the module.
pub(crate) struct Connection {
    pub(crate) client: Rc<Client>,
    pub(crate) request: Request,
    pub(crate) response: ResponseWriter,
    served: u32,
    /// See [`Service::shard_after_response`](crate::service::Service::shard_after_response).
    pub(crate) seen: Cell<u64>,
    /// Whether it has come here to stay.
    stays: bool,
}

/// The outcome of waiting for a head.
pub(crate) enum Next {
    Request,
    /// The head is invalid; with a closer reason.
    Refuse(Reason, &'static str),
    Close,
}

impl Connection {
    pub(crate) fn new(client: Rc<Client>) -> Self {
        Self {
            request: Request::new(client.clone()),
            response: ResponseWriter::new(client.clone()),
            client,
            served: 0,
            seen: Cell::default(),
            stays: false,
        }
    }

    /// Goes on with a connection that has been on another shard.
    pub(crate) fn resume(&mut self, input: Vec<u8>, served: u32, stays: bool) {
        debug_assert!(self.served == 0 && self.request.has_no_input(), "it is new here");
        if !input.is_empty() {
            self.request.buffers_mut().input.extend_from_slice(&input);
        }
        (self.served, self.stays) = (served, stays);
    }

    /// Whether nothing of it is elsewhere, its socket is all that it is, and each shard serves the like: what is not for
    /// the apps is one shard's.
    pub(crate) fn can_move(&self) -> bool {
        let is_plain = matches!(self.client.transport, Transport::Plain(_));
        let is_everywhere = self.client.listener.role == Role::Apps;
        is_plain && is_everywhere && !self.stays && Rc::strong_count(&self.client) == OWNERS
    }

    /// The request whose head was read is to be read again, elsewhere.
    pub(crate) fn unread_head(&mut self) {
        self.request.body.consumed.set(0);
        self.served = self.served.saturating_sub(1);
    }

    /// How many requests it has had.
    pub(crate) fn served(&self) -> u32 {
        self.served
    }

    /// Whether no request was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.served == 0
    }

    /// Whether another request may follow.
    pub(crate) fn may_continue(&self) -> bool {
        let context = &self.client.context;
        let most = context.limits().keepalive_requests;
        !context.is_draining() && most.is_none_or(|most| self.served < most)
    }

    /// How many more requests may follow.
    pub(crate) fn requests_left(&self) -> u32 {
        let most = self.client.context.limits().keepalive_requests;
        most.map_or(u32::MAX, |most| most.saturating_sub(self.served).saturating_sub(1))
    }

    /// The response begins: to the request in the input.
    pub(crate) fn begin_response(&mut self) {
        let facts = RequestFacts::of(&self.request, self.may_continue());
        self.begin_response_to(facts);
    }

    /// The response begins: to a request whose head could not be read.
    pub(crate) fn begin_refusal(&mut self) {
        self.begin_response_to(RequestFacts::UNREAD);
    }

    fn begin_response_to(&mut self, facts: RequestFacts) {
        self.response.begin(facts, &mut self.request.buffers_mut().output);
    }

    /// Returns the buffers to the pool: no request is processed.
    pub(crate) fn give_buffers_back(&mut self) {
        if let Some(mut buffers) = self.request.buffers.take() {
            buffers.output = self.response.take_output();
            self.client.context.buffers.give_back(buffers);
        }
    }

    /// After the last request: the client, the bytes that followed it, and the handler of an upgrade.
    pub(crate) fn into_rest(mut self) -> (Rc<Client>, Vec<u8>, Option<UpgradeHandler>) {
        let output = self.response.take_output();
        if let Some(buffers) = &mut self.request.buffers {
            buffers.output = output;
        }
        let (client, rest) = self.request.into_rest();
        (client, rest, self.response.into_upgrade_handler())
    }

    /// Reads until a complete head is in the input. Until then the connection counts as idle.
    pub(crate) async fn next_head(&mut self) -> Next {
        let next = self.read_head().await;
        let entry = &self.client.entry;
        if !matches!(next, Next::Request) && entry.must_close() {
            return Next::Close;
        }
        entry.set_busy();
        next
    }

    async fn read_head(&mut self) -> Next {
        let context = self.client.context.clone();
        if self.request.buffers.as_ref().is_none_or(|buffers| buffers.input.is_empty()) {
            self.give_buffers_back();
            if !self.wait_for_first_byte().await {
                return Next::Close;
            }
        }
        let limits = context.head_limits();
        self.client.read_available(&mut self.request.buffers_mut().input);
        // Mostly the whole head has arrived at once, and nothing is waited for.
        if let Some(next) = self.try_parse(&limits) {
            return next;
        }
        let header_timeout_ms = context.limits().header_timeout_ms;
        reactor::set_deadline(reactor::now_ms() + header_timeout_ms);
        let next = loop {
            let buffers = self.request.buffers_mut();
            let started = buffers.head.has_started(&buffers.input);
            self.client.entry.set_idle();
            match self.client.read(&mut buffers.input).await {
                Read::Some => {}
                Read::Closed if started => {
                    break Next::Refuse(Reason::BadRequest, "head_cut");
                }
                Read::TimedOut if started => {
                    break Next::Refuse(Reason::HeaderTimeout, "head_incomplete");
                }
                Read::Closed | Read::TimedOut => break Next::Close,
            }
            if let Some(next) = self.try_parse(&limits) {
                break next;
            }
        };
        reactor::clear_deadline();
        next
    }

    /// Composes the head of the only request of this connection, which came decoded.
    ///
    /// # Errors
    /// The request is malformed.
    pub(crate) fn compose_head(
        &mut self,
        version: Version,
        decoded: &RequestHead,
        has_ended: bool,
    ) -> Result<(), HeadError> {
        let is_tunnel = decoded.is_connect() && decoded.protocol().is_none();
        let control = ControlData {
            version,
            method: decoded.method(),
            authority: decoded.authority(),
            path: if is_tunnel { decoded.authority() } else { decoded.path() },
            protocol: decoded.protocol(),
            has_ended,
        };
        let limits = self.client.context.head_limits();
        let Buffers { head, input, .. } = self.request.buffers_mut();
        let head_len = head.compose(input, control, decoded.fields().iter(), &limits)?;
        self.request.begin_body(head_len);
        Ok(())
    }

    pub(crate) fn try_parse(&mut self, limits: &HeadLimits) -> Option<Next> {
        let buffers = self.request.buffers_mut();
        if buffers.input.is_empty() {
            return None;
        }
        match buffers.head.parse(&buffers.input, limits) {
            Ok(HeadStatus::Complete { head_len }) => {
                self.request.begin_body(head_len);
                self.served += 1;
                Some(Next::Request)
            }
            Ok(HeadStatus::Partial) => None,
            Err(error) => Some(Next::Refuse(Reason::from(error), error.reason())),
        }
    }

    /// Waits without buffers. False if the connection is to be closed.
    async fn wait_for_first_byte(&self) -> bool {
        let Client { context, transport, entry, .. } = &*self.client;
        let idle_timeout_ms = context.limits().idle_timeout_ms;
        let readable = poll_fn(|_| {
            // A request that has arrived is served, also if the server stops: on HTTP/2 its client would
            // take it for one that was processed (RFC 9113 6.8).
            if transport.poll_readable().is_ready() {
                return Poll::Ready(true);
            }
            if context.ends_idle() {
                return Poll::Ready(false);
            }
            entry.set_idle();
            if entry.must_close() { Poll::Ready(false) } else { Poll::Pending }
        });
        with_deadline(reactor::now_ms() + idle_timeout_ms, readable).await.unwrap_or(false)
    }

    /// Discards what the client sends, once, within `timeout_ms`. Returns how much it was, if it sends more.
    pub(crate) async fn discard_within(&mut self, timeout_ms: u64) -> Option<usize> {
        let input = &mut self.request.buffers_mut().input;
        input.clear();
        reactor::set_deadline(reactor::now_ms() + timeout_ms);
        let read = self.client.read(input).await;
        reactor::clear_deadline();
        (read == Read::Some).then_some(input.len())
    }
}

#[cfg(test)]
mod tests;
