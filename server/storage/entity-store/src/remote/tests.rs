//! Calls of a store in another process, which replies, replies wrongly, or ends.

use super::*;
use crate::change::{Change, Condition};
use crate::store::tests::put;
use outboard_reactor::{Event, current_task, run, spawn};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

/// The other process: the frames that have arrived there.
#[derive(Default)]
struct Other {
    frames: RefCell<Vec<Vec<u8>>>,
    arrived: Event,
}

fn remote() -> (Rc<Remote>, Rc<Other>) {
    let other = Rc::new(Other::default());
    let there = other.clone();
    let send = move |frame| {
        there.frames.borrow_mut().push(frame);
        there.arrived.set();
    };
    (Rc::new(Remote::new(send)), other)
}

/// Replies to every call as `reply` says.
fn serve(remote: &Rc<Remote>, other: &Rc<Other>, reply: impl Fn(Call) -> Reply + 'static) {
    let (remote, other) = (remote.clone(), other.clone());
    spawn(async move {
        loop {
            for frame in other.frames.take() {
                let (number, namespace, call) = Call::decode(&frame).unwrap();
                assert_eq!(namespace, "carts");
                remote.receive(&reply(call).encode(number));
            }
            other.arrived.wait().await;
        }
    });
}

/// Begins a call.
async fn begin<F: Future>(call: &mut Pin<&mut F>) -> Poll<F::Output> {
    assert_ne!(Some(current_task()), None);
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await
}

fn record(id: &[u8]) -> Record {
    Record { version: 1, expires_ms: None, value: id.into() }
}

#[test]
fn many_keys_are_several_calls_and_one_result_in_order() {
    run(async {
        let (remote, other) = remote();
        serve(&remote, &other, |call| {
            let Call::Get(ids) = call else { panic!("{call:?}") };
            assert!(ids.len() <= IDS_PER_CALL);
            Reply::Records(ids.iter().map(|id| (id[0] % 2 == 0).then(|| record(id))).collect())
        });
        let ids: Vec<[u8; 1]> = (0..70).map(|byte| [byte]).collect();
        let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
        let found = remote.get_many("carts", &ids).await.unwrap();
        let expected: Vec<_> = ids.iter().map(|id| (id[0] % 2 == 0).then(|| record(id))).collect();
        assert_eq!(found, expected);
        assert_eq!(remote.get_many("carts", &[]).await, Ok(vec![]));
        assert!(!remote.is_waiting());
    })
    .unwrap();
}

#[test]
fn large_writes_are_several_calls_with_a_result_each() {
    run(async {
        let (remote, other) = remote();
        serve(&remote, &other, |call| {
            let Call::Write(writes, 3) = call else { panic!("other copies") };
            assert!(writes.len() <= 2, "the second one exceeds the bytes of a call");
            let result = |write: &Write| match &*write.id {
                b"b" => Err(StoreError::Full),
                id => Ok(Written { record: Some(record(id)), existed: None }),
            };
            Reply::Written(writes.iter().map(result).collect())
        });
        let value = vec![0; WRITE_BYTES_PER_CALL - 1];
        let writes = [b"a", b"b", b"c"].map(|id| put(id, &value)).into();
        let written = remote.write_many("carts", writes, 3).await;
        let of = |id: &[u8]| Ok(Written { record: Some(record(id)), existed: None });
        assert_eq!(written, [of(b"a"), Err(StoreError::Full), of(b"c")]);
    })
    .unwrap();
}

#[test]
fn a_reply_of_another_kind_or_length_is_malformed() {
    run(async {
        for kind in 0..3 {
            let (remote, other) = remote();
            serve(&remote, &other, move |_| match kind {
                0 => Reply::Records(vec![None; 3]),
                1 => Reply::Written(vec![]),
                _ => Reply::Done,
            });
            let ids: [&[u8]; 2] = [b"a", b"b"];
            assert_eq!(remote.get_many("carts", &ids).await, Err(malformed()));
            let writes = vec![put(b"a", b""), put(b"b", b"")];
            let written = remote.write_many("carts", writes, 1).await;
            assert_eq!(written, [Err(malformed()), Err(malformed())]);
            let scanned = remote.scan("carts", Bound::Unbounded, Bound::Unbounded).await;
            assert_eq!(scanned, Err(malformed()));
        }
    })
    .unwrap();
}

