//! Tests of pools whose workers are stand-ins: the test itself, at the other end of real rings.
//!
//! A pool that has to fork gets a zygote that accepts orders and does nothing (`cat`).

mod activity;
mod backlog;
mod deadlines;
mod deaths;
mod direct;
mod direct_accounts;
mod dispatch;
mod fairness;
mod forwarded;
mod growth;
mod lendable;
mod lending;
mod lent_exits;
mod log;
mod operations;
mod output;
mod placement;
mod queue;
mod receive;
mod recycling;
mod reserve;
mod rest;
mod retirement;
mod shards;
mod sizing;
mod start;
mod threads;

use super::lending::messages::Message;
use super::lifecycle::Phase;
use super::operations::Requester;
pub(crate) use super::testing::{StandIn, poll};
use super::worker::Worker;
use super::*;
use crate::exchange::End;
use outboard_buffer::RequestBody;
use outboard_log::{Level, Opener, Sink, Target};
pub(crate) use outboard_reactor::testing::in_loop;
use outboard_ring::channel::WaitCall;
use outboard_ring::control::{self, HostSettings, Isolation, Rlimits, WorkerScript, Xdebug};
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};
use outboard_ring::response::{Done, Outcome};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::Zygote;
use std::collections::BTreeMap;
use std::path::PathBuf;

const DEADLINE_MS: u64 = 1_000;

