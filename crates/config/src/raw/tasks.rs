//! `[app.NAME.tasks]`: work that no request waits for.

use crate::scalar::{ByteSize, FilePath, Period, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Work that no request waits for: workers of its own, and the queue before them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tasks {
    /// Processes that run tasks; 0: there are none, and no task is taken.
    #[schemars(range(max = 1024), extend("x-alias" = ["task_worker_num", "task_workers"]))]
    pub(crate) workers: u32,
    /// Tasks that a process may have at a time, each in a coroutine.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) concurrency: u32,
    /// The script that handles tasks; absent: the worker's.
    pub(crate) script: Option<FilePath>,
    /// Tasks that may wait or run; beyond them none is taken.
    #[schemars(range(min = 1, max = 10_000_000), extend("x-former" = ["queue"]))]
    pub(crate) queue_length: u32,
    /// Memory of all of them together; beyond it none is taken.
    #[schemars(extend("x-former" = ["queue_memory"]))]
    pub(crate) max_queue_memory: ByteSize,
    /// Further attempts at a task that failed.
    #[schemars(range(max = 254), extend("x-former" = ["retries"]))]
    pub(crate) max_retries: u32,
    /// How long after a failed attempt the next one begins; doubled with each, up to an hour.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) backoff: Period,
    /// How long an attempt may take.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
    /// The namespace of the entity store in which tasks wait, so that they outlive the gateway;
    /// absent: they wait in memory.
    #[schemars(extend("x-former" = ["namespace"], "x-alias" = ["persist", "store"]))]
    pub(crate) kv_namespace: Option<String>,
    /// When tasks are queued by the clock, in UTC, by the name of the task.
    #[schemars(extend("x-alias" = ["schedule", "timers"]))]
    pub(crate) cron: BTreeMap<String, Schedule>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks {
            workers: 0,
            concurrency: 1,
            script: None,
            queue_length: 10_000,
            max_queue_memory: ByteSize(64 << 20),
            max_retries: 3,
            backoff: Period(1_000),
            timeout: Period(300_000),
            kv_namespace: None,
            cron: BTreeMap::new(),
        }
    }
}
