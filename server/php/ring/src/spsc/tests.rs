//! The ring on the heap: loom explores the orderings, proptest the sizes.

use super::*;
use crate::frame::{FrameKind, Tag};

#[cfg(not(loom))]
mod hostile;

#[cfg(loom)]
mod heap {
    use crate::memory::Memory;
    use loom::cell::UnsafeCell;

    /// Tracked cells, so that loom reports an access that races with the other side.
    #[derive(Debug)]
    pub(super) struct Heap(Vec<UnsafeCell<u8>>);

    // SAFETY: loom's cells check at each access that the protocol excludes the other thread.
    unsafe impl Sync for Heap {}

    impl Heap {
        pub(super) fn new(len: usize) -> Self {
            Self((0..len).map(|_| UnsafeCell::new(0)).collect())
        }
    }

    impl Memory for loom::sync::Arc<Heap> {
        fn copy_in(&self, at: usize, source: &[u8]) {
            for (cell, byte) in self.0[at..].iter().zip(source) {
                // SAFETY: loom panics when another thread accesses the cell concurrently.
                cell.with_mut(|cell| unsafe { *cell = *byte });
            }
        }

        fn move_out(&self, at: usize, target: &mut [u8]) {
            for (cell, byte) in self.0[at..].iter().zip(target) {
                // SAFETY: as above.
                *byte = cell.with_mut(|cell| unsafe { std::mem::take(&mut *cell) });
            }
        }
    }
}

#[cfg(not(loom))]
mod heap {
    use crate::memory::Memory;
    use std::sync::Mutex;

    #[derive(Debug)]
    pub(super) struct Heap(Mutex<Vec<u8>>);

    impl Heap {
        pub(super) fn new(len: usize) -> Self {
            Self(Mutex::new(vec![0; len]))
        }

        pub(super) fn is_clear(&self) -> bool {
            self.0.lock().unwrap().iter().all(|byte| *byte == 0)
        }
    }

    impl Memory for std::sync::Arc<Heap> {
        fn copy_in(&self, at: usize, source: &[u8]) {
            self.0.lock().unwrap()[at..at + source.len()].copy_from_slice(source);
        }

        fn move_out(&self, at: usize, target: &mut [u8]) {
            let source = &mut self.0.lock().unwrap()[at..at + target.len()];
            target.copy_from_slice(source);
            source.fill(0);
        }
    }
}

use heap::Heap;
#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// `Arc<Cursors>` of either kind as a `Borrow<Cursors>`.
#[derive(Debug, Clone)]
struct Held(Arc<Cursors>);

impl std::borrow::Borrow<Cursors> for Held {
    fn borrow(&self) -> &Cursors {
        &self.0
    }
}

type HeapProducer = Producer<Held, Arc<Heap>>;
type HeapConsumer = Consumer<Held, Arc<Heap>>;

fn ring(capacity: usize) -> (HeapProducer, HeapConsumer) {
    let cursors = Held(Arc::new(Cursors::default()));
    let memory = Arc::new(Heap::new(capacity));
    (
        Producer::new(cursors.clone(), memory.clone(), capacity),
        Consumer::new(cursors, memory, capacity),
    )
}

fn body(slot: u32) -> FrameHeader {
    FrameHeader::new(FrameKind::Body, Tag { slot, generation: slot + 1 })
}

#[cfg(loom)]
#[test]
fn frames_arrive_whole_and_in_order_in_every_interleaving() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(32);
        let sender = loom::thread::spawn(move || {
            for slot in 0..2 {
                while !producer.push(body(slot), &[&[slot as u8; 3]]).unwrap() {
                    loom::thread::yield_now();
                }
                let _ = producer.publish();
            }
        });
        let mut payload = Vec::new();
        for slot in 0..2 {
            let header = loop {
                if let Some(header) = consumer.pop(&mut payload).unwrap() {
                    break header;
                }
                loom::thread::yield_now();
            };
            assert_eq!((header.tag.slot, &payload[..]), (slot, &[slot as u8; 3][..]));
            let _ = consumer.release();
        }
        sender.join().unwrap();
    });
}

#[cfg(loom)]
#[test]
fn a_consumer_that_went_to_sleep_is_always_woken() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(64);
        let sender = loom::thread::spawn(move || {
            assert!(producer.push(body(7), &[b"x"]).unwrap());
            producer.publish()
        });
        let slept = consumer.prepare_sleep().unwrap();
        let wake = sender.join().unwrap();
        assert!(slept == Sleep::Ready || wake == Wake::Needed, "asleep beside a full ring");
    });
}

#[cfg(loom)]
#[test]
fn a_producer_that_waits_for_room_is_always_woken() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(32);
        assert!(producer.push(body(1), &[&[0; 16]]).unwrap());
        let _ = producer.publish();
        let reader = loom::thread::spawn(move || {
            let mut payload = Vec::new();
            assert!(consumer.pop(&mut payload).unwrap().is_some());
            consumer.release()
        });
        let waiting = producer.prepare_wait(16).unwrap();
        let wake = reader.join().unwrap();
        assert!(waiting == Sleep::Ready || wake == Wake::Needed, "waiting beside an empty ring");
    });
}