pub(crate) fn settings(concurrency: u32, isolation: Isolation) -> PoolSettings {
    let worker = WorkerScript {
        script: "/w.php".into(),
        concurrency,
        isolation,
        lists_files: false,
        frankenphp: true,
        starts_server: false,
        arguments: Vec::new(),
        state_report: None,
        exit_ends_script: false,
        boot_request: None,
    };
    let host = HostSettings {
        app: "site".into(),
        document_root: "/".into(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: BTreeMap::new(),
        fixed_ini: BTreeMap::new(),
        env: BTreeMap::new(),
        run_as: None,
        no_new_privileges: true,
        dumpable: false,
        background_programs: false,
        sandbox: None,
        control_group: None,
        rlimits: Rlimits::default(),
        worker: Some(worker),
        xdebug: Xdebug::Never,
    };
    PoolSettings {
        app: "site".into(),
        host_binary: "/bin/cat".into(),
        as_user: None,
        host,
        min: Some(1),
        max: Some(8),
        memory_budget_bytes: 1 << 30,
        spare: 0,
        queue_length: 100,
        queue_timeout_ms: 5_000,
        loopback_slots: 0,
        idle_timeout_ms: 5_000,
        recycle_requests: None,
        recycle_jitter_percent: 0,
        recycle_memory_bytes: None,
        deadline_ms: DEADLINE_MS,
        log_rate: crate::allowance::LogRate { lines: 1_000, bytes: 1 << 20 },
        slow_ms: None,
        start_timeout_ms: 5_000,
        snapshot_max_age_ms: 300_000,
        is_debugged: false,
        has_direct: false,
        may_share_core: true,
    }
}

pub(crate) fn sequential() -> PoolSettings {
    settings(1, Isolation::Reset)
}

/// Settings of an app whose workers run a script per request.
fn classic() -> PoolSettings {
    let mut settings = sequential();
    settings.host.worker = None;
    settings
}

fn pool(concurrency: u32) -> Rc<Pool> {
    pool_of(settings(concurrency, Isolation::Reset))
}

/// A serving pool without a log.
pub(crate) fn pool_of(settings: PoolSettings) -> Rc<Pool> {
    pool_with_log(settings, Target::Off)
}

fn pool_with_log(settings: PoolSettings, target: Target) -> Rc<Pool> {
    pool_of_shard(settings, Shard::only(), target)
}

fn pool_of_shard(settings: PoolSettings, shard: Shard, target: Target) -> Rc<Pool> {
    let sink = Rc::new(Sink::open(target, Opener::default()).unwrap());
    let log = Rc::new(ErrorLog::new(sink, Level::Debug));
    let pool = Pool::new(settings, shard, log.clone(), log, Rc::default());
    pool.core.lifecycle.enter(Phase::Serving);
    pool
}

/// A log file, removed at the end.
struct LogFile(PathBuf);

impl LogFile {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-php-pool-{}-{number}.log", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// A serving pool that writes its error log and its slow log here.
    fn pool_of(&self, settings: PoolSettings) -> Rc<Pool> {
        pool_with_log(settings, Target::File(self.0.clone()))
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }

    #[track_caller]
    fn has(&self, expected: &str) {
        let text = self.text();
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn start_zygote(pool: &Rc<Pool>) {
    let zygote =
        Zygote::spawn(&pool.core.settings.host_binary, pool.core.settings.host.clone()).unwrap();
    pool.adopt(zygote).unwrap();
}

/// A pool with a zygote that accepts orders; workers that it forks stay in [`State::Forking`].
fn forking_pool(settings: PoolSettings) -> Rc<Pool> {
    let pool = pool_of(settings);
    start_zygote(&pool);
    pool.core.php.borrow_mut().set_started();
    pool
}

impl StandIn {
    /// Adds a worker whose fork was reported, and that starts. It can be lent.
    fn forked(pool: &Rc<Pool>, number: u64) -> Self {
        let worker = Self::add(pool, number, Some(Doorbell::new().unwrap().into_fd()));
        // That of no process.
        let pid = -(number as i32);
        pool.handle(control::Event::Forked { worker: number, pid });
        worker
    }

    /// Adds a worker that is ready and can be lent.
    fn join_forked(pool: &Rc<Pool>, number: u64) -> Self {
        let mut worker = Self::forked(pool, number);
        worker.send(FrameKind::Ready, Tag::default(), &[]);
        poll(pool);
        worker
    }

    /// Starts the next request.
    pub(crate) fn start_next(&mut self) -> Tag {
        let (kind, tag) = self.receive().expect("a request");
        assert_eq!(kind, FrameKind::Request);
        assert!(self.channel.start(tag), "it was withdrawn");
        tag
    }

    pub(crate) fn finish(&mut self, tag: Tag, leaving: bool) {
        let done = Done {
            outcome: Outcome::Finished,
            leaving,
            takes_snapshot: false,
            handled: true,
            peak_memory_bytes: 7,
        };
        self.send(FrameKind::Done, tag, &done.encode());
    }

    fn respond(&mut self, tag: Tag, body: &[u8]) {
        self.send(FrameKind::Head, tag, b"head");
        self.send(FrameKind::Body, tag, body);
        self.finish(tag, false);
    }

    /// Processes the next request completely.
    fn process_next(&mut self, pool: &Pool) {
        let tag = self.start_next();
        self.respond(tag, b"x");
        poll(pool);
    }

    pub(crate) fn state(&self, pool: &Pool) -> Option<State> {
        pool.core
            .members
            .borrow()
            .roster
            .all()
            .find(|w| w.process.number == self.number)
            .map(Worker::state)
    }
}

fn frame(target: &str) -> Vec<u8> {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    fields[Field::Method as usize] = b"GET";
    fields[Field::Uri as usize] = target.as_bytes();
    let none = std::iter::empty;
    let parts = RequestParts { fixed: Fixed::default(), fields, headers: none(), params: none() };
    let mut frame = Vec::new();
    encode(parts, &mut frame);
    frame
}

fn exchange_with(body: &[u8], buffer_bytes: usize) -> Rc<Exchange> {
    let body = RequestBody::whole(body.to_vec());
    Rc::new(Exchange::new(frame("/a/b"), body, 1, now_ms(), buffer_bytes))
}

fn submit(pool: &Pool) -> Rc<Exchange> {
    submit_with(pool, b"", 1 << 20)
}

fn submit_with(pool: &Pool, body: &[u8], buffer_bytes: usize) -> Rc<Exchange> {
    let exchange = exchange_with(body, buffer_bytes);
    pool.submit(exchange.clone(), None).unwrap();
    exchange
}

/// Submits requests until the queue is full.
pub(crate) fn fill_queue(pool: &Pool) {
    while pool.submit(exchange_with(b"", 1), None).is_ok() {}
}

/// Reports the death of a worker.
pub(crate) fn reap(pool: &Pool, number: u64) {
    pool.reap(number, None, "was killed by signal 9");
}

/// Takes the next step for every request that has reached its deadline.
fn enforce_deadlines(pool: &Pool, now_ms: u64) {
    super::deadlines::enforce(&pool.core, now_ms);
}

/// A worker is about to be replaced by another one.
fn begin_replacement(pool: &Pool, old: u64, new: u64) {
    let replacements = &pool.dispatcher.replacements;
    replacements.has_successor(&pool.core.members.borrow().roster, old, || true);
    replacements.fork_missing(|| Some(new));
}

/// Handles the messages of the pools of other threads.
fn follow_messages(pool: &Rc<Pool>) {
    let messages = pool.core.shard.receiver().unwrap();
    outboard_reactor::spawn(super::threads::follow(pool.clone(), messages));
}

/// When the manager ticks next.
fn next_tick_ms(pool: &Pool, now_ms: u64) -> u64 {
    ticks::next_tick_ms(&pool.core, &pool.dispatcher, now_ms)
}

fn body_of(exchange: &Exchange) -> (Vec<u8>, Option<End>) {
    exchange.take().map_or_else(Default::default, |data| (data.body, data.end))
}

fn end_of(exchange: &Exchange) -> Option<End> {
    body_of(exchange).1
}

fn failed(reason: Reason) -> Option<End> {
    Some(End::Failed(reason))
}

const CRASHED: Option<End> = Some(End::Failed(Reason::WorkerCrashed));
const COMPLETE: Option<End> = Some(End::Complete);
