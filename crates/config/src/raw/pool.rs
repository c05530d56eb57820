//! `[pool]`: the workers of an app.

use crate::scalar::{ByteSize, Count, MemoryBudget, Percent, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The workers of an app, and the queue before them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Pool {
    /// Workers that are always there; `"auto"`: one per processor, at least 2.
    #[schemars(extend("x-alias" = ["pm.min_spare_servers", "pm.start_servers", "MinSpareServers", "StartServers"]))]
    pub(crate) min: Count,
    /// Workers at the most; `"auto"`: as many as the memory budget holds.
    #[schemars(extend("x-minimum" = 1, "x-maximum" = 4096, "x-alias" = ["pm.max_children", "max_children", "pm", "MaxRequestWorkers"]))]
    pub(crate) max: Count,
    /// Idle workers that are kept ready for the next burst.
    #[schemars(range(max = 4096), extend("x-former" = ["spare"], "x-alias" = ["pm.max_spare_servers", "MaxSpareServers"]))]
    pub(crate) min_idle: u32,
    /// After how long an idle worker beyond `min` and `min_idle` is ended.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["pm.process_idle_timeout"]))]
    pub(crate) idle_timeout: Period,
    /// Memory of all workers together.
    #[schemars(extend("x-former" = ["memory_budget"]))]
    pub(crate) max_memory: MemoryBudget,
    /// Requests that may wait for a worker; beyond them: 503 with Retry-After.
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["listen.backlog"]))]
    pub(crate) queue_length: u32,
    /// How long a request may wait for a worker; longer: 503 with Retry-After.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) queue_timeout: Period,
    /// Workers beyond `max` for requests which the app makes to itself: a full pool would wait for
    /// itself.
    #[schemars(range(max = 1024))]
    pub(crate) loopback_slots: u32,
    /// Requests that a worker serves before a fresh one takes its place; 0: without end.
    #[schemars(extend("x-former" = ["recycle_requests"], "x-alias" = ["pm.max_requests", "MaxConnectionsPerChild"]))]
    pub(crate) max_requests: u32,
    /// By how much `max_requests` differs from worker to worker, so that they do not all end
    /// at once.
    #[schemars(extend("x-former" = ["recycle_jitter"]))]
    pub(crate) max_requests_jitter: Percent,
    /// Memory of its own that a worker may hold between two requests before a fresh one takes its
    /// place; 0: any.
    #[schemars(extend("x-former" = ["recycle_memory"]))]
    pub(crate) max_worker_memory: ByteSize,
    /// How long a worker may take to get ready before it counts as failed.
    #[schemars(extend("x-minimum" = "100ms"))]
    pub(crate) start_timeout: Period,
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
        }
    }
}
