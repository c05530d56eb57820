//! A peer that writes anything to the cursors and to the bytes, at any time.

use super::*;
use crate::memory::Memory;
use proptest::prelude::*;

const CAPACITY: usize = 64;

fn set_tail(consumer: &HeapConsumer, tail: u64) {
    consumer.cursors.0.tail.store(tail, Ordering::Relaxed);
}

fn set_head(producer: &HeapProducer, head: u64) {
    producer.cursors.0.head.store(head, Ordering::Relaxed);
}

/// A ring whose producer has published one frame with this header, without an encoder's checks.
fn with_header(raw: [u8; FRAME_HEADER_BYTES], published: u64) -> HeapConsumer {
    let (_, consumer) = ring(CAPACITY);
    consumer.memory.copy_in(0, &raw);
    set_tail(&consumer, published);
    consumer
}

#[test]
fn a_producer_that_moves_backwards_or_too_far_is_corrupt() {
    const WHAT: Corrupt = Corrupt { what: "the producer's cursor moved backwards or too far" };
    for tail in [0, 16, 31, 32 + 65, 1 << 32, u64::MAX] {
        let (mut producer, mut consumer) = ring(CAPACITY);
        for slot in 0..2 {
            assert!(producer.push(body(slot), &[]).unwrap());
        }
        let _ = producer.publish();
        let mut payload = Vec::new();
        assert!(consumer.pop(&mut payload).unwrap().is_some());
        set_tail(&consumer, tail);
        assert_eq!(consumer.pop(&mut payload).map(|header| header.is_some()), Ok(true), "seen");
        assert_eq!(consumer.pop(&mut payload), Err(WHAT), "{tail}");
        assert_eq!(consumer.prepare_sleep(), Err(WHAT), "{tail}");
        assert_eq!(consumer.has_more(), Err(WHAT), "{tail}");
    }
}

#[test]
fn a_consumer_that_moves_backwards_or_too_far_is_corrupt() {
    const WHAT: Corrupt = Corrupt { what: "the consumer's cursor moved backwards or too far" };
    for head in [0, 15, 33, 1 << 32, u64::MAX] {
        let (mut producer, _) = ring(CAPACITY);
        for slot in 0..2 {
            assert!(producer.push(body(slot), &[]).unwrap());
        }
        set_head(&producer, 16);
        assert_eq!(producer.free_bytes(), Ok(CAPACITY - 16 - FRAME_HEADER_BYTES));
        set_head(&producer, head);
        assert_eq!(producer.free_bytes(), Err(WHAT), "{head}");
        assert_eq!(producer.prepare_wait(48), Err(WHAT), "{head}");
        assert_eq!(producer.push(body(3), &[&[0; 40]]), Err(WHAT), "{head}");
    }
}

#[test]
fn a_length_beyond_what_was_published_takes_no_memory() {
    let mut raw = body(1).encode();
    for (length, published) in [(1, 16), (33, 48), (49, 64), (u32::MAX, 64)] {
        raw[..4].copy_from_slice(&length.to_le_bytes());
        let mut consumer = with_header(raw, published);
        let mut payload = Vec::new();
        let what = "a frame is longer than what was published";
        assert_eq!(consumer.pop(&mut payload), Err(Corrupt { what }), "{length}");
        assert_eq!(payload.capacity(), 0);
    }
    raw[..4].copy_from_slice(&48_u32.to_le_bytes());
    let mut payload = Vec::new();
    assert!(with_header(raw, 64).pop(&mut payload).unwrap().is_some());
    assert_eq!(payload, [0; 48]);
}

#[test]
fn a_corrupt_frame_is_never_skipped() {
    let mut raw = body(1).encode();
    raw[4] = 99;
    let mut consumer = with_header(raw, 32);
    for _ in 0..3 {
        let what = "a frame of an unknown kind";
        assert_eq!(consumer.pop(&mut Vec::new()), Err(Corrupt { what }));
        assert_eq!(consumer.head, 0);
    }
    let mut consumer = with_header(body(1).encode(), 15);
    let what = "less than a frame header was published";
    assert_eq!(consumer.pop(&mut Vec::new()), Err(Corrupt { what }));
}

