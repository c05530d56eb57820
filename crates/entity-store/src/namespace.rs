//! A namespace: records under keys, with one durability, in one engine.
//!
//! Called by the gateway for every request for records. Invariant: results do not depend on the
//! engine, except for durability.

use crate::change::{Write, Written};
use crate::disk::{Cursor, Disk};
use crate::error::StoreError;
use crate::memory::{Memory, is_empty};
use crate::record::{ID_MAX_BYTES, Record, is_id};
use crate::redis::{self, Redis};
use crate::settings::{Durability, NamespaceSettings};
use crate::types::{Piece, Stats};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

/// The size of a piece of a scan.
const PIECE_BYTES: usize = 64 << 10;

/// A namespace that is open.
pub struct Namespace {
    settings: NamespaceSettings,
    backend: Backend,
}

pub(crate) enum Backend {
    Disk(Box<Disk>),
    Memory(Box<Memory>),
    /// With the prefix of its keys.
    Redis(Rc<Redis>, Arc<[u8]>),
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Namespace").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Namespace {
    pub(crate) fn new(settings: NamespaceSettings, backend: Backend) -> Self {
        Self { settings, backend }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The durability of a write; `None` if Redis decides.
    pub fn durability(&self) -> Option<Durability> {
        match &self.backend {
            Backend::Redis(..) => None,
            Backend::Disk(_) | Backend::Memory(_) => Some(self.settings.durability),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The key is invalid, too many reads wait, or the disk fails.
    pub async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        check(id)?;
        match &self.backend {
            Backend::Disk(disk) => disk.get(id).await,
            Backend::Memory(memory) => Ok(memory.get(id)),
            Backend::Redis(redis, prefix) => {
                let mut found = redis.get_many(prefix, vec![id.into()]).await?;
                Ok(found.pop().flatten())
            }
        }
    }

    /// Reads records; one result for each key, in order.
    ///
    /// # Errors
    /// As [`Namespace::get`], for the whole call.
    pub async fn get_many(&self, ids: &[&[u8]]) -> Result<Vec<Option<Record>>, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        match &self.backend {
            Backend::Disk(disk) => disk.get_many(ids).await,
            Backend::Memory(memory) => {
                let mut records = Vec::with_capacity(ids.len());
                memory.show_many(ids, |record| records.push(record.cloned()));
                Ok(records)
            }
            Backend::Redis(redis, prefix) => {
                redis.get_many(prefix, ids.iter().map(|id| Box::from(*id)).collect()).await
            }
        }
    }

    /// Passes cached records to `each`, one for each key, in order. Returns false when one of them
    /// is not cached; the caller then discards the others and calls [`Namespace::get_many`].
    /// Nothing is copied or counted: reference counts of ten thousand records cost more than
    /// reading them.
    ///
    /// # Errors
    /// A key is invalid.
    pub fn show_many(
        &self,
        ids: &[&[u8]],
        each: impl FnMut(Option<&Record>),
    ) -> Result<bool, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        Ok(match &self.backend {
            Backend::Disk(disk) => disk.show_many(ids, each),
            Backend::Memory(memory) => {
                memory.show_many(ids, each);
                true
            }
            Backend::Redis(..) => false,
        })
    }

    /// Writes a record; returns when it is as durable as configured.
    ///
    /// # Errors
    /// The key is invalid, the condition does not hold, too many writes wait, or the disk is full
    /// or fails.
    pub async fn write(&self, write: Write) -> Result<Written, StoreError> {
        self.write_copies(write, 1).await
    }

    /// Writes a record; returns when this many nodes have it.
    ///
    /// # Errors
    /// As [`Namespace::write`], or too few nodes confirmed in time.
    pub async fn write_copies(&self, write: Write, copies: u32) -> Result<Written, StoreError> {
        check(&write.id)?;
        match &self.backend {
            Backend::Disk(disk) => disk.write(write).await,
            Backend::Memory(memory) => memory.write(&write),
            Backend::Redis(redis, prefix) => {
                let mut written = redis.write_many(prefix, vec![write], copies).await;
                written.pop().unwrap_or(Err(StoreError::TooFewCopies { answered: 0 }))
            }
        }
    }

    /// The number of nodes that have a record.
    pub fn copies(&self) -> u32 {
        match &self.backend {
            Backend::Redis(redis, _) => redis.copies(),
            _ => 1,
        }
    }

