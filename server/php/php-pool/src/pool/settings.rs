//! The settings of a pool, from the configuration of its app.
//!
//! Created by the gateway for each generation. Invariant: they do not change while the pool runs (by its type: it
//! has them outside of any cell).

use crate::allowance::LogRate;
use crate::host_settings;
use outboard_config::{App, Count, LogTarget, MemoryBudget, Tasks};
use outboard_ring::control::{HostSettings, Isolation};
use outboard_spawner::Spawner;
use outboard_supervisor::memory;
use outboard_supervisor::zygote::AsUser;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest idle time of workers with Xdebug.
const DEBUG_IDLE_MS: u64 = 10_000;

/// See the module.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The app's name.
    pub app: String,
    /// The host binary.
    pub host_binary: PathBuf,
    /// The user of the host and the spawner that starts it, if the gateway itself cannot.
    pub as_user: Option<AsUser>,
    /// The settings of the host.
    pub host: HostSettings,
    /// The minimum number of workers; `None` for one per core. With 0 the pool sleeps without requests.
    pub min: Option<usize>,
    /// The maximum number of workers; `None` for as many as memory permits.
    pub max: Option<usize>,
    /// The memory of all workers together.
    pub memory_budget_bytes: u64,
    /// The number of idle workers in addition to the demand.
    pub spare: usize,
    /// The maximum number of queued requests.
    pub queue_length: usize,
    /// The longest time in the queue.
    pub queue_timeout_ms: u64,
    /// Workers in addition to `max` for requests from our own workers.
    pub loopback_slots: usize,
    /// The idle time after which a worker above the minimum is drained.
    pub idle_timeout_ms: u64,
    /// The number of requests after which a worker is replaced.
    pub recycle_requests: Option<u64>,
    /// The spread of this number, in percent.
    pub recycle_jitter_percent: u32,
    /// The memory of its own above which a worker is replaced.
    pub recycle_memory_bytes: Option<u64>,
    /// The longest time of a request.
    pub deadline_ms: u64,
    /// How much a PHP process may write to the error log.
    pub(crate) log_rate: LogRate,
    /// The time from which a request is written to the slow log.
    pub slow_ms: Option<u64>,
    /// The longest time of PHP's start.
    pub start_timeout_ms: u64,
    /// The maximum age of a snapshot.
    pub snapshot_max_age_ms: u64,
    /// Whether a request has no deadline while a debugger is attached to its worker.
    pub(crate) is_debugged: bool,
    /// Whether workers get direct connections.
    pub has_direct: bool,
    /// Whether quick workers run on the core of their gateway's thread.
    pub may_share_core: bool,
}

impl PoolSettings {
    /// The settings for an app's requests; with `host_binary` unless the app has its own, and `spawner`
    /// if the gateway has dropped root's privileges.
    ///
    /// # Errors
    /// A user or group that does not exist.
    pub fn of(
        app: &App,
        host_binary: &Path,
        spawner: Option<&Arc<Spawner>>,
    ) -> Result<Self, String> {
        let pool = &app.pool;
        let mut host = host_settings::of(app)?;
        let as_user = match (spawner, host.run_as) {
            (Some(spawner), Some(user)) => {
                host.run_as = None;
                Some(AsUser { spawner: spawner.clone(), user })
            }
            _ => None,
        };
        let count = |count: Count| match count {
            Count::Auto => None,
            Count::Fixed(number) => Some(number as usize),
        };
        Ok(Self {
            app: app.name.clone(),
            host_binary: app.php.host_binary.clone().unwrap_or(host_binary.to_owned()),
            as_user,
            host,
            min: count(pool.min),
            max: count(pool.max),
            memory_budget_bytes: memory_budget_bytes(
                pool.max_memory,
                memory::machine_bytes().unwrap_or(1 << 30),
            ),
            spare: pool.min_idle as usize,
            queue_length: pool.queue_length as usize,
            queue_timeout_ms: pool.queue_timeout_ms,
            loopback_slots: pool.loopback_slots as usize,
            idle_timeout_ms: pool.idle_timeout_ms,
            recycle_requests: pool.max_requests.map(u64::from),
            recycle_jitter_percent: pool.max_requests_jitter_percent,
            recycle_memory_bytes: pool.max_worker_memory_bytes,
            deadline_ms: app.limits.request_deadline_ms,
            log_rate: LogRate {
                lines: app.log.error.lines_per_second,
                bytes: app.log.error.bytes_per_second,
            },
            slow_ms: (app.log.slow.path != LogTarget::Off).then_some(app.log.slow.threshold_ms),
            start_timeout_ms: pool.start_timeout_ms,
            snapshot_max_age_ms: pool.snapshot_max_age_ms,
            may_share_core: true,
            is_debugged: false,
            has_direct: app.has_direct(),
        })
    }

