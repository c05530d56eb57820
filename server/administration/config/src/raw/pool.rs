//! `[pool]`: the workers of an app.

use super::table::table;
use crate::scalar::{As, ByteSize, Count, MemoryBudget, OrZero, Percent, Period};

table! {
    /// The workers of an app and its request queue.
    #[derive(PartialEq, Eq)]
    pub struct Pool {
        /// Minimum number of workers. `"auto"`: one per processor, at least 2. 0: the app sleeps. It has no process
        /// until a request comes, and none any more when all workers have been idle for `idle_timeout`; the memory of a worker
        /// script ends with it, and scripts in classic mode get no snapshots (`max_snapshots`). A program that starts a
        /// server never sleeps.
        #[schemars(extend("x-alias" = ["pm.min_spare_servers", "pm.start_servers", "MinSpareServers", "StartServers"]))]
        pub min: Count = Count::Auto,
        /// Maximum number of workers. `"auto"`: as many as `max_memory` allows. A pool of rewound workers that has so many keeps one more in reserve.
        #[schemars(extend("x-minimum" = 1, "x-maximum" = 4096, "x-alias" = ["pm.max_children", "max_children", "pm", "workers", "MaxRequestWorkers"]))]
        pub max: Count = Count::Auto,
        /// Number of idle workers to hold ready for bursts.
        #[schemars(range(max = 4096), extend("x-alias" = ["pm.max_spare_servers", "MaxSpareServers"]))]
        pub min_idle: u32 = 1,
        /// Idle time after which a worker beyond `min` and `min_idle` is stopped; with `min = 0` also the last ones.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["pm.process_idle_timeout"]))]
        #[serde(rename = "idle_timeout", with = "As::<Period>")]
        pub idle_timeout_ms: u64 = 10_000,
        /// Maximum memory of all workers together. `"auto"`: 70 % of the memory of the machine or its
        /// cgroup.
        pub max_memory: MemoryBudget = MemoryBudget::Auto,
        /// Maximum number of requests waiting for a worker; further requests get 503 with
        /// `Retry-After`.
        #[schemars(range(max = 1_000_000), extend("x-alias" = ["listen.backlog"]))]
        pub queue_length: u32 = 1024,
        /// Maximum time a request waits for a worker; then it gets 503 with `Retry-After`.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "queue_timeout", with = "As::<Period>")]
        pub queue_timeout_ms: u64 = 10_000,
        /// Workers beyond `max` for requests that the app sends to itself. Without them, a full pool
        /// would deadlock.
        #[schemars(range(max = 1024))]
        pub loopback_slots: u32 = 1,
        /// Requests after which a worker is replaced. 0: unlimited.
        #[schemars(extend("x-alias" = ["pm.max_requests", "MaxConnectionsPerChild"]))]
        #[serde(with = "As::<OrZero<u32>>")]
        pub max_requests: Option<u32> = Some(100_000),
        /// Random variation of `max_requests` between workers, so that they are not all replaced at
        /// once.
        #[serde(rename = "max_requests_jitter", with = "As::<Percent>")]
        pub max_requests_jitter_percent: u32 = 10,
        /// Private memory of a worker above which it is replaced after a request. 0: unlimited.
        #[serde(rename = "max_worker_memory", with = "As::<OrZero<ByteSize>>")]
        pub max_worker_memory_bytes: Option<u64> = Some(256 << 20),
        /// Maximum time for a worker to become ready; then its start has failed.
        #[schemars(extend("x-minimum" = "100ms"))]
        #[serde(rename = "start_timeout", with = "As::<Period>")]
        pub start_timeout_ms: u64 = 30_000,
        /// Maximum number of snapshots of scripts that call `Outboard\snapshot()` in classic mode. Each
        /// has workers of its own, up to `max`. 0: none.
        #[schemars(range(max = 64))]
        pub max_snapshots: u32 = 8,
        /// Maximum age of a snapshot. It is taken again in the background at three quarters of it, if it was used since; what
        /// its boot has read without a notice of changes, such as the clock, is never older.
        #[schemars(extend("x-minimum" = "1s"))]
        #[serde(rename = "snapshot_max_age", with = "As::<Period>")]
        pub snapshot_max_age_ms: u64 = 300_000,
    }
}
