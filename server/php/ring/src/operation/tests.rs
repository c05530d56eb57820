use super::*;
use crate::purge::Selected;
use proptest::prelude::*;

fn task(retries: Option<u8>) -> TaskCall<'static> {
    TaskCall { name: b"mail", data_bytes: 7, delay_ms: 1 << 40, is_awaited: true, retries }
}

fn fetch() -> Operation<'static> {
    let options = FetchOptions { verify: true, decompress: false, http2: true };
    Operation {
        id: Tag { slot: 3, generation: 9 },
        span: 77,
        call: Call::Fetch(FetchCall {
            url: b"https://example.org/a",
            method: b"POST",
            headers: b"A: b\nC: d\n",
            body_bytes: 12,
            connect_timeout_ms: 1000,
            timeout_ms: 30_000,
            max_body_bytes: 1 << 20,
            max_redirects: 5,
            retries: 2,
            options,
        }),
    }
}

fn head() -> Completion<'static> {
    let head = FetchedHead { status: 404, http_version: 2, url: b"http://a/", headers: b"A: b\n" };
    Completion { id: Tag { slot: 1, generation: 2 }, part: Part::Head(head) }
}

fn operation_bytes(operation: &Operation<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    operation.encode(&mut out);
    out
}

fn completion_bytes(completion: &Completion<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    completion.encode(&mut out);
    out
}

#[test]
fn operations_come_back_as_they_were() {
    let id = Tag { slot: 0, generation: 7 };
    for operation in [
        fetch(),
        Operation { id, span: 0, call: Call::FetchBody(b"bytes") },
        Operation { id, span: 0, call: Call::Forget },
        Operation {
            id,
            span: u32::MAX,
            call: Call::Purge(PurgeCall { is_soft: false, selected: vec![Selected::All] }),
        },
        Operation {
            id,
            span: 1,
            call: Call::Entities(EntitiesCall { namespace: b"kv", batch_bytes: 9 }),
        },
        Operation {
            id,
            span: 0,
            call: Call::Rate(RateCall { limit: b"mail", key: b"a\n\0", tokens: 3, takes: true }),
        },
        Operation { id, span: 0, call: Call::Task(task(None)) },
        Operation { id, span: 0, call: Call::Task(task(Some(0))) },
    ] {
        assert_eq!(Operation::decode(&operation_bytes(&operation)).unwrap(), operation);
    }
}

#[test]
fn completions_come_back_as_they_were() {
    let id = Tag { slot: 0, generation: 7 };
    let failed = Part::Failed { failure: Failure::Timeout, message: "after 5 ms" };
    for completion in [
        head(),
        Completion { id, part: Part::Body(b"bytes") },
        Completion { id, part: Part::End },
        Completion { id, part: failed },
    ] {
        assert_eq!(Completion::decode(&completion_bytes(&completion)).unwrap(), completion);
    }
}

#[test]
fn a_truncated_operation_is_corrupt() {
    let whole = operation_bytes(&fetch());
    for len in 0..whole.len() {
        assert!(Operation::decode(&whole[..len]).is_err(), "{len}");
    }
    let whole = completion_bytes(&head());
    for len in 0..whole.len() {
        assert!(Completion::decode(&whole[..len]).is_err(), "{len}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Operation::decode(&bytes);
        let _ = Completion::decode(&bytes);
    }
}

#[test]
fn operations_of_every_kind_come_back_and_others_are_corrupt() {
    let id = Tag { slot: 1023, generation: u32::MAX };
    let stream = StreamCall {
        verb: crate::stream::Verb::Send,
        is_last: true,
        item: 1,
        session: 2,
        value: 3,
        bytes: b"\0",
    };
    let (mut buffer, texts) = (Vec::new(), [&b"name"[..], b""]);
    let span = SpanCall::new((1, 2), (3, 0), false, texts, &mut buffer);
    let rate = RateCall { limit: b"", key: b"", tokens: 0, takes: false };
    for call in [
        Call::Stream(stream),
        Call::Span(span),
        Call::Rate(rate),
        Call::RetireSnapshot(b""),
        Call::RetireSnapshot(b"key"),
        Call::FetchBody(b""),
        Call::Purge(PurgeCall { is_soft: true, selected: vec![] }),
    ] {
        let operation = Operation { id, span: 9, call };
        assert_eq!(Operation::decode(&operation_bytes(&operation)), Ok(operation));
    }
    const KIND_AT: usize = 12;
    let known =
        [FETCH, FETCH_BODY, FORGET, PURGE, TASK, STREAM, SPAN, RETIRE_SNAPSHOT, ENTITIES, RATE];
    for kind in (0..=u8::MAX).filter(|kind| !known.contains(kind)) {
        let mut bytes = vec![0; 100];
        bytes[KIND_AT] = kind;
        let what = "an operation of an unknown kind";
        assert_eq!(Operation::decode(&bytes), Err(Corrupt { what }), "{kind}");
    }
}

#[test]
fn completions_of_every_part_come_back_and_others_are_corrupt() {
    let id = Tag { slot: 0, generation: 0 };
    let head = FetchedHead { status: 0, http_version: 0, url: b"", headers: b"" };
    for part in [
        Part::Whole(head, b""),
        Part::Whole(head, b"body"),
        Part::Number(0),
        Part::Number(u64::MAX),
        Part::Queried(b"{}"),
        Part::Failed { failure: Failure::Task, message: "" },
    ] {
        let completion = Completion { id, part };
        assert_eq!(Completion::decode(&completion_bytes(&completion)), Ok(completion));
    }
    const PART_AT: usize = 8;
    let mut bytes = vec![0; 40];
    for (part, failure, what) in [
        (0, 0, "an unknown part of a completion"),
        (11, 0, "an unknown part of a completion"),
        (FAILED, 0, "an unknown failure"),
        (FAILED, 11, "an unknown failure"),
    ] {
        (bytes[PART_AT], bytes[PART_AT + 1]) = (part, failure);
        assert_eq!(Completion::decode(&bytes), Err(Corrupt { what }), "{part} {failure}");
    }
    (bytes[PART_AT], bytes[PART_AT + 1], bytes[PART_AT + 2]) = (FAILED, 1, 0xff);
    let what = "a failure's message is not UTF-8";
    assert_eq!(Completion::decode(&bytes), Err(Corrupt { what }));
}

#[test]
fn every_failure_has_a_number_of_its_own() {
    let known: Vec<u8> = (0..=u8::MAX).filter(|raw| Failure::from_wire(*raw).is_some()).collect();
    assert_eq!(known, (1..=10).collect::<Vec<u8>>());
    assert!(known.into_iter().all(|raw| Failure::from_wire(raw).is_some_and(|f| f as u8 == raw)));
}

#[test]
fn each_switch_of_a_fetch_is_a_bit_of_its_own() {
    for raw in 0..8 {
        let options = FetchOptions::decode(raw);
        assert_eq!(options.encode(), raw);
        assert_eq!(FetchOptions::decode(raw | 0xf8), options, "other bits mean nothing");
    }
}