    /// The settings of workers with Xdebug: few, without a process while there is nothing to debug.
    #[must_use]
    pub fn of_debugged(&self, workers: u32) -> Self {
        let mut host = self.host.clone();
        host.app = format!("{}:debug", self.host.app);
        host_settings::debug(&mut host);
        Self {
            app: format!("{}:debug", self.app),
            min: Some(0),
            max: Some(workers as usize),
            spare: 0,
            loopback_slots: 0,
            queue_length: self.queue_length.max(workers as usize),
            // What has changed since a script was booted is seen soon.
            idle_timeout_ms: self.idle_timeout_ms.min(DEBUG_IDLE_MS),
            slow_ms: None,
            is_debugged: true,
            may_share_core: false,
            has_direct: false,
            host,
            ..self.clone()
        }
    }

    /// Whether all processes end without requests. A program that has its own connections is never idle.
    pub fn sleeps(&self) -> bool {
        self.min == Some(0) && !self.runs_program()
    }

    /// The settings for an app's tasks: a fixed number of workers that share no core with the gateway, and
    /// no queue, since tasks wait in their own.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_tasks(&self, app: &App, tasks: &Tasks) -> Result<Self, String> {
        let workers = tasks.workers as usize;
        let mut host = host_settings::of_tasks(app, tasks)?;
        host.app = format!("{}:tasks", self.host.app);
        host.run_as = self.host.run_as;
        Ok(Self {
            app: format!("{}:tasks", app.name),
            host,
            min: Some(workers),
            max: Some(workers),
            spare: 0,
            queue_length: workers * tasks.concurrency as usize,
            queue_timeout_ms: tasks.timeout_ms,
            loopback_slots: 0,
            deadline_ms: tasks.timeout_ms,
            slow_ms: None,
            may_share_core: false,
            has_direct: false,
            ..self.clone()
        })
    }

    /// The settings for a script of the app that has called `Outboard\snapshot()`, and boots with this request
    /// from now on. `title` is its name in logs.
    #[must_use]
    pub fn of_snapshot(&self, title: &str, script: PathBuf, boot_request: Vec<u8>) -> Self {
        let mut host = self.host.clone();
        host.app = format!("{}:{title}", self.host.app);
        host_settings::run_snapshot(&mut host, script, boot_request);
        Self { app: format!("{}:{title}", self.app), host, min: Some(1), ..self.clone() }
    }

    /// The number of requests of a worker at a time.
    pub(super) fn concurrency(&self) -> usize {
        self.host.worker.as_ref().map_or(1, |worker| worker.concurrency.max(1) as usize)
    }

    /// Whether workers run a worker script, and may send frames without a request.
    pub(super) fn is_resident(&self) -> bool {
        self.host.worker.is_some()
    }

    /// Whether the script is one of classic mode that is booted once.
    pub(crate) fn boots_classic_script(&self) -> bool {
        self.host.worker.as_ref().is_some_and(|worker| worker.boot_request.is_some())
    }

    /// Whether the workers' script starts a server itself.
    pub(super) fn runs_program(&self) -> bool {
        self.host.worker.as_ref().is_some_and(|worker| worker.starts_server)
    }

    /// Whether workers are forks of a booted script, which is renewed when it is out of date.
    pub fn has_snapshot(&self) -> bool {
        self.forks_script()
    }

    /// Whether workers are forks of a booted script, and one that leaves is replaced at once.
    pub(super) fn forks_script(&self) -> bool {
        self.host.worker.as_ref().is_some_and(|worker| worker.isolation != Isolation::Reset)
    }
}

