//! Namespaces in Redis or a Redis cluster, as the loop sees them.
//!
//! Used by [`crate::Namespace`]. Replication, failover and resharding are done by Redis; durability
//! is that of its nodes (`appendfsync`), times the requested replicas. Invariants: the loop never
//! waits for a socket; reads, writes and scans have separate queues and threads; requests to a
//! failing node are retried on a thread of their own and delay no others.

mod cluster;
mod job;
mod records;
mod slots;
mod wire;

use crate::change::{Write, Written};
use crate::error::StoreError;
use crate::queue::{Queue, ResultSender};
use crate::record::Record;
use crate::settings::{RedisSettings, Settings};
use crate::thread_pool::{ThreadPool, ThreadPoolConfig};
use crate::types::{Piece, Stats};
use job::{Job, JobOutput, TaggedWrite, Task};
use records::{Outcome, Records};
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use job::Cursor;
#[cfg(fuzzing)]
pub(crate) use records::interpret_reply;

/// Each thread has a connection to every node.
const READERS: ThreadPoolConfig = ThreadPoolConfig { name: "kv-read", threads: 2, batch_jobs: 128 };
const WRITERS: ThreadPoolConfig = ThreadPoolConfig { name: "kv-write", ..READERS };
const SCANNER: ThreadPoolConfig = ThreadPoolConfig { name: "kv-scan", threads: 1, ..READERS };
/// Retries requests to failing nodes.
const RETRIER: ThreadPoolConfig = ThreadPoolConfig { name: "kv-retry", ..SCANNER };
/// Pauses between retries: a cluster needs its node timeout to fail over.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(100);

type RedisPool = ThreadPool<Job, JobOutput>;

/// A Redis engine.
pub(crate) struct Redis {
    settings: Arc<RedisSettings>,
    reads: RedisPool,
    writes: RedisPool,
    scans: RedisPool,
    next_tag: Cell<u64>,
    writes_sent: Cell<u64>,
    lookups: Cell<u64>,
}

/// Checks that a node accepts the credentials; blocks.
///
/// # Errors
/// The error of the first node, if none of them accepts. The other nodes are discovered later.
pub fn probe(settings: &RedisSettings) -> Result<(), String> {
    let mut first = None;
    for node in &settings.nodes {
        let reply = wire::Connection::open(node, settings)
            .and_then(|mut connection| connection.ask(&wire::command(&[b"PING"])));
        let why = match reply {
            // A node that requires a password replies so to any command.
            Ok(outboard_resp::Value::Error(why)) => why,
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        };
        first.get_or_insert(format!("{node}: {why}"));
    }
    first.map_or(Ok(()), Err)
}

