//! [`Connection`]: a client connection, and the request that it is at.
//!
//! [`crate::http1`] drives it, or [`crate::message`] for a single request; the service reads the request from it and writes the response to it.
//! Invariant: an idle connection holds no buffers.

use crate::buffers::Buffers;
use crate::connections::Entry;
use crate::listener_context::ListenerContext;
use crate::message_stream::PendingHead;
use crate::pace::Pace;
use crate::peer::PeerInfo;
use crate::response_fields::ResponseFields;
use crate::server_context::ServerContext;
use crate::spool::Spool;
use crate::transport::Transport;
use crate::upgrade::UpgradeHandler;
use outboard_http_semantics::RequestHead;
use outboard_http1::{BodyFraming, ControlData, HeadError, HeadLimits, HeadStatus, Version};
use outboard_log::{Reason, Wall};
use outboard_reactor::{self as reactor, with_deadline};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// See the module.
pub struct Connection {
    /// What all connections share.
    pub context: Rc<ServerContext>,
    /// The listener that accepted it.
    pub listener: Rc<ListenerContext>,
    /// The socket, TLS session or stream.
    pub transport: Transport,
    /// The client.
    pub peer: PeerInfo,
    /// Present while a request is processed.
    pub buffers: Option<Box<Buffers>>,
    /// Length of the request's head in the input.
    pub head_len: usize,
    /// Bytes of the input that belong to the request; the next request follows.
    pub(crate) consumed: usize,
    /// Whether all of the request's body was read.
    pub(crate) body_read: bool,
    /// The longest body that access rules admit for this request.
    pub(crate) body_limit: Option<u64>,
    /// Fields of the response that access rules decide.
    pub(crate) response_fields: Option<Box<ResponseFields>>,
    /// The head in the output buffer, if the transport takes heads by themselves.
    pub(crate) pending_head: Option<PendingHead>,
    /// The part of the response that the client has not read yet.
    pub(crate) spool: Option<Spool>,
    /// Why the client could not be written to.
    pub lost: Option<Reason>,
    /// Receives the connection after a `101`.
    pub(crate) upgrade_handler: Option<UpgradeHandler>,
    /// Whether the request is served before the client's handshake is complete (RFC 8470).
    pub is_early: bool,
    served: u32,
    /// When the head of the response was written; `None` before.
    pub head_written: Option<Wall>,
    /// How fast the client reads the response.
    pub(crate) pace: Pace,
    /// Its place in the table of open connections.
    pub(crate) entry: Entry,
}

/// The outcome of waiting for a head.
pub(crate) enum Next {
    Request,
    /// The head is invalid; with a closer reason.
    Refuse(Reason, &'static str),
    Close,
}

impl Connection {
    pub(crate) fn new(
        context: Rc<ServerContext>,
        listener: Rc<ListenerContext>,
        transport: Transport,
        peer: PeerInfo,
        entry: Entry,
    ) -> Self {
        let pace = Pace::of_response(&context.limits());
        Self {
            context,
            listener,
            transport,
            peer,
            buffers: None,
            head_len: 0,
            consumed: 0,
            body_read: false,
            body_limit: None,
            response_fields: None,
            pending_head: None,
            spool: None,
            lost: None,
            upgrade_handler: None,
            is_early: false,
            served: 0,
            head_written: None,
            pace,
            entry,
        }
    }

    /// The buffers of the request; they exist from its first byte to the end of the response.
    pub fn buffers(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_with(|| take_buffers(&self.context, &self.transport))
    }

    /// Whether no request was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.served == 0
    }

    /// Whether another request may follow.
    pub(crate) fn may_continue(&self) -> bool {
        let most = self.context.limits().keepalive_requests;
        !self.context.is_draining() && most.is_none_or(|most| self.served < most)
    }

    pub(crate) fn forget_request(&mut self) {
        let consumed = self.consumed;
        let input = &mut self.buffers().input;
        if consumed >= input.len() {
            input.clear();
        } else {
            input.drain(..consumed);
        }
        self.consumed = 0;
    }

    /// Reads until a complete head is in the input. Until then the connection counts as idle.
    pub(crate) async fn next_head(&mut self) -> Next {
        let next = self.read_head().await;
        if !matches!(next, Next::Request) && self.entry.must_close() {
            return Next::Close;
        }
        self.entry.set_busy();
        next
    }

