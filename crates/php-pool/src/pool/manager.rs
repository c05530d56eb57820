//! The manager of a pool: starts PHP, forks workers, sizes the pool, enforces deadlines, buries
//! the dead.
//!
//! One task a pool. It acts on the zygote's events at once and on time every tick; what to do is
//! decided by the pure plans of `outboard_supervisor`. Invariant: a slot is used again only after
//! the zygote has reaped its worker.

mod deadlines;
mod forks;
mod queue;
mod reap;
mod sizing;
mod zygote;

use super::allowance::Allowance;
use super::crashing::Crashing;
use super::operations::NoOperations;
use super::routes::Routes;
use super::worker::Worker;
use super::worker_output::{self, OutputReader};
use super::{Phase, Pool, PoolSettings};
use outboard_buffer::Account;
use outboard_log::Reason;
use outboard_log::{ErrorLog, Event as LogEvent, Level};
use outboard_reactor::{
    Event, Interest, Source, contain, now_ms, sleep, spawn, with_deadline, yield_now,
};
use outboard_ring::control;
use outboard_supervisor::plan::backoff::Backoff;
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::{Received, Zygote, output_pipe};
pub(super) use reap::add_waits;
use reap::describe_exit;
use rustix::fd::OwnedFd;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

/// Ticks while somebody works or waits, and while nobody does.
const BUSY_TICK_MS: u64 = 20;
const IDLE_TICK_MS: u64 = 100;

static NEXT_POOL: AtomicU64 = AtomicU64::new(0);

/// PHP did not start, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// The app.
    pub app: String,
    /// What went wrong.
    pub message: String,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PHP of app {} did not start: {}", self.app, self.message)
    }
}

impl std::error::Error for StartError {}

/// Of what the zygote says while it starts, as much as fits a message.
const WORDS_BYTES: usize = 2048;

/// What was read of what the zygote has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// All of it.
    All,
    /// There may be more.
    Some,
    /// It has gone.
    Gone,
}

/// What the manager knows; the rest of the pool reads it.
#[derive(Debug)]
pub(super) struct ManagerState {
    pub(super) php_version: String,
    /// Why PHP does not start, in its own words, while it does not.
    failure: Option<String>,
    next_worker: u64,
    /// Where forks that answer one request print to: what a pipe for each costs would be a good
    /// part of the cost of the request.
    output: Option<OwnedFd>,
    /// What the zygote prints comes here, and what it printed while it started.
    printed: Option<OwnedFd>,
    words: String,
    /// Whether the manager ticks slowly and wants to be woken by demand.
    pub(super) slow: bool,
    backoff: Backoff,
    /// When PHP is to have started; `None` when it has.
    pub(super) started_by_ms: Option<u64>,
    /// After this, workers that are still busy in a retiring pool are ended.
    pub(super) retire_deadline_ms: Option<u64>,
    pub(super) sizing: sizing::Sizing,
}

impl ManagerState {
    pub(super) fn new(settings: &PoolSettings) -> Self {
        Self {
            php_version: String::new(),
            failure: None,
            next_worker: 0,
            output: None,
            printed: None,
            words: String::new(),
            slow: false,
            backoff: Backoff::new(),
            started_by_ms: None,
            retire_deadline_ms: None,
            sizing: sizing::Sizing::new(settings),
        }
    }

    /// Remembers what the zygote says while it starts: why it does not, perhaps.
    pub(super) fn keep_words(&mut self, line: &str) {
        if self.started_by_ms.is_some() && self.words.len() + line.len() < WORDS_BYTES {
            self.words.push_str(line);
            self.words.push('\n');
        }
    }

    /// Whether PHP keeps dying while it starts.
    pub(super) fn failing(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether workers have not died too often of late.
    pub(super) fn may_fork(&self, now_ms: u64) -> bool {
        self.backoff.may_start(now_ms)
    }

    /// A worker got ready or finished a request: starting works.
    pub(super) fn worked(&mut self) {
        self.failure = None;
        self.backoff.served();
    }
}

impl Pool {
    /// A pool whose manager starts PHP at once; see [`Pool::ready`].
    pub fn start(
        settings: PoolSettings,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
    ) -> Rc<Self> {
        let pool = Self::idle(settings, error_log, slow_log);
        spawn(keep(pool.clone()));
        pool
    }

