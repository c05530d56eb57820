//! The stay of a connection elsewhere: from its idle time until it is back.
//!
//! Called by [`crate::http1`]. Invariants: while the other process may read, this one does not; a stay ends, also if
//! the other process does not reply.

use crate::client::Client;
use crate::connection::{Connection, Next};
use crate::direct::{DirectConnection, DirectEvent, DirectPlace};
use crate::pace::Pace;
use crate::request::Request;
use crate::service::Service;
use crate::transport::Transport;
use outboard_http1::Version;
use outboard_reactor::{self as reactor, with_deadline};
use rustix::fd::{AsFd, BorrowedFd};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

/// What follows once a connection is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Back {
    /// The next request is read here.
    Continue,
    /// It was idle for too long.
    Close,
    /// A response may be incomplete.
    Abort,
}

/// Serves a connection elsewhere until it is back.
pub(crate) async fn serve<S: Service>(
    service: &Rc<S>,
    connection: &mut Connection,
    place: Box<dyn DirectPlace>,
) -> Back {
    let client = connection.client.clone();
    let requests = connection.requests_left();
    if requests == 0 || client.context.is_draining() {
        return Back::Continue;
    }
    let Some(mut direct) = place.begin(&client, requests) else { return Back::Continue };
    connection.give_buffers_back();
    client.transport.rest();
    let mut has_timed_out = false;
    loop {
        match next_event(&client, &mut *direct, &mut has_timed_out).await {
            DirectEvent::Answered(request, answer) => {
                has_timed_out = false;
                if connection.load(&request) {
                    let stays = service.answered_directly(&mut connection.request, answer);
                    if !stays {
                        direct.take_back();
                    }
                }
                connection.request.buffers_mut().input.clear();
                connection.request.body.clear();
                connection.give_buffers_back();
            }
            DirectEvent::Adopted { request, received, exchange } => {
                connection.request.buffers_mut().input.extend_from_slice(&request);
                connection.request.direct.adopt(exchange, received);
                return Back::Continue;
            }
            DirectEvent::Returned { unsent, unread, held } => {
                let is_sent = send(&client, &unsent).await;
                drop((unsent, held));
                if !is_sent {
                    return Back::Abort;
                }
                if has_timed_out && unread.is_empty() {
                    return Back::Close;
                }
                if !unread.is_empty() {
                    connection.request.buffers_mut().input.extend_from_slice(&unread);
                }
                return Back::Continue;
            }
            DirectEvent::Lost => return Back::Abort,
        }
    }
}

/// Waits for the next event; has the connection come back if it has to close, or is idle for too long.
async fn next_event(
    client: &Client,
    direct: &mut dyn DirectConnection,
    has_timed_out: &mut bool,
) -> DirectEvent {
    let idle_timeout_ms = client.context.limits().idle_timeout_ms;
    loop {
        let event = poll_fn(|_| {
            if let Poll::Ready(event) = direct.poll_event() {
                return Poll::Ready(event);
            }
            client.entry.set_idle();
            // A server that stops announces the end of a connection with its next response.
            if client.context.is_draining() || client.entry.must_close() {
                direct.take_back();
                return direct.poll_event();
            }
            Poll::Pending
        });
        match with_deadline(reactor::now_ms() + idle_timeout_ms, event).await {
            Ok(event) => {
                client.entry.set_busy();
                return event;
            }
            // It was to come back long ago.
            Err(_) if *has_timed_out => return DirectEvent::Lost,
            Err(_) => {
                *has_timed_out = true;
                direct.take_back();
            }
        }
    }
}

async fn send(client: &Client, unsent: &[u8]) -> bool {
    let mut pace = Pace::of_response(&client.context.limits());
    client.transport.write_all(&mut [IoSlice::new(unsent)], &mut pace).await.is_ok()
}

impl Connection {
    /// Has the request read that was answered elsewhere, for its accounts.
    fn load(&mut self, request: &[u8]) -> bool {
        let limits = self.client.context.head_limits();
        self.request.buffers_mut().input.extend_from_slice(request);
        matches!(self.try_parse(&limits), Some(Next::Request))
    }
}

impl Transport {
    /// Watches the socket no more, until it is waited for again: another process reads from it.
    pub(crate) fn rest(&self) {
        if let Self::Plain(stream) = self {
            stream.source().rest();
        }
    }

    /// Its socket, for another process, if the bytes on it are those of the connection.
    pub fn share(&self) -> Option<BorrowedFd<'_>> {
        let Self::Plain(stream) = self else { return None };
        stream.share();
        Some(stream.as_fd())
    }
}

impl Request {
    /// Whether the socket of its connection may be shared with another process.
    pub fn is_plain_http1(&self) -> bool {
        matches!(self.client.transport, Transport::Plain(_)) && self.version() == Version::Http11
    }
}
