//! What the threads of [`super`] are given and give back.

use crate::change::{Write, Written};
use crate::error::StoreError;
use crate::namespace::Piece;
use crate::record::Record;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// Something to do.
pub(crate) struct Job {
    pub(crate) task: Task,
    /// Until when it is tried again.
    pub(crate) until: Instant,
}

/// What it is. Keys begin with the prefix of a namespace.
pub(crate) enum Task {
    /// Read these.
    Get { prefix: Arc<[u8]>, ids: Vec<Box<[u8]>> },
    /// Write these; each counts when so many nodes have it.
    Write { prefix: Arc<[u8]>, writes: Vec<NamedWrite>, copies: u32 },
    /// Read on.
    Scan { prefix: Arc<[u8]>, cursor: Cursor, most_bytes: usize },
}

/// A write and a number that no other write has, by which it is known when it comes again.
pub(crate) struct NamedWrite {
    pub(crate) write: Write,
    pub(crate) name: u64,
}

/// What came of it.
pub(crate) enum Done {
    Got(Vec<Option<Record>>),
    Written(Vec<Result<Written, StoreError>>),
    Scanned(Piece, Option<Cursor>),
}

/// Where a scan is.
pub(crate) struct Cursor {
    pub(crate) start: Bound<Vec<u8>>,
    pub(crate) end: Bound<Vec<u8>>,
    /// What comes next, as far as it is known.
    pub(crate) names: VecDeque<Box<[u8]>>,
    /// Nothing comes after them.
    pub(crate) is_last: bool,
}

impl Cursor {
    /// A scan that has not begun.
    pub(crate) fn new(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self { start, end, names: VecDeque::new(), is_last: false }
    }

    /// Whether a name is still to come.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let is_behind_start = match &self.start {
            Bound::Included(start) => name >= &start[..],
            Bound::Excluded(start) => name > &start[..],
            Bound::Unbounded => true,
        };
        let is_before_end = match &self.end {
            Bound::Included(end) => name <= &end[..],
            Bound::Excluded(end) => name < &end[..],
            Bound::Unbounded => true,
        };
        is_behind_start && is_before_end
    }
}
