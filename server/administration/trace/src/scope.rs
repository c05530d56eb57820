//! [`Scope`]: a span of a request that further spans become part of.
//!
//! Held by what works for the request: the connection's task, PHP, requests to other servers.

use crate::context::TraceContext;
use crate::ids::SpanId;
use crate::recording::Recording;
use crate::span::Span;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Clone)]
pub struct Scope {
    recording: Rc<Recording>,
    span_id: SpanId,
}

impl Scope {
    /// The request's own span.
    pub fn new(recording: Rc<Recording>) -> Self {
        let span_id = recording.context().span_id;
        Self { recording, span_id }
    }

    pub(crate) fn into_recording(self) -> Rc<Recording> {
        self.recording
    }

    /// The trace of the request.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// A span within this one, which is added when it has ended.
    pub fn begin(&self) -> Self {
        Self { recording: self.recording.clone(), span_id: self.recording.span_id() }
    }

    /// The part of it that has this number ([`SpanId::child`]), which may not have ended.
    pub fn part(&self, number: u32) -> Self {
        Self { recording: self.recording.clone(), span_id: self.span_id.child(number) }
    }

    /// Whether spans are of use.
    pub fn takes_spans(&self) -> bool {
        self.recording.takes_spans()
    }

    /// The id of its span.
    pub fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// What the next program gets.
    pub fn context(&self) -> TraceContext {
        TraceContext { span_id: self.span_id, ..*self.recording.context() }
    }

    /// Adds a span that has ended; it is part of this one unless it has another parent.
    pub fn add(&self, mut span: Span) {
        span.parent = span.parent.or(Some(self.span_id));
        self.recording.add(span);
    }
}
