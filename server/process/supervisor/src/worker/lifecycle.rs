//! The states of a worker, and the table of legal moves.
//!
//! Called for every event about a worker, from the zygote, the ring or the clock. Invariants: a
//! state changes only along [`State::may_become`]; a busy worker has requests and an idle one has
//! none; the meaning of an event is returned, so that no caller infers it from the state.
//!
//! ```text
//!  Forking ──▶ Booting ──▶ Idle ◀──▶ Busy
//!     │           │          │         │       Draining: takes no more; may still have requests
//!     └───────────┴────┬─────┴─────────┘
//!                      ▼
//!                  Draining ──▶ Killing ──▶ Gone      (every state may go to Killing and to Gone)
//! ```

use std::fmt;

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The fork is ordered.
    Forking,
    /// The process exists and is not ready.
    Booting,
    /// Ready for a request.
    Idle,
    /// Has requests; the pool decides whether it gets more.
    Busy,
    /// Accepts no more requests; exits after its last one.
    Draining,
    /// `SIGKILL` is ordered; the exit is awaited.
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
            // A worker can be ready before the zygote reports its fork.
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

/// Whether an event changed the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Transition {
    /// It changed.
    Applied,
    /// The event came too late, or the peer is confused: nothing changed.
    Ignored,
}

/// What the end of a request means for the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum RequestEnd {
    /// The worker takes the next request.
    Free,
    /// The worker is draining and has no other request: send `Stop`.
    Stop,
    /// The worker finishes its other requests, if any, and exits by itself.
    Leaving,
    /// The worker had no request: the peer is confused.
    HadNone,
}

/// What taking a worker out of service means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Stopping {
    /// The worker has no request: send `Stop` now.
    Now,
    /// Send `Stop` after its last request.
    AfterRequest,
    /// The worker was draining before.
    Already,
}

/// What a worker's exit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ExitKind {
    /// The worker was ordered to exit and had no request.
    Expected,
    /// The worker was ordered to exit and had requests: respond to their clients.
    ExpectedWithRequests,
    /// The worker was never ready: back off.
    WhileStarting,
    /// The worker died unexpectedly, without a request.
    WhileIdle,
    /// The worker died with requests: respond with 502.
    WhileServing,
    /// The exit was reported before.
    Again,
}

/// The state of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    state: State,
    /// At least one in `Busy`; any number in `Draining` and `Killing`; none otherwise.
    requests: u32,
    /// The worker has announced its exit and needs no `Stop`.
    leaves_by_itself: bool,
    was_ready: bool,
    ordered_ms: u64,
    ready_ms: Option<u64>,
    /// When it became idle last.
    idle_since_ms: u64,
    drain_deadline_ms: Option<u64>,
    /// The worker has announced its death, which nobody has ordered.
    is_dying: bool,
    served: u64,
}

impl Lifecycle {
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
            is_dying: false,
            served: 0,
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The present requests.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// The finished requests.
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

    /// The drain deadline; `None` unless it drains.
    pub fn drain_deadline_ms(&self) -> Option<u64> {
        self.drain_deadline_ms
    }

    /// How long the worker has been idle; `None` if it is not.
    pub fn idle_ms(&self, now_ms: u64) -> Option<u64> {
        (self.state == State::Idle).then(|| now_ms.saturating_sub(self.idle_since_ms))
    }

    fn become_if_legal(&mut self, next: State) -> Transition {
        if !self.state.may_become(next) {
            return Transition::Ignored;
        }
        self.state = next;
        Transition::Applied
    }

    /// Handles the fork. A later state stays, because a worker can be ready before the report.
    pub(super) fn forked(&mut self) {
        if self.state == State::Forking {
            self.state = State::Booting;
        }
    }

    /// Handles the readiness of the worker.
    pub fn ready(&mut self, now_ms: u64) -> Transition {
        if !matches!(self.state, State::Forking | State::Booting) {
            return Transition::Ignored;
        }
        self.was_ready = true;
        self.ready_ms = Some(now_ms);
        self.idle_since_ms = now_ms;
        self.become_if_legal(State::Idle)
    }