    async fn read_head(&mut self) -> Next {
        if self.buffers.as_ref().is_none_or(|buffers| buffers.input.is_empty()) {
            if let Some(buffers) = self.buffers.take() {
                self.context.buffers.give_back(buffers);
            }
            if !self.wait_for_first_byte().await {
                return Next::Close;
            }
        }
        let limits = self.context.head_limits();
        let header_timeout_ms = self.context.limits().header_timeout_ms;
        reactor::set_deadline(reactor::now_ms() + header_timeout_ms);
        let next = loop {
            if let Some(next) = self.try_parse(&limits) {
                break next;
            }
            let started = {
                let buffers = self.buffers();
                buffers.head.has_started(&buffers.input)
            };
            self.entry.set_idle();
            match self.read_more().await {
                Read::Some => {}
                Read::Closed if started => {
                    break Next::Refuse(Reason::BadRequest, "head_cut");
                }
                Read::TimedOut if started => {
                    break Next::Refuse(Reason::HeaderTimeout, "head_incomplete");
                }
                Read::Closed | Read::TimedOut => break Next::Close,
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
        let limits = self.context.head_limits();
        let buffers = self.buffers();
        self.head_len = {
            let Buffers { head, input, .. } = buffers;
            head.compose(input, control, decoded.fields().iter(), &limits)?
        };
        self.consumed = self.head_len;
        Ok(())
    }

    fn try_parse(&mut self, limits: &HeadLimits) -> Option<Next> {
        let buffers = self.buffers();
        if buffers.input.is_empty() {
            return None;
        }
        match buffers.head.parse(&buffers.input, limits) {
            Ok(HeadStatus::Complete { head_len }) => {
                self.head_len = head_len;
                self.consumed = head_len;
                self.body_read = false;
                self.body_limit = None;
                self.served += 1;
                Some(Next::Request)
            }
            Ok(HeadStatus::Partial) => None,
            Err(error) => Some(Next::Refuse(Reason::from(error), error.reason())),
        }
    }

    /// Waits without buffers. False if the connection is to be closed.
    async fn wait_for_first_byte(&self) -> bool {
        let idle_timeout_ms = self.context.limits().idle_timeout_ms;
        let readable = poll_fn(|_| {
            // A request that has arrived is served, also if the server stops: on HTTP/2 its client would
            // take it for one that was processed (RFC 9113 6.8).
            if self.transport.poll_readable().is_ready() {
                return Poll::Ready(true);
            }
            if self.context.ends_idle() {
                return Poll::Ready(false);
            }
            self.entry.set_idle();
            if self.entry.must_close() { Poll::Ready(false) } else { Poll::Pending }
        });
        with_deadline(reactor::now_ms() + idle_timeout_ms, readable).await.unwrap_or(false)
    }

    /// Reads once; the caller has set the deadline.
    pub(crate) async fn read_more(&mut self) -> Read {
        let (transport, entry) = (&self.transport, &self.entry);
        let buffers = self.buffers.get_or_insert_with(|| take_buffers(&self.context, transport));
        let input = &mut buffers.input;
        if input.capacity() == input.len() {
            input.reserve(input.len().max(4096));
        }
        poll_fn(|_| {
            while transport.poll_readable().is_ready() {
                match transport.try_read(input) {
                    Ok(Some(0)) | Err(_) => return Poll::Ready(Read::Closed),
                    Ok(Some(_)) => return Poll::Ready(Read::Some),
                    Ok(None) => {}
                }
            }
            if entry.must_close() {
                return Poll::Ready(Read::Closed);
            }
            if reactor::deadline_passed() { Poll::Ready(Read::TimedOut) } else { Poll::Pending }
        })
        .await
    }

    /// Reads once, within `timeout_ms`.
    pub async fn read_within(&mut self, timeout_ms: u64) -> Read {
        reactor::set_deadline(reactor::now_ms() + timeout_ms);
        let read = self.read_more().await;
        reactor::clear_deadline();
        read
    }

    /// Whether a part of the request's body was not read. Its end is unknown then, so no request can
    /// follow.
    pub(crate) fn has_unread_body(&mut self) -> bool {
        match self.buffers().head.body() {
            BodyFraming::None | BodyFraming::Length(0) => false,
            BodyFraming::Length(_) | BodyFraming::Chunked | BodyFraming::Stream => !self.body_read,
        }
    }

    /// Whether the client is gone, or has closed its side and `limits.aborts_on_close` is set.
    pub fn poll_gone(&self) -> Poll<()> {
        match self.context.limits().aborts_on_close {
            true => self.transport.poll_hangup(),
            false => self.transport.poll_gone(),
        }
    }

    /// Completes `work`, unless the client goes away.
    ///
    /// # Errors
    /// [`Reason::ClientGone`].
    pub async fn unless_gone<T>(&self, work: impl Future<Output = T>) -> Result<T, Reason> {
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_gone().map(|()| Err(Reason::ClientGone)),
        })
        .await
    }
}

fn take_buffers(context: &ServerContext, transport: &Transport) -> Box<Buffers> {
    match transport.message() {
        Some(_) => context.buffers.take_of_stream(),
        None => context.buffers.take(),
    }
}

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// At least one byte.
    Some,
    /// The client has closed its side, or is gone.
    Closed,
    /// The deadline has passed.
    TimedOut,
}

#[cfg(test)]
mod tests;
