//! A ring whose other side writes over what it has published: frames are popped or the ring is corrupt,
//! and no frame is longer than the ring.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::memory::Memory;
use outboard_ring::spsc::{Consumer, Cursors, Producer};
use std::cell::RefCell;

const CAPACITY: usize = 256;

/// The ring's bytes; what two processes share is shared by two ends here.
struct Bytes<'a>(&'a RefCell<[u8; CAPACITY]>);

impl Memory for Bytes<'_> {
    fn copy_in(&self, at: usize, source: &[u8]) {
        self.0.borrow_mut()[at..at + source.len()].copy_from_slice(source);
    }

    fn move_out(&self, at: usize, target: &mut [u8]) {
        let source = &mut self.0.borrow_mut()[at..at + target.len()];
        target.copy_from_slice(source);
        source.fill(0);
    }
}

fuzz_target!(|rounds: Vec<(&[u8], u8, &[u8])>| {
    let (cursors, memory) = (Cursors::default(), RefCell::new([0; CAPACITY]));
    let mut producer = Producer::new(&cursors, Bytes(&memory), CAPACITY);
    let mut consumer = Consumer::new(&cursors, Bytes(&memory), CAPACITY);
    let mut payload = Vec::new();
    for (frame, at, over) in rounds {
        let frame = &frame[..frame.len().min(CAPACITY / 4)];
        let header = FrameHeader::new(FrameKind::Log, Tag::default());
        let is_in = producer.push(header, &[frame]).expect("the consumer's cursor is true");
        let _ = producer.publish();
        let is_broken = !over.is_empty();
        for (place, byte) in (usize::from(at)..CAPACITY).zip(over) {
            memory.borrow_mut()[place] = *byte;
        }
        loop {
            match consumer.pop(&mut payload) {
                Ok(Some(header)) => {
                    assert_eq!(header.len as usize, payload.len());
                    assert!(payload.len() <= CAPACITY);
                    assert!(is_broken || (is_in && payload == frame));
                }
                Ok(None) => break,
                Err(_) => return assert!(is_broken),
            }
        }
        let _ = consumer.release();
    }
});
