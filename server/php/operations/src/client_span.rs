//! [`ClientSpan`]: the span of a request to another server.
//!
//! Held by what sends the request, until its response has ended; used for fetches here, and by the gateway.
//! Invariant: the span is recorded once, also if the request fails or is given up.

use outboard_log::Wall;
use outboard_trace::{Kind, Scope, Span};
use outboard_upstream::{Error, Request, RequestHeaders};
use std::cell::{Cell, RefCell};

/// See the module.
#[derive(Debug)]
pub struct ClientSpan {
    /// `None` if the request takes no spans.
    call: Option<Call>,
    status: Cell<u16>,
    error: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Call {
    /// The span that it is part of.
    outer: Scope,
    scope: Scope,
    started: Wall,
    method: String,
    origin: String,
}

impl ClientSpan {
    /// The request is about to be sent; the other server gets this span as the caller's.
    pub fn begin(outer: &Scope, request: &mut Request) -> Self {
        let scope = outer.begin();
        propagate(&scope, &mut request.headers);
        Self::of(outer, scope, request)
    }

    /// The same for a request of an application, which may have a trace context of its own.
    pub fn of_application(outer: &Scope, request: &mut Request) -> Self {
        let has_own = request.headers.iter().any(|(name, _)| is_trace_context(name));
        match has_own {
            true => Self::of(outer, outer.begin(), request),
            false => Self::begin(outer, request),
        }
    }

    fn of(outer: &Scope, scope: Scope, request: &Request) -> Self {
        let call = outer.takes_spans().then(|| Call {
            outer: outer.clone(),
            scope,
            started: Wall::now(),
            method: String::from_utf8_lossy(&request.method).into_owned(),
            origin: request.url.origin().to_owned(),
        });
        Self { call, status: Cell::new(0), error: RefCell::default() }
    }

    /// The response has begun.
    pub fn responded(&self, status: u16) {
        self.status.set(status);
    }

    /// It failed.
    pub fn failed(&self, error: &Error) {
        self.error.replace(Some(error.message.clone()));
    }
}

impl Drop for ClientSpan {
    fn drop(&mut self) {
        let Some(Call { outer, scope, started, method, origin }) = self.call.take() else { return };
        let status = self.status.get();
        let mut span = Span::new(scope.span_id(), Kind::Client, method.clone())
            .between(started.unix_us, Wall::now().unix_us)
            .with_status(status)
            .with("http.request.method", method)
            // Its path and query may contain what is secret.
            .with("url.full", origin);
        span.error = match self.error.take() {
            Some(message) => Some(message.into()),
            None => (status == 0 || status >= 500).then(|| "".into()),
        };
        outer.add(span);
    }
}

/// Replaces the trace context of the client by this one.
fn propagate(scope: &Scope, headers: &mut RequestHeaders) {
    headers.remove(is_trace_context);
    // Both are valid field values.
    let _ = headers.add(b"traceparent", &scope.context().write());
    let state = scope.recording().state();
    if !state.is_empty() {
        let _ = headers.add(b"tracestate", state);
    }
}

/// Whether a field is part of the trace context.
#[inline]
pub fn is_trace_context(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent") || name.eq_ignore_ascii_case(b"tracestate")
}