    /// Gives the worker a request.
    pub fn begin(&mut self) -> Transition {
        if self.state != State::Busy && self.become_if_legal(State::Busy) == Transition::Ignored {
            return Transition::Ignored;
        }
        self.requests += 1;
        Transition::Applied
    }

    /// Ends a request; `leaving` if the worker announces its exit.
    pub fn finished(&mut self, now_ms: u64, leaving: bool) -> RequestEnd {
        if self.requests == 0 {
            return RequestEnd::HadNone;
        }
        self.served += 1;
        self.leaves_by_itself |= leaving;
        if leaving && self.state == State::Busy {
            self.state = State::Draining;
        }
        self.one_less(now_ms)
    }

    /// The worker has begun a request that it was not given, perhaps before it was told to leave.
    pub fn adopt(&mut self) {
        let _ = self.become_if_legal(State::Busy);
        self.requests += 1;
    }

    /// The worker has answered a request that it was not given.
    pub fn served_directly(&mut self, now_ms: u64) {
        self.served += 1;
        if self.state == State::Idle {
            self.idle_since_ms = now_ms;
        }
    }

    /// Handles a request that was withdrawn before its start.
    pub fn withdrawn(&mut self, now_ms: u64) -> RequestEnd {
        if self.requests == 0 { RequestEnd::HadNone } else { self.one_less(now_ms) }
    }

    fn one_less(&mut self, now_ms: u64) -> RequestEnd {
        self.requests -= 1;
        match (self.state, self.requests) {
            (State::Busy, 0) => {
                self.state = State::Idle;
                self.idle_since_ms = now_ms;
                RequestEnd::Free
            }
            (State::Busy, _) => RequestEnd::Free,
            (State::Draining, 0) if self.leaves_by_itself => {
                let until_ms = now_ms.saturating_add(LEAVING_GRACE_MS);
                let earlier = self.drain_deadline_ms.is_some_and(|at_ms| at_ms < until_ms);
                if !earlier {
                    self.drain_deadline_ms = Some(until_ms);
                }
                RequestEnd::Leaving
            }
            (State::Draining, 0) => RequestEnd::Stop,
            _ => RequestEnd::Leaving,
        }
    }

    /// Drains the worker, which has to exit by `drain_deadline_ms`.
    pub fn drain(&mut self, drain_deadline_ms: u64) -> Stopping {
        if self.become_if_legal(State::Draining) == Transition::Ignored {
            return Stopping::Already;
        }
        self.drain_deadline_ms = Some(drain_deadline_ms);
        if self.requests > 0 { Stopping::AfterRequest } else { Stopping::Now }
    }

    /// Handles the announcement of a death: the worker gets nothing more, and its exit is no ordered one. It has to
    /// be gone after [`LEAVING_GRACE_MS`].
    pub fn dying(&mut self, now_ms: u64) -> Transition {
        let transition = self.become_if_legal(State::Draining);
        if transition == Transition::Applied {
            self.is_dying = true;
            self.drain_deadline_ms = Some(now_ms.saturating_add(LEAVING_GRACE_MS));
        }
        transition
    }

    /// Marks the worker as being killed.
    pub fn kill(&mut self) -> Transition {
        self.become_if_legal(State::Killing)
    }

    /// Handles the exit, or the failure of the fork.
    pub fn exited(&mut self) -> ExitKind {
        let last = self.state;
        if self.become_if_legal(State::Gone) == Transition::Ignored {
            return ExitKind::Again;
        }
        let is_ordered = match last {
            State::Draining => !self.is_dying,
            State::Killing => true,
            _ => false,
        };
        match (is_ordered, std::mem::take(&mut self.requests)) {
            (true, 0) => ExitKind::Expected,
            (true, _) => ExitKind::ExpectedWithRequests,
            (false, 0) if self.was_ready => ExitKind::WhileIdle,
            (false, 0) => ExitKind::WhileStarting,
            (false, _) => ExitKind::WhileServing,
        }
    }
}

/// How long a worker may take to exit after it has announced it: PHP's module shutdown, or a core dump.
pub const LEAVING_GRACE_MS: u64 = 2_000;

#[cfg(test)]
mod tests;
