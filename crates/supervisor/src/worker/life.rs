//! The life of one worker, as a table of legal moves.
//!
//! Called for every event about a worker: the zygote's, its ring's, and the clock's. Invariants:
//! a state changes only along [`State::may_become`]; a busy worker has requests and an idle one
//! has none; what an event meant is returned, so that no caller guesses from the state.
//!
//! ```text
//!  Forking ──▶ Booting ──▶ Idle ◀──▶ Busy
//!     │           │          │         │       Draining: takes no more; may still have requests
//!     └───────────┴────┬─────┴─────────┘
//!                      ▼
//!                  Draining ──▶ Killing ──▶ Gone      (every state may go to Killing and to Gone)
//! ```

use std::fmt;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Ordered from the zygote.
    Forking,
    /// A process, not ready yet.
    Booting,
    /// Ready for a request.
    Idle,
    /// Has requests; whether it takes more is the pool's business.
    Busy,
    /// Takes no more requests; leaves by itself when those that it has are over.
    Draining,
    /// `SIGKILL` was ordered; only its exit is waited for.
    Killing,
    /// Reaped, or never forked.
    Gone,
}

impl State {
    /// All states, in the order of a life.
    pub const ALL: [Self; 7] = [
        Self::Forking,
        Self::Booting,
        Self::Idle,
        Self::Busy,
        Self::Draining,
        Self::Killing,
        Self::Gone,
    ];

    /// The table of legal moves.
    pub const fn may_become(self, next: Self) -> bool {
        use State::{Booting, Busy, Draining, Forking, Gone, Idle, Killing};
        match self {
            // The ring can be quicker than the zygote's report: ready before known as forked.
            Forking => matches!(next, Booting | Idle | Draining | Killing | Gone),
            Booting => matches!(next, Idle | Draining | Killing | Gone),
            Idle => matches!(next, Busy | Draining | Killing | Gone),
            Busy => matches!(next, Idle | Draining | Killing | Gone),
            Draining => matches!(next, Killing | Gone),
            Killing => matches!(next, Gone),
            Gone => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forking => "forking",
            Self::Booting => "booting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Killing => "killing",
            Self::Gone => "gone",
        })
    }
}

/// Whether an event moved the worker on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Moved {
    /// It did.
    Yes,
    /// It came too late, or the peer is confused: nothing changed.
    No,
}

/// What the end of a request means for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Finished {
    /// It takes the next one.
    Free,
    /// It is draining and has no other: tell it to stop.
    Stop,
    /// It takes no more: it finishes what it has, if anything, and leaves.
    Leaving,
    /// It had no request: the peer is confused.
    HadNone,
}

/// What taking a worker out of service means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Stopping {
    /// It has no request: tell it to stop.
    Now,
    /// Tell it once its requests are over.
    AfterRequest,
    /// It was on its way out before.
    Already,
}

/// What a worker's exit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Death {
    /// It was told to leave, or to die, and had no request.
    Expected,
    /// It was on its way out and took its requests along: whoever waits gets an answer.
    ExpectedWithRequests,
    /// It never became ready: back off.
    WhileStarting,
    /// It died without being asked, and without a request.
    WhileIdle,
    /// It died with requests in flight: answer 502.
    WhileServing,
    /// It was reported before.
    Again,
}

/// One worker's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    state: State,
    /// At least one in `Busy`; any number in `Draining` and `Killing`; none otherwise.
    requests: u32,
    /// It has said that it leaves; it need not be told.
    leaves_by_itself: bool,
    was_ready: bool,
    ordered_ms: u64,
    ready_ms: Option<u64>,
    /// When it became idle last.
    idle_since_ms: u64,
    drain_deadline_ms: Option<u64>,
    served: u64,
}