impl Redis {
    /// Starts the threads; they connect on the first request.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(settings: &Settings, redis: &RedisSettings) -> io::Result<Rc<Self>> {
        let redis = Arc::new(redis.clone());
        let records = || Records::new(redis.clone());
        let (reads, writes) = (settings.reads_waiting, settings.writes_waiting);
        let retries = ThreadPool::start(
            RETRIER,
            Queue::new(settings, reads + writes),
            || {
                let mut records = records();
                move |jobs| retry_until_deadline(&mut records, jobs)
            },
            |outcome, reply: ResultSender<_>| match outcome {
                Outcome::Done(done) => reply.send(done),
                Outcome::Retry(_, why) => reply.send(Err(why)),
            },
        )?;
        let retries = Rc::new(retries);
        let start = |config, capacity| {
            let work = || {
                let mut records = records();
                move |jobs| records.attempt(jobs)
            };
            let retries = retries.clone();
            let settle = move |outcome, reply| settle(outcome, reply, &retries);
            ThreadPool::start(config, Queue::new(settings, capacity), work, settle)
        };
        Ok(Rc::new(Self {
            reads: start(READERS, reads)?,
            writes: start(WRITERS, writes)?,
            scans: start(SCANNER, reads)?,
            settings: redis,
            next_tag: Cell::new(RandomState::new().build_hasher().finish()),
            writes_sent: Cell::new(0),
            lookups: Cell::new(0),
        }))
    }

    /// The prefix of the keys of a namespace.
    pub(crate) fn prefix(&self, namespace: &str) -> Arc<[u8]> {
        [self.settings.prefix.as_bytes(), namespace.as_bytes(), b":"].concat().into()
    }

    /// The number of nodes with each record, as configured.
    pub(crate) fn copies(&self) -> u32 {
        self.settings.copies
    }

    /// See [`crate::Namespace::get_many`].
    pub(crate) async fn get_many(
        &self,
        prefix: &Arc<[u8]>,
        ids: Vec<Box<[u8]>>,
    ) -> Result<Vec<Option<Record>>, StoreError> {
        self.lookups.set(self.lookups.get() + ids.len() as u64);
        match ask(&self.reads, self.job(Task::Get { prefix: prefix.clone(), ids })).await? {
            JobOutput::Got(found) => Ok(found),
            _ => Err(StoreError::thread_ended()),
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
        self.writes_sent.set(self.writes_sent.get() + count as u64);
        let tag = |write| {
            self.next_tag.set(self.next_tag.get().wrapping_add(1));
            TaggedWrite { write, tag: self.next_tag.get() }
        };
        let writes = writes.into_iter().map(tag).collect();
        let task = Task::Write { prefix: prefix.clone(), writes, copies };
        match ask(&self.writes, self.job(task)).await {
            Ok(JobOutput::Written(written)) => written,
            Ok(_) => vec![Err(StoreError::thread_ended()); count],
            Err(error) => vec![Err(error); count],
        }
    }

    /// Begins a scan.
    pub(crate) fn scan(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Cursor {
        Cursor::new(start, end)
    }

    /// The next piece of a scan, and the position after it; `None` at the end.
    pub(crate) async fn scan_on(
        &self,
        prefix: &Arc<[u8]>,
        cursor: Cursor,
        most_bytes: usize,
    ) -> Result<(Piece, Option<Cursor>), StoreError> {
        let task = Task::Scan { prefix: prefix.clone(), cursor, most_bytes };
        match ask(&self.scans, self.job(task)).await? {
            JobOutput::Scanned(piece, rest) => Ok((piece, rest)),
            _ => Err(StoreError::thread_ended()),
        }
    }

    /// Statistics over all namespaces.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            writes: self.writes_sent.get(),
            writes_refused: self.writes.refused(),
            writes_waiting: self.writes.len() as u64,
            reads_from_disk: self.lookups.get(),
            reads_refused: self.reads.refused(),
            reads_waiting: self.reads.len() as u64,
            ..Stats::default()
        }
    }

    fn job(&self, task: Task) -> Job {
        Job { task, deadline: Instant::now() + Duration::from_millis(self.settings.timeout_ms) }
    }
}

/// Queues a job and waits for its result.
async fn ask(pool: &RedisPool, job: Job) -> Result<JobOutput, StoreError> {
    pool.make_room()?;
    pool.push(job).receive().await
}

/// Sends the result of a job, or queues the job for retries.
fn settle(outcome: Outcome, reply: ResultSender<JobOutput>, retries: &RedisPool) {
    match outcome {
        Outcome::Done(done) => reply.send(done),
        Outcome::Retry(job, why) => match retries.make_room() {
            Err(_) => reply.send(Err(why)),
            Ok(_) => retries.push_with(job, reply),
        },
    }
}

/// Runs jobs, and retries them until their deadline.
fn retry_until_deadline(records: &mut Records, jobs: Vec<Job>) -> Vec<Outcome> {
    let mut outcomes: Vec<Option<Outcome>> = jobs.iter().map(|_| None).collect();
    let mut left: Vec<(usize, Job)> = jobs.into_iter().enumerate().collect();
    let mut pause = PAUSE_FIRST;
    loop {
        let (places, jobs): (Vec<usize>, Vec<Job>) = left.into_iter().unzip();
        left = Vec::new();
        let now = Instant::now();
        for (place, outcome) in places.into_iter().zip(records.attempt(jobs)) {
            match outcome {
                Outcome::Retry(job, _) if job.deadline > now => left.push((place, job)),
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
