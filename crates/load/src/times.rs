//! [`Times`]: how long requests of one kind took, and [`Kind`], which kinds are told apart.
//!
//! A server that is asked for more than it can do refuses some requests quickly. What the others
//! took is then half of the truth, and the mean of both is none of it. The recorder keeps times of
//! those that were not answered well; what is left of all is the rest, so that a good answer costs
//! nothing more.

use crate::failures::Failure;
use crate::recorder::histogram;
use hdrhistogram::Histogram;
use std::ops::AddAssign;

/// 429 and 503 (RFC 6585 4, RFC 9110 15.6.4): come later.
const REFUSING: [u16; 2] = [429, 503];

/// What became of a request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Accepted,
    /// The server has no room for it at present.
    Refused,
    /// Any other bad answer, or none in time.
    Failed,
}

impl Kind {
    /// Of a whole answer, by what was wrong with it.
    pub(crate) fn of(status: u16, failure: Option<Failure>) -> Self {
        match failure {
            None => Self::Accepted,
            Some(Failure::Status) if REFUSING.contains(&status) => Self::Refused,
            Some(_) => Self::Failed,
        }
    }
}

/// How long requests of one kind took.
#[derive(Debug, Clone)]
pub struct Times {
    /// In ns, from when they were intended to the whole answer.
    pub latency: Histogram<u64>,
    /// In ns, from when they were sent.
    pub service: Histogram<u64>,
}

impl Times {
    pub(crate) fn new() -> Self {
        Self { latency: histogram(), service: histogram() }
    }

    pub(crate) fn record(&mut self, latency_ns: u64, service_ns: u64) {
        self.latency.saturating_record(latency_ns);
        self.service.saturating_record(service_ns);
    }

    /// How many requests.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// What is left of `all` without `parts` of it.
    pub(crate) fn rest(mut all: Histogram<u64>, parts: [&Histogram<u64>; 2]) -> Histogram<u64> {
        for part in parts {
            all.subtract(part).expect("each of them was recorded in all as well");
        }
        all
    }
}

impl AddAssign<&Times> for Times {
    fn add_assign(&mut self, other: &Times) {
        self.latency += &other.latency;
        self.service += &other.service;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_bad_status_that_says_later() {
        assert_eq!(Kind::of(201, None), Kind::Accepted);
        assert_eq!(Kind::of(503, None), Kind::Accepted, "it was what was asked for");
        assert_eq!(Kind::of(503, Some(Failure::Status)), Kind::Refused);
        assert_eq!(Kind::of(429, Some(Failure::Status)), Kind::Refused);
        assert_eq!(Kind::of(500, Some(Failure::Status)), Kind::Failed);
        assert_eq!(Kind::of(200, Some(Failure::Length)), Kind::Failed);
    }

    #[test]
    fn the_rest_is_what_was_in_no_part() {
        let mut all = Times::new();
        let mut part = Times::new();
        for ns in [1_000, 2_000, 900_000] {
            all.record(ns, ns);
        }
        part.record(900_000, 900_000);
        let rest = Times::rest(all.latency, [&part.latency, &histogram()]);
        assert_eq!((rest.len(), rest.max()), (2, rest.highest_equivalent(2_000)));
    }
}
