//! [`Schedule`]: when each request of an open loop is due, independently of the server.
//!
//! Every thread computes its own from the plan's rate. A due time is computed from the number of
//! the request and never from the last due time, so that errors do not add up. Since the due times
//! of all requests are known, no queue is needed for those that wait for a connection: what is due
//! and not yet taken *is* the queue.

use crate::random::Random;
use std::time::Duration;

/// The rate as a function of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Constant.
    Fixed(f64),
    /// From `from` to `to` linearly over the duration of the run.
    Ramp {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
    },
    /// `from`, then another rate after some time: shows overload, and how soon a server
    /// recovers.
    Step {
        /// Requests per second at the start.
        from: f64,
        /// How long.
        during: Duration,
        /// Requests per second after that.
        to: f64,
    },
}

/// How arrivals are distributed around the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arrival {
    /// At equal distances.
    #[default]
    Even,
    /// As of many independent users: a Poisson process.
    Poisson,
}

/// The rate as a function of time, and its integral.
#[derive(Debug, Clone, Copy)]
struct Profile {
    from: f64,
    /// Requests per second, per second.
    slope: f64,
    /// From this second on, this rate; without a slope before.
    then: Option<(f64, f64)>,
}

impl Profile {
    fn new(rate: Rate, duration_ns: u64) -> Self {
        match rate {
            Rate::Fixed(rate) => Self { from: rate, slope: 0.0, then: None },
            Rate::Ramp { from, to } => {
                Self { from, slope: (to - from) / (duration_ns as f64 / 1e9), then: None }
            }
            Rate::Step { from, during, to } => {
                Self { from, slope: 0.0, then: Some((during.as_secs_f64(), to)) }
            }
        }
    }

    /// The time when `count` requests are due: solves from·t + slope·t²/2 = count for t. `None`
    /// when a falling ramp ends before.
    fn ns_of(&self, count: f64) -> Option<u64> {
        if count == 0.0 {
            return Some(0);
        }
        if let Some((seconds, rate)) = self.then
            && count > self.from * seconds
        {
            let seconds = seconds + (count - self.from * seconds) / rate;
            return seconds.is_finite().then_some((seconds * 1e9) as u64);
        }
        let root = self.from * self.from + 2.0 * self.slope * count;
        if root < 0.0 {
            return None;
        }
        // This form of the quadratic formula works without a slope and avoids cancellation.
        let seconds = 2.0 * count / (self.from + root.sqrt());
        seconds.is_finite().then_some((seconds * 1e9) as u64)
    }

    /// The number of requests that are due by `ns`.
    fn count_at(&self, ns: u64) -> f64 {
        let seconds = ns as f64 / 1e9;
        if let Some((before, rate)) = self.then
            && seconds > before
        {
            return self.from * before + rate * (seconds - before);
        }
        self.from * seconds + self.slope * seconds * seconds / 2.0
    }
}

/// The due times of one thread's requests, in nanoseconds since the start of the run.
#[derive(Debug)]
pub(crate) struct Schedule {
    profile: Profile,
    arrival: Arrival,
    threads: f64,
    random: Random,
    end_ns: u64,
    /// The index of the next request among those of all threads.
    position: f64,
    next_ns: Option<u64>,
    taken: u64,
}

impl Schedule {
    /// The share of thread `thread` among `threads`: every `threads`th of even arrivals, or a
    /// Poisson process of its own, since several of them together are one.
    pub(crate) fn new(
        rate: Rate,
        arrival: Arrival,
        duration_ns: u64,
        (thread, threads): (usize, usize),
        seed: u64,
    ) -> Self {
        let mut schedule = Self {
            profile: Profile::new(rate, duration_ns),
            arrival,
            threads: threads as f64,
            random: Random::new(seed),
            end_ns: duration_ns,
            position: 0.0,
            next_ns: None,
            taken: 0,
        };
        schedule.position = match arrival {
            Arrival::Even => thread as f64,
            Arrival::Poisson => schedule.gap(),
        };
        schedule.next_ns = schedule.due();
        schedule
    }

    fn gap(&mut self) -> f64 {
        match self.arrival {
            Arrival::Even => self.threads,
            Arrival::Poisson => self.random.exponential() * self.threads,
        }
    }

    fn due(&self) -> Option<u64> {
        self.profile.ns_of(self.position).filter(|&ns| ns < self.end_ns)
    }

    /// When the next request is due; `None` after the last.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Ends earlier than planned.
    pub(crate) fn end_at(&mut self, end_ns: u64) {
        self.end_ns = end_ns.max(1);
        self.next_ns = self.next_ns.filter(|&ns| ns < end_ns);
    }

    /// Takes the next request.
    pub(crate) fn take(&mut self) {
        self.position += self.gap();
        self.next_ns = self.due();
        self.taken += 1;
    }

    /// The number of requests that are due at `now_ns` and not taken: exact for even arrivals,
    /// otherwise the expected number.
    pub(crate) fn waiting(&self, now_ns: u64) -> u64 {
        match self.next_ns {
            Some(next_ns) if next_ns <= now_ns => {
                let behind = self.profile.count_at(now_ns.min(self.end_ns - 1)) - self.position;
                (behind / self.threads).max(0.0) as u64 + 1
            }
            _ => 0,
        }
    }

    /// Takes all that are left and returns their number.
    pub(crate) fn take_rest(&mut self) -> u64 {
        let before = self.taken;
        while self.next_ns.is_some() {
            self.take();
        }
        self.taken - before
    }
}

#[cfg(test)]
mod tests;
