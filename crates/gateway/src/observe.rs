//! What remains of a request: its durations in the histograms, its trace, its line in the access log.
//!
//! Called by [`crate::dispatch`] at the end of each request, once. Invariant: the three agree about its
//! duration.

use crate::access_log;
use crate::app::App;
use crate::generation::Generation;
use crate::latencies::{self, Phase, Series};
use crate::request::{RequestContext, ResponseSummary, label};
use crate::tracing::Ended;
use outboard_admin_api::dashboard::SlowRequest;
use outboard_config::LogTarget;
use outboard_histogram::Exemplar;
use outboard_http_server::{Connection, Written};
use outboard_log::Wall;
use outboard_reactor::now_ms;
use outboard_trace::{Kind, Scope, Span};

/// The part of a path or of a `User-Agent` that becomes an attribute.
const MAX_TEXT_BYTES: usize = 512;

/// The request has ended.
pub(crate) fn end(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: Option<&App>,
    generation: &Generation,
    summary: &ResponseSummary,
) {
    let now = Wall::now();
    let head_written = connection.head_written.take();
    let traced = generation.tracer.as_ref().zip(ctx.trace.as_ref());
    let is_exported = traced.is_some_and(|(tracer, scope)| {
        let ended = Ended {
            start_us: ctx.started.unix_us,
            end_us: now.unix_us,
            has_failed: summary.status >= 500 || summary.written == Written::Broken,
        };
        tracer.end(scope, ended, || request_span(scope, connection, ctx, app, summary))
    });
    if let Some(app) = app {
        let status = if summary.written == Written::Broken { 0 } else { summary.status };
        let since = |at: Wall| at.unix_us.saturating_sub(ctx.started.unix_us);
        let series = |phase| Series::new(phase, ctx.kind.get(), status);
        let us = since(now);
        app.latencies.record(series(Phase::Total), us);
        if let Some(at) = head_written {
            app.latencies.record(series(Phase::FirstByte), since(at));
        }
        if let Some(scope) = ctx.trace.as_ref().filter(|_| is_exported) {
            let (trace_id, span_id) = (scope.context().trace_id.bytes(), scope.span_id().bytes());
            let exemplar = Exemplar { trace_id, span_id, us, unix_us: now.unix_us };
            app.latencies.set_exemplar(series(Phase::Total), exemplar);
        }
    }
    if let Some(app) = app
        && ctx.gateway.paths.is_watched(now_ms())
    {
        record_path(connection, ctx, app, summary, now);
    }
    if let Some(app) = app.filter(|_| ctx.kind.get() == latencies::Kind::Proxy) {
        record_slow(connection, ctx, app, head_written.unwrap_or(now), now);
    }
    access_log::write(connection, ctx, app, generation, summary, now);
}

/// Remembers a proxied request whose response has begun late, for the dashboard. Its end may be late because of the
/// client, or because it is a stream.
fn record_slow(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &App,
    responded: Wall,
    now: Wall,
) {
    let log = &app.config.log.slow;
    let took_ms = responded.unix_us.saturating_sub(ctx.started.unix_us) / 1_000;
    if took_ms < log.threshold_ms || log.path == LogTarget::Off || connection.buffers.is_none() {
        return;
    }
    ctx.gateway.slow_proxied.add(SlowRequest {
        at_ms: now.unix_us / 1_000,
        app: app.config.name.clone(),
        request: label(connection).into(),
        took_ms,
        pid: None,
        server: ctx.server.get().map(|server| server.name().to_owned()),
        backtrace: String::new(),
    });
}

/// Counts the path of a request, for the dashboard.
fn record_path(
    connection: &Connection,
    ctx: &RequestContext,
    app: &App,
    summary: &ResponseSummary,
    now: Wall,
) {
    let Some(buffers) = &connection.buffers else { return };
    let path = buffers.head.path(&buffers.input);
    let us = now.unix_us.saturating_sub(ctx.started.unix_us);
    let is_hit = ctx.kind.get() == latencies::Kind::Hit;
    let has_failed = summary.status >= 500 || summary.written == Written::Broken;
    ctx.gateway.paths.record(&app.config.name, path, us, (is_hit, has_failed));
}

/// The span of a request.
fn request_span(
    scope: &Scope,
    connection: &Connection,
    ctx: &RequestContext,
    app: Option<&App>,
    summary: &ResponseSummary,
) -> Span {
    let unknown = (&b"HTTP"[..], &b""[..], &b""[..]);
    let (method, path, agent) = connection.buffers.as_ref().map_or(unknown, |buffers| {
        let (head, input) = (&buffers.head, &buffers.input);
        (head.method(input), head.path(input), head.header(input, b"user-agent").unwrap_or(b""))
    });
    let method = text(method);
    let scheme = if ctx.forwarded.https { "https" } else { "http" };
    let version = ctx.protocol().trim_start_matches("HTTP/").trim_end_matches(".0");
    let version = if version == "1" { "1.0" } else { version };
    let mut span = Span::new(scope.span_id(), Kind::Server, method.clone())
        .with("http.request.method", method)
        .with("url.path", text(path))
        .with("url.scheme", scheme)
        .with("network.protocol.version", version)
        .with("client.address", ctx.client(connection).to_owned())
        .with_status(summary.status)
        .with("http.response.body.size", summary.body_bytes)
        .with("outboard.request", format!("{:016x}", ctx.request_id))
        .with("outboard.kind", ctx.kind.get().name());
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
