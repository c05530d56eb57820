//! `[app.NAME.tasks]`: background tasks.

use crate::scalar::{ByteSize, FilePath, Period, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Background tasks: their workers and their queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tasks {
    /// Number of task processes. 0: tasks are disabled and cannot be queued.
    #[schemars(range(max = 1024), extend("x-alias" = ["task_worker_num", "task_workers"]))]
    pub(crate) workers: u32,
    /// Maximum concurrent tasks per process, each in a coroutine.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) concurrency: u32,
    /// Script that handles tasks. Default: the worker script.
    pub(crate) script: Option<FilePath>,
    /// Maximum number of queued and running tasks; further tasks are refused.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub(crate) queue_length: u32,
    /// Maximum memory of all queued and running tasks; further tasks are refused.
    pub(crate) max_queue_memory: ByteSize,
    /// Maximum retries of a failed task.
    #[schemars(range(max = 254))]
    pub(crate) max_retries: u32,
    /// Delay before the first retry. It doubles with each retry, up to an hour.
    #[schemars(extend("x-minimum" = "1ms"))]
    pub(crate) backoff: Period,
    /// Maximum time of one attempt.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
    /// Namespace of the entity store that persists queued tasks across restarts. Default: tasks are
    /// queued in memory.
    #[schemars(extend("x-alias" = ["persist", "store"]))]
    pub(crate) kv_namespace: Option<String>,
    /// Scheduled tasks: task name and cron expression, in UTC.
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
