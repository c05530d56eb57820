//! Whether the workers of a pool run on the core of their gateway's thread.
//!
//! Called by the pool once per interval, and when a request computes for long. On one core a hand-over
//! costs a change of context, on two an interrupt of a core that sleeps: about twice as much. But a worker
//! that computes keeps the gateway from its core. So workers are placed there only after some time in
//! which requests needed little of a processor, and this time doubles if a long one ends the placement
//! soon. What counts is the time on a processor: a request that waits keeps nobody from the core, and a
//! machine that stalls makes every request look long. Invariant: a load with long computations now and
//! then is hardly ever placed.

/// The shortest interval.
pub const INTERVAL_MS: u64 = 100;
/// A request that runs longer is looked at: one that computes ends a placement at once.
pub const LONG_MS: u64 = 2;
/// The time on a processor, after that look, by which a request computes.
pub const LONG_NS: u64 = 1_000_000;
/// Before a placement, what requests need of a processor on average.
const SHORT_NS: u64 = 500_000;
/// Requests per second for which workers are placed, and stay so.
const PLACE_RATE: u64 = 50;
const STAY_RATE: u64 = 20;
/// The share of one core for which workers are placed, and stay so.
const ROOM_PERCENT: u64 = 60;
const FULL_PERCENT: u64 = 75;
/// The time of short requests before a placement.
const FIRST_CALM_MS: u64 = 500;
const LONGEST_CALM_MS: u64 = 8_000;

/// What the pool has measured since the last interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Its length.
    pub elapsed_ms: u64,
    /// Requests that have ended.
    pub requests: u64,
    /// What these took of processors; `None` if it is not known.
    pub load: Option<Load>,
}

/// Times in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// The time that the workers used.
    pub workers_ns: u64,
    /// The time that the gateway's thread used, and that it waited for a core.
    pub gateway_ns: u64,
}

impl Interval {
    fn has_rate(&self, per_second: u64) -> bool {
        self.elapsed_ms > 0 && self.requests.saturating_mul(1_000) >= self.elapsed_ms * per_second
    }

    /// Whether its work needs at most this share of a core.
    fn fits(&self, percent: u64) -> bool {
        let most_ns = self.elapsed_ms.saturating_mul(percent * 10_000);
        self.load.is_some_and(|load| load.workers_ns.saturating_add(load.gateway_ns) <= most_ns)
    }

    fn has_short_requests(&self) -> bool {
        let most_ns = self.requests.saturating_mul(SHORT_NS);
        self.load.is_some_and(|load| load.workers_ns <= most_ns)
    }

    fn permits_placing(&self) -> bool {
        self.has_rate(PLACE_RATE) && self.has_short_requests() && self.fits(ROOM_PERCENT)
    }

    fn permits_staying(&self) -> bool {
        self.has_rate(STAY_RATE) && self.fits(FULL_PERCENT)
    }
}

/// The state of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Since when workers are placed.
    placed_ms: Option<u64>,
    /// Since when every interval permits to place them.
    calm_since_ms: Option<u64>,
    /// How long this has to last.
    calm_ms: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { placed_ms: None, calm_since_ms: None, calm_ms: FIRST_CALM_MS }
    }
}

impl Plan {
    /// Whether the workers are to run on the gateway's core.
    pub fn is_placed(&self) -> bool {
        self.placed_ms.is_some()
    }

    /// Decides at the end of an interval.
    pub fn decide(&mut self, now_ms: u64, interval: &Interval) {
        if self.is_placed() {
            match interval.permits_staying() {
                true => {}
                // Without requests there is nothing to learn.
                false if !interval.has_rate(STAY_RATE) => self.placed_ms = None,
                false => self.end(now_ms),
            }
            return;
        }
        if !interval.permits_placing() {
            self.calm_since_ms = None;
            return;
        }
        let begun_ms = now_ms.saturating_sub(interval.elapsed_ms);
        let calm_since_ms = *self.calm_since_ms.get_or_insert(begun_ms);
        if now_ms.saturating_sub(calm_since_ms) >= self.calm_ms {
            self.placed_ms = Some(now_ms);
            self.calm_since_ms = None;
        }
    }

    /// A placement was a mistake: a request computes for long, or the core is full.
    pub fn end(&mut self, now_ms: u64) {
        self.calm_since_ms = None;
        let Some(placed_ms) = self.placed_ms.take() else { return };
        let has_lasted = now_ms.saturating_sub(placed_ms) >= LONGEST_CALM_MS;
        self.calm_ms =
            if has_lasted { FIRST_CALM_MS } else { (self.calm_ms * 2).min(LONGEST_CALM_MS) };
    }
}

#[cfg(test)]
mod tests;