impl Life {
    /// A worker whose fork is being ordered now.
    pub fn new(now_ms: u64) -> Self {
        Self {
            state: State::Forking,
            requests: 0,
            leaves_by_itself: false,
            was_ready: false,
            ordered_ms: now_ms,
            ready_ms: None,
            idle_since_ms: now_ms,
            drain_deadline_ms: None,
            served: 0,
        }
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Requests that it has now.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Requests that it has finished.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// When its fork was ordered.
    pub fn ordered_ms(&self) -> u64 {
        self.ordered_ms
    }

    /// When it became ready.
    pub fn ready_ms(&self) -> Option<u64> {
        self.ready_ms
    }

    /// When it is to have left; `None` unless it drains.
    pub fn drain_deadline_ms(&self) -> Option<u64> {
        self.drain_deadline_ms
    }

    /// How long it has been idle; `None` when it is not.
    pub fn idle_ms(&self, now_ms: u64) -> Option<u64> {
        (self.state == State::Idle).then(|| now_ms.saturating_sub(self.idle_since_ms))
    }

    fn become_if_legal(&mut self, next: State) -> Moved {
        if !self.state.may_become(next) {
            return Moved::No;
        }
        self.state = next;
        Moved::Yes
    }

    /// The zygote has forked it. Later states stay: the ring can be quicker than the report.
    pub(super) fn forked(&mut self) {
        if self.state == State::Forking {
            self.state = State::Booting;
        }
    }

    /// It is ready for its first request.
    pub fn ready(&mut self, now_ms: u64) -> Moved {
        if !matches!(self.state, State::Forking | State::Booting) {
            return Moved::No;
        }
        self.was_ready = true;
        self.ready_ms = Some(now_ms);
        self.idle_since_ms = now_ms;
        self.become_if_legal(State::Idle)
    }

    /// It is given a request.
    pub fn begin(&mut self) -> Moved {
        if self.state != State::Busy && self.become_if_legal(State::Busy) == Moved::No {
            return Moved::No;
        }
        self.requests += 1;
        Moved::Yes
    }

    /// One of its requests is over; `leaving` when it says that it leaves by itself.
    pub fn finished(&mut self, now_ms: u64, leaving: bool) -> Finished {
        if self.requests == 0 {
            return Finished::HadNone;
        }
        self.served += 1;
        self.leaves_by_itself |= leaving;
        if leaving && self.state == State::Busy {
            self.state = State::Draining;
        }
        self.one_less(now_ms)
    }

    /// A request was taken back before it started it.
    pub fn withdrawn(&mut self, now_ms: u64) -> Finished {
        if self.requests == 0 { Finished::HadNone } else { self.one_less(now_ms) }
    }

    fn one_less(&mut self, now_ms: u64) -> Finished {
        self.requests -= 1;
        match (self.state, self.requests) {
            (State::Busy, 0) => {
                self.state = State::Idle;
                self.idle_since_ms = now_ms;
                Finished::Free
            }
            (State::Busy, _) => Finished::Free,
            (State::Draining, 0) if self.leaves_by_itself => {
                let until_ms = now_ms.saturating_add(LEAVING_GRACE_MS);
                let earlier = self.drain_deadline_ms.is_some_and(|at_ms| at_ms < until_ms);
                if !earlier {
                    self.drain_deadline_ms = Some(until_ms);
                }
                Finished::Leaving
            }
            (State::Draining, 0) => Finished::Stop,
            _ => Finished::Leaving,
        }
    }

    /// It is to take no more requests and to be gone by `drain_deadline_ms`.
    pub fn drain(&mut self, drain_deadline_ms: u64) -> Stopping {
        if self.become_if_legal(State::Draining) == Moved::No {
            return Stopping::Already;
        }
        self.drain_deadline_ms = Some(drain_deadline_ms);
        if self.requests > 0 { Stopping::AfterRequest } else { Stopping::Now }
    }

    /// It is about to be killed.
    pub fn kill(&mut self) -> Moved {
        self.become_if_legal(State::Killing)
    }

    /// Its exit was reported, or that it could not be forked.
    pub fn exited(&mut self) -> Death {
        let last = self.state;
        if self.become_if_legal(State::Gone) == Moved::No {
            return Death::Again;
        }
        match (last, std::mem::take(&mut self.requests)) {
            (State::Draining | State::Killing, 0) => Death::Expected,
            (State::Draining | State::Killing, _) => Death::ExpectedWithRequests,
            (_, 0) if self.was_ready => Death::WhileIdle,
            (_, 0) => Death::WhileStarting,
            _ => Death::WhileServing,
        }
    }
}

/// How long a worker may take from "I leave" to its exit: PHP's module shutdown.
pub const LEAVING_GRACE_MS: u64 = 2_000;

#[cfg(test)]
mod tests;
