//! [`Tracer`]: the traces of the requests of a thread, from their first byte to the collector.
//!
//! Owned by the generation, which passes it to tasks; a reload that does not change `[tracing]` passes it on. Called by
//! [`crate::dispatch`] at the beginning and at the end of each request. Invariants: what a client sends as
//! trace context is checked; a request that is not exported leaves nothing behind.

mod exporter;

pub(crate) use exporter::Exported;
use exporter::Exporter;
use outboard_config::{AcceptContext, Config, Tracing};

use outboard_http_server::Request as HttpRequest;
use outboard_log::ErrorLog;
use outboard_php_pool::tasks::TaskTracer;
use outboard_ring::request::TraceDetail;
use outboard_trace::{
    Ids, Recordings, Sampling, Scope, Span, TraceContext, is_valid_state, span_entry,
};
use outboard_upstream::Client;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// The most bytes that several `tracestate` fields are joined to; a valid one is shorter.
const MAX_STATE_BYTES: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tracer {
    settings: Tracing,
    recordings: Recordings,
    exporter: Exporter,
    /// Encoded spans of one request, reused.
    entries: RefCell<Vec<u8>>,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) start_us: u64,
    pub(crate) end_us: u64,
    pub(crate) has_failed: bool,
}

impl Tracer {
    /// The tracer of a configuration: that of the predecessor, if its settings are the same.
    pub(crate) fn open(
        config: &Config,
        predecessor: Option<&Rc<Self>>,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
        threads: usize,
    ) -> Option<Rc<Self>> {
        let settings = config.tracing.as_ref()?;
        if let Some(known) = predecessor.filter(|known| known.settings == *settings) {
            return Some(known.clone());
        }
        let sampling = Sampling {
            millionths: settings.sample_millionths,
            slow_us: settings.slow_ms.saturating_mul(1_000),
            keeps_errors: settings.keeps_errors,
        };
        let ids = Rc::<Ids>::default();
        Some(Rc::new(Self {
            settings: settings.clone(),
            exporter: Exporter::start(settings, &ids, client, log, threads),
            recordings: Recordings::new(ids, sampling),
            entries: RefCell::default(),
        }))
    }

    /// The trace of the current request begins.
    pub(crate) fn begin(&self, request: &HttpRequest) -> Scope {
        let (parent, state) = match self.accepts(request) {
            true => context(request),
            false => (None, Vec::new()),
        };
        self.recordings.begin(parent, &state)
    }

    /// What a script has to report.
    pub(crate) fn detail(&self, scope: &Scope) -> TraceDetail {
        match (scope.takes_spans(), self.settings.has_statements) {
            (false, _) => TraceDetail::None,
            (true, false) => TraceDetail::Spans,
            (true, true) => TraceDetail::Statements,
        }
    }

    fn accepts(&self, request: &HttpRequest) -> bool {
        match self.settings.accept {
            AcceptContext::All => true,
            AcceptContext::Trusted => {
                request.client.peer.is_trusted(&request.client.listener.forwarding)
            }
            AcceptContext::None => false,
        }
    }

    /// A request has ended. Returns whether its trace is exported; only then its span is described.
    pub(crate) fn end(
        &self,
        scope: &Scope,
        Ended { start_us, end_us, has_failed }: Ended,
        describe: impl FnOnce() -> Span,
    ) -> bool {
        let recording = scope.recording();
        recording.end();
        let us = end_us.saturating_sub(start_us);
        if !self.recordings.sampling().end(recording.verdict(), has_failed, us) {
            return false;
        }
        let mut own = describe().between(start_us, end_us);
        own.id = scope.span_id();
        own.parent = recording.parent();
        own.error = has_failed.then_some(Cow::Borrowed(""));
        let (spans, lost) = (recording.spans(), recording.lost());
        if lost > 0 {
            own = own.with("outboard.lost_spans", u64::from(lost));
        }
        let mut entries = self.entries.borrow_mut();
        entries.clear();
        let is_remote = own.parent.is_some();
        span_entry(&mut entries, recording.context(), (recording.state(), is_remote), &own);
        for span in spans.iter() {
            span_entry(&mut entries, recording.context(), (b"", false), span);
        }
        self.exporter.add(&entries, spans.len() as u64 + 1);
        true
    }

    /// The request is over, and its line is in the access log.
    pub(crate) fn reuse(&self, scope: Scope) {
        self.recordings.reuse(scope);
    }

    /// Counts of spans.
    pub(crate) fn exported(&self) -> Exported {
        self.exporter.counts()
    }

    /// The server stops: exports what waits, for a short time.
    pub(crate) async fn finish(&self) {
        self.exporter.finish().await;
    }
}

impl TaskTracer for Tracer {
    fn begin(&self, parent: Option<TraceContext>) -> Scope {
        self.recordings.begin(parent, b"")
    }

    fn detail(&self, scope: &Scope) -> TraceDetail {
        self.detail(scope)
    }

    fn end(
        &self,
        scope: &Scope,
        (start_us, end_us): (u64, u64),
        has_failed: bool,
        describe: &dyn Fn() -> Span,
    ) {
        self.end(scope, Ended { start_us, end_us, has_failed }, describe);
    }
}

/// The trace context that the client sent. Several `traceparent` fields are none (3.2 of the
/// specification), several `tracestate` are one (3.3.1.1).
fn context(request: &HttpRequest) -> (Option<TraceContext>, Vec<u8>) {
    let (mut parents, mut parent, mut state) = (0, None, Vec::new());
    for (name, value) in request.headers() {
        if name.eq_ignore_ascii_case(b"traceparent") {
            parents += 1;
            parent = TraceContext::parse(value);
        } else if name.eq_ignore_ascii_case(b"tracestate") && state.len() < MAX_STATE_BYTES {
            if !state.is_empty() {
                state.push(b',');
            }
            state.extend_from_slice(value);
        }
    }
    let parent = parent.filter(|_| parents == 1);
    if parent.is_none() || !is_valid_state(&state) {
        state.clear();
    }
    (parent, state)
}
