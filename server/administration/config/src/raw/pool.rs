//! `[pool]`: the workers of an app.

use crate::scalar::{ByteSize, Count, MemoryBudget, Percent, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workers of an app and its request queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pool {
    /// Minimum number of workers. `"auto"`: one per processor, at least 2.
    #[schemars(extend("x-alias" = ["pm.min_spare_servers", "pm.start_servers", "MinSpareServers", "StartServers"]))]
    pub(crate) min: Count,
    /// Maximum number of workers. `"auto"`: as many as `max_memory` allows. A pool of rewound workers that has so many keeps one more in reserve.
    #[schemars(extend("x-minimum" = 1, "x-maximum" = 4096, "x-alias" = ["pm.max_children", "max_children", "pm", "MaxRequestWorkers"]))]
    pub(crate) max: Count,
    /// Number of idle workers to hold ready for bursts.
    #[schemars(range(max = 4096), extend("x-alias" = ["pm.max_spare_servers", "MaxSpareServers"]))]
    pub(crate) min_idle: u32,
    /// Idle time after which a worker beyond `min` and `min_idle` is stopped.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["pm.process_idle_timeout"]))]
    pub(crate) idle_timeout: Period,
    /// Maximum memory of all workers together. `"auto"`: 70 % of the memory of the machine or its
    /// cgroup.
    pub(crate) max_memory: MemoryBudget,
    /// Maximum number of requests waiting for a worker; further requests get 503 with
    /// `Retry-After`.
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["listen.backlog"]))]
    pub(crate) queue_length: u32,
    /// Maximum time a request waits for a worker; then it gets 503 with `Retry-After`.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) queue_timeout: Period,
    /// Workers beyond `max` for requests that the app sends to itself. Without them, a full pool
    /// would deadlock.
    #[schemars(range(max = 1024))]
    pub(crate) loopback_slots: u32,
    /// Requests after which a worker is replaced. 0: unlimited.
    #[schemars(extend("x-alias" = ["pm.max_requests", "MaxConnectionsPerChild"]))]
    pub(crate) max_requests: u32,
    /// Random variation of `max_requests` between workers, so that they are not all replaced at
    /// once.
    pub(crate) max_requests_jitter: Percent,
    /// Private memory of a worker above which it is replaced after a request. 0: unlimited.
    pub(crate) max_worker_memory: ByteSize,
    /// Maximum time for a worker to become ready; then its start has failed.
    #[schemars(extend("x-minimum" = "100ms"))]
    pub(crate) start_timeout: Period,
    /// Maximum number of snapshots of scripts that call `Outboard\snapshot()` in classic mode. Each
    /// has workers of its own, up to `max`. 0: none.
    #[schemars(range(max = 64))]
    pub(crate) max_snapshots: u32,
    /// Maximum age of a snapshot. It is taken again in the background at three quarters of it, if it was used since; what
    /// its boot has read without a notice of changes, such as the clock, is never older.
    #[schemars(extend("x-minimum" = "1s"))]
    pub(crate) snapshot_max_age: Period,
}

impl Default for Pool {
    fn default() -> Self {
        Pool {
            min: Count::Auto,
            max: Count::Auto,
            min_idle: 1,
            idle_timeout: Period(10_000),
            max_memory: MemoryBudget::Auto,
            queue_length: 1024,
            queue_timeout: Period(10_000),
            loopback_slots: 1,
            max_requests: 100_000,
            max_requests_jitter: Percent(10),
            max_worker_memory: ByteSize(256 << 20),
            start_timeout: Period(30_000),
            max_snapshots: 8,
            snapshot_max_age: Period(300_000),
        }
    }
}
