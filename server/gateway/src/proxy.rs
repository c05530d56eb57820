//! The reverse proxy: requests that another server responds to.
//!
//! Called by [`crate::origin`]. The body of a request is received before the upstream gets the
//! request, unless the route streams it; a response is relayed while it arrives, spooled for a slow
//! client, and collected only if it is cacheable. Invariants: a slow client does not occupy a
//! connection to the upstream; hop-by-hop fields are not passed on (RFC 9110 7.6.1); claims about
//! the client are trusted only from a trusted proxy; after the head was sent, a failure breaks the
//! connection, so that the client does not take the response for a complete one.

mod binding;
mod exchange;
mod failure;
mod fields;
mod inflow;
mod outgoing;
mod started;
pub(crate) mod websocket;

use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::request::Request;
use crate::response_head::ResponseHead;
use crate::route::Proxied;
use crate::server_timing;
use crate::upstream_call::UpstreamCall;
use exchange::Exchange;
use outboard_config::ConditionSet;
use outboard_http_server::ResponseWriter;
use outboard_http_server::body_reader::{self, Pieces};
use outboard_http1::{BodyFraming, Method};
use outboard_log::{Level, Reason};
use outboard_operations::is_trace_context;
use outboard_page_cache::{Field, Fields};
use outboard_upstream::{Error, Interims, Kind, Response};
use std::rc::Rc;

pub(crate) use failure::Failure;
pub(crate) use outgoing::{Outgoing, Sent};
pub(crate) use started::StartedResponse;

/// Sends the request and waits for the head; for a cache, for as much of the body as it can store.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn start(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    proxied: &Proxied,
    for_cache: Option<&CacheRequirements>,
) -> Result<StartedResponse, Reason> {
    let outgoing = outgoing(request, app, proxied, for_cache);
    let mut outgoing = outgoing.map_err(|error| log_failure(app, request.request_id, &error))?;
    let timeout_ms = outgoing.request.timeout_ms;
    let interims = Rc::<Interims>::default();
    outgoing.request.interims = Some(interims.clone());
    let mirror = app.mirrors[proxied.number].as_ref();
    let exchange = Exchange { request, app, interims: &interims, mirror };
    // That a GET on a stream has no body is known only at its end; it is not passed on as an empty one.
    let may_be_bodiless = request.method() == Method::Get || request.method() == Method::Head;
    let is_open = request.body_framing() == BodyFraming::Stream;
    let is_received_first =
        app.config.proxies[proxied.number].buffers_request || (may_be_bodiless && is_open);
    let outcome;
    let call;
    if proxied.is_internal {
        // The script received the body.
        call = UpstreamCall::begin(request, app, &mut outgoing.request);
        outcome = exchange.send(response, outgoing).await?;
    } else if !is_received_first
        && let Some(pieces) = Pieces::of(request, response, &app.config.limits).await?
    {
        call = UpstreamCall::begin(request, app, &mut outgoing.request);
        outcome = exchange.stream(response, outgoing, pieces).await?;
    } else {
        let received = body_reader::body(request, response, &app.config.limits).await?;
        call = UpstreamCall::begin(request, app, &mut outgoing.request);
        outcome = exchange.send_received(response, outgoing, received.body).await?;
    }
    let sent = outcome.map_err(|failure| fail(request, app, &call, failure))?;
    let mut received = sent.result;
    call.responded(received.status);
    if let Some(attempt) = sent.attempt {
        call.served_by(request, attempt);
    }
    received.wait_at_most(timeout_ms);
    let conditions = request.conditions.get();
    let mut head = head(app, &received, request.path(), conditions)?;
    if request.gateway.development().is_some() {
        let took = server_timing::milliseconds(call.took_us());
        server_timing::add(&mut head.headers, &format!("upstream;dur={took}"));
    }
    let max_bytes = for_cache
        .filter(|_| is_cacheable(&head))
        .map_or(0, |requirements| requirements.whole_bytes);
    let mut started = StartedResponse::new(app, proxied, head, received, timeout_ms);
    started.call = Some(call);
    // If memory is scarce, the response is sent instead of collected.
    let memory = &app.memory.responses;
    while !started.response.is_over() && started.body.len() < max_bytes && !memory.is_scarce() {
        let more = request.client.unless_gone(started.read()).await?;
        more.map_err(|error| started.broken(request, app, &error))?;
    }
    let available = started.read_available().await;
    available.map_err(|error| started.broken(request, app, &error))?;
    Ok(started)
}

