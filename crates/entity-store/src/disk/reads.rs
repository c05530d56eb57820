//! The reads that wait for a disk.
//!
//! Two threads look records up, so that one that waits for a slow disk does not hold up all.
//! Invariant: whoever reads is known to the cache until the read has come back or was dropped.

use super::Remembered;
use crate::desk::{Desk, Staff};
use crate::error::StoreError;
use crate::levels::{Levels, Snapshot};
use crate::namespace::{Piece, Stats};
use crate::queue::{Owed, Queue};
use crate::record::{Record, unix_ms};
use crate::settings::Settings;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

const STAFF: Staff = Staff { name: "kv-read", threads: 2, batch_jobs: 32 };

/// A record that was looked up, or why it could not be.
pub(super) type Found = (Box<[u8]>, Result<Option<Record>, StoreError>);

/// What a thread is to do.
pub(super) enum Job {
    /// Look these up.
    Get(Vec<Box<[u8]>>),
    /// Read on.
    Scan(Cursor, usize),
}

enum Done {
    Got(Vec<Found>),
    Scanned(Result<(Piece, Option<Cursor>), StoreError>),
}

/// Where a scan is.
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

/// The desk that the reading threads sit behind.
pub(super) struct Reads {
    desk: Desk<Job, Done>,
    remembered: Rc<RefCell<Remembered>>,
    looked_up: Cell<u64>,
}

impl Reads {
    /// Starts the threads and begins to feed them.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn start(
        levels: Arc<Levels>,
        remembered: Rc<RefCell<Remembered>>,
        settings: &Settings,
    ) -> io::Result<Self> {
        let work = || {
            let levels = levels.clone();
            move |jobs: Vec<Job>| jobs.into_iter().map(|job| job.done(&levels)).collect()
        };
        let ours = remembered.clone();
        let settle = move |done, reply: Owed<_>| {
            remember(&ours, &done);
            reply.give(Ok(done));
        };
        let queue = Queue::new(settings, settings.reads_waiting);
        let desk = Desk::start(STAFF, queue, work, settle)?;
        Ok(Self { desk, remembered, looked_up: Cell::new(0) })
    }

    pub(super) async fn look_up(&self, ids: Vec<Box<[u8]>>) -> Result<Vec<Found>, StoreError> {
        self.looked_up.set(self.looked_up.get() + ids.len() as u64);
        match self.queue(Job::Get(ids))?.wait().await? {
            Done::Got(found) => Ok(found),
            Done::Scanned(_) => Err(StoreError::lost()),
        }
    }

    pub(super) async fn scan_on(
        &self,
        cursor: Cursor,
        piece_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        match self.queue(Job::Scan(cursor, piece_bytes))?.wait().await? {
            Done::Scanned(scanned) => scanned,
            Done::Got(_) => Err(StoreError::lost()),
        }
    }

    fn queue(&self, job: Job) -> Result<Owed<Done>, StoreError> {
        let dropped = self.desk.make_room()?;
        let mut remembered = self.remembered.borrow_mut();
        if let Some(Job::Get(ids)) = dropped {
            ids.iter().for_each(|id| remembered.end_read(id, None));
        }
        if let Job::Get(ids) = &job {
            ids.iter().for_each(|id| remembered.begin_read(id));
        }
        Ok(self.desk.push(job))
    }

    pub(super) fn tell(&self, stats: &mut Stats) {
        stats.reads_from_disk = self.looked_up.get();
        stats.reads_refused = self.desk.refused();
        stats.reads_waiting = self.desk.len() as u64;
    }
}

fn remember(remembered: &RefCell<Remembered>, done: &Done) {
    let Done::Got(found) = done else { return };
    let mut remembered = remembered.borrow_mut();
    for (id, found) in found {
        remembered.end_read(id, found.as_ref().ok().map(Option::as_ref));
    }
}

impl Job {
    fn done(self, levels: &Levels) -> Done {
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

/// Reads on until a piece is full, and tells where the scan is then.
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
