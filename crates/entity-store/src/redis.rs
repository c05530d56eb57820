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
use crate::desk::{Desk, Staff};
use crate::error::StoreError;
use crate::namespace::{Piece, Stats};
use crate::queue::{Owed, Queue};
pub(crate) use crate::settings::RedisSettings;
use crate::settings::Settings;
use job::{Done, Job, NamedWrite, Task};
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
pub(crate) use records::read_as_everything;

/// Threads, each with a connection to every node.
const READERS: Staff = Staff { name: "kv-read", threads: 2, batch_jobs: 128 };
const WRITERS: Staff = Staff { name: "kv-write", ..READERS };
const SCANNER: Staff = Staff { name: "kv-scan", threads: 1, ..READERS };
/// What a lost node holds up is tried again by this one.
const PATIENT: Staff = Staff { name: "kv-again", ..SCANNER };
/// Pauses before something is tried again: a cluster needs its node timeout to fail over.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_LAST: Duration = Duration::from_millis(100);

type RedisDesk = Desk<Job, Done>;

/// A Redis that is used.
pub(crate) struct Redis {
    settings: Arc<RedisSettings>,
    reads: RedisDesk,
    writes: RedisDesk,
    scans: RedisDesk,
    next_name: Cell<u64>,
    written: Cell<u64>,
    looked_up: Cell<u64>,
}

/// Asks the nodes whether they let us in; waits for them.
///
/// # Errors
/// What the first of those said that do not. Others are found out from any one that does.
pub fn probe(settings: &RedisSettings) -> Result<(), String> {
    let mut first = None;
    for node in &settings.nodes {
        let asked = wire::Connection::open(node, settings)
            .and_then(|mut connection| connection.ask(&wire::command(&[b"PING"])));
        let why = match asked {
            // Whoever wants a password says so to any command.
            Ok(wire::Reply::Refused(why)) => why,
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        };
        first.get_or_insert(format!("{node}: {why}"));
    }
    first.map_or(Ok(()), Err)
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
        let again = Desk::start(
            PATIENT,
            Queue::new(settings, reads + writes),
            || {
                let mut records = records();
                move |jobs| patiently(&mut records, jobs)
            },
            |outcome, reply: Owed<_>| match outcome {
                Outcome::Done(done) => reply.give(done),
                Outcome::Later(_, why) => reply.give(Err(why)),
            },
        )?;
        let again = Rc::new(again);
        let start = |staff, most| {
            let work = || {
                let mut records = records();
                move |jobs| records.attempt(jobs)
            };
            let again = again.clone();
            let settle = move |outcome, reply| settle(outcome, reply, &again);
            Desk::start(staff, Queue::new(settings, most), work, settle)
        };
        Ok(Rc::new(Self {
            reads: start(READERS, reads)?,
            writes: start(WRITERS, writes)?,
            scans: start(SCANNER, reads)?,
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
        match ask(&self.reads, self.job(Task::Get { prefix: prefix.clone(), ids })).await? {
            Done::Got(found) => Ok(found),
            _ => Err(StoreError::lost()),
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
        match ask(&self.writes, self.job(task)).await {
            Ok(Done::Written(written)) => written,
            Ok(_) => vec![Err(StoreError::lost()); count],
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
        match ask(&self.scans, self.job(task)).await? {
            Done::Scanned(piece, rest) => Ok((piece, rest)),
            _ => Err(StoreError::lost()),
        }
    }

    /// What this server had Redis do, over all namespaces.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            writes: self.written.get(),
            writes_refused: self.writes.refused(),
            writes_waiting: self.writes.len() as u64,
            reads_from_disk: self.looked_up.get(),
            reads_refused: self.reads.refused(),
            reads_waiting: self.reads.len() as u64,
            ..Stats::default()
        }
    }

    fn job(&self, task: Task) -> Job {
        Job { task, until: Instant::now() + Duration::from_millis(self.settings.timeout_ms) }
    }
}

/// Asks a desk, and waits.
async fn ask(desk: &RedisDesk, job: Job) -> Result<Done, StoreError> {
    desk.make_room()?;
    desk.push(job).wait().await
}

/// Hands on what came of a job; what is to be done later waits at the desk for that.
fn settle(outcome: Outcome, reply: Owed<Done>, again: &RedisDesk) {
    match outcome {
        Outcome::Done(done) => reply.give(done),
        Outcome::Later(job, why) => match again.make_room() {
            Err(_) => reply.give(Err(why)),
            Ok(_) => again.push_for(job, reply),
        },
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
