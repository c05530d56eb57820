//! [`SpanQueue`]: encoded spans until they are exported.
//!
//! A thread has one. Invariant: it takes no more memory than its limit; spans beyond it are dropped and
//! counted, so a collector that is slow or gone costs nothing but its spans.

use std::collections::VecDeque;

/// Spans of one request to the collector.
#[derive(Debug, Default)]
pub struct Batch {
    /// The spans, encoded one after the other.
    pub entries: Vec<u8>,
    /// How many.
    pub spans: u64,
}

/// The size at which a batch is complete.
const BATCH_BYTES: usize = 256 << 10;
/// The same in spans, as the batch processor of OpenTelemetry's SDKs has.
const BATCH_SPANS: u64 = 512;

/// See the module.
#[derive(Debug)]
pub struct SpanQueue {
    batches: VecDeque<Batch>,
    limit_bytes: usize,
    held_bytes: usize,
    dropped: u64,
}

impl SpanQueue {
    /// An empty queue.
    pub fn new(limit_bytes: usize) -> Self {
        Self { batches: VecDeque::new(), limit_bytes, held_bytes: 0, dropped: 0 }
    }

    /// Adds encoded spans. Returns whether a batch is complete.
    pub fn add(&mut self, entries: &[u8], spans: u64) -> bool {
        if self.held_bytes + entries.len() > self.limit_bytes {
            self.dropped += spans;
            return self.has_complete();
        }
        self.held_bytes += entries.len();
        let is_complete = |batch: &Batch| {
            batch.spans >= BATCH_SPANS || batch.entries.len() + entries.len() > BATCH_BYTES
        };
        if self.batches.back().is_none_or(is_complete) {
            self.batches.push_back(Batch::default());
        }
        if let Some(batch) = self.batches.back_mut() {
            batch.entries.extend_from_slice(entries);
            batch.spans += spans;
        }
        self.has_complete()
    }

    fn has_complete(&self) -> bool {
        self.batches.len() > 1 || self.batches.front().is_some_and(|one| one.spans >= BATCH_SPANS)
    }

    /// The oldest batch. It counts until [`SpanQueue::release`].
    pub fn take(&mut self) -> Option<Batch> {
        self.batches.pop_front()
    }

    /// A batch was exported; or it was dropped.
    pub fn release(&mut self, batch: Batch, is_dropped: bool) {
        self.held_bytes -= batch.entries.len();
        if is_dropped {
            self.dropped += batch.spans;
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The size of the spans that were not exported yet.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Spans that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_what_is_dropped_is_counted() {
        let mut queue = SpanQueue::new(10_000);
        for _ in 0..1_000 {
            queue.add(&[0; 100], 1);
        }
        assert_eq!((queue.held_bytes(), queue.dropped()), (10_000, 900));
        let batch = queue.take().unwrap();
        queue.add(&[0; 100], 1);
        assert_eq!(queue.dropped(), 901, "the batch that is being exported counts");
        queue.release(batch, true);
        assert_eq!((queue.held_bytes(), queue.dropped()), (0, 1_001));
    }

    #[test]
    fn a_batch_has_a_bounded_size() {
        let mut queue = SpanQueue::new(100 << 20);
        let mut complete = 0;
        for _ in 0..2_000 {
            complete += usize::from(queue.add(&[0; 100], 1));
        }
        assert_eq!(complete, 2_000 - 511);
        let spans: Vec<u64> =
            std::iter::from_fn(|| queue.take()).map(|batch| batch.spans).collect();
        assert_eq!(spans, [512, 512, 512, 464]);
        for _ in 0..6 {
            queue.add(&[0; 100 << 10], 3);
        }
        let spans: Vec<u64> =
            std::iter::from_fn(|| queue.take()).map(|batch| batch.spans).collect();
        assert_eq!(spans, [6, 6, 6]);
    }
}
