//! Writes: their conditions and effects, without I/O.
//!
//! Called by the committer and by namespaces in memory. Pure: the present record and the time come
//! as arguments.

use crate::error::StoreError;
use crate::record::Record;
use std::sync::Arc;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key of the record.
    pub id: Box<[u8]>,
    /// The effect.
    pub change: Change,
    /// The condition without which nothing is changed.
    pub condition: Condition,
}

/// The effect of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The record gets this value.
    Put {
        /// The value.
        value: Arc<[u8]>,
        /// The lifetime; `None` for no expiry.
        ttl_ms: Option<u64>,
    },
    /// The record is deleted. It need not exist.
    Delete,
    /// The value, a decimal number, is incremented; an absent record counts as 0. The expiry stays.
    Increment {
        /// The amount, which may be negative.
        by: i64,
        /// The lifetime if the record is created.
        ttl_ms: Option<u64>,
    },
}

/// A condition on the present record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Always,
    /// The record does not exist.
    Absent,
    /// The record exists.
    Present,
    /// The record has one of these versions.
    VersionIn(Vec<u64>),
    /// The record has none of these versions, or does not exist.
    VersionNotIn(Vec<u64>),
    /// The record has exactly this value.
    Value(Arc<[u8]>),
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The record afterwards; `None` after a delete.
    pub record: Option<Record>,
    /// Whether the record existed before; only known where the write had to look.
    pub existed: Option<bool>,
}

impl Write {
    /// Whether the effect depends on the present record.
    pub(crate) fn depends_on_present(&self) -> bool {
        self.condition != Condition::Always || matches!(self.change, Change::Increment { .. })
    }

    /// Bytes of key and value.
    pub(crate) fn bytes(&self) -> usize {
        let value = match &self.change {
            Change::Put { value, .. } => value.len(),
            Change::Delete | Change::Increment { .. } => 0,
        };
        self.id.len() + value
    }

    /// The record after the write.
    pub(crate) fn apply(
        &self,
        present: Option<&Record>,
        version: u64,
        now_ms: u64,
    ) -> Result<Option<Record>, StoreError> {
        let present = present.filter(|record| record.is_alive(now_ms));
        if !self.condition.holds(present) {
            let present = present.map(|record| record.version);
            return Err(StoreError::ConditionFailed { present });
        }
        let until = |ttl_ms: Option<u64>| ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms).max(1));
        Ok(match &self.change {
            Change::Delete => None,
            Change::Put { value, ttl_ms } => {
                let (value, expires_ms) = (value.clone(), until(*ttl_ms));
                Some(Record { version, expires_ms, value })
            }
            Change::Increment { by, ttl_ms } => {
                let before = present.map_or(Ok(0), |record| number(&record.value))?;
                let sum = before.checked_add(*by).ok_or(StoreError::NotANumber)?;
                let expires_ms = present.map_or_else(|| until(*ttl_ms), |record| record.expires_ms);
                let value = sum.to_string().into_bytes().into();
                Some(Record { version, expires_ms, value })
            }
        })
    }
}

impl Condition {
    fn holds(&self, present: Option<&Record>) -> bool {
        let is_one_of =
            |versions: &[u64]| present.is_some_and(|record| versions.contains(&record.version));
        match self {
            Self::Always => true,
            Self::Absent => present.is_none(),
            Self::Present => present.is_some(),
            Self::VersionIn(versions) => is_one_of(versions),
            Self::VersionNotIn(versions) => !is_one_of(versions),
            Self::Value(value) => present.is_some_and(|record| record.value == *value),
        }
    }
}

