//! What a write demands and does, decided without any disk.
//!
//! Called by the committer and by namespaces in memory. Pure: the present record and the time come
//! as arguments.

use crate::error::StoreError;
use crate::record::Record;
use std::sync::Arc;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The record's name.
    pub id: Box<[u8]>,
    /// What is done.
    pub change: Change,
    /// What has to hold, or nothing is done.
    pub condition: Condition,
}

/// What is done to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It gets this value.
    Put {
        /// The value.
        value: Arc<[u8]>,
        /// For how long; `None` for good.
        ttl_ms: Option<u64>,
    },
    /// It goes; none being there is fine.
    Delete,
    /// Its value, a decimal number, grows; none being there counts as 0. It ends when it would
    /// have ended.
    Increment {
        /// By this, which may be negative.
        by: i64,
        /// For how long it is kept if there was none.
        ttl_ms: Option<u64>,
    },
}

/// What has to hold of the present record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Always,
    /// There is none.
    Absent,
    /// There is one.
    Present,
    /// It has one of these versions.
    VersionIn(Vec<u64>),
    /// It has none of these versions, or there is none.
    VersionNotIn(Vec<u64>),
    /// It has exactly this value.
    Value(Arc<[u8]>),
}

/// What came of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What is there now; `None` after a delete.
    pub record: Option<Record>,
    /// Whether there was one before; told only where the write had to look.
    pub existed: Option<bool>,
}

impl Write {
    /// Whether what it does depends on the present record.
    pub(crate) fn looks(&self) -> bool {
        self.condition != Condition::Always || matches!(self.change, Change::Increment { .. })
    }

    /// Bytes that it brings.
    pub(crate) fn bytes(&self) -> usize {
        let value = match &self.change {
            Change::Put { value, .. } => value.len(),
            Change::Delete | Change::Increment { .. } => 0,
        };
        self.id.len() + value
    }

    /// What the record becomes.
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

fn number(value: &[u8]) -> Result<i64, StoreError> {
    let text = std::str::from_utf8(value).map_err(|_| StoreError::NotANumber)?;
    text.parse().map_err(|_| StoreError::NotANumber)
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
    fn conditions_hold_as_rfc_9110_13_1_says_of_if_match_and_if_none_match() {
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
    fn a_record_that_has_ended_is_not_there() {
        let ended = record(b"old", Some(100));
        let write = write(put(Some(50)), Condition::Absent);
        assert!(write.apply(Some(&ended), 9, 99).is_err());
        let written = write.apply(Some(&ended), 9, 100).unwrap().unwrap();
        assert_eq!((written.version, written.expires_ms), (9, Some(150)));
    }

    #[test]
    fn counting_begins_at_nothing_keeps_the_end_and_refuses_what_is_no_number() {
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
}
