//! The workers of an app and the queue before them.

use super::Desk;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Count, Fault, MemoryBudget};

/// The pool of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Workers that are always there.
    pub min: Count,
    /// Workers at the most; at least 1, at least `min`.
    pub max: Count,
    /// Idle workers that are kept ready.
    pub spare: u32,
    /// After how long an idle worker beyond `min` and `spare` is ended.
    pub idle_timeout_ms: u64,
    /// Memory of all workers together.
    pub memory_budget: MemoryBudget,
    /// Requests that may wait for a worker; beyond them: 503.
    pub queue_length: u32,
    /// How long a request may wait for a worker; longer: 503.
    pub queue_timeout_ms: u64,
    /// Workers beyond `max` for the app's requests to itself.
    pub loopback_slots: u32,
    /// Requests a worker serves before it is replaced; `None`: without end.
    pub recycle_requests: Option<u32>,
    /// By how much, at most, `recycle_requests` differs from worker to worker: 0 to 100.
    pub recycle_jitter_percent: u32,
    /// Memory of its own a worker may hold between requests; `None`: any.
    pub recycle_memory_bytes: Option<u64>,
    /// How long a worker may take to get ready.
    pub start_timeout_ms: u64,
}

pub(super) fn pool(raw: &raw::Pool, place: &[&str], desk: &mut Desk<'_>) -> Pool {
    check(raw, place, desk);
    let spare = match raw.max {
        Count::Fixed(max) => raw.spare.min(max),
        Count::Auto => raw.spare,
    };
    Pool {
        min: raw.min,
        max: raw.max,
        spare,
        idle_timeout_ms: raw.idle_timeout.0,
        memory_budget: raw.memory_budget,
        queue_length: raw.queue_length,
        queue_timeout_ms: raw.queue_timeout.0,
        loopback_slots: raw.loopback_slots,
        recycle_requests: Some(raw.recycle_requests).filter(|number| *number > 0),
        recycle_jitter_percent: raw.recycle_jitter.0,
        recycle_memory_bytes: Some(raw.recycle_memory.0).filter(|bytes| *bytes > 0),
        start_timeout_ms: raw.start_timeout.0,
    }
}

/// Defaults give way to a small `max`; what was written has to fit it.
fn check(raw: &raw::Pool, place: &[&str], desk: &mut Desk<'_>) {
    let Count::Fixed(max) = raw.max else { return };
    let at = |key: &'static str| [place, &[key]].concat();
    if let Count::Fixed(min) = raw.min
        && min > max
    {
        let fault = Fault::new(format!("`min` is {min} and `max` is {max}"))
            .hint("`min` cannot be more than `max`");
        let key = if desk.places.wrote(&at("min")) { "min" } else { "max" };
        desk.value(&at(key), Kind::Conflict, fault);
    }
    if raw.spare > max && desk.places.wrote(&at("spare")) {
        let fault = Fault::new(format!("`spare` is {} and `max` is {max}", raw.spare));
        desk.value(&at("spare"), Kind::Conflict, fault.hint("`spare` cannot be more than `max`"));
    }
}
