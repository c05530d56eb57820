//! How many workers a pool has.
//!
//! Called at each tick while requests wait or workers are idle. The rule: if requests wait although
//! processors are idle, or because running requests are blocked, there are too few workers. If they
//! wait because the processors are busy, more workers would only slow down all. Invariant: no
//! decision leaves [`Bounds`] from inside.

use std::fmt;

/// A request may wait this long before it is a sign of too few workers.
pub const WAIT_TOLERATED_MS: u64 = 5;
/// From this share of busy processors on, the machine counts as saturated.
pub const SATURATED_PERCENT: u8 = 80;
/// A growth shows in the queue and in the next sample of the processors; wait for that.
pub const GROW_PAUSE_MS: u64 = 50;
/// Workers go in small groups, one group in this time.
pub const SHRINK_PAUSE_MS: u64 = 1_000;
/// A running request that is older than this is evidently blocked, unless it is known to compute.
pub const BLOCKED_AFTER_MS: u64 = 500;
/// Idle time after which a worker beyond minimum and spare may go, unless configured.
pub const IDLE_TIMEOUT_MS: u64 = 5_000;
/// Workers that one decision adds at the most.
pub const LARGEST_STEP: usize = 32;
/// Upper bound of a maximum that is found by memory.
pub const LARGEST_AUTO_MAX: usize = 512;

/// What is known about a pool's size before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Workers that are always there; `None`: one a core, at least 2.
    pub min: Option<usize>,
    /// Most workers; `None`: as many as the memory holds.
    pub max: Option<usize>,
    /// Idle workers that are kept for the next burst.
    pub spare: usize,
    /// Processors that the pool may use.
    pub cores: usize,
    /// Memory that all workers together may use, in bytes.
    pub memory_budget_bytes: u64,
    /// What a worker uses ([`crate::memory::p95_bytes`]).
    pub worker_bytes: u64,
}

/// Within which a pool is sized. Always `min ≤ max`; `1 ≤ min` for a whole pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    min: usize,
    max: usize,
    spare: usize,
    cores: usize,
}

impl Bounds {
    /// What is written wins; what is not is found by cores and memory. A minimum that is written
    /// lifts a maximum that is found.
    pub fn resolve(sizes: Sizes) -> Self {
        let cores = sizes.cores.max(1);
        let by_memory = sizes.memory_budget_bytes / sizes.worker_bytes.max(1);
        let least = (2 * cores).min(LARGEST_AUTO_MAX);
        let by_memory =
            usize::try_from(by_memory).unwrap_or(usize::MAX).clamp(least, LARGEST_AUTO_MAX);
        let (min, max) = match (sizes.min, sizes.max) {
            (Some(min), Some(max)) => (min, max.max(min)),
            (Some(min), None) => (min, by_memory.max(min)),
            (None, max) => {
                let max = max.unwrap_or(by_memory);
                (cores.max(2).min(max), max)
            }
        };
        let min = min.max(1);
        Self { min, max: max.max(min), spare: sizes.spare, cores }
    }

    /// The bounds of a part of the pool; `share` is its part of a number, and monotonic.
    #[must_use]
    pub fn map(self, share: impl Fn(usize) -> usize) -> Self {
        let (min, max) = (share(self.min), share(self.max));
        Self { min, max, spare: share(self.spare), cores: share(self.cores).max(1) }
    }

    /// The same with a higher maximum.
    #[must_use]
    pub fn with_more(self, more: usize) -> Self {
        Self { max: self.max.saturating_add(more), ..self }
    }

    /// Workers that are always there.
    pub fn min(&self) -> usize {
        self.min
    }

    /// Most workers.
    pub fn max(&self) -> usize {
        self.max
    }
}

/// A pool at one moment. Workers that drain or are being killed are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolView {
    /// Monotonic time.
    pub now_ms: u64,
    /// Workers that wait for a request.
    pub idle: usize,
    /// Of them, those that have waited for the idle time-out or longer.
    pub idle_long: usize,
    /// Workers that have a request.
    pub busy: usize,
    /// Of them, those that sleep in the kernel ([`crate::cpu::count_sleeping`]); `None` when
    /// nobody looked. Looked at only while requests wait and no processor is known to be idle.
    pub sleeping: Option<usize>,
    /// Workers that are not ready yet.
    pub booting: usize,
    /// Requests that wait for a worker.
    pub queue_length: usize,
    /// How long the oldest of them has waited; 0 without any.
    pub oldest_queued_ms: u64,
    /// How long the oldest running request has run; 0 without any.
    pub oldest_busy_ms: u64,
    /// Busy share of the processors since requests have begun to wait, or later
    /// ([`crate::cpu::Sample::busy_percent_since`]), or of the gateway's thread, if that is busier; `None` before there
    /// are two samples.
    pub cpu_busy_percent: Option<u8>,
    /// When the pool was last made larger.
    pub last_grow_ms: Option<u64>,
    /// When the pool was last made smaller.
    pub last_shrink_ms: Option<u64>,
}

impl PoolView {
    /// Workers, whatever they do.
    pub fn total(&self) -> usize {
        self.idle + self.busy + self.booting
    }

    /// Whether processors are idle, as far as that is known: before a burst they were.
    fn has_idle_processors(&self) -> bool {
        self.cpu_busy_percent.is_some_and(|percent| percent < SATURATED_PERCENT)
    }

