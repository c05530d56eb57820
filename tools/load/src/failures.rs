//! [`Failures`]: requests without a good response, counted by class.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

/// Why one request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The connection or the TLS handshake failed.
    Connect,
    /// This machine had no port left for the connection (`EADDRNOTAVAIL`).
    Ports,
    /// No complete response within the plan's timeout.
    Timeout,
    /// The connection ended before the response was complete.
    Closed,
    /// The response is malformed.
    Malformed,
    /// The status is not the expected one.
    Status,
    /// The body has another length than expected.
    Length,
    /// The body differs from the expected one or lacks the expected text.
    Body,
}

impl Failure {
    const ALL: [(Failure, &'static str); 8] = [
        (Failure::Connect, "connect"),
        (Failure::Ports, "ports"),
        (Failure::Timeout, "timeout"),
        (Failure::Closed, "closed"),
        (Failure::Malformed, "malformed"),
        (Failure::Status, "status"),
        (Failure::Length, "length"),
        (Failure::Body, "body"),
    ];
}

/// Counts by class; serialised as a map of the classes that occurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    /// Counts one failure.
    pub fn add(&mut self, failure: Failure) {
        self.add_many(failure, 1);
    }

    /// Counts several failures of one class.
    pub fn add_many(&mut self, failure: Failure, count: u64) {
        self.0[failure as usize] += count;
    }

    /// The number of failures of a class.
    pub fn count(&self, failure: Failure) -> u64 {
        self.0[failure as usize]
    }

    /// The number of all failures.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The number of requests without a complete response.
    pub fn unanswered(&self) -> u64 {
        use Failure::{Closed, Connect, Malformed, Ports, Timeout};
        [Connect, Ports, Timeout, Closed, Malformed].map(|class| self.count(class)).iter().sum()
    }

    /// Every class with its name and count.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Failure::ALL.map(|(class, name)| (name, self.count(class))).into_iter()
    }
}

impl<const N: usize> From<[(Failure, u64); N]> for Failures {
    fn from(counts: [(Failure, u64); N]) -> Self {
        let mut failures = Self::default();
        counts.into_iter().for_each(|(failure, count)| failures.add_many(failure, count));
        failures
    }
}

impl From<Failures> for BTreeMap<String, u64> {
    fn from(failures: Failures) -> Self {
        let occurred = failures.classes().filter(|(_, count)| *count > 0);
        occurred.map(|(name, count)| (name.to_owned(), count)).collect()
    }
}

impl From<BTreeMap<String, u64>> for Failures {
    fn from(counts: BTreeMap<String, u64>) -> Self {
        let count = |name| counts.get(name).copied().unwrap_or_default();
        Self(Failure::ALL.map(|(_, name)| count(name)))
    }
}

impl AddAssign for Failures {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// `3 (connect 2, status 1)`; `0` without failures.
impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        let mut before = " (";
        for (name, count) in self.classes().filter(|(_, count)| *count > 0) {
            write!(f, "{before}{name} {count}")?;
            before = ", ";
        }
        if self.total() > 0 { f.write_str(")") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_index() {
        for (place, (class, _)) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
        }
    }

    #[test]
    fn only_the_classes_that_occurred_are_named() {
        let mut failures = Failures::default();
        assert_eq!(failures.to_string(), "0");
        failures.add(Failure::Connect);
        failures.add(Failure::Connect);
        failures.add(Failure::Status);
        assert_eq!(failures.to_string(), "3 (connect 2, status 1)");
        assert_eq!(failures.unanswered(), 2);
        let json = serde_json::to_string(&failures).expect("a map of numbers");
        assert_eq!(json, r#"{"connect":2,"status":1}"#);
        assert_eq!(serde_json::from_str::<Failures>(&json).expect("the same map"), failures);
    }
}
