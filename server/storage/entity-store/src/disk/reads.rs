//! Reads that wait for a disk, on two threads.
//!
//! Used by [`super::Disk`]. Invariant: the cache knows of every read until it is back or dropped.

use super::read_cache::ReadCache;
use crate::error::StoreError;
use crate::levels::{Levels, Snapshot};
use crate::queue::{Queue, ResultReceiver, ResultSender};
use crate::record::{Record, unix_ms};
use crate::settings::Settings;
use crate::thread_pool::{ThreadPool, ThreadPoolConfig};
use crate::types::{Piece, Stats};
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

const CONFIG: ThreadPoolConfig = ThreadPoolConfig { name: "kv-read", threads: 2, batch_jobs: 32 };

/// A key and the result of its lookup.
pub(super) type Found = (Box<[u8]>, Result<Option<Record>, StoreError>);

/// A job for a thread.
pub(super) enum Job {
    Get(Vec<Box<[u8]>>),
    Scan(Cursor, usize),
}

enum Done {
    Got(Vec<Found>),
    Scanned(Result<(Piece, Option<Cursor>), StoreError>),
}

/// The position of a scan.
pub(crate) struct Cursor {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    snapshot: Option<Snapshot>,
}

impl Cursor {
    pub(super) fn new(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self { start, end, snapshot: None }
    }
}

/// The pool of reading threads.
pub(super) struct Reads {
    pool: ThreadPool<Job, Done>,
    read_cache: Rc<RefCell<ReadCache>>,
    lookups: Cell<u64>,
}

impl Reads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn start(
        levels: Arc<Levels>,
        read_cache: Rc<RefCell<ReadCache>>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let work = || {
            let levels = levels.clone();
            move |jobs: Vec<Job>| jobs.into_iter().map(|job| job.run(&levels)).collect()
        };
        let of_settle = read_cache.clone();
        let settle = move |done, reply: ResultSender<_>| {
            remember(&of_settle, &done);
            reply.send(Ok(done));
        };
        let queue = Queue::new(settings, settings.reads_waiting);
        let pool = ThreadPool::start(CONFIG, queue, work, settle)?;
        Ok(Self { pool, read_cache, lookups: Cell::new(0) })
    }

    pub(super) async fn look_up(&self, ids: Vec<Box<[u8]>>) -> Result<Vec<Found>, StoreError> {
        self.lookups.set(self.lookups.get() + ids.len() as u64);
        match self.queue(Job::Get(ids))?.receive().await? {
            Done::Got(found) => Ok(found),
            Done::Scanned(_) => Err(StoreError::thread_ended()),
        }
    }

    pub(super) async fn scan_on(
        &self,
        cursor: Cursor,
        piece_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        match self.queue(Job::Scan(cursor, piece_bytes))?.receive().await? {
            Done::Scanned(scanned) => scanned,
            Done::Got(_) => Err(StoreError::thread_ended()),
        }
    }

    fn queue(&self, job: Job) -> Result<ResultReceiver<Done>, StoreError> {
        let dropped = self.pool.make_room()?;
        let mut read_cache = self.read_cache.borrow_mut();
        if let Some(Job::Get(ids)) = dropped {
            ids.iter().for_each(|id| read_cache.end_read(id, None));
        }
        if let Job::Get(ids) = &job {
            ids.iter().for_each(|id| read_cache.begin_read(id));
        }
        Ok(self.pool.push(job))
    }

    pub(super) fn add_stats(&self, stats: &mut Stats) {
        stats.reads_from_disk = self.lookups.get();
        stats.reads_refused = self.pool.refused();
        stats.reads_waiting = self.pool.len() as u64;
    }
}

fn remember(read_cache: &RefCell<ReadCache>, done: &Done) {
    let Done::Got(found) = done else { return };
    let mut read_cache = read_cache.borrow_mut();
    for (id, found) in found {
        read_cache.end_read(id, found.as_ref().ok().map(Option::as_ref));
    }
}

impl Job {
    fn run(self, levels: &Levels) -> Done {
        match self {
            Self::Scan(cursor, piece_bytes) => Done::Scanned(piece(levels, cursor, piece_bytes)),
            Self::Get(ids) => {
                let now_ms = unix_ms();
                let look_up = |id: Box<[u8]>| {
                    let found = levels.get(&id);
                    let alive = found.map(|found| found.filter(|record| record.is_alive(now_ms)));
                    (id, alive)
                };
                Done::Got(ids.into_iter().map(look_up).collect())
            }
        }
    }
}

/// Reads a piece of a scan, and returns the position after it; `None` at the end.
pub(super) fn piece(
    levels: &Levels,
    mut cursor: Cursor,
    piece_bytes: usize,
) -> Result<(Piece, Option<Cursor>), StoreError> {
    let now_ms = unix_ms();
    let snapshot = cursor.snapshot.get_or_insert_with(|| {
        levels
            .scan(cursor.start.as_ref().map(Vec::as_slice), cursor.end.as_ref().map(Vec::as_slice))
    });
    let (mut piece, mut bytes) = (Piece::new(), 0);
    while bytes < piece_bytes {
        let Some(next) = levels.next(snapshot) else { return Ok((piece, None)) };
        let (id, record) = next?;
        if record.is_alive(now_ms) {
            bytes += id.len() + record.value.len();
            piece.push((id.into(), record));
        }
    }
    Ok((piece, Some(cursor)))
}
