//! `[app.NAME.tasks]`: background tasks.

use super::table::table;
use crate::scalar::{As, ByteSize, FilePath, OrEmpty, Pairs, Period, Schedule, TimeZone};
use std::path::PathBuf;

table! {
    /// Background tasks: their workers and their queue.
    #[derive(PartialEq, Eq)]
    pub struct Tasks {
        /// Number of task processes. 0: tasks are disabled and cannot be queued.
        #[schemars(range(max = 1024), extend("x-alias" = ["task_worker_num", "task_workers"]))]
        pub workers: u32 = 0,
        /// Maximum concurrent tasks per process, each in a coroutine.
        #[schemars(range(min = 1, max = 1000))]
        pub concurrency: u32 = 1,
        /// Script that handles tasks. Default: the worker script.
        #[serde(with = "As::<OrEmpty<FilePath>>")]
        pub script: PathBuf = PathBuf::new(),
        /// Maximum number of queued and running tasks; further tasks are refused.
        #[schemars(range(min = 1, max = 10_000_000))]
        pub queue_length: u32 = 10_000,
        /// Maximum memory of all queued and running tasks; further tasks are refused.
        #[serde(rename = "max_queue_memory", with = "As::<ByteSize>")]
        pub max_queue_bytes: u64 = 64 << 20,
        /// Maximum retries of a failed task.
        #[schemars(with = "u32", range(max = 254))]
        pub max_retries: u8 = 3,
        /// Delay before the first retry. It doubles with each retry, up to an hour.
        #[schemars(extend("x-minimum" = "1ms"))]
        #[serde(rename = "backoff", with = "As::<Period>")]
        pub backoff_ms: u64 = 1_000,
        /// Maximum time of one attempt.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "timeout", with = "As::<Period>")]
        pub timeout_ms: u64 = 300_000,
        /// Namespace of the entity store that persists queued tasks across restarts. Default: tasks are
        /// queued in memory.
        #[schemars(extend("x-alias" = ["persist", "store"]))]
        pub kv_namespace: Option<String> = None,
        /// Scheduled tasks: task name and cron expression, by the clock of `timezone`.
        #[schemars(extend("x-alias" = ["schedule", "timers"]))]
        #[serde(with = "As::<Pairs<Schedule>>")]
        pub cron: Vec<(String, Schedule)> = Vec::new(),
        /// Time zone of `cron`, such as `"Europe/Berlin"`. Where the clock is set forward or back, an entry with fixed
        /// hours is due once: in a skipped hour right after it, in a repeated hour the first time. An entry whose hours
        /// begin with `*` follows real time.
        #[schemars(extend("x-alias" = ["time_zone", "tz", "CRON_TZ"]))]
        pub timezone: TimeZone = TimeZone::UTC,
    }
}
