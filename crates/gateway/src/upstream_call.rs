//! [`UpstreamCall`]: a request to another server, for the histograms and the trace.
//!
//! Held by what sends the request, until its response has ended. Invariant: each is measured once, also
//! if it fails or is given up.

use crate::app::App;
use crate::latencies::{Kind, Phase, Series};
use crate::request::RequestContext;
use outboard_log::Wall;
use outboard_operations::ClientSpan;
use outboard_upstream::{Error, Request};
use std::cell::Cell;
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct UpstreamCall {
    app: Rc<App>,
    kind: Kind,
    started: Wall,
    /// 0: it has failed, or there is no response yet.
    status: Cell<u16>,
    span: Option<ClientSpan>,
}

impl UpstreamCall {
    /// The request is about to be sent; the other server gets the trace context.
    pub(crate) fn begin(ctx: &RequestContext, app: &Rc<App>, request: &mut Request) -> Self {
        let span = ctx.trace.as_ref().map(|outer| ClientSpan::begin(outer, request));
        let (app, started, status) = (app.clone(), Wall::now(), Cell::new(0));
        Self { app, kind: ctx.kind.get(), started, status, span }
    }

    /// The response has begun.
    pub(crate) fn responded(&self, status: u16) {
        self.status.set(status);
        if let Some(span) = &self.span {
            span.responded(status);
        }
    }

    /// It failed.
    pub(crate) fn failed(&self, error: &Error) {
        self.status.set(0);
        if let Some(span) = &self.span {
            span.failed(error);
        }
    }

    /// How long it has taken so far.
    pub(crate) fn took_us(&self) -> u64 {
        Wall::now().unix_us.saturating_sub(self.started.unix_us)
    }
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        let series = Series::new(Phase::Upstream, self.kind, self.status.get());
        self.app.latencies.record(series, self.took_us());
    }
}
