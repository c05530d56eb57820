//! How a pool is run, from what the configuration says of its app.

use super::allowance::LogRate;
use crate::host_settings;
use outboard_config::{App, Count, LogTarget, MemoryBudget, Tasks};
use outboard_ring::control::{HostSettings, Isolation};
use outboard_spawner::Spawner;
use outboard_supervisor::memory;
use outboard_supervisor::zygote::AsUser;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a pool is run. Times in ms.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The app's name.
    pub app: String,
    /// The host binary.
    pub host_binary: PathBuf,
    /// Who starts it, and as whom, when the gateway itself cannot.
    pub as_user: Option<AsUser>,
    /// What the host needs.
    pub host: HostSettings,
    /// Workers that are always there; `None` for one a core.
    pub min: Option<usize>,
    /// Most workers; `None` sizes by memory.
    pub max: Option<usize>,
    /// Memory that all workers together may use.
    pub memory_budget_bytes: u64,
    /// Idle workers that are kept beyond the demand.
    pub spare: usize,
    /// Most waiting requests.
    pub queue_length: usize,
    /// Longest wait in the queue.
    pub queue_timeout_ms: u64,
    /// Workers beyond `max` for requests that come from our own workers.
    pub loopback_slots: usize,
    /// Idle time after which a worker above the minimum leaves.
    pub idle_timeout_ms: u64,
    /// Requests after which a worker is replaced.
    pub recycle_requests: Option<u64>,
    /// Spread of the above, percent.
    pub recycle_jitter_percent: u32,
    /// Own memory above which a worker is replaced.
    pub recycle_memory_bytes: Option<u64>,
    /// Longest run of a request.
    pub deadline_ms: u64,
    /// What a PHP process may write into the error log.
    pub(crate) log_rate: LogRate,
    /// A request longer than this is written to the slow log.
    pub slow_ms: Option<u64>,
    /// Longest start of PHP.
    pub start_timeout_ms: u64,
}

impl PoolSettings {
    /// Those of an app's requests; `host_binary` when the app names none, `spawner` when the gateway
    /// has given up root.
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
        })
    }

    /// As many workers as are asked for, always, and no queue of their own: tasks wait elsewhere.
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
            ..self.clone()
        })
    }

    /// Requests that a worker may have at a time.
    pub(super) fn concurrency(&self) -> usize {
        self.host.worker.as_ref().map_or(1, |worker| worker.concurrency.max(1) as usize)
    }

    /// Whether a script stays, so that workers may speak without a request.
    pub(super) fn is_resident(&self) -> bool {
        self.host.worker.is_some()
    }

    /// Whether the workers' script is a program for Swoole.
    pub(super) fn runs_program(&self) -> bool {
        self.host.worker.as_ref().is_some_and(|worker| worker.swoole)
    }

    /// Whether each request is answered by a fork of its own.
    pub(super) fn forks_per_request(&self) -> bool {
        self.host.worker.as_ref().is_some_and(|worker| worker.isolation == Isolation::Fork)
    }
}

/// Bytes that an app's workers may use together: 70 % of what there is unless told otherwise.
fn memory_budget_bytes(budget: MemoryBudget, machine_bytes: u64) -> u64 {
    match budget {
        MemoryBudget::Bytes(bytes) => bytes,
        MemoryBudget::Percent(percent) => machine_bytes / 100 * u64::from(percent),
        MemoryBudget::Auto => machine_bytes / 100 * 70,
    }
}
