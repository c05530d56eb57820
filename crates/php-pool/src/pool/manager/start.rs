//! The start of PHP: the zygote, its report, and the time that it may take.
//!
//! Called by the manager, and by the server that waits for a pool. Invariant: a start ends with
//! [`Phase::Serving`] or with a failure that says why.

use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader, StartupOutput};
use super::super::{Phase, Pool, PoolSettings};
use outboard_log::{ErrorLog, Level, Reason};
use outboard_reactor::{Interest, Source, now_ms, spawn, with_deadline};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::{Zygote, output_pipe};
use std::path::Path;
use std::rc::Rc;

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
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
    ) -> Rc<Self> {
        let pool = Self::new(settings, error_log, slow_log);
        spawn(super::run(pool.clone()));
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
        ready.await.unwrap_or_else(|_| Err(failed(self.start_timeout_message())))
    }

    fn has_minimum(&self) -> bool {
        let members = self.members.borrow();
        let is_ready = |worker: &&Worker| matches!(worker.state(), State::Idle | State::Busy);
        members.all().filter(is_ready).count() >= self.manager.borrow().sizing.bounds.min()
    }

    /// Starts the zygote; returns its control socket.
    pub(in crate::pool) fn start_zygote(self: &Rc<Self>) -> Result<Source, String> {
        let (program, host) = (&self.settings.host_binary, self.settings.host.clone());
        let spawned = match &self.settings.as_user {
            Some(user) => Zygote::spawn_as(user, program, host),
            None => Zygote::spawn(program, host),
        };
        let (zygote, output) = spawned.map_err(|error| error.to_string())?;
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
        messages: &str,
    ) {
        let ini = ini_file.map_or("no php.ini".into(), |path| path.display().to_string());
        let opcache = if opcache { "opcache on" } else { "opcache off" };
        self.log(Level::Info, &format!("PHP {php_version} started ({ini}, {opcache})"));
        for line in messages.lines().filter(|line| self.allowance.admit(line.len())) {
            self.log(Level::Warn, line);
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

    pub(in crate::pool) fn start_failed(&self, message: String) {
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
