//! What the server decides before it selects an app: refusals that hold for all, and responses of its own.
//!
//! Called by dispatch. Invariant: a request that passes has a valid path and host, and its client is not banned.

use crate::generation::Generation;
use crate::listeners::{self, HTTPS_PORT};
use crate::proxy::websocket;
use crate::refusal::Refusal;
use crate::request::{self, Request, ResponseSummary, send};
use crate::{certificates, entity_api, live_reload, metrics};
use outboard_config::Metrics;
use outboard_http_server::error_page::{self, METHODS};
use outboard_http_server::{HeaderBlock, ResponseWriter, Role};
use outboard_http1::{Method, split_host_port};
use outboard_log::Reason;

/// The response of the server itself; `None` if the request is for an app.
pub(super) async fn respond(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
) -> Result<Option<ResponseSummary>, Refusal> {
    if is_options_of_all(request) {
        return Ok(Some(options_of_all(response).await));
    }
    check(request, generation)?;
    if let Some(summary) = certificates::try_handle(request, response).await {
        return Ok(Some(summary));
    }
    if is_misdirected(request) {
        return Err(Reason::Misdirected.into());
    }
    if let Some(summary) = redirect_to_host(request, response, generation).await? {
        return Ok(Some(summary));
    }
    match redirect_to_https(request, response, generation).await? {
        Some(summary) => Ok(Some(summary)),
        None => serve_without_app(request, response, generation).await,
    }
}

/// Refuses what no app may get, and decodes the path.
fn check(request: &mut Request<'_>, generation: &Generation) -> Result<(), Refusal> {
    if matches!(request.method(), Method::Connect | Method::Trace) {
        return Err(Reason::MethodRefused.into());
    }
    if is_banned(request, generation) {
        return Err(Reason::Banned.into());
    }
    if request.forwarded.has_bad_host {
        return Err(Reason::BadRequest.into());
    }
    request.normalize_path().map_err(|_| Reason::BadPath.into())
}

/// Whether the client is banned, be it known by a trusted proxy only.
fn is_banned(request: &Request<'_>, generation: &Generation) -> bool {
    let (bans, now_s) = (&generation.access.bans, request.started.unix_s());
    !bans.is_empty() && request.client_ip().is_some_and(|ip| bans.is_banned(ip, now_s))
}

/// RFC 9110 9.3.7: a ping of the server itself.
fn is_options_of_all(request: &Request<'_>) -> bool {
    request.method() == Method::Options && request.target() == b"*"
}

async fn options_of_all(response: &mut ResponseWriter) -> ResponseSummary {
    send(response, 204, &HeaderBlock::constant(&[("Allow", METHODS)]), b"").await
}

/// Whether the host has another certificate (RFC 9110 7.4). A trusted proxy may request all hosts
/// on one connection.
fn is_misdirected(request: &Request<'_>) -> bool {
    let (peer, listener) = (&request.client.peer, &request.client.listener);
    let chosen = peer.tls.as_ref().and_then(|facts| facts.chosen.as_ref());
    let Some((chosen, settings)) = chosen.zip(listener.tls.as_ref()) else {
        return false;
    };
    let host = split_host_port(request.named_host().unwrap_or_default()).0;
    !peer.is_trusted(&listener.forwarding)
        && settings.is_misdirected(chosen, &String::from_utf8_lossy(host))
}

/// Redirects a request for some hosts to another host. Scheme and host of the target are those of the configuration, and
/// what follows starts with a slash: a request chooses only the path and the query.
async fn redirect_to_host(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
) -> Result<Option<ResponseSummary>, Refusal> {
    let is_of_apps = request.client.listener.role == Role::Apps;
    let redirect = generation.redirect(request.host(), request.path());
    let Some(redirect) = redirect.filter(|_| is_of_apps) else { return Ok(None) };
    let target = request.origin_form();
    let mut headers = HeaderBlock::default();
    let location = [redirect.to.as_bytes(), &target].concat();
    let is_added = headers.add(b"Location", &location).is_ok();
    if !target.starts_with(b"/") || !is_added {
        return Err(Reason::BadPath.into());
    }
    let page = error_page::of_status(redirect.status, "");
    let sent = request::respond(request, response, None, redirect.status, headers, &page).await;
    Ok(Some(sent))
}

/// Redirects a client to a known host with TLS. ACME checks a name without it (RFC 8555 8.3).
async fn redirect_to_https(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
) -> Result<Option<ResponseSummary>, Refusal> {
    if !request.client.listener.redirects_to_https || request.forwarded.https {
        return Ok(None);
    }
    let Some(location) = https_location(request, generation)? else { return Ok(None) };
    let mut headers = HeaderBlock::default();
    if headers.add(b"Location", &location).is_err() {
        return Ok(None);
    }
    let page = error_page::of_status(308, "");
    Ok(Some(request::respond(request, response, None, 308, headers, &page).await))
}

fn https_location(
    request: &Request<'_>,
    generation: &Generation,
) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(port) = listeners::https_port(&request.gateway) else { return Ok(None) };
    let is_challenge = request.path().starts_with(b"/.well-known/acme-challenge/");
    if is_challenge || request.authority().is_none() {
        return Ok(None);
    }
    if generation.app(request.host(), request.path()).is_none() {
        return Err(Reason::NoApp.into());
    }
    let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
    let target = request.origin_form();
    Ok(Some([b"https://", request.host(), port.as_bytes(), &target].concat()))
}

/// Serves what belongs to no app.
async fn serve_without_app(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
) -> Result<Option<ResponseSummary>, Refusal> {
    if websocket::requests_tunnel(request) {
        return Ok(None);
    }
    if let Some(summary) = entity_api::try_handle(request, response, generation).await? {
        return Ok(Some(summary));
    }
    if let Some(summary) = live_reload::try_handle(request, response).await {
        return Ok(Some(summary));
    }
    match is_metrics(generation, request.path()) {
        true => Ok(Some(respond_with_metrics(request, response).await)),
        false => Ok(None),
    }
}

fn is_metrics(generation: &Generation, path: &[u8]) -> bool {
    matches!(&generation.config.admin.metrics, Some(Metrics::Path(at)) if at.as_bytes() == path)
}

async fn respond_with_metrics(
    request: &Request<'_>,
    response: &mut ResponseWriter,
) -> ResponseSummary {
    let format = metrics::Format::accepted(request.header(b"accept").unwrap_or_default());
    let page = metrics::of(&request.gateway, format).await;
    let headers = HeaderBlock::constant(&[("Content-Type", format.content_type())]);
    send(response, 200, &headers, &page).await
}
