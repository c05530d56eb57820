//! The task workers of an app and their queue.

use super::{App, Context, Durability, Entities, Mode};
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, Schedule};
use std::path::PathBuf;

/// Background tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Processes; at least 1.
    pub workers: u32,
    /// Maximum concurrent tasks per process: 1 to 1000.
    pub concurrency: u32,
    /// The script that handles tasks; absolute, exists.
    pub script: PathBuf,
    /// Maximum number of queued and running tasks.
    pub queue_length: u32,
    /// Maximum memory of all queued and running tasks.
    pub max_queue_bytes: u64,
    /// Maximum retries of a failed task: 0 to 254.
    pub max_retries: u8,
    /// Delay before the first retry.
    pub backoff_ms: u64,
    /// Maximum time of one attempt.
    pub timeout_ms: u64,
    /// Namespace of the entity store that persists queued tasks; on disk.
    pub kv_namespace: Option<String>,
    /// Scheduled tasks, by name.
    pub cron: Vec<(String, Schedule)>,
}

/// `None` without any workers. `place` is the app's.
pub(super) fn tasks(
    raw: &raw::Tasks,
    mode: &Mode,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<Tasks> {
    let at = |key: &'static str| [place, &["tasks", key]].concat();
    if raw.workers == 0 {
        if !raw.cron.is_empty() {
            let fault = Fault::new("these tasks never run: `workers` is 0")
                .hint("add workers = 1 to the app's [tasks]");
            context.key(&at("cron"), Kind::Conflict, fault);
        }
        return None;
    }
    let script = match (&raw.script, mode) {
        (Some(script), _) => context.file(&at("script"), script),
        (None, Mode::Worker(worker)) => worker.script.clone(),
        (None, Mode::Classic) => {
            let fault = Fault::new("an app in classic mode has no script for its tasks")
                .hint("add a task script: tasks.script =  \"tasks.php\"");
            context.key(&at("script"), Kind::MissingKey, fault);
            PathBuf::new()
        }
    };
    Some(Tasks {
        workers: raw.workers,
        concurrency: raw.concurrency,
        script,
        queue_length: raw.queue_length,
        max_queue_bytes: raw.max_queue_memory.0,
        max_retries: u8::try_from(raw.max_retries).unwrap_or(u8::MAX - 1),
        backoff_ms: raw.backoff.0,
        timeout_ms: raw.timeout.0,
        kv_namespace: raw.kv_namespace.clone(),
        cron: raw.cron.iter().map(|(name, schedule)| (name.clone(), schedule.clone())).collect(),
    })
}

/// Persistent tasks need a namespace that survives a restart.
pub(super) fn check_namespaces(
    apps: &[App],
    entities: Option<&Entities>,
    context: &mut Context<'_>,
) {
    for app in apps {
        let Some(name) = app.tasks.as_ref().and_then(|tasks| tasks.kv_namespace.as_deref()) else {
            continue;
        };
        let found = entities.and_then(|entities| {
            entities.storage.namespaces.iter().find(|namespace| namespace.name == name)
        });
        let fault = match found {
            None if entities.is_none() => Fault::new("`kv_namespace` needs the entity store")
                .hint("add [kv] with data_dir =  \"/var/lib/outboard/entities\""),
            None => Fault::new(format!("the entity store has no namespace `{name}`"))
                .hint(format!("add [kv.namespace.{name}]")),
            Some(found) if found.durability == Durability::Memory => Fault::new(format!(
                "the namespace `{name}` is in memory and lost when the gateway stops"
            ))
            .hint("set durability = \"always\" or \"interval\""),
            // Each gateway would recover, and run, the tasks of the others.
            Some(_) if entities.is_some_and(|one| one.storage.engine.is_shared()) => Fault::new(
                "the entity store is in Redis, which other gateways can use: each would run all of its tasks",
            )
            .hint("let one gateway keep tasks: [kv] with data_dir there, or no kv_namespace"),
            Some(_) => continue,
        };
        context.value(&["app", &app.name, "tasks", "kv_namespace"], Kind::Conflict, fault);
    }
}
