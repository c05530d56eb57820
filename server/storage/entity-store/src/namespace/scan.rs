//! [`Scan`]: the records of a namespace between two keys, in pieces.
//!
//! Used by all who read ranges. Invariants: each record is in one piece; a scan whose records move to
//! another process goes on after the last record that it has returned; the state of a scan on disk belongs to
//! its namespace, which can drop it at any time ([`Cursors`]).

use super::{Backend, Namespace};
use crate::disk::Cursor;
use crate::error::StoreError;
use crate::memory::is_empty;
use crate::record::ID_MAX_BYTES;
use crate::redis::{self, Redis};
use crate::types::Piece;
use std::cell::RefCell;
use std::ops::Bound;
use std::rc::{Rc, Weak};

/// The size of a piece.
const PIECE_BYTES: usize = 64 << 10;

/// The position of a scan on disk, and the state that it sees.
type Slot = RefCell<Option<Cursor>>;

/// The scans on disk that are in progress.
#[derive(Default)]
pub(crate) struct Cursors(RefCell<Vec<Weak<Slot>>>);

impl Cursors {
    fn add(&self) -> Rc<Slot> {
        let slot = Rc::default();
        let mut all = self.0.borrow_mut();
        all.retain(|slot| slot.strong_count() > 0);
        all.push(Rc::downgrade(&slot));
        slot
    }

    /// Drops them all: what they see holds files.
    pub(crate) fn clear(&self) {
        self.0.borrow().iter().filter_map(Weak::upgrade).for_each(|slot| drop(slot.take()));
    }
}

/// A scan in progress.
pub struct Scan {
    namespace: Rc<Namespace>,
    /// After the last record that was returned.
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    cursor: Option<Rc<Slot>>,
    of_redis: Option<Box<redis::Cursor>>,
    is_over: bool,
}

impl Scan {
    pub(crate) fn new(
        namespace: Rc<Namespace>,
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
    ) -> Self {
        Self { namespace, start, end, cursor: None, of_redis: None, is_over: false }
    }

    /// The next records; empty at the end.
    ///
    /// # Errors
    /// As [`Namespace::get`]; the scan is over then.
    pub async fn next(&mut self) -> Result<Piece, StoreError> {
        while !self.is_over && !is_empty(&self.start, &self.end) {
            let bytes = bound_bytes(&self.start).max(bound_bytes(&self.end));
            self.is_over = true;
            if bytes > ID_MAX_BYTES {
                return Err(StoreError::InvalidKey { bytes });
            }
            let (piece, has_more) = self.piece().await?;
            self.is_over = !has_more;
            if let Some((last, _)) = piece.last() {
                self.start = Bound::Excluded(last.to_vec());
                return Ok(piece);
            }
        }
        Ok(Piece::new())
    }

    /// The next records, possibly none, and whether there may be more.
    async fn piece(&mut self) -> Result<(Piece, bool), StoreError> {
        let namespace = self.namespace.clone();
        let bounds = (self.start.clone(), self.end.clone());
        let backend = namespace.backend().await?;
        Ok(match &*backend {
            Backend::Disk(disk) => {
                let slot = self.cursor.get_or_insert_with(|| namespace.cursors.add());
                let cursor = slot.take().unwrap_or_else(|| disk.scan(bounds.0, bounds.1));
                let (piece, rest) = disk.scan_on(cursor, PIECE_BYTES).await?;
                let has_more = rest.is_some();
                slot.replace(rest);
                (piece, has_more)
            }
            Backend::Memory(memory) => {
                let (piece, rest) = memory.scan_on(bounds.0, &bounds.1, PIECE_BYTES);
                (piece, rest.is_some())
            }
            Backend::Redis(redis, prefix) => {
                let cursor = self.of_redis.take();
                let cursor = cursor.unwrap_or_else(|| Box::new(Redis::scan(bounds.0, bounds.1)));
                let (piece, rest) = redis.scan_on(prefix, *cursor, PIECE_BYTES).await?;
                self.of_redis = rest.map(Box::new);
                (piece, self.of_redis.is_some())
            }
            Backend::Remote(remote) => {
                let piece = remote.scan(namespace.name(), bounds.0, bounds.1).await?;
                let has_more = !piece.is_empty();
                (piece, has_more)
            }
        })
    }
}

fn bound_bytes(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Included(name) | Bound::Excluded(name) => name.len(),
        Bound::Unbounded => 0,
    }
}
