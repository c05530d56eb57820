//! A namespace: records under names, all kept the same way.
//!
//! Called by whoever has a request for records. What it promises does not depend on where it
//! keeps them.

use crate::change::{Write, Written};
use crate::disk::{Cursor, Disk};
use crate::error::StoreError;
use crate::memory::{Memory, is_empty};
use crate::record::{ID_MAX_BYTES, Record, is_id};
use crate::redis::{self, Redis};
use crate::settings::{Durability, NamespaceSettings};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

/// How much of a scan is read at once, bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Some records of a scan, in the order of their names.
pub type Piece = Vec<(Box<[u8]>, Record)>;

/// A namespace that is open.
pub struct Namespace {
    settings: NamespaceSettings,
    place: Place,
}

pub(crate) enum Place {
    Disk(Box<Disk>),
    Memory(Box<Memory>),
    /// With what its keys begin with.
    Redis(Rc<Redis>, Arc<[u8]>),
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Namespace").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a namespace has and does; counts are since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records, those that have ended and are not yet gone included; an estimate on disk.
    pub records: u64,
    /// Sorted files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Bytes that are in memory and in the journal.
    pub buffered_bytes: u64,
    /// Records that are answered from memory, and what is known not to be there.
    pub cached_records: u64,
    /// Their bytes.
    pub cached_bytes: u64,
    /// Writes that were committed.
    pub writes: u64,
    /// Batches that they were committed in.
    pub commits: u64,
    /// Writes that were refused because too many waited.
    pub writes_refused: u64,
    /// Writes that wait.
    pub writes_waiting: u64,
    /// Reads that memory did not answer.
    pub reads_from_disk: u64,
    /// Reads that were refused because too many waited.
    pub reads_refused: u64,
    /// Reads that wait.
    pub reads_waiting: u64,
    /// Files that do not match their checksums.
    pub damaged: Vec<String>,
    /// What was found when the namespace was opened.
    pub findings: Vec<String>,
}

impl Namespace {
    pub(crate) fn new(settings: NamespaceSettings, place: Place) -> Self {
        Self { settings, place }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// What an answer to a write promises; `None`: what Redis does.
    pub fn durability(&self) -> Option<Durability> {
        match &self.place {
            Place::Redis(..) => None,
            Place::Disk(_) | Place::Memory(_) => Some(self.settings.durability),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// No record can have the name, too many reads wait, or the disk fails.
    pub async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        check(id)?;
        match &self.place {
            Place::Disk(disk) => disk.get(id).await,
            Place::Memory(memory) => Ok(memory.get(id)),
            Place::Redis(redis, prefix) => {
                let mut found = redis.get_many(prefix, vec![id.into()]).await?;
                Ok(found.pop().flatten())
            }
        }
    }

    /// Reads records at once; one result for each id, in order.
    ///
    /// # Errors
    /// As [`Namespace::get`], for all of them.
    pub async fn get_many(&self, ids: &[&[u8]]) -> Result<Vec<Option<Record>>, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        match &self.place {
            Place::Disk(disk) => disk.get_many(ids).await,
            Place::Memory(memory) => {
                let mut records = Vec::with_capacity(ids.len());
                memory.show_many(ids, |record| records.push(record.cloned()));
                Ok(records)
            }
            Place::Redis(redis, prefix) => {
                redis.get_many(prefix, ids.iter().map(|id| Box::from(*id)).collect()).await
            }
        }
    }

    /// Shows records that memory has, one for each id, in order. False when there is one that it knows
    /// nothing of: what was shown is of no use then, and [`Namespace::get_many`] has all. Nothing is
    /// copied or counted here: taking hold of ten thousand records costs more than reading them.
    ///
    /// # Errors
    /// No record can have one of the names.
    pub fn show_many(
        &self,
        ids: &[&[u8]],
        each: impl FnMut(Option<&Record>),
    ) -> Result<bool, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        Ok(match &self.place {
            Place::Disk(disk) => disk.show_many(ids, each),
            Place::Memory(memory) => {
                memory.show_many(ids, each);
                true
            }
            Place::Redis(..) => false,
        })
    }

    /// Writes a record, and answers when it is as durable as promised.
    ///
    /// # Errors
    /// No record can have the name, what the write demands does not hold, too many wait, or the disk
    /// is full or fails.
    pub async fn write(&self, write: Write) -> Result<Written, StoreError> {
        self.write_copies(write, 1).await
    }