/// The request for [`render`]: the current one as a GET for the complete page.
///
/// # Errors
/// The request is invalid.
pub(crate) fn request_for_cache(
    request: &Request<'_>,
    app: &App,
    proxied: &Proxied,
    requirements: &CacheRequirements,
) -> Result<Outgoing, Error> {
    let mut outgoing = outgoing(request, app, proxied, Some(requirements))?;
    outgoing.request.method = b"GET".to_vec();
    if request.trace.is_some() {
        outgoing.request.headers.remove(is_trace_context);
    }
    Ok(outgoing)
}

/// Requests a page that no client waits for; `None` if it is longer than `whole_bytes`.
///
/// # Errors
/// Why there is no response.
pub(crate) async fn render(
    app: &Rc<App>,
    outgoing: Outgoing,
    request_id: u64,
    path: &[u8],
    whole_bytes: usize,
) -> Result<Option<(ResponseHead, Vec<u8>)>, Reason> {
    let timeout_ms = outgoing.request.timeout_ms;
    let sent = outgoing.send(app).await;
    let sent = sent.map_err(|failure| {
        log_failure(app, request_id, &failure.error);
        failure.reason()
    })?;
    let (mut response, _attempt) = (sent.result, sent.attempt);
    response.wait_at_most(timeout_ms);
    let head = head(app, &response, path, ConditionSet::UNKNOWN)?;
    let mut started = StartedResponse::unsent(app, head, response, timeout_ms);
    while !started.response.is_over() {
        started.read().await.map_err(|error| log_failure(app, request_id, &error))?;
        if started.body.len() > whole_bytes || app.memory.responses.is_full() {
            return Ok(None);
        }
    }
    Ok(Some((started.head, started.body)))
}

/// Logs that there is no response, and returns the reason.
fn fail(request: &Request<'_>, app: &App, call: &UpstreamCall, failure: Failure) -> Reason {
    call.failed(&failure.error);
    log_failure(app, request.request_id, &failure.error);
    let reason = failure.reason();
    if let Some(server) = failure.server {
        let _ = request.server.set(server);
    }
    reason
}

fn outgoing(
    request: &Request<'_>,
    app: &App,
    proxied: &Proxied,
    for_cache: Option<&CacheRequirements>,
) -> Result<Outgoing, Error> {
    let to = &app.config.proxies[proxied.number];
    let conditions = for_cache.map(|requirements| &requirements.conditions[..]);
    let mut headers = fields::of(request, to, conditions)?;
    if proxied.is_internal {
        headers.remove(|name| name[..name.len().min(8)].eq_ignore_ascii_case(b"content-"));
    }
    let target = match &proxied.rewritten {
        Some(target) => target.clone(),
        None => request.origin_form().into_owned(),
    };
    let mut outgoing = Outgoing::new(app, &to.upstream, &target)?;
    binding::bind(&mut outgoing, request, &target);
    let sent = &mut outgoing.request;
    if !proxied.is_internal || request.method() == Method::Head {
        sent.method = request.method_name().to_vec();
    }
    sent.headers = headers;
    sent.connect_timeout_ms = to.connect_timeout_ms;
    sent.timeout_ms = to.timeout_ms;
    sent.max_body_bytes = u64::MAX;
    sent.max_redirects = 0;
    sent.verify = to.verifies;
    sent.decompress = false;
    sent.introduces_itself = false;
    sent.account = Some(app.upstream_account.clone());
    Ok(outgoing)
}

fn head(
    app: &App,
    response: &Response,
    path: &[u8],
    conditions: ConditionSet,
) -> Result<ResponseHead, Reason> {
    let mut head =
        ResponseHead::of_upstream(response.status, &response.headers).map_err(|bad| {
            app.log_text(Level::Error, 0, &bad.text);
            Reason::UpstreamFailed
        })?;
    head.headers.apply(&app.config.headers, app.below_prefix(path), head.status, conditions);
    Ok(head)
}

fn is_cacheable(head: &ResponseHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = outboard_page_cache::Response { status: head.status, fields: Fields(&fields) };
    outboard_page_cache::may_be_stored(response)
}

/// Logs the failure of an upstream, and returns its reason.
pub(crate) fn log_failure(app: &App, request_id: u64, error: &Error) -> Reason {
    app.log_text(Level::Error, request_id, &error.message);
    match error.kind {
        Kind::Timeout => Reason::UpstreamTimeout,
        Kind::Busy => Reason::UpstreamBusy,
        _ => Reason::UpstreamFailed,
    }
}

#[cfg(test)]
mod tests;
