//! A namespace on disk, as the loop sees it: cache, queues, and the threads behind them.
//!
//! Invariants: what is in the cache is answered without waiting for anybody; reads and writes have
//! queues, bounds and threads of their own, so that neither starves the other; a read that a write
//! overtook is answered and not remembered.

mod reads;
mod writes;

use crate::cache::Cache;
use crate::change::{Write, Written};
use crate::committer::{Committer, Opened};
use crate::error::{OpenError, StoreError};
use crate::levels::{Blocks, Levels};
use crate::namespace::{Piece, Stats};
use crate::record::{Record, unix_ms};
use crate::settings::{Durability, Mode, Settings};
use outboard_reactor::blocking;
use reads::{Found, Reads};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Bound;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use writes::Writes;

pub(crate) use reads::Cursor;

/// A namespace on disk.
pub(crate) struct Disk {
    levels: Arc<Levels>,
    remembered: Rc<RefCell<Remembered>>,
    way: Way,
    findings: Vec<String>,
}

/// Who waits for the disk.
enum Way {
    Asynchronous {
        reads: Reads,
        writes: Rc<Writes>,
    },
    /// The loop itself, and everybody with it.
    Synchronous(Box<RefCell<Committer>>),
}

/// The cache, and which reads are on their way to it.
pub(crate) struct Remembered {
    cache: Cache,
    reading: HashMap<Box<[u8]>, Reading>,
}

#[derive(Default)]
struct Reading {
    readers: u32,
    was_overtaken: bool,
}

impl Remembered {
    /// What is known of a record that is still there.
    fn get(&self, id: &[u8], now_ms: u64) -> Option<Option<&Record>> {
        let known = self.cache.get(id)?;
        Some(known.filter(|record| record.is_alive(now_ms)))
    }

    fn begin_read(&mut self, id: &[u8]) {
        match self.reading.get_mut(id) {
            Some(reading) => reading.readers += 1,
            None => {
                self.reading.insert(id.into(), Reading { readers: 1, was_overtaken: false });
            }
        }
    }

    /// Remembers what was found, unless it was written meanwhile.
    fn end_read(&mut self, id: &[u8], found: Option<Option<&Record>>) {
        let Some(reading) = self.reading.get_mut(id) else { return };
        reading.readers -= 1;
        let was_overtaken = reading.was_overtaken;
        if reading.readers == 0 {
            self.reading.remove(id);
        }
        if let Some(found) = found
            && !was_overtaken
        {
            self.cache.put(id, found.cloned());
        }
    }

    /// Remembers what was committed.
    fn written(&mut self, id: &[u8], written: &Written) {
        if let Some(reading) = self.reading.get_mut(id) {
            reading.was_overtaken = true;
        }
        self.cache.put(id, written.record.clone());
    }
}

impl Disk {
    /// Opens the namespace in `folder` and starts its threads.
    ///
    /// # Errors
    /// The folder cannot be used, or is damaged.
    pub(crate) fn open(
        folder: &Path,
        durability: Durability,
        settings: &Settings,
        blocks: &Blocks,
    ) -> Result<Self, OpenError> {
        let opened = Committer::open(folder, durability, settings.buffer_bytes, blocks)?;
        let Opened { mut committer, levels, findings } = opened;
        let at = |source| OpenError::Io { path: folder.to_owned(), source };
        let share = settings.cache_bytes / settings.namespaces.len().max(1);
        let remembered =
            Rc::new(RefCell::new(Remembered { cache: Cache::new(share), reading: HashMap::new() }));
        let way = match settings.mode {
            Mode::Synchronous => Way::Synchronous(Box::new(RefCell::new(committer))),
            Mode::Asynchronous => {
                committer.start_helpers().map_err(at)?;
                let reads = Reads::start(levels.clone(), remembered.clone(), settings);
                let writes = Writes::start(committer, remembered.clone(), settings);
                Way::Asynchronous { reads: reads.map_err(at)?, writes: writes.map_err(at)? }
            }
        };
        Ok(Self { levels, remembered, way, findings })
    }