    /// A pool without a manager.
    pub(super) fn idle(
        settings: PoolSettings,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            id: NEXT_POOL.fetch_add(1, Ordering::Relaxed),
            me: me.clone(),
            manager: RefCell::new(ManagerState::new(&settings)),
            routes: RefCell::new(Routes::new(settings.is_resident())),
            allowance: Rc::new(Allowance::new(settings.log_rate)),
            settings,
            members: RefCell::default(),
            zygote: RefCell::default(),
            phase: Cell::new(Phase::Starting),
            pending_requests: Cell::default(),
            counters: RefCell::default(),
            demand: Event::default(),
            phase_changed: Event::default(),
            scratch: RefCell::default(),
            completion: RefCell::default(),
            operations: RefCell::new(Rc::new(NoOperations)),
            memory: RefCell::new(Account::detached()),
            asked: RefCell::default(),
            left: RefCell::default(),
            crashing: Crashing::default(),
            said: Cell::new(false),
            first_slot: Cell::new(0),
            used_forks: Cell::new(0),
            replacements: RefCell::default(),
            error_log,
            slow_log,
        })
    }

    /// Waits until the minimum of workers is ready.
    ///
    /// # Errors
    /// PHP's own words when it does not start, or that it takes too long.
    pub async fn ready(&self) -> Result<(), StartError> {
        let failed = |message: String| StartError { app: self.settings.app.clone(), message };
        let until_ms = now_ms() + self.settings.start_timeout_ms;
        let ready = with_deadline(until_ms, async {
            loop {
                if let Some(failure) = &self.manager.borrow().failure {
                    return Err(failed(failure.clone()));
                }
                if self.phase.get() == Phase::Serving
                    && self.ready_workers() >= self.least_workers()
                {
                    return Ok(());
                }
                self.phase_changed.wait().await;
            }
        });
        let late = || failed(format!("it takes more than {} ms", self.settings.start_timeout_ms));
        ready.await.unwrap_or_else(|_| Err(late()))
    }

    fn least_workers(&self) -> usize {
        self.manager.borrow().sizing.bounds.min()
    }

    fn ready_workers(&self) -> usize {
        let members = self.members.borrow();
        let ready = |worker: &&Worker| matches!(worker.state(), State::Idle | State::Busy);
        members.all().filter(ready).count()
    }

    /// Others have taken over: what waits, runs or is claimed is finished within
    /// `drain_timeout_ms`, then everything ends.
    pub fn retire(&self, drain_timeout_ms: u64) {
        if self.is_gone() {
            return;
        }
        self.phase.set(Phase::Retiring);
        self.manager.borrow_mut().retire_deadline_ms = Some(now_ms() + drain_timeout_ms);
        self.go_on_retiring();
        self.demand.set();
    }

    /// Whether it is to have no new work: nobody may be left to do it.
    pub fn is_retired(&self) -> bool {
        matches!(self.phase.get(), Phase::Retiring | Phase::Gone)
    }

    /// Whether no process is left.
    pub fn is_gone(&self) -> bool {
        self.phase.get() == Phase::Gone
    }
}

async fn keep(pool: Rc<Pool>) {
    while !pool.is_gone() {
        match pool.boot() {
            Ok(control) => pool.attend(&control).await,
            Err(message) => pool.start_failed(message),
        }
        let zygote = pool.zygote.take();
        pool.zygote_gone();
        if let Some(zygote) = zygote {
            zygote::end(zygote, pool.settings.runs_program()).await;
        }
        if pool.phase.get() == Phase::Retiring {
            pool.phase.set(Phase::Gone);
        }
        let wait_ms = pool.manager.borrow_mut().backoff.failed_to_start(now_ms());
        sleep(if pool.is_gone() { 0 } else { wait_ms }).await;
    }
    pool.phase_changed.set();
}

impl Pool {
    /// Starts the zygote; returns its control socket as a source.
    fn boot(self: &Rc<Self>) -> Result<Source, String> {
        let (program, host) = (&self.settings.host_binary, self.settings.host.clone());
        let spawned = match &self.settings.as_user {
            Some(user) => Zygote::spawn_as(user, program, host),
            None => Zygote::spawn(program, host),
        };
        let (zygote, output) = spawned.map_err(|error| format!("{error}; {}", error.hint()))?;
        let printer =
            OutputReader { pool: self.clone(), number: None, allowance: self.allowance.clone() };
        {
            let mut manager = self.manager.borrow_mut();
            manager.printed = output.try_clone().ok();
            manager.words.clear();
        }
        spawn(worker_output::relay(printer.clone(), output));
        if self.settings.forks_per_request() {
            let (output, output_end) = output_pipe().map_err(|error| error.to_string())?;
            spawn(worker_output::relay(printer, output));
            self.manager.borrow_mut().output = Some(output_end);
        }
        let control = zygote.control_fd().try_clone_to_owned();
        let source = control.and_then(|fd| Source::new(fd, Interest::Read));
        self.zygote.replace(Some(zygote));
        self.manager.borrow_mut().started_by_ms =
            Some(now_ms().saturating_add(self.settings.start_timeout_ms));
        source.map_err(|error| error.to_string())
    }

    /// Serves the zygote until it is gone or the pool has retired.
    async fn attend(self: &Rc<Self>, control: &Source) {
        loop {
            let tick_ms = self.choose_tick();
            let news = std::future::poll_fn(|_| {
                let demand = self.demand.poll();
                if control.poll_readable().is_ready() { Poll::Ready(()) } else { demand }
            });
            let _ = with_deadline(now_ms() + tick_ms, news).await;
            match self.read_events(control) {
                Heard::Gone => return,
                Heard::All => {}
                Heard::Some => yield_now().await,
            }
            self.tick();
            if self.kill_mute_zygote(now_ms()) {
                return;
            }
            if self.has_started_too_long() {
                let message = format!("it takes more than {} ms", self.settings.start_timeout_ms);
                return self.start_failed(message);
            }
            if self.phase.get() == Phase::Retiring && self.is_empty() && !self.is_claimed() {
                return;
            }
        }
    }