    /// Busy workers that evidently wait for something other than a processor.
    fn blocked(&self) -> usize {
        match self.sleeping {
            Some(sleeping) => sleeping.min(self.busy),
            None if self.oldest_busy_ms >= BLOCKED_AFTER_MS => self.busy,
            None => 0,
        }
    }

    fn is_within(&self, pause_ms: u64, change_ms: Option<u64>) -> bool {
        change_ms.is_some_and(|change_ms| self.now_ms.saturating_sub(change_ms) < pause_ms)
    }
}

/// What to do about a pool's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Fork so many workers.
    Grow(usize, Reason),
    /// End so many of the workers that have been idle longest.
    Shrink(usize, Reason),
    /// Nothing.
    Hold(Reason),
}

impl Decision {
    /// Why.
    pub fn reason(self) -> Reason {
        match self {
            Self::Grow(_, reason) | Self::Shrink(_, reason) | Self::Hold(reason) => reason,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grow(count, reason) => write!(f, "grows by {count}: {reason}"),
            Self::Shrink(count, reason) => write!(f, "shrinks by {count}: {reason}"),
            Self::Hold(reason) => write!(f, "holds: {reason}"),
        }
    }
}

/// Why a pool has the size that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There are fewer workers than the minimum.
    BelowMinimum,
    /// Requests wait and processors are idle.
    RequestsWait,
    /// Requests wait, and the running ones do not use the busy processors.
    RunningBlocked,
    /// Requests wait, but there are as many workers as there may be.
    AtMaximum,
    /// Requests wait because the processors or the gateway's thread are busy: more workers would not help.
    ProcessorsBusy,
    /// Requests wait, and it is not known yet whether processors are idle.
    Measuring,
    /// Requests wait, and workers for them are starting.
    Starting,
    /// Requests wait, and the last growth has not shown its effect yet.
    JustGrown,
    /// There are more workers than memory, as last measured, allows.
    AboveMaximum,
    /// Workers have been idle for long.
    LongIdle,
    /// Workers have been idle for long, and a group of them has just gone.
    JustShrunk,
    /// The number is right.
    Enough,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BelowMinimum => "fewer workers than the minimum",
            Self::RequestsWait => "requests wait and processors are idle",
            Self::RunningBlocked => "requests wait and the running ones are blocked",
            Self::AtMaximum => "requests wait, but the maximum is reached",
            Self::ProcessorsBusy => {
                "requests wait because the processors, or the gateway, are busy"
            }
            Self::Measuring => "requests wait and the processors are being measured",
            Self::Starting => "workers are starting",
            Self::JustGrown => "waiting for the last growth to show",
            Self::AboveMaximum => "more workers than memory allows",
            Self::LongIdle => "workers have been idle for long",
            Self::JustShrunk => "idle workers go a few at a time",
            Self::Enough => "enough workers",
        })
    }
}

/// What to do about the size of a pool that looks like `view`.
pub fn decide(bounds: &Bounds, view: &PoolView) -> Decision {
    let total = view.total();
    if total < bounds.min {
        return Decision::Grow(bounds.min - total, Reason::BelowMinimum);
    }
    if total > bounds.max && view.idle > 0 {
        return Decision::Shrink(view.idle.min(total - bounds.max), Reason::AboveMaximum);
    }
    if view.queue_length > view.idle && view.oldest_queued_ms >= WAIT_TOLERATED_MS {
        decide_growth(bounds, view)
    } else {
        decide_shrinkage(bounds, view)
    }
}

fn decide_growth(bounds: &Bounds, view: &PoolView) -> Decision {
    let total = view.total();
    let uncovered = view.queue_length.saturating_sub(view.idle + view.booting);
    if total >= bounds.max {
        return Decision::Hold(Reason::AtMaximum);
    }
    if uncovered == 0 {
        return Decision::Hold(Reason::Starting);
    }
    if view.is_within(GROW_PAUSE_MS, view.last_grow_ms) {
        return Decision::Hold(Reason::JustGrown);
    }
    // At most doubled: the queue may be a burst that is over before the workers are there.
    let step = uncovered.min(total.max(2)).min(LARGEST_STEP).min(bounds.max - total);
    if view.has_idle_processors() {
        return Decision::Grow(step, Reason::RequestsWait);
    }
    // Blocked workers take no processor: as many as there are processors may compute beside them.
    let computing = total - view.blocked();
    match bounds.cores.saturating_sub(computing) {
        0 if view.cpu_busy_percent.is_none() => Decision::Hold(Reason::Measuring),
        0 => Decision::Hold(Reason::ProcessorsBusy),
        room => Decision::Grow(step.min(room), Reason::RunningBlocked),
    }
}

fn decide_shrinkage(bounds: &Bounds, view: &PoolView) -> Decision {
    let total = view.total();
    let beyond_spare = view.idle.saturating_sub(bounds.spare);
    let candidates = view.idle_long.min(beyond_spare).min(total.saturating_sub(bounds.min));
    if candidates == 0 || view.queue_length > 0 {
        return Decision::Hold(Reason::Enough);
    }
    if view.is_within(SHRINK_PAUSE_MS, view.last_shrink_ms) {
        return Decision::Hold(Reason::JustShrunk);
    }
    Decision::Shrink(candidates.min((total / 8).max(1)), Reason::LongIdle)
}

#[cfg(test)]
mod tests;
