//! [`Recording`]: the trace of one request, until it is decided whether it is exported.
//!
//! Shared by all that works for the request. Invariants: its spans are bounded in number and memory;
//! further ones are counted, and none is added after its end. A span that others are part of ends after
//! them, so it has room when they took all of it.

use crate::context::TraceContext;
use crate::ids::{Ids, SpanId};
use crate::sampling::{Sampling, Verdict};
use crate::span::Span;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

/// The most spans of a request, the request itself not counted.
const MAX_SPANS: usize = 256;
/// The most memory of its spans.
const MAX_BYTES: usize = 128 << 10;

/// The room for spans that stored ones are part of.
const MAX_OUTER_SPANS: usize = 32;
const MAX_OUTER_BYTES: usize = 32 << 10;
/// Room for more spans is freed with its request.
const MAX_REUSED_SPANS: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct Recording {
    ids: Rc<Ids>,
    context: TraceContext,
    parent: Option<SpanId>,
    state: Vec<u8>,
    verdict: Verdict,
    spans: RefCell<Vec<Span>>,
    /// When there is no room: the spans that stored ones are part of.
    outer: RefCell<Vec<SpanId>>,
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
        let (context, verdict) = decide(ids, sampling, parent);
        Self {
            ids: ids.clone(),
            context,
            parent: parent.map(|parent| parent.span_id),
            state: state.to_vec(),
            verdict,
            spans: RefCell::default(),
            outer: RefCell::default(),
            bytes: Cell::new(0),
            lost: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// The same in the memory of an earlier one, whose spans were cleared.
    pub(crate) fn begin_again(
        &mut self,
        sampling: &Sampling,
        parent: Option<TraceContext>,
        state: &[u8],
    ) {
        (self.context, self.verdict) = decide(&self.ids, sampling, parent);
        self.parent = parent.map(|parent| parent.span_id);
        self.state.clear();
        self.state.extend_from_slice(state);
        self.bytes.set(0);
        self.lost.set(0);
        self.is_over.set(false);
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
        span.parent = span.parent.or(Some(self.context.span_id));
        let has_room = spans.len() < MAX_SPANS && bytes <= MAX_BYTES;
        if !has_room && !self.has_room_for_outer(&spans, bytes, &span) {
            return self.lost.set(self.lost.get().saturating_add(1));
        }
        self.note_outer(span.parent);
        self.bytes.set(bytes);
        spans.push(span);
    }

    /// Whether a span has to be stored because others, which are stored, are part of it.
    fn has_room_for_outer(&self, spans: &[Span], bytes: usize, span: &Span) -> bool {
        let mut outer = self.outer.borrow_mut();
        if outer.is_empty() {
            outer.extend(spans.iter().filter_map(|span| span.parent));
            outer.sort_unstable();
            outer.dedup();
        }
        spans.len() < MAX_SPANS + MAX_OUTER_SPANS
            && bytes <= MAX_BYTES + MAX_OUTER_BYTES
            && outer.binary_search(&span.id).is_ok()
    }

    /// A span with this parent is stored, maybe after one that found no room.
    fn note_outer(&self, parent: Option<SpanId>) {
        let mut outer = self.outer.borrow_mut();
        if let Some(parent) = parent.filter(|_| !outer.is_empty())
            && let Err(at) = outer.binary_search(&parent)
        {
            outer.insert(at, parent);
        }
    }

    /// Ends it: no span is added any more.
    pub fn end(&self) {
        self.is_over.set(true);
    }

    /// Its spans.
    pub fn spans(&self) -> Ref<'_, Vec<Span>> {
        self.spans.borrow()
    }

    /// How many spans found no room.
    pub fn lost(&self) -> u32 {
        self.lost.get()
    }

    /// Frees its spans.
    pub fn clear(&self) {
        let mut spans = self.spans.borrow_mut();
        spans.clear();
        if spans.capacity() > MAX_REUSED_SPANS {
            *spans = Vec::new();
        }
        let mut outer = self.outer.borrow_mut();
        if !outer.is_empty() {
            *outer = Vec::new();
        }
    }
}

/// The context of a request's own span, and whether it is exported.
fn decide(ids: &Ids, sampling: &Sampling, parent: Option<TraceContext>) -> (TraceContext, Verdict) {
    let trace_id = parent.map_or_else(|| ids.trace_id(), |parent| parent.trace_id);
    let verdict = sampling.begin(trace_id, parent.as_ref());
    let context = TraceContext {
        trace_id,
        span_id: ids.span_id(),
        is_sampled: verdict == Verdict::Keep,
        is_random: parent.is_none_or(|parent| parent.is_random),
    };
    (context, verdict)
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
        assert_eq!((recording.spans().len(), recording.lost()), (MAX_SPANS, 44));
        let recording = Recording::begin(&ids, &ALL, None, b"");
        (0..4).for_each(|_| recording.add(span(&ids, "x".repeat(50_000))));
        assert_eq!((recording.spans().len(), recording.lost()), (2, 2));
        recording.clear();
        assert!(recording.spans().capacity() <= MAX_REUSED_SPANS);
    }

    #[test]
    fn a_span_around_stored_ones_has_room_when_they_took_it() {
        let ids = Rc::new(Ids::default());
        let recording = Recording::begin(&ids, &ALL, None, b"");
        let outer: Vec<Span> = (0..100).map(|n| span(&ids, format!("outer {n}"))).collect();
        let part_of = |outer: &Span, name: &str| Span {
            parent: Some(outer.id),
            ..span(&ids, name.to_owned())
        };
        (0..1_000).for_each(|_| recording.add(part_of(&outer[0], "inner")));
        // Each is part of the next one.
        for pair in outer.windows(2) {
            recording.add(Span { parent: Some(pair[1].id), ..pair[0].clone() });
        }
        recording.add(span(&ids, "beside".to_owned()));
        let spans = recording.spans();
        assert_eq!(spans.len(), MAX_SPANS + MAX_OUTER_SPANS);
        assert_eq!(
            spans[MAX_SPANS..][..2],
            [
                Span { parent: Some(outer[1].id), ..outer[0].clone() },
                Span { parent: Some(outer[2].id), ..outer[1].clone() },
            ]
        );
        assert_eq!(recording.lost(), 744 + 99 - MAX_OUTER_SPANS as u32 + 1);
        drop(spans);
        // One that is too large does not end it.
        let recording = Recording::begin(&ids, &ALL, None, b"");
        recording.add(part_of(&outer[1], "first"));
        recording.add(span(&ids, "x".repeat(MAX_BYTES)));
        (0..300).for_each(|_| recording.add(part_of(&outer[0], "inner")));
        recording.add(outer[0].clone());
        assert_eq!(
            recording.spans().last(),
            Some(&Span { parent: Some(recording.context().span_id), ..outer[0].clone() })
        );
    }

    #[test]
    fn a_span_belongs_to_the_request_or_to_another_span() {
        let ids = Rc::new(Ids::default());
        let recording = Recording::begin(&ids, &ALL, None, b"");
        let outer = span(&ids, "outer".to_owned());
        recording.add(Span { parent: Some(outer.id), ..span(&ids, "inner".to_owned()) });
        recording.add(outer.clone());
        recording.end();
        recording.add(outer.clone());
        let spans = recording.spans();
        assert_eq!(spans[0].parent, Some(outer.id));
        assert_eq!(spans[1].parent, Some(recording.context().span_id));
        assert_eq!(spans.len(), 2, "it is over");
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
