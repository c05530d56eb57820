//! Responses of the server itself: what a request gets that is no app's.
//!
//! Called by dispatch before it selects an app.

use crate::generation::Generation;
use crate::listeners::{self, HTTPS_PORT};
use crate::proxy::websocket;
use crate::request::{RequestContext, ResponseSummary, refuse, respond, send};
use crate::{entity_api, live_reload, metrics};
use outboard_config::Metrics;
use outboard_http_server::error_page::{self, METHODS};
use outboard_http_server::{Connection, HeaderBlock};
use outboard_http1::{Method, split_host_port};
use outboard_log::Reason;

/// RFC 9110 9.3.7: a ping of the server itself.
pub(super) fn is_options_of_all(connection: &mut Connection, ctx: &RequestContext) -> bool {
    let buffers = connection.buffers();
    ctx.request.method == Method::Options && buffers.head.target(&buffers.input) == b"*"
}

pub(super) async fn options_of_all(
    connection: &mut Connection,
    ctx: &RequestContext,
) -> ResponseSummary {
    let headers = HeaderBlock::constant(&[("Allow", METHODS)]);
    send(connection, ctx, 204, &headers, b"").await
}

/// Whether the host has another certificate (RFC 9110 7.4). A trusted proxy may request all hosts
/// on one connection.
pub(super) fn is_misdirected(connection: &mut Connection) -> bool {
    let listener = connection.listener.clone();
    let chosen = connection.peer.tls.as_ref().and_then(|facts| facts.chosen.clone());
    let Some((chosen, settings)) = chosen.zip(listener.tls.as_ref()) else {
        return false;
    };
    let is_trusted = connection.peer.is_trusted(&listener.forwarding);
    let buffers = connection.buffers();
    let host = split_host_port(buffers.head.host(&buffers.input).unwrap_or_default()).0;
    !is_trusted && settings.is_misdirected(&chosen, &String::from_utf8_lossy(host))
}

/// Redirects a client to a known host with TLS. ACME checks a name without it (RFC 8555 8.3).
pub(super) async fn redirect_to_https(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
) -> Option<ResponseSummary> {
    if !connection.listener.redirects_to_https || ctx.forwarded.https {
        return None;
    }
    let port = listeners::https_port(&ctx.gateway)?;
    let buffers = connection.buffers();
    if buffers.path.starts_with(b"/.well-known/acme-challenge/") {
        return None;
    }
    let host = ctx.forwarded.host.as_deref().or(buffers.head.host(&buffers.input))?;
    let host = split_host_port(host).0;
    if generation.app(host, &buffers.path).is_none() {
        return Some(refuse(connection, ctx, None, Reason::NoApp).await);
    }
    let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
    let target = buffers.head.origin_form(&buffers.input);
    let location = [b"https://", host, port.as_bytes(), &target].concat();
    let mut headers = HeaderBlock::default();
    headers.add(b"Location", &location).ok()?;
    Some(respond(connection, ctx, None, 308, headers, &error_page::of_status(308, "")).await)
}

/// Serves what belongs to no app.
pub(super) async fn serve_without_app(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
) -> Option<ResponseSummary> {
    if websocket::requests_tunnel(connection, ctx) {
        return None;
    }
    if let Some(summary) = entity_api::try_handle(connection, ctx, generation).await {
        return Some(summary);
    }
    if let Some(summary) = live_reload::try_handle(connection, ctx).await {
        return Some(summary);
    }
    match is_metrics(generation, &connection.buffers().path) {
        true => Some(respond_with_metrics(connection, ctx).await),
        false => None,
    }
}

fn is_metrics(generation: &Generation, path: &[u8]) -> bool {
    matches!(&generation.config.admin.metrics, Some(Metrics::Path(at)) if at.as_bytes() == path)
}

async fn respond_with_metrics(
    connection: &mut Connection,
    ctx: &RequestContext,
) -> ResponseSummary {
    let buffers = connection.buffers();
    let accept = buffers.head.header(&buffers.input, b"accept").unwrap_or_default();
    let format = metrics::Format::accepted(accept);
    let page = metrics::of(&ctx.gateway, format).await;
    let headers = HeaderBlock::constant(&[("Content-Type", format.content_type())]);
    send(connection, ctx, 200, &headers, &page).await
}
