//! [`Sampling`]: which requests are exported.
//!
//! Invariants: a request that is part of a sampled trace is exported (the parent decides), so that no trace
//! has holes; the same trace id leads to the same decision everywhere.

use crate::context::TraceContext;
use crate::ids::TraceId;

/// The configured decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Share of the requests without a parent that are exported, in millionths.
    pub millionths: u32,
    /// Requests that take so long are exported in any case; 0: none.
    pub slow_us: u64,
    /// Whether failed requests are exported in any case.
    pub keeps_errors: bool,
}

/// What is known at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is exported.
    Keep,
    /// It is exported if it fails or takes long.
    Wait,
    /// It is not exported.
    Drop,
}

impl Sampling {
    /// The decision at the beginning of a request.
    pub fn begin(&self, trace_id: TraceId, parent: Option<&TraceContext>) -> Verdict {
        let is_sampled = match parent {
            Some(parent) => parent.is_sampled,
            None => self.chooses(trace_id),
        };
        match is_sampled {
            true => Verdict::Keep,
            false if self.slow_us > 0 || self.keeps_errors => Verdict::Wait,
            false => Verdict::Drop,
        }
    }

    /// The decision at its end.
    pub fn end(&self, verdict: Verdict, has_failed: bool, us: u64) -> bool {
        match verdict {
            Verdict::Keep => true,
            Verdict::Wait => {
                (self.keeps_errors && has_failed) || (self.slow_us > 0 && us >= self.slow_us)
            }
            Verdict::Drop => false,
        }
    }

    /// By the last seven bytes, which are random (level 2 of the specification, 3.2.2.3).
    fn chooses(&self, trace_id: TraceId) -> bool {
        const RANDOM_BITS: u32 = 56;
        let last = u128::from_be_bytes(trace_id.bytes()) as u64 & ((1 << RANDOM_BITS) - 1);
        u128::from(last) * 1_000_000 < u128::from(self.millionths) << RANDOM_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Ids;

    const NONE: Sampling = Sampling { millionths: 0, slow_us: 0, keeps_errors: false };

    #[test]
    fn about_the_configured_share_is_chosen() {
        let ids = Ids::default();
        for millionths in [0, 10_000, 500_000, 1_000_000] {
            let sampling = Sampling { millionths, ..NONE };
            let chosen = (0..100_000).filter(|_| sampling.chooses(ids.trace_id())).count();
            assert!(chosen.abs_diff(millionths as usize / 10) < 1_500, "{millionths}: {chosen}");
        }
    }

    #[test]
    fn the_parent_decides() {
        let ids = Ids::default();
        let parent = |is_sampled| TraceContext {
            trace_id: ids.trace_id(),
            span_id: ids.span_id(),
            is_sampled,
            is_random: true,
        };
        let all = Sampling { millionths: 1_000_000, ..NONE };
        assert_eq!(all.begin(ids.trace_id(), Some(&parent(false))), Verdict::Drop);
        assert_eq!(NONE.begin(ids.trace_id(), Some(&parent(true))), Verdict::Keep);
        assert_eq!(NONE.begin(ids.trace_id(), None), Verdict::Drop);
    }

    #[test]
    fn errors_and_slow_requests_are_chosen_at_their_end() {
        let sampling = Sampling { slow_us: 1_000, keeps_errors: true, ..NONE };
        let verdict = sampling.begin(Ids::default().trace_id(), None);
        assert_eq!(verdict, Verdict::Wait);
        assert!(sampling.end(verdict, true, 1) && sampling.end(verdict, false, 1_000));
        assert!(!sampling.end(verdict, false, 999));
        assert!(!Sampling { keeps_errors: true, ..NONE }.end(verdict, false, u64::MAX));
        assert!(!sampling.end(Verdict::Drop, true, u64::MAX));
    }
}
