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
