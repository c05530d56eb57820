//! What is sent to Redis, and replies that are wrong in any way.

use super::*;
use crate::change::Write;
use Value::{Array, Bytes, Integer, Null};

#[test]
fn a_pattern_escapes_its_prefix() {
    assert_eq!(pattern(b"a:b"), b"a:b*");
    assert_eq!(pattern(b"a*[x]\\"), b"a\\*\\[x\\]\\\\*");
}

#[test]
fn bytes_too_short_for_a_record_are_none() {
    assert_eq!(decode(&[0; 23]), None);
    let record = decode(&[[1, 0, 0, 0, 0, 0, 0, 0].as_slice(), &[0; 16], b"v"].concat());
    let expected = Record { version: 1, expires_ms: None, value: (*b"v").into() };
    assert_eq!(record, Some(expected));
}

/// An encoded record: version 7, expiry 9, any tag.
fn stored(value: &[u8]) -> Vec<u8> {
    let numbers = [7_u64, 9, u64::MAX].map(u64::to_le_bytes);
    [&numbers.concat()[..], value].concat()
}

fn record(value: &[u8]) -> Record {
    Record { version: 7, expires_ms: Some(9), value: value.into() }
}

fn tagged(change: Change, condition: Condition) -> TaggedWrite {
    TaggedWrite { write: Write { id: (*b"id").into(), change, condition }, tag: 0x0102 }
}

fn put() -> Change {
    Change::Put { value: (*b"new").into(), ttl_ms: Some(50) }
}

#[test]
fn a_key_of_another_program_is_reported_as_damage() {
    for reply in [Bytes(vec![0; 23]), Bytes(vec![]), Integer(1), Array(vec![]), Array(vec![Null])] {
        assert_eq!(found(Ok(reply.clone())), Err(foreign()), "{reply:?}");
    }
    assert_eq!(found(Ok(Null)), Ok(None));
    assert_eq!(found(Ok(Bytes(stored(b"v")))), Ok(Some(record(b"v"))));
}

#[test]
fn errors_of_redis_are_errors_of_the_store() {
    let refused = |why: &str| CommandError::Refused(why.to_owned());
    for (error, expected) in [
        (CommandError::Retry("timed out".into()), StoreError::Unreachable("timed out".into())),
        (CommandError::TooFewCopies(2), StoreError::TooFewCopies { answered: 2 }),
        (refused("OOM command not allowed"), StoreError::Full),
        (refused("NOAUTH"), StoreError::Failed("Redis: NOAUTH".into())),
    ] {
        assert_eq!(found(Err(error.clone())), Err(expected.clone()));
        let write = tagged(Change::Delete, Condition::Always);
        assert_eq!(write_result(&write, Err(error)), Err(expected));
    }
}

#[test]
fn the_reply_of_the_script_is_the_result_of_the_write() {
    let increment = || Change::Increment { by: 1, ttl_ms: None };
    let ok = |existed: i64, head: &[u8]| vec![Integer(1), Integer(existed), Bytes(head.to_vec())];
    let written = |record, existed| Ok(Written { record, existed: Some(existed) });
    let failed = |present| Err(StoreError::ConditionFailed { present });
    let version = 7_u64.to_le_bytes().to_vec();
    for (change, reply, expected) in [
        (put(), ok(0, &stored(b"")), written(Some(record(b"new")), false)),
        (put(), ok(1, &stored(b"ignored")), written(Some(record(b"new")), true)),
        (increment(), ok(1, &stored(b"8")), written(Some(record(b"8")), true)),
        (Change::Delete, ok(1, b""), written(None, true)),
        (put(), vec![Integer(0), Bytes(version)], failed(Some(7))),
        (put(), vec![Integer(0), Bytes(vec![])], failed(None)),
        (put(), vec![Integer(0)], failed(None)),
        (increment(), vec![Integer(2)], Err(StoreError::NotANumber)),
        (increment(), vec![Integer(3)], Err(foreign())),
        (put(), ok(1, b"short"), Err(foreign())),
        (put(), vec![], Err(foreign())),
        (put(), vec![Bytes(b"1".to_vec())], Err(foreign())),
    ] {
        let write = tagged(change, Condition::Always);
        let shown = format!("{reply:?}");
        assert_eq!(write_result(&write, Ok(Array(reply))), expected, "{shown}");
    }
    let write = tagged(put(), Condition::Always);
    assert_eq!(write_result(&write, Ok(Null)), Err(foreign()));
}

#[test]
fn a_write_is_a_call_of_the_script_with_its_key_first() {
    for (change, condition, expected) in [
        (put(), Condition::Always, [&b"put"[..], b"new", b"50", b"always", b""]),
        (Change::Delete, Condition::Absent, [b"delete", b"", b"", b"absent", b""]),
        (
            Change::Increment { by: -3, ttl_ms: None },
            Condition::Present,
            [b"increment", b"-3", b"", b"present", b""],
        ),
        (
            Change::Delete,
            Condition::VersionIn(vec![1, 2]),
            [b"delete", b"", b"", b"version_in", b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"],
        ),
        (
            Change::Delete,
            Condition::VersionNotIn(vec![]),
            [b"delete", b"", b"", b"version_not_in", b""],
        ),
        (
            Change::Delete,
            Condition::Value((*b"\xff").into()),
            [b"delete", b"", b"", b"value", b"\xff"],
        ),
    ] {
        let command = script(b"p:kv:", &tagged(change, condition), 2);
        let Operation::Script(words) = command.operation else { panic!("no call of the script") };
        assert_eq!((command.slot, command.copies), (slot(b"p:kv:id"), 2));
        assert_eq!(words[0], b"p:kv:id");
        assert_eq!(words[1..6], expected.map(<[u8]>::to_vec));
        assert_eq!(words[6], 0x0102_u64.to_le_bytes(), "a repeated write has the same tag");
    }
}

#[test]
fn one_command_that_may_succeed_later_has_all_of_its_job_repeated() {
    let retry = || Err(CommandError::Retry("CLUSTERDOWN".into()));
    let why = Some(StoreError::Unreachable("CLUSTERDOWN".into()));
    assert_eq!(retry_reason(&[]), None);
    assert_eq!(retry_reason(&[Ok(Null), Err(CommandError::TooFewCopies(1))]), None);
    assert_eq!(retry_reason(&[Ok(Null), retry(), Ok(Null)]), why);
}
