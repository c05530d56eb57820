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
use crate::refusal::Refusal;
use crate::request::{Request, ResponseSummary};
use crate::upstream_call::UpstreamCall;
use outboard_balancer::Attempt;
use outboard_http_server::{HeaderBlock, ResponseWriter, UpgradeHandler};
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
///
/// # Errors
/// The upstream does not respond.
pub(crate) async fn try_handle(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    proxied: &Proxied,
) -> Result<Option<ResponseSummary>, Refusal> {
    // After an upgrade a request that is on its way may still begin one.
    let is_ending = request.client.context.ends_tunnels();
    let offers = request.upgrade().is_some_and(|offer| offer.eq_ignore_ascii_case(WEBSOCKET));
    let has_body = !matches!(request.body_framing(), BodyFraming::None | BodyFraming::Length(0));
    if !offers || request.method() != Method::Get || has_body || is_ending {
        return Ok(None);
    }
    Ok(Some(connect(request, response, app, proxied).await?))
}

async fn connect(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    proxied: &Proxied,
) -> Result<ResponseSummary, Reason> {
    let failed = |error| log_failure(app, request.request_id, &error);
    let mut outgoing = outgoing(request, app, proxied, None).map_err(failed)?;
    let sent = &mut outgoing.request;
    sent.switch_to = Some(WEBSOCKET.to_vec());
    if request.version().has_streams() {
        sent.headers.add(b"Sec-WebSocket-Key", KEY).map_err(failed)?;
    }
    let timeout_ms = sent.timeout_ms;
    let call = UpstreamCall::begin(request, app, sent);
    let outcome = request.client.unless_gone(outgoing.send(app)).await?;
    let sent = outcome.map_err(|failure| fail(request, app, &call, failure))?;
    let (mut received, attempt) = (sent.result, sent.attempt);
    call.responded(received.status);
    if let Some(attempt) = &attempt {
        let _ = request.server.set(attempt.server().clone());
    }
    if received.status == 101 {
        let idle_ms = app.config.proxies[proxied.number].tunnel_timeout_ms;
        return Ok(switch(response, received, attempt, idle_ms).await);
    }
    if request.version().has_streams() && (200..300).contains(&received.status) {
        let text = format!("the upstream responds to WebSocket with {}", received.status);
        app.log_text(Level::Error, request.request_id, &text);
        return Err(Reason::UpstreamFailed);
    }
    received.wait_at_most(timeout_ms);
    let head = head(app, &received, request.path(), request.conditions.get())?;
    let mut started = StartedResponse::new(app, proxied, head, received, timeout_ms);
    if let Some(attempt) = attempt {
        call.served_by(request, attempt);
    }
    started.call = Some(call);
    Ok(started.send(request, response, app).await)
}

async fn switch(
    response: &mut ResponseWriter,
    received: Response,
    attempt: Option<Attempt>,
    idle_ms: u64,
) -> ResponseSummary {
    let mut lines = HeaderBlock::default();
    lines.add(b"Connection", b"upgrade").expect("a constant header");
    lines.add(b"Upgrade", WEBSOCKET).expect("a constant header");
    let has_streams = response.request.version.has_streams();
    for line in received.headers.split(|&byte| byte == b'\n') {
        if let Some(colon) = memchr::memchr(b':', line) {
            if has_streams && line[..colon].eq_ignore_ascii_case(ACCEPT) {
                continue;
            }
            // They were validated when they were received.
            let _ = lines.add(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let Some(channel) = received.into_channel() else { return ResponseSummary::broken(502, 0) };
    let handler: UpgradeHandler = Box::new(move |client| {
        Box::pin(async move {
            relay(client, channel, idle_ms).await;
            // It counts for its server until then.
            drop(attempt);
        })
    });
    let written = response.upgrade(&lines, handler).await;
    ResponseSummary { written, status: 101, body_bytes: 0 }
}

/// Whether a client of HTTP/2 or HTTP/3 requests a tunnel (RFC 8441 4, RFC 9220 3). It takes each 2xx for
/// one, so only a tunnel may be responded to with it; by HTTP/1.1 the offer of an upgrade may be ignored.
pub(crate) fn requests_tunnel(request: &Request<'_>) -> bool {
    let has_streams = request.version().has_streams();
    has_streams && request.upgrade().is_some()
}
