//! The loop of a connection: reads a head, calls the service, and continues or closes.
//!
//! Spawned by the listener. A client without TLS may continue with HTTP/2. Invariants: responses are in the order of the
//! requests (RFC 9112 9.3.2); if a response leaves a part of the request unread, the connection is
//! closed, and lingers so that the client can read the response (RFC 9112 9.6).

use crate::client::Client;
use crate::connection::{Connection, Next};
use crate::direct_stay::{self, Back};
use crate::http2;
use crate::moved::MovedConnection;
use crate::multiplexed::Accepted;
use crate::response_facts::Written;
use crate::service::Service;
use crate::transport::Transport;
use crate::upgrade::Upgraded;
use outboard_log::{Reason, Wall};
use outboard_reactor::{now_ms, share_turn, spawn};
use std::io;
use std::rc::Rc;

#[cfg(test)]
mod tests;

/// Time and bytes that a lingering close spends on reading.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 1 << 20;
/// The work of a pipelined request, as bytes moved: other tasks run after a few of them.
const PIPELINED_BYTES: usize = 64 << 10;

/// What follows a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Wait for the next request.
    KeepAlive,
    /// Everything was read and written: close.
    Close,
    /// The client may still be sending: linger, then close.
    Linger,
    /// Pass the connection to the upgrade handler.
    Upgrade,
    /// The response is incomplete: close at once, so that the client notices.
    Abort,
}

/// Serves requests until the connection ends or is upgraded.
pub(crate) async fn serve<S: Service>(service: Rc<S>, mut connection: Connection) {
    loop {
        let next = connection.next_head().await;
        if connection.begins_lasting(&next)
            && let Some(shard) = service.shard_to_stay()
        {
            connection.unread_head();
            return service.send_to(shard, connection.into_moved(true));
        }
        let mut action = match next {
            Next::Request if connection.await_handshake().await => {
                respond(&service, &mut connection).await
            }
            Next::Request => Action::Abort,
            Next::Refuse(..) if connection.begins_http2() => {
                let (accepted, transport, input) = connection.into_http2();
                return Box::pin(http2::serve(service, accepted, transport, input)).await;
            }
            Next::Refuse(reason, detail) => refuse(&service, &mut connection, reason, detail).await,
            Next::Close => Action::Close,
        };
        let place = connection.request.direct.take_place();
        if action == Action::KeepAlive
            && (connection.may_continue() || connection.client.context.is_left())
        {
            connection.request.forget();
            if connection.request.has_no_input()
                && connection.can_move()
                && let Some(shard) = service.shard_after_response(&connection.seen)
            {
                return service.send_to(shard, connection.into_moved(false));
            }
            let Some(place) = place.filter(|_| connection.request.has_no_input()) else {
                if !connection.request.has_no_input() {
                    share_turn(PIPELINED_BYTES).await;
                }
                continue;
            };
            // Boxed, so that it does not enlarge the task of every connection.
            match Box::pin(direct_stay::serve(&service, &mut connection, place)).await {
                Back::Continue => continue,
                Back::Close => action = Action::Close,
                Back::Abort => action = Action::Abort,
            }
        }
        match action {
            Action::Linger => {
                linger(&mut connection).await;
                break;
            }
            Action::Abort => {
                connection.client.transport.abandon();
                break;
            }
            _ => break,
        }
    }
    let (client, read_ahead, upgrade_handler) = connection.into_rest();
    // Until the end of the upgraded protocol the connection counts.
    if let Some(handler) = upgrade_handler {
        handler(Upgraded::new(client, read_ahead)).await;
    }
}

impl MovedConnection {
    /// Serves it on this thread.
    ///
    /// # Errors
    /// The event loop cannot watch the socket.
    pub fn serve<S: Service>(self, service: &Rc<S>) -> io::Result<()> {
        let connection = self.arrive(service.context().clone())?;
        spawn(serve(service.clone(), connection));
        Ok(())
    }
}

impl Connection {
    /// Whether the client begins with the preface of HTTP/2 (RFC 9113 3.3), without TLS: over TLS the
    /// protocol is negotiated.
    fn begins_http2(&mut self) -> bool {
        matches!(self.client.transport, Transport::Plain(_))
            && self.is_new()
            && self.request.buffers_mut().input.starts_with(http2::PREFACE_LINE)
    }

    /// Whether it becomes one that cannot move any more: by its request, or by HTTP/2.
    fn begins_lasting(&mut self, next: &Next) -> bool {
        let begins = match next {
            // Many clients offer HTTP/2 like this in their first request, which is declined.
            Next::Request => self.request.upgrade().is_some_and(names_websocket),
            Next::Refuse(..) => self.begins_http2(),
            Next::Close => false,
        };
        begins && self.can_move()
    }

    fn into_http2(mut self) -> (Accepted, Transport, Vec<u8>) {
        let input = std::mem::take(&mut self.request.buffers_mut().input);
        let Self { client, request, response, .. } = self;
        drop((request, response));
        let client = Rc::into_inner(client).expect("neither of them is left");
        let Client { context: server, listener, transport, peer, entry, .. } = client;
        (Accepted { server, listener, peer, entry }, transport, input)
    }
}

fn names_websocket(protocols: &[u8]) -> bool {
    let mut names = protocols.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    names.any(|name| name.eq_ignore_ascii_case(b"websocket"))
}

async fn respond<S: Service>(service: &Rc<S>, connection: &mut Connection) -> Action {
    let started = connection.request.direct.take_received().unwrap_or_else(Wall::now);
    connection.begin_response();
    let written = service.respond(&mut connection.request, &mut connection.response, started).await;
    connection.request.direct.clear();
    let unread = connection.client.has_unread_body.get();
    match written {
        Written::Broken => Action::Abort,
        Written::Upgraded => Action::Upgrade,
        Written::Complete { keep_alive: true } if !unread => Action::KeepAlive,
        // The rest of the handshake may be unread as well.
        Written::Complete { .. } if unread || connection.request.is_early => Action::Linger,
        Written::Complete { .. } => Action::Close,
    }
}

async fn refuse<S: Service>(
    service: &Rc<S>,
    connection: &mut Connection,
    reason: Reason,
    detail: &str,
) -> Action {
    connection.begin_refusal();
    let refused = {
        let Connection { request, response, .. } = &mut *connection;
        service.refuse_head(request, response, Wall::now(), (reason, detail)).await
    };
    match refused {
        Written::Broken => Action::Abort,
        Written::Complete { .. } | Written::Upgraded => Action::Linger,
    }
}

/// Closes the sending side and reads for a while. If bytes are unread at close(2), the kernel sends a
/// reset, and the client may lose the response.
async fn linger(connection: &mut Connection) {
    connection.client.transport.shutdown_write();
    let until_ms = now_ms() + LINGER_MS;
    let mut total = 0;
    while total < LINGER_BYTES && now_ms() < until_ms {
        match connection.discard_within(until_ms - now_ms()).await {
            Some(bytes) => total += bytes,
            None => return,
        }
    }
}
