use super::*;

fn record(value: &[u8]) -> Record {
    Record { version: 7, expires_ms: Some(9), value: value.into() }
}

fn calls() -> Vec<Call> {
    let write = |change, condition| Write { id: (*b"id").into(), change, condition };
    let put = || Change::Put { value: (*b"v").into(), ttl_ms: Some(5) };
    let writes = vec![
        write(put(), Condition::Always),
        write(Change::Delete, Condition::Absent),
        write(Change::Increment { by: -3, ttl_ms: None }, Condition::Present),
        write(put(), Condition::VersionIn(vec![1, 2])),
        write(put(), Condition::VersionNotIn(vec![])),
        write(put(), Condition::Value((*b"").into())),
    ];
    vec![
        Call::Get(vec![(*b"a").into(), (*b"").into()]),
        Call::Write(writes, 3),
        Call::Scan(Bound::Included(vec![1]), Bound::Unbounded),
        Call::Scan(Bound::Excluded(vec![]), Bound::Excluded(vec![2])),
        Call::Compact,
        Call::Adopt(vec![((*b"k").into(), record(b"x"))]),
    ]
}

fn replies() -> Vec<Reply> {
    let errors = vec![
        StoreError::Overloaded,
        StoreError::InvalidKey { bytes: 5000 },
        StoreError::ConditionFailed { present: Some(1) },
        StoreError::ConditionFailed { present: None },
        StoreError::NotANumber,
        StoreError::Full,
        StoreError::TooFewCopies { answered: 2 },
        StoreError::Unreachable("a".into()),
        StoreError::Damaged("b".into()),
        StoreError::Failed("c".into()),
    ];
    let mut results: Vec<_> = errors.iter().cloned().map(Err).collect();
    for existed in [None, Some(true), Some(false)] {
        results.push(Ok(Written { record: existed.map(|_| record(b"")), existed }));
    }
    let mut replies = vec![
        Reply::Records(vec![None, Some(record(b"x"))]),
        Reply::Written(results),
        Reply::Piece(vec![((*b"k").into(), record(b"x"))]),
        Reply::Done,
    ];
    replies.extend(errors.into_iter().map(Reply::Failed));
    replies
}

#[test]
fn calls_and_replies_are_decoded_as_they_were_encoded() {
    for call in calls() {
        let frame = call.encode(42, "carts");
        assert_eq!(Call::decode(&frame), Some((42, "carts".to_owned(), call)));
    }
    for reply in replies() {
        assert_eq!(Reply::decode(&reply.encode(42)), Some((42, reply)));
    }
}

#[test]
fn truncated_frames_are_invalid() {
    for frame in calls().iter().map(|call| call.encode(42, "carts")) {
        (0..frame.len()).for_each(|len| assert_eq!(Call::decode(&frame[..len]), None, "{len}"));
    }
    for frame in replies().iter().map(|reply| reply.encode(42)) {
        (0..frame.len()).for_each(|len| assert_eq!(Reply::decode(&frame[..len]), None, "{len}"));
    }
}
