//! The start of PHP: the zygote, its report, and the time that it may take.
//!
//! Called by the manager, and by the server that waits for a pool. Invariant: a start ends with
//! [`Phase::Serving`] or with a failure that says why.

use super::super::messages::follow_messages;
use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader, StartupOutput};
use super::super::{Phase, Pool, PoolSettings, Shard};
use crate::rings::Rings;
use outboard_log::{ErrorLog, Level, Reason};
use outboard_reactor::{Interest, Source, Threads, now_ms, spawn, unbound, with_deadline};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::{Zygote, output_pipe};
use rustix::fd::OwnedFd;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;

/// The spawner does one thing at a time, and may be stopped or slow.
static SPAWNER: Threads = Threads::new(1);
/// The interval of ticks while the spawner is waited for.
const WAITING_TICK_MS: u64 = 20;

/// PHP did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// The app.
    pub app: String,
    /// The reason, with the output of PHP.
    pub message: String,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PHP of app {} did not start: {}", self.app, self.message)
    }
}

impl std::error::Error for StartError {}

impl Pool {
    /// A pool whose manager starts PHP at once; see [`Pool::ready`].
    pub fn start(
        settings: PoolSettings,
        shard: Shard,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
        rings: Rc<Rings>,
    ) -> Rc<Self> {
        let pool = Self::new(settings, shard, error_log, slow_log, rings);
        spawn(super::run(pool.clone()));
        if pool.shard.count() > 1 {
            follow_messages(&pool);
        }
        pool
    }

    /// Waits until the minimum number of workers is ready.
    ///
    /// # Errors
    /// PHP does not start, or not in time.
    pub async fn ready(&self) -> Result<(), StartError> {
        let failed = |message: String| StartError { app: self.settings.app.clone(), message };
        let until_ms = now_ms() + self.settings.start_timeout_ms;
        let ready = with_deadline(until_ms, async {
            loop {
                if let Some(failure) = &self.manager.borrow().failure {
                    return Err(failed(failure.clone()));
                }
                if self.phase.get() == Phase::Serving && self.has_minimum() {
                    return Ok(());
                }
                self.phase_changed.wait().await;
            }
        });
        ready.await.unwrap_or_else(|_| Err(failed(self.explain(&self.start_timeout_message()))))
    }

    fn has_minimum(&self) -> bool {
        let members = self.members.borrow();
        let is_ready = |worker: &&Worker| matches!(worker.state(), State::Idle | State::Busy);
        let ready = members.all().filter(is_ready).count() + members.lent.len();
        ready >= self.manager.borrow().sizing.bounds.min()
    }

    /// Starts the zygote; returns its control socket, or `None` if the pool needs none any more.
    pub(in crate::pool) async fn start_zygote(self: &Rc<Self>) -> Result<Option<Source>, String> {
        if !self.shard.is_lead() {
            return self.adopt(self.request_sibling()?).map(Some);
        }
        let (program, host) = (&self.settings.host_binary, self.settings.host.clone());
        let spawned = match &self.settings.as_user {
            None => Some(unbound(|| Zygote::spawn(program, host))),
            Some(user) => {
                let (user, program) = (user.clone(), program.clone());
                let spawn = move || Zygote::spawn_as(&user, &program, host);
                self.while_needed(SPAWNER.run(0, spawn)).await?
            }
        };
        let Some(spawned) = spawned else { return Ok(None) };
        self.adopt(spawned.map_err(|error| error.to_string())?).map(Some)
    }

    /// Waits for `work` and for nothing longer than a start may take. Queued requests time out meanwhile.
    async fn while_needed<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>, String> {
        let mut work = pin!(work);
        let until_ms = now_ms().saturating_add(self.settings.start_timeout_ms);
        loop {
            if let Ok(done) = with_deadline(now_ms() + WAITING_TICK_MS, work.as_mut()).await {
                return Ok(Some(done));
            }
            self.expire_queue(now_ms());
            self.continue_retiring();
            if self.is_done() {
                return Ok(None);
            }
            if until_ms <= now_ms() {
                return Err(self.start_timeout_message());
            }
        }
    }

    /// Takes over a zygote that was started, and its output.
    pub(in crate::pool) fn adopt(
        self: &Rc<Self>,
        (zygote, output): (Zygote, OwnedFd),
    ) -> Result<Source, String> {
        let reader = OutputReader::of_zygote(self.clone());
        {
            let mut manager = self.manager.borrow_mut();
            manager.zygote_output = output.try_clone().ok();
            manager.startup_output = StartupOutput::default();
        }
        spawn(worker_output::relay(reader.clone(), output));
        if self.settings.forks_per_request() {
            let (output, output_end) = output_pipe().map_err(|error| error.to_string())?;
            spawn(worker_output::relay(reader, output));
            self.manager.borrow_mut().shared_output = Some(output_end);
        }
        let control = zygote.control_fd().try_clone_to_owned();
        let source = control.and_then(|fd| Source::new(fd, Interest::Read));
        self.zygote.replace(Some(zygote));
        self.manager.borrow_mut().started_by_ms =
            Some(now_ms().saturating_add(self.settings.start_timeout_ms));
        source.map_err(|error| error.to_string())
    }

    /// Whether the zygote has not reported the result of its start yet.
    pub(in crate::pool) fn is_starting(&self) -> bool {
        self.manager.borrow().started_by_ms.is_some()
    }

    /// Whether the start of the zygote takes too long. With a fork per request the boot of the script
    /// is a part of it.
    pub(super) fn is_start_overdue(&self) -> bool {
        self.manager.borrow().started_by_ms.is_some_and(|by_ms| by_ms <= now_ms())
    }

    pub(super) fn start_timeout_message(&self) -> String {
        format!("it was not ready after {} ms", self.settings.start_timeout_ms)
    }

    /// The zygote has started PHP.
    pub(super) fn started(
        self: &Rc<Self>,
        php_version: String,
        opcache: bool,
        ini_file: Option<&Path>,
    ) {
        let ini = ini_file.map_or("no php.ini".into(), |path| path.display().to_string());
        let opcache = if opcache { "opcache on" } else { "opcache off" };
        // It started once, for all threads.
        if self.shard.is_lead() {
            self.log(Level::Info, &format!("PHP {php_version} started ({ini}, {opcache})"));
        }
        {
            let mut manager = self.manager.borrow_mut();
            manager.php_version = php_version;
            manager.started_by_ms = None;
        }
        self.split_pending();
        if self.phase.get() == Phase::Starting {
            self.phase.set(Phase::Serving);
            // One thread's part of a small pool may have no worker.
            self.phase_changed.set();
        }
        self.tick();
    }

    pub(in crate::pool) fn start_failed(&self, message: &str) {
        let message = self.explain(message);
        self.log(Level::Error, &format!("PHP did not start: {message}"));
        {
            let mut manager = self.manager.borrow_mut();
            manager.failure = Some(message);
            manager.started_by_ms = None;
        }
        self.phase_changed.set();
        self.fail_queue(Reason::AppDown);
    }
}
