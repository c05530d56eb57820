//! Namespaces in Redis, or in a cluster of them: as the loop sees them.
//!
//! Called by namespaces. Copies, failover and the moving of keys are Redis's; what is promised by an
//! answer is what its nodes were told to do (`appendfsync`), times the copies that were asked for.
//! Invariants: the loop never waits for a socket, threads of this module do; reads, writes and scans
//! have queues and threads of their own; what a lost node holds up waits elsewhere, on a thread for
//! that, and holds up nobody else.

mod cluster;
mod job;
mod records;
mod slots;
mod wire;

use crate::change::{Write, Written};
use crate::error::StoreError;
use crate::lane::Lane;
use crate::namespace::{Piece, Stats};
use crate::queue::{Queue, Waiting};
pub(crate) use crate::settings::RedisSettings;
use crate::settings::Settings;
use job::{Done, Job, NamedWrite, Task};
use outboard_reactor::{Event, spawn};
use records::{Outcome, Records};
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use job::Cursor;

/// Threads, each with a connection to every node, for reads; as many for writes.
const THREADS: usize = 2;
/// Most jobs that a thread is given at once.
const BATCH_JOBS: usize = 128;
/// Pauses before something is tried again: a cluster needs its node timeout to fail over.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(100);

/// A Redis that is used.
pub(crate) struct Redis {
    settings: Arc<RedisSettings>,
    reads: Rc<Desk>,
    writes: Rc<Desk>,
    scans: Rc<Desk>,
    again: Rc<Desk>,
    next_name: Cell<u64>,
    written: Cell<u64>,
    looked_up: Cell<u64>,
}

impl Redis {
    /// Starts the threads; they connect when there is something to do.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(settings: &Settings, redis: &RedisSettings) -> io::Result<Rc<Self>> {
        let redis = Arc::new(redis.clone());
        let records = || Records::new(redis.clone());
        let (reads, writes) = (settings.reads_waiting, settings.writes_waiting);
        let again = Desk::start("kv-again", 1, Queue::new(settings, reads + writes), None, || {
            let mut records = records();
            move |jobs| patiently(&mut records, jobs)
        })?;
        let start = |name, threads, most| {
            Desk::start(name, threads, Queue::new(settings, most), Some(again.clone()), || {
                let mut records = records();
                move |jobs| records.attempt(jobs)
            })
        };
        Ok(Rc::new(Self {
            reads: start("kv-read", THREADS, reads)?,
            writes: start("kv-write", THREADS, writes)?,
            scans: start("kv-scan", 1, reads)?,
            again,
            settings: redis,
            next_name: Cell::new(RandomState::new().build_hasher().finish()),
            written: Cell::new(0),
            looked_up: Cell::new(0),
        }))
    }

    /// What the keys of a namespace begin with.
    pub(crate) fn prefix(&self, namespace: &str) -> Arc<[u8]> {
        [self.settings.prefix.as_bytes(), namespace.as_bytes(), b":"].concat().into()
    }

    /// How many nodes have a record, as the operator says.
    pub(crate) fn copies(&self) -> u32 {
        self.settings.copies
    }

    /// See [`crate::Namespace::get_many`].
    pub(crate) async fn get_many(
        &self,
        prefix: &Arc<[u8]>,
        ids: Vec<Box<[u8]>>,
    ) -> Result<Vec<Option<crate::Record>>, StoreError> {
        self.looked_up.set(self.looked_up.get() + ids.len() as u64);
        match self.reads.ask(self.job(Task::Get { prefix: prefix.clone(), ids })).await? {
            Done::Got(found) => Ok(found),
            _ => Err(lost()),
        }
    }

    /// See [`crate::Namespace::write_many`].
    pub(crate) async fn write_many(
        &self,
        prefix: &Arc<[u8]>,
        writes: Vec<Write>,
        copies: u32,
    ) -> Vec<Result<Written, StoreError>> {
        let count = writes.len();
        self.written.set(self.written.get() + count as u64);
        let name = |write| {
            self.next_name.set(self.next_name.get().wrapping_add(1));
            NamedWrite { write, name: self.next_name.get() }
        };
        let writes = writes.into_iter().map(name).collect();
        let task = Task::Write { prefix: prefix.clone(), writes, copies };
        match self.writes.ask(self.job(task)).await {
            Ok(Done::Written(written)) => written,
            Ok(_) => vec![Err(lost()); count],
            Err(error) => vec![Err(error); count],
        }
    }

    /// Begins a scan.
    pub(crate) fn scan(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Cursor {
        Cursor::new(start, end)
    }

    /// The next piece of a scan, and where it goes on; `None` at the end.
    pub(crate) async fn scan_on(
        &self,
        prefix: &Arc<[u8]>,
        cursor: Cursor,
        most_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        let task = Task::Scan { prefix: prefix.clone(), cursor, most_bytes };
        match self.scans.ask(self.job(task)).await? {
            Done::Scanned(piece, rest) => Ok((piece, rest)),
            _ => Err(lost()),
        }
    }

    /// What this server had Redis do, over all namespaces.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            writes: self.written.get(),
            writes_refused: self.writes.queue.refused(),
            writes_waiting: self.writes.queue.len() as u64,
            reads_from_disk: self.looked_up.get(),
            reads_refused: self.reads.queue.refused(),
            reads_waiting: self.reads.queue.len() as u64,
            ..Stats::default()
        }
    }

    fn job(&self, task: Task) -> Job {
        Job { task, until: Instant::now() + Duration::from_millis(self.settings.timeout_ms) }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        for desk in [&self.reads, &self.writes, &self.scans, &self.again] {
            desk.is_closed.set(true);
            desk.threads.iter().for_each(|thread| thread.filled.set());
        }
    }
}

