//! WebSocket through a proxy route (RFC 6455, RFC 9110 7.8): both sides switch, then bytes are
//! relayed.
//!
//! Called by [`crate::dispatch`] before the request is proxied. Invariants: the client gets `101`
//! only after the upstream has switched, and so does a client of HTTP/2 or HTTP/3 a 2xx, which it takes
//! for the tunnel; a slow side delays the other instead of filling memory;
//! other protocols are not relayed, since requests within them (h2c) would bypass all rules.

use super::{Proxied, StartedResponse, fail, head, log_failure, outgoing};
use crate::app::App;
use crate::request::{RequestContext, ResponseSummary, refuse};
use crate::upstream_call::UpstreamCall;
use outboard_balancer::Attempt;
use outboard_http_server::{Connection, HeaderBlock, UpgradeHandler, Upgraded};
use outboard_http1::{BodyFraming, Method};
use outboard_log::{Level, Reason};
use outboard_reactor::{current_task, deadline_passed, now_ms, set_deadline, wake};
use outboard_upstream::{Channel, Response};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

const WEBSOCKET: &[u8] = b"websocket";
/// An extended CONNECT has no key (RFC 8441 5), but the upstream, by HTTP/1.1, requires one (RFC 6455
/// 4.1). It proves that a server understands WebSocket, which the `101` does as well.
const KEY: &[u8] = b"b3V0Ym9hcmQgaHR0cC8yIQ==";
/// The proof, which clients of an extended CONNECT do not expect.
const ACCEPT: &[u8] = b"sec-websocket-accept";
/// Bytes that are read before they are written.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that are relayed in each direction before other tasks run.
const PIECES_PER_TURN: u32 = 16;

/// Relays a WebSocket request; `None` for any other request.
pub(crate) async fn try_handle(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    proxied: &Proxied,
) -> Option<ResponseSummary> {
    let is_draining = connection.context.is_draining();
    let buffers = connection.buffers();
    let offered = buffers.head.upgrade(&buffers.input)?;
    let has_body = !matches!(buffers.head.body(), BodyFraming::None | BodyFraming::Length(0));
    let is_websocket = ctx.request.method == Method::Get && offered.eq_ignore_ascii_case(WEBSOCKET);
    if !is_websocket || has_body || is_draining {
        return None;
    }
    Some(match connect(connection, ctx, app, proxied).await {
        Ok(summary) => summary,
        Err(reason) => refuse(connection, ctx, Some(app), reason).await,
    })
}

async fn connect(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    proxied: &Proxied,
) -> Result<ResponseSummary, Reason> {
    let failed = |error| log_failure(app, ctx.request_id, &error);
    let mut outgoing = outgoing(connection, ctx, app, proxied, None).map_err(failed)?;
    let request = &mut outgoing.request;
    request.switch_to = Some(WEBSOCKET.to_vec());
    if ctx.request.version.has_streams() {
        request.headers.add(b"Sec-WebSocket-Key", KEY).map_err(failed)?;
    }
    let timeout_ms = request.timeout_ms;
    let call = UpstreamCall::begin(ctx, app, request);
    let outcome = connection.unless_gone(outgoing.send(app)).await?;
    let sent = outcome.map_err(|failure| fail(ctx, app, &call, failure))?;
    let (mut response, attempt) = (sent.result, sent.attempt);
    call.responded(response.status);
    if let Some(attempt) = &attempt {
        let _ = ctx.server.set(attempt.server().clone());
    }
    if response.status == 101 {
        let idle_ms = app.config.proxies[proxied.number].tunnel_timeout_ms;
        return Ok(switch(connection, ctx, (response, attempt), idle_ms).await);
    }
    if ctx.request.version.has_streams() && (200..300).contains(&response.status) {
        let text = format!("the upstream responds to WebSocket with {}", response.status);
        app.log_text(Level::Error, ctx.request_id, &text);
        return Err(Reason::UpstreamFailed);
    }
    response.wait_at_most(timeout_ms);
    let path = connection.buffers().path.clone();
    let head = head(app, &response, &path)?;
    let mut started = StartedResponse::new(app, proxied, head, response, timeout_ms);
    if let Some(attempt) = attempt {
        call.served_by(ctx, attempt);
    }
    started.call = Some(call);
    Ok(started.send(connection, ctx, app).await)
}

