//! What remains of a request: its durations in the histograms, its trace, its line in the access log.
//!
//! Called by [`crate::dispatch`] at the end of each request, once. Invariant: the three agree about its
//! duration.

use crate::access_log;
use crate::app::App;
use crate::generation::Generation;
use crate::latencies::{Phase, Series};
use crate::request::{RequestContext, ResponseSummary};
use outboard_histogram::Exemplar;
use outboard_http_server::{Connection, Written};
use outboard_log::Wall;

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
    let tracer = generation.tracer.as_ref();
    let is_exported = tracer.is_some_and(|tracer| tracer.end(connection, ctx, app, summary, now));
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
    access_log::write(connection, ctx, app, generation, summary, now);
}