#[cfg(not(loom))]
mod heap_only {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_ring_refuses_and_goes_on_after_a_release() {
        let (mut producer, mut consumer) = ring(64);
        assert_eq!(producer.largest_payload_bytes(), 48);
        assert!(producer.push(body(1), &[&[1; 20], &[2; 12]]).unwrap());
        assert!(!producer.push(body(2), &[&[3; 1]]).unwrap());
        assert_eq!(producer.publish(), Wake::NotNeeded);
        let mut payload = Vec::new();
        assert_eq!(consumer.pop(&mut payload).unwrap().unwrap().tag.slot, 1);
        assert_eq!((payload.len(), payload[19], payload[20]), (32, 1, 2));
        assert!(!producer.push(body(2), &[&[3; 40]]).unwrap(), "space is not given back yet");
        assert_eq!(consumer.release(), Wake::NotNeeded);
        assert!(producer.push(body(2), &[&[3; 40]]).unwrap(), "wraps around the end");
        let _ = producer.publish();
        assert_eq!(consumer.pop(&mut payload).unwrap().unwrap().len, 40);
        assert_eq!(payload, [3; 40]);
        assert_eq!(consumer.pop(&mut payload).unwrap(), None);
    }

    #[test]
    fn sleepers_are_reported_to_the_other_side_once() {
        let (mut producer, mut consumer) = ring(64);
        assert_eq!(consumer.prepare_sleep().unwrap(), Sleep::MayBlock);
        assert!(producer.push(body(1), &[b"a"]).unwrap());
        assert_eq!(producer.publish(), Wake::Needed);
        assert_eq!(producer.publish(), Wake::NotNeeded);
        assert_eq!(consumer.prepare_sleep().unwrap(), Sleep::Ready);
        assert_eq!(producer.prepare_wait(40).unwrap(), Sleep::MayBlock);
        assert!(consumer.pop(&mut Vec::new()).unwrap().is_some());
        assert_eq!(consumer.release(), Wake::Needed);
    }

    #[test]
    fn a_frame_without_payload_waits_for_room_for_its_header() {
        for left in 0..2 * FRAME_HEADER_BYTES {
            let (mut producer, mut consumer) = ring(64);
            let payload = vec![7; 64 - FRAME_HEADER_BYTES - left];
            assert!(producer.push(body(1), &[&payload]).unwrap());
            let _ = producer.publish();
            let fits = left >= FRAME_HEADER_BYTES;
            let expected = if fits { Sleep::Ready } else { Sleep::MayBlock };
            assert_eq!(producer.prepare_wait(0), Ok(expected), "{left} bytes are left");
            assert!(consumer.pop(&mut Vec::new()).unwrap().is_some());
            assert_eq!(consumer.release() == Wake::Needed, !fits, "{left} bytes are left");
            assert_eq!(producer.prepare_wait(0), Ok(Sleep::Ready));
        }
    }

    #[test]
    fn impossible_cursors_are_named_and_not_followed() {
        let (mut producer, mut consumer) = ring(64);
        let cursors = consumer.cursors.0.clone();
        cursors.tail.store(65, Ordering::Relaxed);
        assert!(consumer.pop(&mut Vec::new()).is_err());
        cursors.tail.store(8, Ordering::Relaxed);
        assert!(consumer.pop(&mut Vec::new()).is_err(), "half a header");
        cursors.head.store(1, Ordering::Relaxed);
        assert!(producer.free_bytes().is_err(), "head beyond tail");
    }

    /// Miri takes a second for some.
    const MOST_FRAMES: usize = if cfg!(miri) { 20 } else { 200 };

    proptest! {
        #[test]
        fn any_sequence_of_frames_comes_out_as_it_went_in(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..MOST_FRAMES),
            batch in 1_usize..5,
        ) {
            let (mut producer, mut consumer) = ring(256);
            let mut expected = std::collections::VecDeque::new();
            let mut payload = Vec::new();
            for (slot, frame) in frames.iter().enumerate() {
                while !producer.push(body(slot as u32), &[frame]).unwrap() {
                    let _ = producer.publish();
                    let header = consumer.pop(&mut payload).unwrap().unwrap();
                    let _ = consumer.release();
                    let (slot, frame): (usize, &Vec<u8>) = expected.pop_front().unwrap();
                    prop_assert_eq!(header.tag.slot as usize, slot);
                    prop_assert_eq!(&payload, frame);
                }
                expected.push_back((slot, frame));
                if slot % batch == 0 {
                    let _ = producer.publish();
                }
            }
            let _ = producer.publish();
            while let Some(header) = consumer.pop(&mut payload).unwrap() {
                let (slot, frame) = expected.pop_front().unwrap();
                prop_assert_eq!(header.tag.slot as usize, slot);
                prop_assert_eq!(&payload, frame);
            }
            prop_assert!(expected.is_empty());
            prop_assert!(consumer.memory.is_clear());
        }
    }
}