    /// Writes a record, and answers when so many copies of it have been written.
    ///
    /// # Errors
    /// As [`Namespace::write`], or fewer copies were written in time.
    pub async fn write_copies(&self, write: Write, copies: u32) -> Result<Written, StoreError> {
        check(&write.id)?;
        match &self.place {
            Place::Disk(disk) => disk.write(write).await,
            Place::Memory(memory) => memory.write(&write),
            Place::Redis(redis, prefix) => {
                let mut written = redis.write_many(prefix, vec![write], copies).await;
                written.pop().unwrap_or(Err(StoreError::TooFewCopies { answered: 0 }))
            }
        }
    }

    /// How many copies of a record there are.
    pub fn copies(&self) -> u32 {
        match &self.place {
            Place::Redis(redis, _) => redis.copies(),
            _ => 1,
        }
    }

    /// Writes records that do not depend on each other; one answer for each, in order. They are
    /// queued at once, so that they are committed together. With a name among them that no record
    /// can have, none is written.
    pub async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        if let Err(error) = writes.iter().try_for_each(|write| check(&write.id)) {
            return vec![Err(error); writes.len()];
        }
        match &self.place {
            Place::Disk(disk) => disk.write_many(writes).await,
            Place::Memory(memory) => writes.iter().map(|write| memory.write(write)).collect(),
            Place::Redis(redis, prefix) => redis.write_many(prefix, writes, 1).await,
        }
    }

    /// Begins to read the records between two names, in order. On disk they are as they were when
    /// the first piece was read; of Redis each is as it is when its piece is read, and one whose slot
    /// moves to another node meanwhile may be missing.
    pub fn scan(self: &Rc<Self>, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Scan {
        let bytes = bound_bytes(&start).max(bound_bytes(&end));
        let state = match &self.place {
            _ if is_empty(&start, &end) => ScanState::Over,
            _ if bytes > ID_MAX_BYTES => ScanState::Refused { bytes },
            Place::Disk(disk) => ScanState::Disk(Box::new(disk.scan(start, end))),
            Place::Memory(_) => ScanState::Memory { start, end },
            Place::Redis(..) => ScanState::Redis(Box::new(Redis::scan(start, end))),
        };
        Scan { namespace: self.clone(), state }
    }

    /// Merges all files, so that what was deleted or has ended takes no room.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn compact(&self) -> Result<(), StoreError> {
        match &self.place {
            Place::Disk(disk) => disk.compact().await,
            Place::Memory(_) | Place::Redis(..) => Ok(()),
        }
    }

    /// What it has and does.
    pub fn stats(&self) -> Stats {
        match &self.place {
            Place::Disk(disk) => disk.stats(),
            Place::Memory(memory) => memory.stats(),
            Place::Redis(redis, _) => redis.stats(),
        }
    }
}

/// Sorted files take no other names, and what cannot be written is not looked for.
fn check(id: &[u8]) -> Result<(), StoreError> {
    if is_id(id) { Ok(()) } else { Err(StoreError::NoName { bytes: id.len() }) }
}

fn bound_bytes(bound: &Bound<Vec<u8>>) -> usize {
    match bound {
        Bound::Included(name) | Bound::Excluded(name) => name.len(),
        Bound::Unbounded => 0,
    }
}

/// A scan under way.
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
    /// Between names that are none.
    Refused {
        bytes: usize,
    },
    Over,
}

impl Scan {
    /// The next records; none at the end.
    ///
    /// # Errors
    /// As [`Namespace::get`]; the scan is over then.
    pub async fn next(&mut self) -> Result<Piece, StoreError> {
        loop {
            let state = std::mem::replace(&mut self.state, ScanState::Over);
            let piece = match (state, &self.namespace.place) {
                (ScanState::Disk(cursor), Place::Disk(disk)) => {
                    let (piece, rest) = disk.scan_on(*cursor, PIECE_BYTES).await?;
                    if let Some(cursor) = rest {
                        self.state = ScanState::Disk(Box::new(cursor));
                    }
                    piece
                }
                (ScanState::Redis(cursor), Place::Redis(redis, prefix)) => {
                    let (piece, rest) = redis.scan_on(prefix, *cursor, PIECE_BYTES).await?;
                    if let Some(cursor) = rest {
                        self.state = ScanState::Redis(Box::new(cursor));
                    }
                    piece
                }
                (ScanState::Memory { start, end }, Place::Memory(memory)) => {
                    let (piece, rest) = memory.scan_on(start, &end, PIECE_BYTES);
                    if let Some(start) = rest {
                        self.state = ScanState::Memory { start, end };
                    }
                    piece
                }
                (ScanState::Refused { bytes }, _) => return Err(StoreError::NoName { bytes }),
                _ => return Ok(Piece::new()),
            };
            if !piece.is_empty() || matches!(self.state, ScanState::Over) {
                return Ok(piece);
            }
        }
    }
}