#[test]
fn a_frame_is_what_was_copied_out_however_the_peer_changes_it_later() {
    let (mut producer, mut consumer) = ring(CAPACITY);
    assert!(producer.push(body(1), &[b"first"]).unwrap());
    let _ = producer.publish();
    let mut payload = Vec::new();
    let header = consumer.pop(&mut payload).unwrap().unwrap();
    consumer.memory.copy_in(0, &[0xff; CAPACITY]);
    assert_eq!((header.tag.slot, &payload[..]), (1, &b"first"[..]));
    assert!(!consumer.has_more().unwrap());
}

#[test]
fn any_number_in_a_flag_is_a_sleeping_peer_that_is_woken_once() {
    for flag in [1, 2, u32::MAX] {
        let (mut producer, mut consumer) = ring(CAPACITY);
        consumer.cursors.0.consumer_sleeping.store(flag, Ordering::Relaxed);
        producer.cursors.0.producer_waiting.store(flag, Ordering::Relaxed);
        assert_eq!([producer.publish(), consumer.release()], [Wake::Needed; 2]);
        assert_eq!([producer.publish(), consumer.release()], [Wake::NotNeeded; 2]);
    }
}

#[derive(Debug, Clone)]
enum Act {
    Cursor { is_tail: bool, position: u64 },
    Bytes { at: usize, bytes: Vec<u8> },
    Pop,
    Push(usize),
    Wait(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let position = prop_oneof![0..200_u64, any::<u64>()];
    prop_oneof![
        (any::<bool>(), position).prop_map(|(is_tail, position)| Act::Cursor { is_tail, position }),
        (0..CAPACITY - 20, prop::collection::vec(0..30_u8, 1..20))
            .prop_map(|(at, bytes)| Act::Bytes { at, bytes }),
        Just(Act::Pop),
        (0..CAPACITY * 2).prop_map(Act::Push),
        (0..CAPACITY * 2).prop_map(Act::Wait),
    ]
}

proptest! {
    /// The ends are of two rings, each of which has the hostile peer on its other side.
    #[test]
    #[cfg_attr(miri, ignore = "Miri takes minutes; the cases above are of the same kinds")]
    fn no_peer_makes_an_end_panic_or_take_more_than_the_ring(
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let (mut producer, _) = ring(CAPACITY);
        let (_, mut consumer) = ring(CAPACITY);
        let mut payload = Vec::new();
        for act in acts {
            match act {
                Act::Cursor { is_tail: true, position } => set_tail(&consumer, position),
                Act::Cursor { position, .. } => set_head(&producer, position),
                Act::Bytes { at, bytes } => consumer.memory.copy_in(at, &bytes),
                Act::Pop => {
                    let before = consumer.head;
                    let popped = consumer.pop(&mut payload);
                    let moved = (consumer.head - before) as usize;
                    match popped {
                        Ok(Some(_)) => prop_assert_eq!(moved, FRAME_HEADER_BYTES + payload.len()),
                        _ => prop_assert_eq!(moved, 0),
                    }
                    prop_assert!(moved <= CAPACITY);
                    let _ = consumer.release();
                    let _ = consumer.prepare_sleep();
                }
                Act::Push(len) => {
                    if producer.push(body(1), &[&vec![7; len]]) == Ok(true) {
                        prop_assert!(len + FRAME_HEADER_BYTES <= CAPACITY);
                    }
                    let _ = producer.publish();
                }
                Act::Wait(len) => {
                    if producer.prepare_wait(len) == Ok(Sleep::Ready) {
                        prop_assert!(producer.push(body(1), &[&vec![7; len]]).unwrap());
                    }
                }
            }
            prop_assert!(producer.tail - producer.head_seen <= CAPACITY as u64);
            prop_assert!(consumer.tail_seen - consumer.head <= CAPACITY as u64);
        }
    }
}
