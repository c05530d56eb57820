//! [`PhpCall`]: a request to PHP, for the histograms and the trace.
//!
//! Held by the lease. Invariant: the wait for a worker and the work of PHP are measured once each, also if
//! the request fails or its client goes away.

use crate::app::App;
use crate::gateway::Gateway;
use crate::latencies::{Kind, Phase, Series};
use crate::request::Request;
use outboard_log::Wall;
use outboard_php_pool::exchange::Exchange;
use outboard_reactor::now_ms;
use outboard_trace::{Kind as SpanKind, Scope, Span};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(super) struct PhpCall {
    kind: Kind,
    /// Its path, while a dashboard counts them.
    counted: Option<(Rc<Gateway>, Box<[u8]>)>,
    /// The span that it is part of, and that of PHP.
    traced: Option<(Scope, Scope)>,
}

impl PhpCall {
    /// For the current request.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let traced = request.trace.as_ref().map(|outer| (outer.clone(), outer.begin()));
        let gateway = Some(&request.gateway).filter(|gateway| gateway.paths.is_watched(now_ms()));
        let counted = gateway.map(|gateway| (gateway.clone(), request.encoded_path().into()));
        Self { kind: request.kind.get(), counted, traced }
    }

    /// Without a client.
    pub(super) fn in_background(app: &App) -> Self {
        Self { kind: app.kind(), counted: None, traced: None }
    }

    /// The span of PHP.
    pub(super) fn scope(&self) -> Option<&Scope> {
        self.traced.as_ref().map(|(_, scope)| scope)
    }

    /// The lease ends; `status` is that of PHP's response, 0 without one.
    pub(super) fn end(&mut self, app: &App, exchange: &Exchange, status: u16) {
        let course = &exchange.times;
        let ended_us = course.ended_us().unwrap_or_else(|| Wall::now().unix_us);
        let started_us = course.started_us();
        let queued_us = started_us.unwrap_or(ended_us).saturating_sub(course.submitted_us());
        app.latencies.record(Series::new(Phase::Queue, self.kind, status), queued_us);
        if let Some(started_us) = started_us {
            let us = ended_us.saturating_sub(started_us);
            app.latencies.record(Series::new(Phase::Php, self.kind, status), us);
            if let Some((gateway, path)) = self.counted.take() {
                gateway.paths.record_php(&app.config.name, &path, us);
            }
        }
        let Some((outer, scope)) = self.traced.take().filter(|(outer, _)| outer.takes_spans())
        else {
            return;
        };
        let queue = Span::new(outer.begin().span_id(), SpanKind::Internal, "queue");
        let started_at_us = started_us.unwrap_or(ended_us);
        outer.add(queue.between(course.submitted_us(), started_at_us));
        if started_us.is_some() {
            let php = Span::new(scope.span_id(), SpanKind::Internal, "php");
            let mut php = php.between(started_at_us, ended_us).with_status(status);
            php.error = (status == 0 || status >= 500).then(|| "".into());
            outer.add(php);
        }
    }
}
