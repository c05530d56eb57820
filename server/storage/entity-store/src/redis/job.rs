//! Jobs for the threads of [`super`], and their results.

use crate::change::{Write, Written};
use crate::error::StoreError;
use crate::record::Record;
use crate::types::Piece;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// A job.
pub(crate) struct Job {
    pub(crate) task: Task,
    /// When retries end.
    pub(crate) deadline: Instant,
}

/// The work of a job. Keys get the prefix of a namespace.
pub(crate) enum Task {
    Get {
        prefix: Arc<[u8]>,
        ids: Vec<Box<[u8]>>,
    },
    /// `copies` nodes have to confirm each write.
    Write {
        prefix: Arc<[u8]>,
        writes: Vec<TaggedWrite>,
        copies: u32,
    },
    Scan {
        prefix: Arc<[u8]>,
        cursor: Cursor,
        most_bytes: usize,
    },
}

/// A write and a unique tag, by which a repeated write is recognised.
pub(crate) struct TaggedWrite {
    pub(crate) write: Write,
    pub(crate) tag: u64,
}

/// The result of a job.
pub(crate) enum JobOutput {
    Got(Vec<Option<Record>>),
    Written(Vec<Result<Written, StoreError>>),
    Scanned(Piece, Option<Cursor>),
}

/// The position of a scan.
pub(crate) struct Cursor {
    pub(crate) start: Bound<Vec<u8>>,
    pub(crate) end: Bound<Vec<u8>>,
    /// The next keys, as far as they have been read.
    pub(crate) keys: VecDeque<Box<[u8]>>,
    /// No keys follow them.
    pub(crate) is_last: bool,
}

impl Cursor {
    /// The start of a scan.
    pub(crate) fn new(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self { start, end, keys: VecDeque::new(), is_last: false }
    }

    /// Whether a key is still to come.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        let is_after_start = match &self.start {
            Bound::Included(start) => key >= &start[..],
            Bound::Excluded(start) => key > &start[..],
            Bound::Unbounded => true,
        };
        let is_before_end = match &self.end {
            Bound::Included(end) => key <= &end[..],
            Bound::Excluded(end) => key < &end[..],
            Bound::Unbounded => true,
        };
        is_after_start && is_before_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_contains_the_keys_between_its_bounds() {
        use Bound::{Excluded, Included, Unbounded};
        let b = || b"b".to_vec();
        for (start, end, expected) in [
            (Unbounded, Unbounded, ["a", "b", "ba"].as_slice()),
            (Included(b()), Unbounded, &["b", "ba"]),
            (Excluded(b()), Unbounded, &["ba"]),
            (Unbounded, Included(b()), &["a", "b"]),
            (Unbounded, Excluded(b()), &["a"]),
            (Included(b()), Included(b()), &["b"]),
            (Excluded(b()), Excluded(b()), &[]),
        ] {
            let cursor = Cursor::new(start, end);
            let keys = ["a", "b", "ba"].into_iter().filter(|key| cursor.contains(key.as_bytes()));
            assert_eq!(keys.collect::<Vec<_>>(), expected, "{:?} {:?}", cursor.start, cursor.end);
        }
    }
}
