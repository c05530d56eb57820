//! The workers of an app and its request queue.

use super::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Count, Fault, MemoryBudget};

/// The pool of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Minimum number of workers.
    pub min: Count,
    /// Maximum number of workers; at least 1, at least `min`.
    pub max: Count,
    /// Number of idle workers to hold ready.
    pub min_idle: u32,
    /// Idle time after which a worker beyond `min` and `min_idle` is stopped.
    pub idle_timeout_ms: u64,
    /// Maximum memory of all workers together.
    pub max_memory: MemoryBudget,
    /// Maximum number of requests waiting for a worker; further requests get 503.
    pub queue_length: u32,
    /// Maximum time a request waits for a worker; then it gets 503.
    pub queue_timeout_ms: u64,
    /// Workers beyond `max` for requests of the app to itself.
    pub loopback_slots: u32,
    /// Requests after which a worker is replaced; `None`: unlimited.
    pub max_requests: Option<u32>,
    /// Random variation of `max_requests` between workers: 0 to 100.
    pub max_requests_jitter_percent: u32,
    /// Private memory of a worker above which it is replaced after a request; `None`: unlimited.
    pub max_worker_memory_bytes: Option<u64>,
    /// Maximum time for a worker to become ready.
    pub start_timeout_ms: u64,
    /// Maximum number of snapshots of scripts in classic mode.
    pub max_snapshots: u32,
    /// Maximum age of a snapshot.
    pub snapshot_max_age_ms: u64,
}

pub(super) fn pool(raw: &raw::Pool, place: &[&str], context: &mut Context<'_>) -> Pool {
    check(raw, place, context);
    let min_idle = match raw.max {
        Count::Fixed(max) => raw.min_idle.min(max),
        Count::Auto => raw.min_idle,
    };
    Pool {
        min: raw.min,
        max: raw.max,
        min_idle,
        idle_timeout_ms: raw.idle_timeout.0,
        max_memory: raw.max_memory,
        queue_length: raw.queue_length,
        queue_timeout_ms: raw.queue_timeout.0,
        loopback_slots: raw.loopback_slots,
        max_requests: Some(raw.max_requests).filter(|number| *number > 0),
        max_requests_jitter_percent: raw.max_requests_jitter.0,
        max_worker_memory_bytes: Some(raw.max_worker_memory.0).filter(|bytes| *bytes > 0),
        start_timeout_ms: raw.start_timeout.0,
        max_snapshots: raw.max_snapshots,
        snapshot_max_age_ms: raw.snapshot_max_age.0,
    }
}

/// Defaults give way to a small `max`; what was written has to fit it.
fn check(raw: &raw::Pool, place: &[&str], context: &mut Context<'_>) {
    let Count::Fixed(max) = raw.max else { return };
    let at = |key: &'static str| [place, &[key]].concat();
    if let Count::Fixed(min) = raw.min
        && min > max
    {
        let fault = Fault::new(format!("`min` is {min} and `max` is {max}"))
            .hint("`min` cannot be more than `max`");
        let key = if context.places.wrote(&at("min")) { "min" } else { "max" };
        context.value(&at(key), Kind::Conflict, fault);
    }
    if raw.min_idle > max && context.places.wrote(&at("min_idle")) {
        let fault = Fault::new(format!("`min_idle` is {} and `max` is {max}", raw.min_idle));
        context.value(
            &at("min_idle"),
            Kind::Conflict,
            fault.hint("`min_idle` cannot be more than `max`"),
        );
    }
}
