//! [`Scheduler`]: whose data is sent next (RFC 9218 10).
//!
//! Owned by `connection`. More urgent streams go first. Within an urgency, a stream that is not
//! incremental is sent alone for a long turn, and the others alternate frame by frame. Invariant: a
//! stream is listed once, and exactly while its `is_scheduled` is set.

use crate::stream::{Stream, StreamKey};
use outboard_http_semantics::Priority;
use std::collections::VecDeque;

/// What an incremental stream, or one without a declared priority, sends before the next one.
const SHORT_TURN_BYTES: usize = 16 << 10;
/// What a stream that is not incremental sends before the next one, so that none waits forever.
const LONG_TURN_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    queues: [VecDeque<StreamKey>; Priority::URGENCIES],
    /// The queues that are not empty.
    occupied: u8,
}

impl Scheduler {
    /// Adds a stream that is ready, unless it is listed.
    pub(crate) fn add(&mut self, key: StreamKey, stream: &mut Stream) {
        if stream.is_scheduled || !stream.is_ready() {
            return;
        }
        stream.is_scheduled = true;
        stream.turn_bytes = 0;
        let urgency = usize::from(stream.priority.urgency) % Priority::URGENCIES;
        self.queues[urgency].push_back(key);
        self.occupied |= 1 << urgency;
    }

    /// Removes a stream if it is listed.
    pub(crate) fn remove(&mut self, key: StreamKey, stream: &mut Stream) {
        if !std::mem::take(&mut stream.is_scheduled) {
            return;
        }
        let urgency = usize::from(stream.priority.urgency) % Priority::URGENCIES;
        let queue = &mut self.queues[urgency];
        match queue.front() == Some(&key) {
            true => drop(queue.pop_front()),
            false => queue.retain(|other| *other != key),
        }
        if queue.is_empty() {
            self.occupied &= !(1 << urgency);
        }
    }

    /// Changes the priority of a stream.
    pub(crate) fn set_priority(&mut self, key: StreamKey, stream: &mut Stream, priority: Priority) {
        let was_scheduled = stream.is_scheduled && priority.urgency != stream.priority.urgency;
        if was_scheduled {
            self.remove(key, stream);
        }
        stream.priority = priority;
        stream.has_priority = true;
        if was_scheduled {
            self.add(key, stream);
        }
    }

    /// The stream whose turn it is.
    pub(crate) fn next(&self) -> Option<StreamKey> {
        if self.occupied == 0 {
            return None;
        }
        self.queues[self.occupied.trailing_zeros() as usize].front().copied()
    }

    /// Notes that the stream whose turn it is has sent `bytes`.
    pub(crate) fn sent(&mut self, key: StreamKey, stream: &mut Stream, bytes: usize) {
        if !stream.is_ready() {
            return self.remove(key, stream);
        }
        stream.turn_bytes += bytes;
        let is_alone = stream.has_priority && !stream.priority.is_incremental;
        if stream.turn_bytes >= if is_alone { LONG_TURN_BYTES } else { SHORT_TURN_BYTES } {
            stream.turn_bytes = 0;
            self.queues[usize::from(stream.priority.urgency) % Priority::URGENCIES].rotate_left(1);
        }
    }

    /// Whether a stream of this urgency would have to wait for another.
    pub(crate) fn has_before(&self, urgency: u8) -> bool {
        self.occupied & (0xff >> (7 - urgency.min(7))) != 0
    }

    /// Removes everything, with the memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams with data in the buffer and these priorities.
    fn streams(priorities: &[Option<&str>]) -> (Scheduler, Vec<(StreamKey, Stream)>) {
        let mut scheduler = Scheduler::default();
        let make = |(slot, priority): (usize, &Option<&str>)| {
            let key = StreamKey { id: 2 * slot as u32 + 1, slot: slot as u32 };
            let mut stream = Stream::new(key.id, 1 << 30, 1 << 30);
            stream.buffer.extend(b"x");
            if let Some(priority) = priority {
                scheduler.set_priority(key, &mut stream, Priority::parse(priority.as_bytes()));
            }
            scheduler.add(key, &mut stream);
            (key, stream)
        };
        let streams = priorities.iter().enumerate().map(make).collect();
        (scheduler, streams)
    }

    /// The slots of the next frames of 16 KiB.
    fn turns(
        scheduler: &mut Scheduler,
        streams: &mut [(StreamKey, Stream)],
        count: usize,
    ) -> Vec<usize> {
        let turn = |_| {
            let key = scheduler.next().unwrap();
            scheduler.sent(key, &mut streams[key.slot()].1, 16 << 10);
            key.slot()
        };
        (0..count).map(turn).collect()
    }

    #[test]
    fn more_urgent_streams_go_first() {
        let (mut scheduler, mut streams) = streams(&[None, Some("u=5"), Some("u=0,i")]);
        assert_eq!(turns(&mut scheduler, &mut streams, 2), [2, 2]);
        let (key, stream) = &mut streams[2];
        scheduler.remove(*key, stream);
        assert_eq!(turns(&mut scheduler, &mut streams, 2), [0, 0]);
        assert!(!scheduler.has_before(2) && scheduler.has_before(3));
        let (key, stream) = &mut streams[1];
        scheduler.set_priority(*key, stream, Priority { urgency: 0, is_incremental: false });
        assert_eq!(turns(&mut scheduler, &mut streams, 1), [1]);
    }

    #[test]
    fn incremental_streams_alternate() {
        let (mut scheduler, mut streams) = streams(&[Some("i"), Some("i"), None]);
        assert_eq!(turns(&mut scheduler, &mut streams, 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_stream_that_is_not_incremental_is_sent_alone_for_a_while() {
        let (mut scheduler, mut streams) = streams(&[Some("u=3"), Some("u=3")]);
        let expected = [[0; 16], [1; 16], [0; 16]].concat();
        assert_eq!(turns(&mut scheduler, &mut streams, 48), expected);
    }

    #[test]
    fn a_stream_without_data_is_not_listed() {
        let (mut scheduler, mut streams) = streams(&[None, None]);
        streams[0].1.buffer.clear();
        assert_eq!(turns(&mut scheduler, &mut streams, 3), [0, 1, 1]);
        let (key, stream) = &mut streams[1];
        scheduler.remove(*key, stream);
        assert_eq!(scheduler.next(), None);
        assert!(!scheduler.has_before(7));
    }
}
