//! What remains of a request: its durations in the histograms, its trace, its line in the access log.
//!
//! Called by [`crate::dispatch`] at the end of each request, once. Invariant: the three agree about its
//! duration.

use crate::access_log;
use crate::app::App;
use crate::generation::Generation;
use crate::latencies::{self, Phase, Series};
use crate::request::{Request, ResponseSummary};
use crate::tracing::Ended;
use outboard_admin_api::dashboard::SlowRequest;
use outboard_config::LogTarget;
use outboard_dashboard::Counted;
use outboard_http_server::Written;
use outboard_log::Wall;
use outboard_reactor::now_ms;
use outboard_trace::histogram::Exemplar;
use outboard_trace::{Kind, Scope, Span};

/// The part of a path or of a `User-Agent` that becomes an attribute.
const MAX_TEXT_BYTES: usize = 512;

/// The request has ended, at this time.
pub(crate) fn end(
    request: &Request<'_>,
    head_written: Option<Wall>,
    app: Option<&App>,
    generation: &Generation,
    summary: &ResponseSummary,
    now: Wall,
) {
    let traced = generation.tracer.as_ref().zip(request.trace.as_ref());
    let is_exported = traced.is_some_and(|(tracer, scope)| {
        let ended = Ended {
            start_us: request.started.unix_us,
            end_us: now.unix_us,
            has_failed: summary.status >= 500 || summary.written == Written::Broken,
        };
        tracer.end(scope, ended, || request_span(scope, request, app, summary))
    });
    if let Some(app) = app {
        let status = if summary.written == Written::Broken { 0 } else { summary.status };
        let since = |at: Wall| at.unix_us.saturating_sub(request.started.unix_us);
        let series = |phase| Series::new(phase, request.kind.get(), status);
        let us = since(now);
        app.latencies.record(series(Phase::Total), us);
        if let Some(at) = head_written {
            app.latencies.record(series(Phase::FirstByte), since(at));
        }
        if let Some(scope) = request.trace.as_ref().filter(|_| is_exported) {
            let (trace_id, span_id) = (scope.context().trace_id.bytes(), scope.span_id().bytes());
            let exemplar = Exemplar { trace_id, span_id, us, unix_us: now.unix_us };
            app.latencies.set_exemplar(series(Phase::Total), exemplar);
        }
    }
    if let Some(app) = app
        && request.gateway.paths.is_watched(now_ms())
    {
        record_path(request, app, summary, now);
    }
    if let Some(app) = app.filter(|_| request.kind.get() == latencies::Kind::Proxy) {
        record_slow(request, app, head_written.unwrap_or(now), now);
    }
    access_log::write(request, app, generation, summary, now);
}

/// Remembers a proxied request whose response has begun late, for the dashboard. Its end may be late because of the
/// client, or because it is a stream.
fn record_slow(request: &Request<'_>, app: &App, responded: Wall, now: Wall) {
    let log = &app.config.log.slow;
    let took_ms = responded.unix_us.saturating_sub(request.started.unix_us) / 1_000;
    if took_ms < log.threshold_ms || log.path == LogTarget::Off {
        return;
    }
    request.gateway.slow_proxied.add(SlowRequest {
        at_ms: now.unix_us / 1_000,
        app: app.config.name.clone(),
        request: request.label(),
        took_ms,
        pid: None,
        server: request.server.get().map(|server| server.name().to_owned()),
        backtrace: String::new(),
    });
}

/// Counts the path of a request, for the dashboard.
fn record_path(request: &Request<'_>, app: &App, summary: &ResponseSummary, now: Wall) {
    let path = request.encoded_path();
    let us = now.unix_us.saturating_sub(request.started.unix_us);
    let is_hit = request.kind.get() == latencies::Kind::Hit;
    let has_failed = summary.status >= 500 || summary.written == Written::Broken;
    let counted = Counted { us, is_hit, has_failed };
    request.gateway.paths.record(&app.config.name, path, counted);
}

/// The span of a request.
fn request_span(
    scope: &Scope,
    request: &Request<'_>,
    app: Option<&App>,
    summary: &ResponseSummary,
) -> Span {
    let method = text(request.method_name());
    let agent = request.header(b"user-agent").unwrap_or_default();
    let scheme = if request.forwarded.https { "https" } else { "http" };
    let version = request.protocol().trim_start_matches("HTTP/").trim_end_matches(".0");
    let version = if version == "1" { "1.0" } else { version };
    let mut span = Span::new(scope.span_id(), Kind::Server, method.clone())
        .with("http.request.method", method)
        .with("url.path", text(request.encoded_path()))
        .with("url.scheme", scheme)
        .with("network.protocol.version", version)
        .with("client.address", request.client_address().to_owned())
        .with_status(summary.status)
        .with("http.response.body.size", summary.body_bytes)
        .with("outboard.request", format!("{:016x}", request.request_id))
        .with("outboard.kind", request.kind.get().name());
    if !agent.is_empty() {
        span = span.with("user_agent.original", text(agent));
    }
    if let Some(app) = app {
        span = span.with("outboard.app", app.config.name.clone());
    }
    span
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests;