    /// See [`crate::Namespace::get`].
    pub(crate) async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        if let Way::Synchronous(_) = self.way {
            return self.get_here(id);
        }
        if let Some(known) = self.remembered.borrow().get(id, unix_ms()) {
            return Ok(known.cloned());
        }
        let mut found = self.look_up(vec![id.into()]).await?;
        found.pop().map_or(Ok(None), |(_, found)| found)
    }

    /// See [`crate::Namespace::get_many`].
    pub(crate) async fn get_many(&self, ids: &[&[u8]]) -> Result<Vec<Option<Record>>, StoreError> {
        if let Way::Synchronous(_) = self.way {
            return ids.iter().map(|id| self.get_here(id)).collect();
        }
        let mut records = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        {
            let (remembered, now_ms) = (self.remembered.borrow(), unix_ms());
            for id in ids {
                let known = remembered.get(id, now_ms).map(Option::<&Record>::cloned);
                if known.is_none() {
                    missing.push(Box::from(*id));
                }
                records.push(known);
            }
        }
        let mut found = match missing.is_empty() {
            true => Vec::new().into_iter(),
            false => self.look_up(missing).await?.into_iter(),
        };
        let mut next = || found.next().map_or(Ok(None), |(_, found)| found);
        records.into_iter().map(|known| known.map_or_else(&mut next, Ok)).collect()
    }

    /// See [`crate::Namespace::show_many`].
    pub(crate) fn show_many(&self, ids: &[&[u8]], mut each: impl FnMut(Option<&Record>)) -> bool {
        if let Way::Synchronous(_) = self.way {
            return false;
        }
        let (remembered, now_ms) = (self.remembered.borrow(), unix_ms());
        ids.iter().all(|id| remembered.get(id, now_ms).map(&mut each).is_some())
    }

    fn get_here(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let now_ms = unix_ms();
        Ok(self.levels.get(id)?.filter(|record| record.is_alive(now_ms)))
    }

    async fn look_up(&self, ids: Vec<Box<[u8]>>) -> Result<Vec<Found>, StoreError> {
        let Way::Asynchronous { reads, .. } = &self.way else { return Ok(Vec::new()) };
        reads.look_up(ids).await
    }

    /// See [`crate::Namespace::write`].
    pub(crate) async fn write(&self, write: Write) -> Result<Written, StoreError> {
        match &self.way {
            Way::Asynchronous { writes, .. } => writes.write(write).await,
            Way::Synchronous(committer) => {
                let mut results = committer.borrow_mut().commit(&[write]);
                results.pop().unwrap_or_else(|| Err(StoreError::lost()))
            }
        }
    }

    /// See [`crate::Namespace::write_many`].
    pub(crate) async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        match &self.way {
            Way::Asynchronous { writes: queue, .. } => queue.write_many(writes).await,
            Way::Synchronous(committer) => committer.borrow_mut().commit(&writes),
        }
    }

    /// Begins a scan; nothing is read before its first piece is asked for.
    pub(crate) fn scan(&self, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Cursor {
        Cursor::new(start, end)
    }

    /// The next piece of a scan, and where it goes on; `None` at the end.
    pub(crate) async fn scan_on(
        &self,
        cursor: Cursor,
        piece_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        match &self.way {
            Way::Asynchronous { reads, .. } => reads.scan_on(cursor, piece_bytes).await,
            Way::Synchronous(_) => reads::piece(&self.levels, cursor, piece_bytes),
        }
    }

    /// See [`crate::Namespace::compact`].
    pub(crate) async fn compact(&self) -> Result<(), StoreError> {
        match &self.way {
            Way::Asynchronous { writes, .. } => writes.seal().await?,
            Way::Synchronous(committer) => committer.borrow_mut().seal()?,
        }
        let levels = self.levels.clone();
        blocking(move || {
            levels.flush()?;
            levels.merge_all()
        })
        .await
    }

    /// See [`crate::Namespace::stats`].
    pub(crate) fn stats(&self) -> Stats {
        let (files, file_bytes, records) = self.levels.size();
        let (cached_records, cached_bytes) = self.remembered.borrow().cache.size();
        let mut stats = Stats {
            records: records as u64,
            files: files as u64,
            file_bytes,
            buffered_bytes: self.levels.buffered_bytes(),
            cached_records: cached_records as u64,
            cached_bytes: cached_bytes as u64,
            damaged: self.levels.damaged(),
            findings: self.findings.clone(),
            ..Stats::default()
        };
        if let Way::Asynchronous { reads, writes } = &self.way {
            reads.tell(&mut stats);
            writes.tell(&mut stats);
        }
        stats
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Way::Asynchronous { writes, .. } = &self.way {
            writes.close();
        }
    }
}