/// The memory of an app's workers together; 70 % of the machine's by default.
fn memory_budget_bytes(budget: MemoryBudget, machine_bytes: u64) -> u64 {
    match budget {
        MemoryBudget::Bytes(bytes) => bytes,
        MemoryBudget::Percent(percent) => machine_bytes / 100 * u64::from(percent),
        MemoryBudget::Auto => machine_bytes / 100 * 70,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_config::Config;

    /// The settings of an app with these lines, and of its task workers if it has any.
    fn settings(lines: &str) -> (PoolSettings, Option<PoolSettings>) {
        let text = format!("[app.a]\nroot = \"/tmp\"\n{lines}");
        let config = Config::parse(&text, Path::new("/outboard.toml")).unwrap();
        let app = &config.apps[0];
        let settings = PoolSettings::of(app, Path::new("/bin/host"), None).unwrap();
        let of_tasks = app.tasks.as_ref().map(|tasks| settings.of_tasks(app, tasks).unwrap());
        (settings, of_tasks)
    }

    #[test]
    fn the_mode_decides_concurrency_and_forks() {
        let (classic, _) = settings("");
        assert_eq!((classic.concurrency(), classic.is_resident()), (1, false));
        let worker = "mode = \"worker\"\n[app.a.worker]\nscript = \"/bin/sh\"\n";
        let (reset, _) = settings(&format!("{worker}concurrency = 7\n"));
        assert_eq!((reset.concurrency(), reset.is_resident()), (7, true));
        let (rewind, _) = settings(&format!("{worker}isolation = \"rewind\"\n"));
        assert!(rewind.forks_script());
    }

    #[test]
    fn task_workers_are_fixed_in_number_and_do_not_queue_requests() {
        let lines = "[app.a.tasks]\nworkers = 3\nconcurrency = 2\nscript = \"/bin/sh\"\n";
        let (app, tasks) = settings(lines);
        let tasks = tasks.unwrap();
        assert_eq!((tasks.min, tasks.max, tasks.spare), (Some(3), Some(3), 0));
        assert_eq!((tasks.queue_length, tasks.loopback_slots, tasks.slow_ms), (6, 0, None));
        assert!(app.may_share_core && !tasks.may_share_core);
        assert_eq!((app.app.as_str(), tasks.app.as_str()), ("a", "a:tasks"));
        assert_eq!(tasks.host.env.get("OUTBOARD_TASK_WORKER").unwrap(), "1");
        assert!(!app.host.env.contains_key("OUTBOARD_TASK_WORKER"));
    }

    #[test]
    fn the_memory_budget_is_a_part_of_the_machine_unless_it_is_a_size() {
        for (budget, expected) in [
            (MemoryBudget::Auto, 700),
            (MemoryBudget::Percent(25), 250),
            (MemoryBudget::Bytes(5), 5),
        ] {
            assert_eq!(memory_budget_bytes(budget, 1_000), expected);
        }
    }

    #[test]
    fn the_host_gets_the_environment_of_php_fpm_and_fixed_settings() {
        let (classic, _) = settings("");
        assert!(classic.host.env["PATH"].contains("/usr/bin"));
        assert_eq!(classic.host.sapi_name, "fpm-fcgi");
        assert!(!classic.host.fixed_ini.contains_key("opcache.force_restart_timeout"));
        let worker = "mode = \"worker\"\n[app.a.worker]\nscript = \"/bin/sh\"\n";
        let (resident, _) = settings(worker);
        assert_eq!(resident.host.fixed_ini["opcache.force_restart_timeout"], "0");
    }
}
