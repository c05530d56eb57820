//! The reads that wait for a disk.
//!
//! Two threads look records up, so that one that waits for a slow disk does not hold up all; each
//! is given its share of what waits.

use super::{Remembered, end_reads, lost};
use crate::error::StoreError;
use crate::lane::Lane;
use crate::levels::{Levels, Snapshot};
use crate::namespace::{Piece, Stats};
use crate::queue::{Queue, Waiting};
use crate::record::{Record, unix_ms};
use crate::reply::Reply;
use crate::settings::Settings;
use outboard_reactor::{Event, spawn};
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

const THREADS: usize = 2;
/// Most jobs that a thread is given at once.
const BATCH_JOBS: usize = 32;

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

/// The queue before the reading threads.
pub(super) struct Reads {
    queue: Queue<Job, Done>,
    threads: Vec<Thread>,
    remembered: Rc<RefCell<Remembered>>,
    is_closed: Cell<bool>,
    looked_up: Cell<u64>,
}

#[derive(Default)]
struct Thread {
    filled: Event,
    is_idle: Cell<bool>,
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
    ) -> io::Result<Rc<Self>> {
        let reads = Rc::new(Self {
            queue: Queue::new(settings, settings.reads_waiting),
            threads: (0..THREADS).map(|_| Thread::default()).collect(),
            remembered,
            is_closed: Cell::new(false),
            looked_up: Cell::new(0),
        });
        for index in 0..THREADS {
            let levels = levels.clone();
            let lane = Lane::start("kv-read", move |jobs: Vec<Job>| {
                jobs.into_iter().map(|job| job.done(&levels)).collect()
            })?;
            spawn(reads.clone().feed(index, lane));
        }
        Ok(reads)
    }

    pub(super) async fn look_up(&self, ids: Vec<Box<[u8]>>) -> Result<Vec<Found>, StoreError> {
        self.looked_up.set(self.looked_up.get() + ids.len() as u64);
        match self.queue(Job::Get(ids))?.wait().await? {
            Done::Got(found) => Ok(found),
            Done::Scanned(_) => Err(lost()),
        }
    }

    pub(super) async fn scan_on(
        &self,
        cursor: Cursor,
        piece_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        match self.queue(Job::Scan(cursor, piece_bytes))?.wait().await? {
            Done::Scanned(scanned) => scanned,
            Done::Got(_) => Err(lost()),
        }
    }

    fn queue(&self, job: Job) -> Result<Rc<Reply<Result<Done, StoreError>>>, StoreError> {
        if let Some(dropped) = self.queue.make_room()? {
            end_reads(&self.remembered, &dropped);
        }
        if let Job::Get(ids) = &job {
            let mut remembered = self.remembered.borrow_mut();
            ids.iter().for_each(|id| remembered.begin_read(id));
        }
        let reply = self.queue.push(job);
        if let Some(thread) = self.threads.iter().find(|thread| thread.is_idle.take()) {
            thread.filled.set();
        }
        Ok(reply)
    }

    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.threads.iter().for_each(|thread| thread.filled.set());
    }

    pub(super) fn tell(&self, stats: &mut Stats) {
        stats.reads_from_disk = self.looked_up.get();
        stats.reads_refused = self.queue.refused();
        stats.reads_waiting = self.queue.len() as u64;
    }

    fn take_batch(&self) -> Vec<Waiting<Job, Done>> {
        let mut share = self.queue.len().div_ceil(THREADS).min(BATCH_JOBS);
        self.queue.take_while(|_| share.checked_sub(1).map(|left| share = left).is_some())
    }

    async fn feed(self: Rc<Self>, index: usize, lane: Lane<Vec<Job>, Vec<Done>>) {
        let thread = &self.threads[index];
        while !self.is_closed.get() {
            let batch = self.take_batch();
            if batch.is_empty() {
                thread.is_idle.set(true);
                thread.filled.wait().await;
                thread.is_idle.set(false);
                continue;
            }
            let mut replies = Vec::with_capacity(batch.len());
            let mut jobs = Vec::with_capacity(batch.len());
            for Waiting { job, reply, .. } in batch {
                replies.push(reply);
                jobs.push(job);
            }
            let Some(done) = lane.run(jobs).await else {
                replies.iter().for_each(|reply| reply.give(Err(lost())));
                continue;
            };
            for (reply, done) in replies.iter().zip(done) {
                self.remember(&done);
                reply.give(Ok(done));
            }
        }
    }

    fn remember(&self, done: &Done) {
        let Done::Got(found) = done else { return };
        let mut remembered = self.remembered.borrow_mut();
        for (id, found) in found {
            remembered.end_read(id, found.as_ref().ok().map(Option::as_ref));
        }
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