async fn switch(
    connection: &mut Connection,
    ctx: &RequestContext,
    (response, attempt): (Response, Option<Attempt>),
    idle_ms: u64,
) -> ResponseSummary {
    let mut lines = HeaderBlock::default();
    lines.add(b"Connection", b"upgrade").expect("a constant header");
    lines.add(b"Upgrade", WEBSOCKET).expect("a constant header");
    for line in response.headers.split(|&byte| byte == b'\n') {
        if let Some(colon) = memchr::memchr(b':', line) {
            if ctx.request.version.has_streams() && line[..colon].eq_ignore_ascii_case(ACCEPT) {
                continue;
            }
            // They were validated when they were received.
            let _ = lines.add(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let Some(channel) = response.into_channel() else { return ResponseSummary::broken(502, 0) };
    let handler: UpgradeHandler = Box::new(move |client| {
        Box::pin(async move {
            relay(client, channel, idle_ms).await;
            // It counts for its server until then.
            drop(attempt);
        })
    });
    let written = connection.upgrade(ctx.request, &lines, handler).await;
    ResponseSummary { written, status: 101, body_bytes: 0 }
}

/// Relays bytes in both directions until both sides have finished, one of them is gone, no byte was
/// sent for `idle_ms`, or the server stops.
async fn relay(mut client: Upgraded, mut upstream: Channel, idle_ms: u64) {
    client.keep_alive();
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let mut relayed_bytes = 0;
    set_deadline(now_ms() + idle_ms);
    poll_fn(|_| {
        if client.is_draining() || deadline_passed() {
            return Poll::Ready(());
        }
        let outcome = up.relay(
            |bytes| client.poll_read(bytes),
            &mut upstream,
            |upstream, bytes| upstream.poll_write(bytes),
            Channel::end,
        );
        let outcome = outcome.and_then(|()| {
            let _ = upstream.poll_flush()?;
            down.relay(
                |bytes| upstream.poll_read(bytes),
                &mut client,
                |client, bytes| client.poll_write(bytes),
                Upgraded::end,
            )
        });
        let now_relayed_bytes = up.relayed_bytes + down.relayed_bytes;
        if std::mem::replace(&mut relayed_bytes, now_relayed_bytes) != now_relayed_bytes {
            set_deadline(now_ms() + idle_ms);
        }
        if up.has_more || down.has_more {
            wake(current_task());
        }
        match outcome {
            Ok(()) if up.is_over && down.is_over => Poll::Ready(()),
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        }
    })
    .await;
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    bytes: Vec<u8>,
    written: usize,
    /// Bytes written since the start.
    relayed_bytes: u64,
    /// Whether the turn ended before all available bytes were relayed.
    has_more: bool,
    is_read: bool,
    is_over: bool,
}

impl Direction {
    /// Relays available bytes, as far as the receiver accepts them.
    fn relay<T>(
        &mut self,
        mut read: impl FnMut(&mut Vec<u8>) -> Poll<io::Result<usize>>,
        to: &mut T,
        write: impl Fn(&mut T, &[u8]) -> Poll<io::Result<usize>>,
        end: impl Fn(&mut T),
    ) -> io::Result<()> {
        self.has_more = false;
        for _ in 0..PIECES_PER_TURN {
            while self.written < self.bytes.len() {
                match write(to, &self.bytes[self.written..])? {
                    Poll::Ready(count) => {
                        self.written += count;
                        self.relayed_bytes += count as u64;
                    }
                    Poll::Pending => return Ok(()),
                }
            }
            self.bytes.clear();
            self.bytes.shrink_to(PIECE_BYTES);
            self.written = 0;
            if self.is_read {
                if !std::mem::replace(&mut self.is_over, true) {
                    end(to);
                }
                return Ok(());
            }
            match read(&mut self.bytes)? {
                Poll::Ready(count) => self.is_read = count == 0,
                Poll::Pending => return Ok(()),
            }
        }
        self.has_more = true;
        Ok(())
    }
}

/// Whether a client of HTTP/2 or HTTP/3 requests a tunnel (RFC 8441 4, RFC 9220 3). It takes each 2xx for
/// one, so only a tunnel may be responded to with it; by HTTP/1.1 the offer of an upgrade may be ignored.
pub(crate) fn requests_tunnel(connection: &mut Connection, ctx: &RequestContext) -> bool {
    let has_streams = ctx.request.version.has_streams();
    let buffers = connection.buffers();
    has_streams && buffers.head.upgrade(&buffers.input).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A receiver that takes so many bytes at each turn.
    #[derive(Default)]
    struct Receiver {
        received: Vec<u8>,
        room: usize,
        ends: usize,
    }

    /// Relays pieces, the empty one as the end of the stream, to the receiver.
    fn relay(
        direction: &mut Direction,
        pieces: &mut VecDeque<&[u8]>,
        receiver: &mut Receiver,
    ) -> io::Result<()> {
        let ends = std::cell::Cell::new(0);
        let outcome = direction.relay(
            |bytes| match pieces.pop_front() {
                Some(piece) => {
                    bytes.extend_from_slice(piece);
                    Poll::Ready(Ok(piece.len()))
                }
                None => Poll::Pending,
            },
            receiver,
            |receiver, bytes| {
                let count = bytes.len().min(receiver.room);
                if count == 0 {
                    return Poll::Pending;
                }
                receiver.room -= count;
                receiver.received.extend_from_slice(&bytes[..count]);
                Poll::Ready(Ok(count))
            },
            |_| ends.set(ends.get() + 1),
        );
        receiver.ends += ends.get();
        outcome
    }

    #[test]
    fn nothing_is_read_while_the_receiver_is_full() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from([&b"first"[..], b"second"]);
        receiver.room = 3;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((&receiver.received[..], pieces.len()), (&b"fir"[..], 1));
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((receiver.received.len(), pieces.len()), (3, 1));
        receiver.room = 100;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!(receiver.received, b"firstsecond");
        assert_eq!((direction.relayed_bytes, direction.is_over), (11, false));
    }

    #[test]
    fn the_end_is_passed_on_once_after_all_bytes() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from([&b"last"[..], b""]);
        receiver.room = 2;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((receiver.ends, direction.is_over), (0, false));
        receiver.room = 2;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((&receiver.received[..], receiver.ends), (&b"last"[..], 1));
        assert!(direction.is_over);
    }

    #[test]
    fn a_sender_without_end_gives_way_to_other_tasks() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from(vec![&b"x"[..]; 100]);
        receiver.room = 1_000;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert!(direction.has_more);
        assert!(receiver.received.len() <= PIECES_PER_TURN as usize, "{}", receiver.received.len());
        while direction.has_more {
            relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        }
        assert_eq!(receiver.received.len(), 100);
    }

    #[test]
    fn a_broken_side_ends_the_relay() {
        let mut direction = Direction::default();
        let broken = || Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
        let write = |_: &mut (), _: &[u8]| Poll::Pending;
        assert!(direction.relay(|_| broken(), &mut (), write, |()| {}).is_err());
        let mut direction = Direction::default();
        let read = |bytes: &mut Vec<u8>| {
            bytes.push(1);
            Poll::Ready(Ok(1))
        };
        assert!(direction.relay(read, &mut (), |(), _| broken(), |()| {}).is_err());
    }
}
