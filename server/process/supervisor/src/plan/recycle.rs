//! Which workers are replaced by plan.
//!
//! Called after requests and at ticks. Invariants: a worker is recycled between two requests; only
//! a part of the pool is away at a time; the limit of a worker never changes, so a decision can be
//! reproduced.

/// Share of the pool that may be away at a time, in percent; at least one worker.
pub const LARGEST_SHARE_PERCENT: usize = 25;

/// When workers are recycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Requests after which a worker is replaced; `None`: without end.
    pub requests: Option<u64>,
    /// By how much that differs from worker to worker, up and down, so that workers which started
    /// together do not leave together. 0 to 100 percent.
    pub jitter_percent: u32,
    /// Memory of its own above which a worker is replaced, in bytes; `None`: any.
    pub memory_bytes: Option<u64>,
    /// Makes the jitter of one gateway differ from another's.
    pub seed: u64,
}

/// Why a worker is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has served its number of requests.
    Requests {
        /// What it has served.
        served: u64,
    },
    /// It holds too much memory.
    Memory {
        /// What it holds.
        own_bytes: u64,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Requests { served } => write!(f, "it has served {served} requests"),
            Self::Memory { own_bytes } => write!(f, "it holds {} MiB", own_bytes >> 20),
        }
    }
}

/// A worker that serves, as recycling sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub worker: u64,
    /// Whether it is between two requests.
    pub is_idle: bool,
    /// Requests that it has finished.
    pub served: u64,
    /// Memory of its own when last looked at, in bytes.
    pub own_bytes: u64,
}

impl Policy {
    /// After how many requests this worker is replaced; at least 1.
    pub fn limit_of(&self, worker: u64) -> Option<u64> {
        let requests = self.requests?;
        let reach = u128::from(requests) * u128::from(self.jitter_percent.min(100)) / 100;
        // 32 mixed bits, as a fraction of 2^32, pick a point of −reach ..= +reach.
        let offset = (u128::from(mix(self.seed ^ worker) >> 32) * (2 * reach + 1)) >> 32;
        let limit = u128::from(requests) + offset - reach;
        Some(u64::try_from(limit).unwrap_or(u64::MAX).max(1))
    }

    /// Why this worker is due, if it is.
    pub fn due(&self, candidate: &Candidate) -> Option<Reason> {
        if self.memory_bytes.is_some_and(|most| candidate.own_bytes > most) {
            return Some(Reason::Memory { own_bytes: candidate.own_bytes });
        }
        let limit = self.limit_of(candidate.worker)?;
        (candidate.served >= limit).then_some(Reason::Requests { served: candidate.served })
    }

    /// The workers to drain now. `away` workers are draining or starting already. Those with the most
    /// memory go first, then those that have served most.
    pub fn choose(&self, candidates: &[Candidate], away: usize) -> Vec<(u64, Reason)> {
        let room = max_unavailable(candidates.len() + away).saturating_sub(away);
        let mut due: Vec<_> = candidates
            .iter()
            .filter(|candidate| candidate.is_idle)
            .filter_map(|candidate| Some((candidate, self.due(candidate)?)))
            .collect();
        due.sort_by_key(|(candidate, reason)| {
            let by_requests = matches!(reason, Reason::Requests { .. });
            (by_requests, u64::MAX - candidate.own_bytes, u64::MAX - candidate.served)
        });
        due.truncate(room);
        due.into_iter().map(|(candidate, reason)| (candidate.worker, reason)).collect()
    }
}

/// How many workers of a pool may be away at a time.
pub fn max_unavailable(total: usize) -> usize {
    (total * LARGEST_SHARE_PERCENT / 100).max(1)
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const POLICY: Policy =
        Policy { requests: Some(1_000), jitter_percent: 10, memory_bytes: Some(500), seed: 7 };

    fn candidate(worker: u64, served: u64, own_bytes: u64) -> Candidate {
        Candidate { worker, is_idle: true, served, own_bytes }
    }

    #[test]
    fn workers_that_start_together_do_not_leave_together() {
        let limits: BTreeSet<_> = (0..64).map(|worker| POLICY.limit_of(worker)).collect();
        assert!(limits.len() > 32, "{limits:?}");
    }

    #[test]
    fn without_a_number_of_requests_there_is_no_limit() {
        let policy = Policy { requests: None, ..POLICY };
        assert_eq!(policy.limit_of(1), None);
        assert_eq!(policy.due(&candidate(1, u64::MAX, 500)), None);
    }

    #[test]
    fn the_reason_is_given() {
        assert_eq!(POLICY.due(&candidate(1, 10, 500)), None);
        let memory = POLICY.due(&candidate(1, 10, 501)).unwrap();
        assert_eq!(memory, Reason::Memory { own_bytes: 501 });
        let requests = POLICY.due(&candidate(1, 1_100, 0)).unwrap();
        assert_eq!(requests.to_string(), "it has served 1100 requests");
    }

    #[test]
    fn a_busy_worker_is_left_alone() {
        let busy = Candidate { is_idle: false, ..candidate(1, 5_000, 5_000) };
        assert_eq!(POLICY.choose(&[busy], 0), []);
    }

    #[test]
    fn a_quarter_goes_at_a_time_and_the_largest_first() {
        let due: Vec<_> = (0..8).map(|n| candidate(n, 5_000, 600 + n)).collect();
        let chosen: Vec<_> = POLICY.choose(&due, 0).into_iter().map(|(n, _)| n).collect();
        assert_eq!(chosen, [7, 6]);
        assert_eq!(POLICY.choose(&due[..7], 1).len(), 1);
        assert_eq!(POLICY.choose(&due[..6], 2), []);
        assert_eq!(POLICY.choose(&due[..1], 0).len(), 1, "a pool of one is recycled as well");
    }

    proptest! {
        #[test]
        fn limits_stay_within_the_jitter_and_are_told_again(
            requests in 1..=u64::MAX, jitter_percent in 0..=100_u32, seed: u64, worker: u64
        ) {
            let policy =
                Policy { requests: Some(requests), jitter_percent, memory_bytes: None, seed };
            let limit = policy.limit_of(worker).unwrap();
            let reach = u128::from(requests) * u128::from(jitter_percent) / 100;
            prop_assert!(limit >= 1);
            prop_assert!(u128::from(limit.abs_diff(requests)) <= reach);
            prop_assert_eq!(policy.limit_of(worker), Some(limit));
        }

        #[test]
        fn never_more_than_the_share_is_away(
            served in prop::collection::vec((0..2_000_u64, any::<bool>()), 0..60),
            away in 0..10_usize,
        ) {
            let all: Vec<_> = (0..).zip(&served).map(|(worker, (served, is_idle))| Candidate {
                worker, is_idle: *is_idle, served: *served, own_bytes: 0,
            }).collect();
            let chosen = POLICY.choose(&all, away);
            prop_assert!(chosen.is_empty() || chosen.len() + away <= max_unavailable(all.len() + away));
            for (worker, _) in chosen {
                prop_assert!(all[worker as usize].is_idle);
            }
        }
    }
}
