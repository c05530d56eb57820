//! A namespace on disk, as the loop sees it: cache, queues and threads.
//!
//! Used by [`crate::Namespace`]. Invariants: a cache hit waits for nothing; reads and writes have
//! separate queues, limits and threads, so that neither starves the other; a read that a write
//! overtook is answered and not cached.

mod read_cache;
mod reads;
mod writes;

use crate::change::{Write, Written};
use crate::committer::{Committer, Opened};
use crate::error::{OpenError, StoreError};
use crate::levels::{Blocks, Levels};
use crate::record::{Record, unix_ms};
use crate::settings::{Durability, Mode, Settings};
use crate::types::{Piece, Stats};
use outboard_reactor::{blocking, sleep};
use read_cache::ReadCache;
use reads::{Found, Reads};
use std::cell::RefCell;
use std::ops::Bound;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use writes::Writes;

pub(crate) use reads::Cursor;

/// A namespace on disk.
pub(crate) struct Disk {
    levels: Arc<Levels>,
    read_cache: Rc<RefCell<ReadCache>>,
    execution: Execution,
    findings: Vec<String>,
}

/// Which thread waits for the disk.
enum Execution {
    Asynchronous {
        reads: Reads,
        writes: Rc<Writes>,
    },
    /// The loop itself, which blocks all requests.
    Synchronous(Box<RefCell<Committer>>),
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
        let read_cache = Rc::new(RefCell::new(ReadCache::new(share)));
        let execution = match settings.mode {
            Mode::Synchronous => Execution::Synchronous(Box::new(RefCell::new(committer))),
            Mode::Asynchronous => {
                committer.start_threads().map_err(at)?;
                let reads = Reads::start(levels.clone(), read_cache.clone(), settings);
                let writes = Writes::start(committer, read_cache.clone(), settings);
                Execution::Asynchronous { reads: reads.map_err(at)?, writes: writes.map_err(at)? }
            }
        };
        Ok(Self { levels, read_cache, execution, findings })
    }

    /// See [`crate::Namespace::get`].
    pub(crate) async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        if let Execution::Synchronous(_) = self.execution {
            return self.get_blocking(id);
        }
        if let Some(known) = self.read_cache.borrow().get(id, unix_ms()) {
            return Ok(known.cloned());
        }
        let mut found = self.look_up(vec![id.into()]).await?;
        found.pop().map_or(Ok(None), |(_, found)| found)
    }

    /// See [`crate::Namespace::get_many`].
    pub(crate) async fn get_many(&self, ids: &[&[u8]]) -> Result<Vec<Option<Record>>, StoreError> {
        if let Execution::Synchronous(_) = self.execution {
            return ids.iter().map(|id| self.get_blocking(id)).collect();
        }
        let mut records = Vec::with_capacity(ids.len());
        let mut missing = Vec::new();
        {
            let (read_cache, now_ms) = (self.read_cache.borrow(), unix_ms());
            for id in ids {
                let known = read_cache.get(id, now_ms).map(Option::<&Record>::cloned);
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
        if let Execution::Synchronous(_) = self.execution {
            return false;
        }
        let (read_cache, now_ms) = (self.read_cache.borrow(), unix_ms());
        ids.iter().all(|id| read_cache.get(id, now_ms).map(&mut each).is_some())
    }

    fn get_blocking(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let now_ms = unix_ms();
        Ok(self.levels.get(id)?.filter(|record| record.is_alive(now_ms)))
    }

    async fn look_up(&self, ids: Vec<Box<[u8]>>) -> Result<Vec<Found>, StoreError> {
        let Execution::Asynchronous { reads, .. } = &self.execution else { return Ok(Vec::new()) };
        reads.look_up(ids).await
    }

    /// See [`crate::Namespace::write`].
    pub(crate) async fn write(&self, write: Write) -> Result<Written, StoreError> {
        match &self.execution {
            Execution::Asynchronous { writes, .. } => writes.write(write).await,
            Execution::Synchronous(committer) => {
                let mut results = committer.borrow_mut().commit(&[write]);
                results.pop().unwrap_or_else(|| Err(StoreError::thread_ended()))
            }
        }
    }

    /// See [`crate::Namespace::write_many`].
    pub(crate) async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        match &self.execution {
            Execution::Asynchronous { writes: queue, .. } => queue.write_many(writes).await,
            Execution::Synchronous(committer) => committer.borrow_mut().commit(&writes),
        }
    }

    /// Begins a scan. Nothing is read before the first piece.
    pub(crate) fn scan(&self, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Cursor {
        Cursor::new(start, end)
    }

    /// The next piece of a scan, and the position after it; `None` at the end.
    pub(crate) async fn scan_on(
        &self,
        cursor: Cursor,
        piece_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        match &self.execution {
            Execution::Asynchronous { reads, .. } => reads.scan_on(cursor, piece_bytes).await,
            Execution::Synchronous(_) => reads::piece(&self.levels, cursor, piece_bytes),
        }
    }

    /// See [`crate::Namespace::compact`].
    pub(crate) async fn compact(&self) -> Result<(), StoreError> {
        match &self.execution {
            Execution::Asynchronous { writes, .. } => writes.seal().await?,
            Execution::Synchronous(committer) => committer.borrow_mut().seal()?,
        }
        let levels = self.levels.clone();
        blocking(move || {
            levels.flush()?;
            levels.merge_all()
        })
        .await
    }

    /// Moves what is in memory to sorted files, so that little of the journal is left.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        match &self.execution {
            Execution::Asynchronous { writes, .. } => writes.seal().await?,
            Execution::Synchronous(committer) => committer.borrow_mut().seal()?,
        }
        let levels = self.levels.clone();
        blocking(move || levels.flush()).await
    }

    /// Waits until its threads have ended and all of its files are closed. No call may be in progress.
    pub(crate) async fn close(self: Box<Self>) {
        let levels = self.levels.clone();
        if let Execution::Asynchronous { writes, .. } = &self.execution {
            writes.end_in_background();
        }
        drop(self);
        // Threads and reads in progress have the others.
        while Arc::strong_count(&levels) > 1 {
            sleep(1).await;
        }
    }

    /// See [`crate::Namespace::stats`].
    pub(crate) fn stats(&self) -> Stats {
        let (files, file_bytes, records) = self.levels.size();
        let (cached_records, cached_bytes) = self.read_cache.borrow().size();
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
        if let Execution::Asynchronous { reads, writes } = &self.execution {
            reads.add_stats(&mut stats);
            writes.add_stats(&mut stats);
        }
        stats
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Execution::Asynchronous { writes, .. } = &self.execution {
            writes.close();
        }
    }
}