    /// Whether the zygote has not said yet how its start went.
    fn is_starting(&self) -> bool {
        self.manager.borrow().started_by_ms.is_some()
    }

    /// Whether the zygote, and with a fork per request the script that it boots, takes too long.
    fn has_started_too_long(&self) -> bool {
        self.manager.borrow().started_by_ms.is_some_and(|by_ms| by_ms <= now_ms())
    }

    fn choose_tick(&self) -> u64 {
        let members = self.members.borrow();
        let working =
            !members.queue.is_empty() || members.all().any(|worker| worker.state() != State::Idle);
        self.manager.borrow_mut().slow = !working;
        if working { BUSY_TICK_MS } else { IDLE_TICK_MS }
    }

    fn is_empty(&self) -> bool {
        let members = self.members.borrow();
        members.queue.is_empty() && members.all().next().is_none()
    }

    /// Acts on what the zygote has said.
    fn read_events(self: &Rc<Self>, control: &Source) -> Heard {
        for _ in 0..zygote::EVENTS_A_TURN {
            let received = match self.zygote.borrow().as_ref() {
                Some(zygote) => zygote.receive(),
                None => return Heard::Gone,
            };
            match received {
                Ok(Received::Event(event)) => {
                    if contain(|| self.handle(event)).is_err() {
                        self.say(Level::Error, "what the zygote said made the gateway panic");
                        return Heard::Gone;
                    }
                }
                Ok(Received::Nothing) => {
                    control.clear_readable();
                    return Heard::All;
                }
                Ok(Received::Closed) => return Heard::Gone,
                Err(error) => {
                    self.say(Level::Error, &format!("the zygote cannot be heard: {error}"));
                    return Heard::Gone;
                }
            }
        }
        Heard::Some
    }

    fn handle(self: &Rc<Self>, event: control::Event) {
        match event {
            control::Event::Started { php_version, opcache, ini_file, messages, .. } => {
                if self.is_starting() {
                    self.started(php_version, opcache, ini_file.as_deref(), &messages);
                }
            }
            control::Event::StartFailed { message } if self.is_starting() => {
                self.start_failed(message);
            }
            // It has started, or failed to, before.
            control::Event::StartFailed { .. } => {}
            control::Event::Forked { worker, pid } => {
                self.with_worker(worker, |worker| worker.process.forked(pid));
            }
            control::Event::ForkFailed { worker, message } => {
                if self.with_worker(worker, |_| ()).is_none() {
                    return;
                }
                self.say(Level::Error, &format!("cannot fork a worker: {message}"));
                self.reap(worker, None, "could not be forked");
            }
            control::Event::Exited { worker, code, signal } => {
                self.reap(worker, code, &describe_exit(code, signal));
            }
        }
    }

    fn started(
        self: &Rc<Self>,
        php_version: String,
        opcache: bool,
        ini_file: Option<&std::path::Path>,
        messages: &str,
    ) {
        let ini = ini_file.map_or("no php.ini".into(), |path| path.display().to_string());
        let opcache = if opcache { "opcache on" } else { "opcache off" };
        self.say(Level::Info, &format!("PHP {php_version} started ({ini}, {opcache})"));
        for line in messages.lines().filter(|line| self.allowance.admit(line.len())) {
            self.say(Level::Warn, line);
        }
        {
            let mut manager = self.manager.borrow_mut();
            manager.php_version = php_version;
            manager.started_by_ms = None;
        }
        if self.phase.get() == Phase::Starting {
            self.phase.set(Phase::Serving);
        }
        self.tick();
    }

    fn start_failed(&self, message: String) {
        self.say(Level::Error, &format!("PHP did not start: {message}"));
        {
            let mut manager = self.manager.borrow_mut();
            manager.failure = Some(message);
            manager.started_by_ms = None;
        }
        self.phase_changed.set();
        self.fail_queue(Reason::AppDown);
    }

    pub(super) fn with_worker<R>(
        &self,
        number: u64,
        act: impl FnOnce(&mut Worker) -> R,
    ) -> Option<R> {
        let mut members = self.members.borrow_mut();
        members.all_mut().find(|worker| worker.process.number == number).map(act)
    }

    pub(super) fn say(&self, level: Level, text: &str) {
        let event = LogEvent { app: Some(&self.settings.app), text, ..LogEvent::default() };
        self.error_log.write(level, event);
    }

    /// What time alone demands.
    fn tick(self: &Rc<Self>) {
        let now_ms = now_ms();
        self.enforce_deadlines(now_ms);
        self.free_stuck(now_ms);
        self.expire_queue(now_ms);
        self.look_for_loopback(now_ms);
        self.resize(now_ms);
        self.go_on_retiring();
        self.order_successors();
        self.tell_dropped();
    }
}
