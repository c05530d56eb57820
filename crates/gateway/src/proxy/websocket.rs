//! WebSocket through a proxy route (RFC 6455, RFC 9110 7.8): both sides switch, then bytes are
//! relayed.
//!
//! Called by [`crate::dispatch`] before the request is proxied. Invariants: the client gets `101`
//! only after the upstream has switched, and so does a client of HTTP/2 or HTTP/3 a 2xx, which it takes
//! for the tunnel; a slow side delays the other instead of filling memory;
//! other protocols are not relayed, since requests within them (h2c) would bypass all rules. The key, the
//! version and the proof of the handshake are relayed as they are: the two ends check them (RFC 6455 4), and
//! nothing but `101` opens the tunnel.

mod frames;
mod relay;

use super::{Proxied, StartedResponse, fail, head, log_failure, outgoing};
use crate::app::App;
use crate::request::{RequestContext, ResponseSummary, refuse};
use crate::upstream_call::UpstreamCall;
use outboard_balancer::Attempt;
use outboard_http_server::{Connection, HeaderBlock, UpgradeHandler};
use outboard_http1::{BodyFraming, Method};
use outboard_log::{Level, Reason};
use outboard_upstream::Response;
use relay::relay;
use std::rc::Rc;

const WEBSOCKET: &[u8] = b"websocket";
/// An extended CONNECT has no key (RFC 8441 5), but the upstream, by HTTP/1.1, requires one (RFC 6455
/// 4.1). It proves that a server understands WebSocket, which the `101` does as well.
const KEY: &[u8] = b"b3V0Ym9hcmQgaHR0cC8yIQ==";
/// The proof, which clients of an extended CONNECT do not expect.
const ACCEPT: &[u8] = b"sec-websocket-accept";

/// Relays a WebSocket request; `None` for any other request.
pub(crate) async fn try_handle(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    proxied: &Proxied,
) -> Option<ResponseSummary> {
    // After an upgrade a request that is on its way may still begin one.
    let is_ending = connection.context.ends_tunnels();
    let buffers = connection.buffers();
    let offered = buffers.head.upgrade(&buffers.input)?;
    let has_body = !matches!(buffers.head.body(), BodyFraming::None | BodyFraming::Length(0));
    let is_websocket = ctx.request.method == Method::Get && offered.eq_ignore_ascii_case(WEBSOCKET);
    if !is_websocket || has_body || is_ending {
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

/// Whether a client of HTTP/2 or HTTP/3 requests a tunnel (RFC 8441 4, RFC 9220 3). It takes each 2xx for
/// one, so only a tunnel may be responded to with it; by HTTP/1.1 the offer of an upgrade may be ignored.
pub(crate) fn requests_tunnel(connection: &mut Connection, ctx: &RequestContext) -> bool {
    let has_streams = ctx.request.version.has_streams();
    let buffers = connection.buffers();
    has_streams && buffers.head.upgrade(&buffers.input).is_some()
}