/// A number in the one form that Redis reads too: without a plus, and without leading zeros.
fn number(value: &[u8]) -> Result<i64, StoreError> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    number.filter(|number| number.to_string().as_bytes() == value).ok_or(StoreError::NotANumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: &[u8], expires_ms: Option<u64>) -> Record {
        Record { version: 7, expires_ms, value: value.into() }
    }

    fn write(change: Change, condition: Condition) -> Write {
        Write { id: (*b"id").into(), change, condition }
    }

    fn put(ttl_ms: Option<u64>) -> Change {
        Change::Put { value: (*b"new").into(), ttl_ms }
    }

    #[test]
    fn conditions_hold_as_rfc_9110_13_1_defines() {
        let there = record(b"old", None);
        let failed = |present| Err(StoreError::ConditionFailed { present });
        let now = Some(record(b"new", None));
        let now = now.map(|record| Record { version: 9, ..record });
        for (condition, of_none, of_one) in [
            (Condition::Absent, Ok(now.clone()), failed(Some(7))),
            (Condition::Present, failed(None), Ok(now.clone())),
            (Condition::VersionIn(vec![6, 7]), failed(None), Ok(now.clone())),
            (Condition::VersionIn(vec![6]), failed(None), failed(Some(7))),
            (Condition::VersionNotIn(vec![7]), Ok(now.clone()), failed(Some(7))),
            (Condition::VersionNotIn(vec![6]), Ok(now.clone()), Ok(now.clone())),
            (Condition::Value((*b"old").into()), failed(None), Ok(now.clone())),
            (Condition::Value((*b"odd").into()), failed(None), failed(Some(7))),
        ] {
            let write = write(put(None), condition);
            assert_eq!(write.apply(None, 9, 0), of_none, "{write:?}");
            assert_eq!(write.apply(Some(&there), 9, 0), of_one, "{write:?}");
        }
    }

    #[test]
    fn an_expired_record_does_not_exist() {
        let ended = record(b"old", Some(100));
        let write = write(put(Some(50)), Condition::Absent);
        assert!(write.apply(Some(&ended), 9, 99).is_err());
        let written = write.apply(Some(&ended), 9, 100).unwrap().unwrap();
        assert_eq!((written.version, written.expires_ms), (9, Some(150)));
    }

    #[test]
    fn an_increment_starts_at_0_and_keeps_the_expiry() {
        let count = |by| write(Change::Increment { by, ttl_ms: Some(10) }, Condition::Always);
        let first = count(-3).apply(None, 9, 5).unwrap().unwrap();
        assert_eq!((&*first.value, first.expires_ms), (&b"-3"[..], Some(15)));
        let next = count(10).apply(Some(&first), 10, 7).unwrap().unwrap();
        assert_eq!((&*next.value, next.expires_ms), (&b"7"[..], Some(15)));
        for value in [&b"x"[..], b"", b"1.5", b"9223372036854775807", b"\xff"] {
            let there = record(value, None);
            assert_eq!(count(1).apply(Some(&there), 9, 0), Err(StoreError::NotANumber));
        }
    }

    #[test]
    fn a_number_has_one_form_in_every_engine() {
        // The replies of redis-server 7.0 to INCRBY.
        let sum = |value: &[u8]| number(value).ok();
        for (value, expected) in
            [("0", Some(0)), ("-7", Some(-7)), ("9223372036854775807", Some(i64::MAX))]
        {
            assert_eq!(sum(value.as_bytes()), expected);
        }
        for value in ["+5", "007", "-0", " 5", "5 ", "5\n", "0x5", "9223372036854775808", "-", ""] {
            assert_eq!(sum(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn a_lifetime_without_an_end_in_time_saturates() {
        let written = write(put(Some(u64::MAX)), Condition::Always).apply(None, 1, 5).unwrap();
        assert_eq!(written.unwrap().expires_ms, Some(u64::MAX));
        // 0 stands for no expiry in every encoding, so a record never expires at 0.
        let written = write(put(Some(0)), Condition::Always).apply(None, 1, 0).unwrap().unwrap();
        assert_eq!(written.expires_ms, Some(1));
    }

    #[test]
    fn only_conditions_and_increments_depend_on_the_present_record() {
        let increment = Change::Increment { by: 1, ttl_ms: None };
        for (change, condition, depends, bytes) in [
            (put(None), Condition::Always, false, 5),
            (put(None), Condition::Present, true, 5),
            (Change::Delete, Condition::Always, false, 2),
            (Change::Delete, Condition::VersionNotIn(vec![]), true, 2),
            (increment, Condition::Always, true, 2),
        ] {
            let write = write(change, condition);
            assert_eq!((write.depends_on_present(), write.bytes()), (depends, bytes), "{write:?}");
        }
    }
}
