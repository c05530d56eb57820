//! [`Recordings`]: begins recordings, in the memory of those that have ended.
//!
//! A thread has one. Invariant: only a recording that nothing refers to any more is used again, and the memory of a
//! bounded number is held.

use crate::context::TraceContext;
use crate::ids::Ids;
use crate::recording::Recording;
use crate::sampling::Sampling;
use crate::scope::Scope;
use std::cell::RefCell;
use std::rc::Rc;

/// About as many requests as a thread has under way.
const MAX_UNUSED: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Recordings {
    ids: Rc<Ids>,
    sampling: Sampling,
    unused: RefCell<Vec<Rc<Recording>>>,
}

impl Recordings {
    /// Recordings with this decision.
    pub fn new(ids: Rc<Ids>, sampling: Sampling) -> Self {
        Self { ids, sampling, unused: RefCell::default() }
    }

    /// The decision.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Begins the trace of a request with this parent and its `tracestate`.
    pub fn begin(&self, parent: Option<TraceContext>, state: &[u8]) -> Scope {
        let mut unused = self.unused.borrow_mut().pop();
        if let Some(recording) = unused.as_mut().and_then(Rc::get_mut) {
            recording.begin_again(&self.sampling, parent, state);
        }
        let new = || Rc::new(Recording::begin(&self.ids, &self.sampling, parent, state));
        Scope::new(unused.unwrap_or_else(new))
    }

    /// A request is over. If something still works for it, its memory is not used again.
    pub fn reuse(&self, scope: Scope) {
        let mut recording = scope.into_recording();
        let mut unused = self.unused.borrow_mut();
        if unused.len() < MAX_UNUSED && Rc::get_mut(&mut recording).is_some() {
            recording.clear();
            unused.push(recording);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Kind, Span};

    const ALL: Sampling = Sampling { millionths: 1_000_000, slow_us: 0, keeps_errors: false };

    #[test]
    fn a_recording_that_is_used_again_has_nothing_of_the_one_before() {
        let recordings = Recordings::new(Rc::default(), ALL);
        let parent =
            TraceContext::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
        let first = recordings.begin(parent, b"a=1");
        let (trace, memory) = (first.context(), std::ptr::from_ref(first.recording()));
        first.recording().end();
        recordings.reuse(first);
        let second = recordings.begin(None, b"");
        assert_eq!(std::ptr::from_ref(second.recording()), memory);
        assert_ne!(second.context().trace_id, trace.trace_id);
        assert!(second.takes_spans() && second.recording().state().is_empty());
        second.add(Span::new(second.begin().span_id(), Kind::Internal, "a"));
        let kept = second.clone();
        recordings.reuse(second);
        let third = recordings.begin(None, b"");
        assert_ne!(std::ptr::from_ref(third.recording()), memory, "it is still referred to");
        assert_eq!(kept.recording().spans().len(), 1);
        assert!(third.recording().spans().is_empty() && third.recording().parent().is_none());
    }
}