#[test]
fn an_error_of_the_other_process_is_that_of_the_call() {
    run(async {
        let (remote, other) = remote();
        serve(&remote, &other, |_| Reply::Failed(StoreError::Full));
        assert_eq!(remote.compact("carts").await, Err(StoreError::Full));
        assert_eq!(remote.adopt("carts", vec![]).await, Err(StoreError::Full));
        let both = remote.write_many("carts", vec![put(b"a", b""), put(b"b", b"")], 1).await;
        assert_eq!(both, [Err(StoreError::Full), Err(StoreError::Full)]);
    })
    .unwrap();
}

#[test]
fn malformed_replies_and_those_to_no_call_are_ignored() {
    run(async {
        let (remote, _) = remote();
        let mut call = pin!(remote.compact("carts"));
        assert!(begin(&mut call).await.is_pending());
        let reply = Reply::Done.encode(0);
        remote.receive(&reply[..reply.len() - 1]);
        remote.receive(b"");
        remote.receive(&Reply::Done.encode(1));
        assert!(begin(&mut call).await.is_pending() && remote.is_waiting());
        remote.receive(&reply);
        remote.receive(&reply);
        assert_eq!(call.await, Ok(()));
        assert_eq!(remote.waiting_bytes.get(), 0);
    })
    .unwrap();
}

#[test]
fn the_end_of_the_other_process_ends_all_calls_and_the_next_ones() {
    run(async {
        let (remote, other) = remote();
        let gone = || StoreError::Unreachable("the other process of the upgrade has ended".into());
        let mut calls = [pin!(remote.compact("a")), pin!(remote.compact("b"))];
        for call in &mut calls {
            assert!(begin(call).await.is_pending());
        }
        remote.close();
        assert!(!remote.is_waiting());
        for call in calls {
            assert_eq!(call.await, Err(gone()));
        }
        assert_eq!(remote.compact("c").await, Err(gone()));
        assert_eq!(other.frames.borrow().len(), 2, "nothing is sent to a process that has ended");
        remote.receive(&Reply::Done.encode(0));
        assert_eq!(remote.waiting_bytes.get(), 0);
    })
    .unwrap();
}

#[test]
fn no_more_calls_wait_than_the_most() {
    run(async {
        let (remote, _) = remote();
        let mut calls: Vec<_> = (0..MAX_CALLS).map(|_| Box::pin(remote.compact("carts"))).collect();
        for call in &mut calls {
            assert!(begin(&mut call.as_mut()).await.is_pending());
        }
        assert_eq!(remote.compact("carts").await, Err(StoreError::Overloaded));
        remote.receive(&Reply::Done.encode(7));
        let mut next = pin!(remote.compact("carts"));
        assert!(begin(&mut next).await.is_pending(), "there is room for one more");
    })
    .unwrap();
}

#[test]
fn a_call_may_be_longer_than_the_most_bytes_while_it_waits_alone() {
    run(async {
        let (remote, _) = remote();
        let change = Change::Put { value: vec![0; MAX_BYTES].into(), ttl_ms: None };
        let write = Write { id: (*b"a").into(), change, condition: Condition::Always };
        let mut long = pin!(remote.write_many("carts", vec![write], 1));
        assert!(begin(&mut long).await.is_pending());
        assert!(remote.waiting_bytes.get() > MAX_BYTES);
        assert_eq!(remote.compact("carts").await, Err(StoreError::Overloaded));
        remote.receive(&Reply::Written(vec![Err(StoreError::Full)]).encode(0));
        assert_eq!(long.await, [Err(StoreError::Full)]);
        let mut next = pin!(remote.compact("carts"));
        assert!(begin(&mut next).await.is_pending());
    })
    .unwrap();
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_call_or_reply_that_is_encoded_so_or_invalid(
        head in proptest::option::of(0..6_u8),
        bytes in proptest::collection::vec(proptest::prop_oneof![0..4_u8, 0..=255_u8], 0..80),
    ) {
        // A valid number and namespace, then anything; or anything.
        let kind = head.map(|kind| [&[0; 16][..], &[kind]].concat()).unwrap_or_default();
        let frame = [&kind, &bytes[..]].concat();
        if let Some((number, namespace, call)) = Call::decode(&frame) {
            let again = call.encode(number, &namespace);
            proptest::prop_assert_eq!(Call::decode(&again), Some((number, namespace, call)));
        }
        if let Some((number, reply)) = Reply::decode(&frame) {
            proptest::prop_assert_eq!(Reply::decode(&reply.encode(number)), Some((number, reply)));
        }
    }
}
