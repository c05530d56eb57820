//! [`Times`]: durations of requests of one kind, and [`Kind`], the kinds.
//!
//! An overloaded server refuses some requests quickly, so the mean of good and refused responses
//! says nothing. The recorder stores the times of requests without a good response separately; the
//! good ones are all minus those, so that a good response costs nothing more.

use crate::failures::Failure;
use hdrhistogram::Histogram;
use std::ops::AddAssign;

/// 429 and 503 (RFC 6585 4, RFC 9110 15.6.4): try again later.
const REFUSING: [u16; 2] = [429, 503];

/// Longer times are recorded as this one.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram for times in ns up to an hour.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("1 to an hour with 3 digits is in range")
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Accepted,
    /// The server refused it for lack of capacity.
    Refused,
    /// Another bad response, or a timeout.
    Failed,
}

impl Kind {
    /// The kind of a complete response with this failure.
    pub(crate) fn of(status: u16, failure: Option<Failure>) -> Self {
        match failure {
            None => Self::Accepted,
            Some(Failure::Status) if REFUSING.contains(&status) => Self::Refused,
            Some(_) => Self::Failed,
        }
    }
}

/// The durations of requests of one kind.
#[derive(Debug, Clone)]
pub struct Times {
    /// In ns, from when they were due to the complete response.
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

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// `all` without `parts` of it.
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
    fn a_refusal_is_a_bad_429_or_503() {
        assert_eq!(Kind::of(201, None), Kind::Accepted);
        assert_eq!(Kind::of(503, None), Kind::Accepted, "it was the expected status");
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
