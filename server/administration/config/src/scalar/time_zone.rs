//! [`TimeZone`]: where the clock of a schedule hangs.
//!
//! Read with the configuration, and by [`super::Schedule`]. Invariant: every minute of a local clock has the instants at
//! which a schedule is due, also where the clock is set forward or back.

use super::kind::{Fault, Scalar, Written};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{self, AmbiguousOffset, TimeZoneDatabase};

/// A time zone of the tz database: the machine's, or else the one in this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeZone(tz::TimeZone);

impl TimeZone {
    /// The default.
    pub const UTC: Self = Self(tz::TimeZone::UTC);

    /// The date on the clock.
    pub(super) fn date(&self, at: Timestamp) -> Date {
        self.0.to_datetime(at).date()
    }

    /// When the clock shows this, and when again: in a skipped hour at the jump instead, in a repeated one twice.
    pub(super) fn instants(&self, at: DateTime) -> Instants {
        match self.0.to_ambiguous_timestamp(at).offset() {
            AmbiguousOffset::Unambiguous { offset } => Instants::Once(offset.to_timestamp(at).ok()),
            AmbiguousOffset::Fold { before, after } => {
                Instants::Twice([before, after].map(|offset| offset.to_timestamp(at).ok()))
            }
            AmbiguousOffset::Gap { after, .. } => {
                // With the offset after the jump, it would have been before the jump.
                let before_jump = after.to_timestamp(at).ok();
                let jump = before_jump.and_then(|at| self.0.following(at).next());
                Instants::Skipped(jump.map(|jump| jump.timestamp()))
            }
        }
    }
}

/// When a clock shows a time. `None` is out of the range of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instants {
    Once(Option<Timestamp>),
    Twice([Option<Timestamp>; 2]),
    /// Never; when it jumps over that.
    Skipped(Option<Timestamp>),
}

impl Scalar for TimeZone {
    const NAME: &'static str = "time zone";
    const EXPECTED: &'static str = "a time zone such as \"Europe/Berlin\" or \"UTC\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(name) = written else { return Err(Self::unexpected()) };
        let found = tz::TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name));
        found.map(Self).map_err(|_| {
            Fault::new(format!("`{name}` is not a time zone"))
                .hint("write a name of the tz database: a region and a city, such as \"Europe/Berlin\", or \"UTC\"")
        })
    }

    fn write(&self) -> String {
        self.0.iana_name().unwrap_or("UTC").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn zone(name: &str) -> TimeZone {
        TimeZone::read(Written::Text(name)).unwrap()
    }

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_skipped_minute_is_the_jump_and_a_repeated_one_is_twice() {
        let berlin = zone("Europe/Berlin");
        let skipped = date(2026, 3, 29).at(2, 30, 0, 0);
        assert_eq!(berlin.instants(skipped), Instants::Skipped(at("2026-03-29T01:00Z")));
        let repeated = date(2026, 10, 25).at(2, 30, 0, 0);
        let twice = [at("2026-10-25T00:30Z"), at("2026-10-25T01:30Z")];
        assert_eq!(berlin.instants(repeated), Instants::Twice(twice));
        let plain = date(2026, 7, 1).at(12, 0, 0, 0);
        assert_eq!(berlin.instants(plain), Instants::Once(at("2026-07-01T10:00Z")));
    }

    #[test]
    fn names_are_those_of_the_tz_database() {
        assert_eq!(zone("europe/berlin").write(), "Europe/Berlin");
        assert_eq!(zone("UTC"), TimeZone::UTC);
        for name in ["", "Europe/Berln", "+02:00", "CET-1CEST", "../../etc/passwd"] {
            assert!(TimeZone::read(Written::Text(name)).is_err(), "{name}");
        }
    }
}
