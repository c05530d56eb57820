//! The task workers of an app, and the queue before them.

use super::{Desk, Mode};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, Schedule};
use std::path::PathBuf;

/// Work that no request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Processes; at least 1.
    pub workers: u32,
    /// Tasks that a process may have at a time: 1 to 1000.
    pub concurrency: u32,
    /// The script that handles tasks; absolute, exists.
    pub script: PathBuf,
    /// Tasks that may wait or run.
    pub queue_length: u32,
    /// Memory of all of them together.
    pub queue_bytes: u64,
    /// Further attempts at a task that failed: 0 to 254.
    pub retries: u8,
    /// From the first failed attempt to the next.
    pub backoff_ms: u64,
    /// How long an attempt may take.
    pub timeout_ms: u64,
    /// What is queued by the clock, by the name of the task.
    pub cron: Vec<(String, Schedule)>,
}

/// `None` without any workers. `place` is the app's.
pub(super) fn tasks(
    raw: &raw::Tasks,
    mode: &Mode,
    place: &[&str],
    desk: &mut Desk<'_>,
) -> Option<Tasks> {
    let at = |key: &'static str| [place, &["tasks", key]].concat();
    if raw.workers == 0 {
        if !raw.cron.is_empty() {
            let fault = Fault::new("nobody runs these tasks: `workers` is 0")
                .hint("add workers = 1 to the app's [tasks]");
            desk.key(&at("cron"), Kind::Conflict, fault);
        }
        return None;
    }
    let script = match (&raw.script, mode) {
        (Some(script), _) => desk.file(&at("script"), script),
        (None, Mode::Worker(worker)) => worker.script.clone(),
        (None, Mode::Classic) => {
            let fault = Fault::new("an app in classic mode has no script for its tasks")
                .hint("name one that stays: tasks.script = \"tasks.php\"");
            desk.key(&at("script"), Kind::MissingKey, fault);
            PathBuf::new()
        }
    };
    Some(Tasks {
        workers: raw.workers,
        concurrency: raw.concurrency,
        script,
        queue_length: raw.queue,
        queue_bytes: raw.queue_memory.0,
        retries: u8::try_from(raw.retries).unwrap_or(u8::MAX - 1),
        backoff_ms: raw.backoff.0,
        timeout_ms: raw.timeout.0,
        cron: raw.cron.iter().map(|(name, schedule)| (name.clone(), schedule.clone())).collect(),
    })
}