/// A queue and the threads behind it.
struct Desk {
    queue: Queue<Job, Done>,
    threads: Vec<Thread>,
    /// Where those wait that are to be tried again.
    again: Option<Rc<Desk>>,
    is_closed: Cell<bool>,
}

#[derive(Default)]
struct Thread {
    filled: Event,
    is_idle: Cell<bool>,
}

impl Desk {
    fn start<W>(
        name: &str,
        threads: usize,
        queue: Queue<Job, Done>,
        again: Option<Rc<Desk>>,
        work: impl Fn() -> W,
    ) -> io::Result<Rc<Self>>
    where
        W: FnMut(Vec<Job>) -> Vec<Outcome> + Send + 'static,
    {
        let threads = (0..threads).map(|_| Thread::default()).collect();
        let desk = Rc::new(Self { queue, threads, again, is_closed: Cell::new(false) });
        for index in 0..desk.threads.len() {
            spawn(desk.clone().feed(index, Lane::start(name, work())?));
        }
        Ok(desk)
    }

    async fn ask(&self, job: Job) -> Result<Done, StoreError> {
        self.queue.make_room()?;
        let reply = self.queue.push(job);
        self.wake();
        reply.wait().await
    }

    fn wake(&self) {
        if let Some(thread) = self.threads.iter().find(|thread| thread.is_idle.take()) {
            thread.filled.set();
        }
    }

    fn take_batch(&self) -> Vec<Waiting<Job, Done>> {
        let mut share = self.queue.len().div_ceil(self.threads.len()).min(BATCH_JOBS);
        self.queue.take_while(|_| share.checked_sub(1).map(|left| share = left).is_some())
    }

    async fn feed(self: Rc<Self>, index: usize, lane: Lane<Vec<Job>, Vec<Outcome>>) {
        let thread = &self.threads[index];
        while !self.is_closed.get() {
            let batch = self.take_batch();
            if batch.is_empty() {
                thread.is_idle.set(true);
                thread.filled.wait().await;
                thread.is_idle.set(false);
                continue;
            }
            let (jobs, replies): (Vec<_>, Vec<_>) =
                batch.into_iter().map(|Waiting { job, reply, .. }| (job, reply)).unzip();
            let Some(outcomes) = lane.run(jobs).await else {
                replies.iter().for_each(|reply| reply.give(Err(lost())));
                continue;
            };
            for (reply, outcome) in replies.into_iter().zip(outcomes) {
                match (outcome, &self.again) {
                    (Outcome::Done(done), _) => reply.give(done),
                    (Outcome::Later(_, why), None) => reply.give(Err(why)),
                    (Outcome::Later(job, why), Some(again)) => match again.queue.make_room() {
                        Err(_) => reply.give(Err(why)),
                        Ok(_) => {
                            again.queue.push_for(job, reply);
                            again.wake();
                        }
                    },
                }
            }
        }
    }
}

/// Does jobs, and tries again what is to be done later until the time for it is over.
fn patiently(records: &mut Records, jobs: Vec<Job>) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = jobs.iter().map(|_| None).collect();
    let mut left: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
    let mut pause = PAUSE_FIRST;
    loop {
        let (places, jobs): (Vec<usize>, Vec<Job>) = left.into_iter().unzip();
        left = Vec::new();
        let now = Instant::now();
        for (place, outcome) in places.into_iter().zip(records.attempt(jobs)) {
            match outcome {
                Outcome::Later(job, _) if job.until > now => left.push((place, job)),
                outcome => outcomes[place] = Some(outcome),
            }
        }
        if left.is_empty() {
            return outcomes.into_iter().flatten().collect();
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PAUSE_LAST);
    }
}

/// A thread of the store has ended by a bug.
fn lost() -> StoreError {
    StoreError::Failed("a thread of the store has ended; restart the server".to_owned())
}