    /// Writes records that do not depend on each other; one result for each, in order. They are
    /// queued together and committed together. If one key is invalid, nothing is written.
    pub async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        if let Err(error) = writes.iter().try_for_each(|write| check(&write.id)) {
            return vec![Err(error); writes.len()];
        }
        match &self.backend {
            Backend::Disk(disk) => disk.write_many(writes).await,
            Backend::Memory(memory) => writes.iter().map(|write| memory.write(write)).collect(),
            Backend::Redis(redis, prefix) => redis.write_many(prefix, writes, 1).await,
        }
    }

    /// Begins a scan of the records between two keys, in order. On disk it sees the state at its
    /// first piece. In Redis it sees each record as it is when its piece is read, and may miss a
    /// record whose slot moves to another node meanwhile.
    pub fn scan(self: &Rc<Self>, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Scan {
        let bytes = bound_bytes(&start).max(bound_bytes(&end));
        let state = match &self.backend {
            _ if is_empty(&start, &end) => ScanState::Over,
            _ if bytes > ID_MAX_BYTES => ScanState::InvalidKey { bytes },
            Backend::Disk(disk) => ScanState::Disk(Box::new(disk.scan(start, end))),
            Backend::Memory(_) => ScanState::Memory { start, end },
            Backend::Redis(..) => ScanState::Redis(Box::new(Redis::scan(start, end))),
        };
        Scan { namespace: self.clone(), state }
    }

    /// Merges all files, so that deleted and expired records take no space.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn compact(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Disk(disk) => disk.compact().await,
            Backend::Memory(_) | Backend::Redis(..) => Ok(()),
        }
    }

    /// Statistics.
    pub fn stats(&self) -> Stats {
        match &self.backend {
            Backend::Disk(disk) => disk.stats(),
            Backend::Memory(memory) => memory.stats(),
            Backend::Redis(redis, _) => redis.stats(),
        }
    }
}

/// Sorted files cannot store other keys.
fn check(id: &[u8]) -> Result<(), StoreError> {
    if is_id(id) { Ok(()) } else { Err(StoreError::InvalidKey { bytes: id.len() }) }
}

fn bound_bytes(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Included(name) | Bound::Excluded(name) => name.len(),
        Bound::Unbounded => 0,
    }
}

/// A scan in progress.
pub struct Scan {
    namespace: Rc<Namespace>,
    state: ScanState,
}

enum ScanState {
    Disk(Box<Cursor>),
    Redis(Box<redis::Cursor>),
    Memory {
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
    },
    /// A bound is not a valid key.
    InvalidKey {
        bytes: usize,
    },
    Over,
}

impl Scan {
    /// The next records; empty at the end.
    ///
    /// # Errors
    /// As [`Namespace::get`]; the scan is over then.
    pub async fn next(&mut self) -> Result<Piece, StoreError> {
        loop {
            let state = std::mem::replace(&mut self.state, ScanState::Over);
            let piece = match (state, &self.namespace.backend) {
                (ScanState::Disk(cursor), Backend::Disk(disk)) => {
                    let (piece, rest) = disk.scan_on(*cursor, PIECE_BYTES).await?;
                    if let Some(cursor) = rest {
                        self.state = ScanState::Disk(Box::new(cursor));
                    }
                    piece
                }
                (ScanState::Redis(cursor), Backend::Redis(redis, prefix)) => {
                    let (piece, rest) = redis.scan_on(prefix, *cursor, PIECE_BYTES).await?;
                    if let Some(cursor) = rest {
                        self.state = ScanState::Redis(Box::new(cursor));
                    }
                    piece
                }
                (ScanState::Memory { start, end }, Backend::Memory(memory)) => {
                    let (piece, rest) = memory.scan_on(start, &end, PIECE_BYTES);
                    if let Some(start) = rest {
                        self.state = ScanState::Memory { start, end };
                    }
                    piece
                }
                (ScanState::InvalidKey { bytes }, _) => {
                    return Err(StoreError::InvalidKey { bytes });
                }
                _ => return Ok(Piece::new()),
            };
            if !piece.is_empty() || matches!(self.state, ScanState::Over) {
                return Ok(piece);
            }
        }
    }
}
