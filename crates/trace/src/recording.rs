//! [`Recording`]: the trace of one request, until it is decided whether it is exported.
//!
//! Shared by all that works for the request. Invariant: its spans are bounded in number and memory;
//! further ones are counted, and none is added after its end.

use crate::context::TraceContext;
use crate::ids::{Ids, SpanId};
use crate::sampling::{Sampling, Verdict};
use crate::span::Span;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The most spans of a request, the request itself not counted.
const MAX_SPANS: usize = 256;
/// The most memory of its spans.
const MAX_BYTES: usize = 128 << 10;

/// See the module.
#[derive(Debug)]
pub struct Recording {
    ids: Rc<Ids>,
    context: TraceContext,
    parent: Option<SpanId>,
    state: Vec<u8>,
    verdict: Verdict,
    spans: RefCell<Vec<Span>>,
    bytes: Cell<usize>,
    lost: Cell<u32>,
    is_over: Cell<bool>,
}

impl Recording {
    /// Begins the trace of a request with this parent and its `tracestate`.
    pub fn begin(
        ids: &Rc<Ids>,
        sampling: &Sampling,
        parent: Option<TraceContext>,
        state: &[u8],
    ) -> Self {
        let trace_id = parent.map_or_else(|| ids.trace_id(), |parent| parent.trace_id);
        let verdict = sampling.begin(trace_id, parent.as_ref());
        let context = TraceContext {
            trace_id,
            span_id: ids.span_id(),
            is_sampled: verdict == Verdict::Keep,
            is_random: parent.is_none_or(|parent| parent.is_random),
        };
        Self {
            ids: ids.clone(),
            context,
            parent: parent.map(|parent| parent.span_id),
            state: state.to_vec(),
            verdict,
            spans: RefCell::default(),
            bytes: Cell::new(0),
            lost: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// The id of a new span.
    pub fn span_id(&self) -> SpanId {
        self.ids.span_id()
    }

    /// The context of the request's own span.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// The span of the caller.
    pub fn parent(&self) -> Option<SpanId> {
        self.parent
    }

    /// The `tracestate` to pass on; empty: none.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// The decision so far.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether spans are of use.
    pub fn takes_spans(&self) -> bool {
        self.verdict != Verdict::Drop && !self.is_over.get()
    }

    /// Adds a span. Without a parent it is part of the request's own.
    pub fn add(&self, mut span: Span) {
        if !self.takes_spans() {
            return;
        }
        let (mut spans, bytes) = (self.spans.borrow_mut(), self.bytes.get() + span.bytes());
        if spans.len() == MAX_SPANS || bytes > MAX_BYTES {
            return self.lost.set(self.lost.get().saturating_add(1));
        }
        self.bytes.set(bytes);
        span.parent = span.parent.or(Some(self.context.span_id));
        spans.push(span);
    }

    /// Ends it: its spans, and how many found no room.
    pub fn end(&self) -> (Vec<Span>, u32) {
        self.is_over.set(true);
        (self.spans.take(), self.lost.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Kind;

    const ALL: Sampling = Sampling { millionths: 1_000_000, slow_us: 0, keeps_errors: false };

    fn span(ids: &Ids, name: String) -> Span {
        Span::new(ids.span_id(), Kind::Internal, name)
    }

    #[test]
    fn a_request_has_a_bounded_number_of_spans_and_bytes() {
        let ids = Rc::new(Ids::default());
        let recording = Recording::begin(&ids, &ALL, None, b"");
        (0..300).for_each(|n| recording.add(span(&ids, format!("{n}"))));
        let (spans, lost) = recording.end();
        assert_eq!((spans.len(), lost), (MAX_SPANS, 44));
        let recording = Recording::begin(&ids, &ALL, None, b"");
        (0..4).for_each(|_| recording.add(span(&ids, "x".repeat(50_000))));
        let (spans, lost) = recording.end();
        assert_eq!((spans.len(), lost), (2, 2));
    }

    #[test]
    fn a_span_belongs_to_the_request_or_to_another_span() {
        let ids = Rc::new(Ids::default());
        let recording = Recording::begin(&ids, &ALL, None, b"");
        let outer = span(&ids, "outer".to_owned());
        recording.add(Span { parent: Some(outer.id), ..span(&ids, "inner".to_owned()) });
        recording.add(outer.clone());
        let (spans, _) = recording.end();
        assert_eq!(spans[0].parent, Some(outer.id));
        assert_eq!(spans[1].parent, Some(recording.context().span_id));
        recording.add(outer);
        assert!(recording.end().0.is_empty(), "it is over");
    }

    #[test]
    fn the_trace_of_the_parent_is_continued() {
        let field = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let parent = TraceContext::parse(field);
        let recording = Recording::begin(&Rc::default(), &ALL, parent, b"a=1");
        let own = recording.context();
        assert_eq!(own.trace_id, parent.unwrap().trace_id);
        assert_ne!(own.span_id, parent.unwrap().span_id);
        assert_eq!(recording.parent(), Some(parent.unwrap().span_id));
        assert_eq!((own.is_sampled, own.is_random, recording.state()), (false, false, &b"a=1"[..]));
        assert!(!recording.takes_spans());
    }
}
