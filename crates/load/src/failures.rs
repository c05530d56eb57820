//! [`Failures`]: requests that did not end in a good answer, by what was wrong.

use std::fmt;
use std::ops::AddAssign;

/// What was wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The connection could not be made, or TLS could not be agreed on.
    Connect,
    /// This machine had no port left for the connection (`EADDRNOTAVAIL`).
    Ports,
    /// No whole answer within the plan's time-out.
    Timeout,
    /// The connection ended instead of, or in the middle of, an answer.
    Closed,
    /// What came is no answer in the protocol.
    Malformed,
    /// A status that is not good.
    Status,
    /// A body of another length than expected.
    Length,
    /// A body without what it must contain.
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

/// Counts by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    /// Counts one more.
    pub fn add(&mut self, failure: Failure) {
        self.0[failure as usize] += 1;
    }

    /// How many of one class.
    pub fn count(&self, failure: Failure) -> u64 {
        self.0[failure as usize]
    }

    /// All classes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that got no whole answer.
    pub fn unanswered(&self) -> u64 {
        use Failure::{Closed, Connect, Malformed, Ports, Timeout};
        [Connect, Ports, Timeout, Closed, Malformed].map(|class| self.count(class)).iter().sum()
    }

    /// Every class by name, with its count.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Failure::ALL.map(|(class, name)| (name, self.count(class))).into_iter()
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
    fn every_class_stands_at_its_own_place() {
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
    }
}
