//! What to do about a worker that exceeds a deadline.
//!
//! Called at each tick for each request of a worker, and for each worker that starts or drains. The
//! client gets its response at the deadline. The worker then has a moment to write a backtrace, and
//! is killed, which no script, lock or system call can prevent. A worker with other requests is
//! first asked to cancel this one. Invariants: the steps are taken in order, however late the ticks
//! are; a worker that does not end a request past its deadline is killed in the end.

/// Time from the first backtrace signal to the second, which reaches a worker in a system call
/// ([`outboard_ring::control::BACKTRACE_SIGNAL`]).
pub const SECOND_SIGNAL_AFTER_MS: u64 = 50;
/// Time from the first backtrace signal to the kill: a busy machine may not schedule the worker
/// sooner, and the client has its response.
pub const KILL_AFTER_MS: u64 = 250;

/// Time from a cancellation to the kill.
pub const CANCEL_GRACE_MS: u64 = 250;

/// The last step that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// None: no deadline is exceeded.
    #[default]
    InTime,
    /// The client has its response, and the backtrace signal was sent.
    Signalled {
        /// When.
        signalled_ms: u64,
    },
    /// The backtrace signal was sent again.
    SignalledAgain {
        /// When the first signal was sent.
        signalled_ms: u64,
    },
    /// It was asked to end the request.
    Cancelled {
        /// When.
        cancelled_ms: u64,
    },
    /// It is being killed.
    Killed,
}

/// The deadline that a worker has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its request's deadline: 504.
    Request,
    /// The drain deadline, with a request, which is cut short.
    Drain,
    /// The drain deadline, without a request: the worker ignores `Stop`.
    Leaving,
    /// The time to get ready.
    Starting,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Request => "its request took longer than the deadline",
            Self::Drain => "its request took longer than draining may take",
            Self::Leaving => "it was asked to stop and did not",
            Self::Starting => "it did not get ready in time",
        })
    }
}

/// A worker as its deadlines see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// What it is bound by.
    pub bounds: Bounds,
    /// What was done already about its present request; put [`Step::next_stage`] here after each
    /// step, and [`Stage::InTime`] when it is given a new request.
    pub stage: Stage,
    /// Whether the backtrace has come.
    pub has_backtrace: bool,
    /// Whether it can end one of its requests without harm to the others.
    pub can_cancel: bool,
}

/// What a worker is bound by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// It is starting.
    Starting {
        /// When it is to be ready.
        ready_by_ms: u64,
    },
    /// It has a request.
    Running {
        /// When the request is to be over; `None`: at any time.
        deadline_ms: Option<u64>,
        /// When it is to be gone, if it drains.
        drain_deadline_ms: Option<u64>,
    },
    /// It has no request and was asked to stop.
    Leaving {
        /// When it is to be gone.
        drain_deadline_ms: u64,
    },
}

impl Bounds {
    /// The first of its bounds in time, if it has any.
    fn first(self) -> Option<(u64, Cause)> {
        match self {
            Self::Starting { ready_by_ms } => Some((ready_by_ms, Cause::Starting)),
            Self::Leaving { drain_deadline_ms } => Some((drain_deadline_ms, Cause::Leaving)),
            Self::Running { deadline_ms, drain_deadline_ms } => {
                let request = deadline_ms.map(|at_ms| (at_ms, Cause::Request));
                let drain = drain_deadline_ms.map(|at_ms| (at_ms, Cause::Drain));
                request.into_iter().chain(drain).min_by_key(|(at_ms, _)| *at_ms)
            }
        }
    }
}

/// What to do with a worker now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing; look again then (`None`: it has no bound, or its exit is waited for).
    Wait {
        /// When.
        until_ms: Option<u64>,
    },
    /// Answer the client and send the backtrace signal.
    RespondAndSignal(Cause),
    /// Send the backtrace signal again.
    SignalAgain,
    /// Tell it to end the request.
    Cancel,
    /// Send `SIGKILL`; the backtrace, if it has come, goes to the slow log.
    Kill(Cause),
}

impl Step {
    /// The stage after this step was taken at `now_ms`.
    pub fn next_stage(self, stage: Stage, now_ms: u64) -> Stage {
        match (self, stage) {
            (Self::Wait { .. }, _) | (_, Stage::Killed) => stage,
            (Self::RespondAndSignal(_), _) => Stage::Signalled { signalled_ms: now_ms },
            (
                Self::SignalAgain,
                Stage::Signalled { signalled_ms } | Stage::SignalledAgain { signalled_ms },
            ) => Stage::SignalledAgain { signalled_ms },
            (Self::SignalAgain, Stage::InTime) => Stage::SignalledAgain { signalled_ms: now_ms },
            (Self::SignalAgain, Stage::Cancelled { .. }) => stage,
            (Self::Cancel, _) => Stage::Cancelled { cancelled_ms: now_ms },
            (Self::Kill(_), _) => Stage::Killed,
        }
    }
}

/// What to do with a worker at `now_ms`.
pub fn step(now_ms: u64, watch: &Watch) -> Step {
    if watch.stage == Stage::Killed {
        return Step::Wait { until_ms: None };
    }
    let Some((bound_ms, cause)) = watch.bounds.first() else {
        return Step::Wait { until_ms: None };
    };
    let end = if watch.can_cancel { Step::Cancel } else { Step::Kill(cause) };
    match watch.stage {
        Stage::InTime if now_ms < bound_ms => Step::Wait { until_ms: Some(bound_ms) },
        Stage::InTime if matches!(cause, Cause::Request | Cause::Drain) => {
            Step::RespondAndSignal(cause)
        }
        Stage::InTime => Step::Kill(cause),
        Stage::Cancelled { cancelled_ms } => {
            let kill_ms = cancelled_ms.saturating_add(CANCEL_GRACE_MS);
            if now_ms < kill_ms {
                Step::Wait { until_ms: Some(kill_ms) }
            } else {
                Step::Kill(cause)
            }
        }
        _ if watch.has_backtrace => end,
        Stage::Signalled { signalled_ms } => {
            let again_ms = signalled_ms.saturating_add(SECOND_SIGNAL_AFTER_MS);
            if now_ms < again_ms {
                Step::Wait { until_ms: Some(again_ms) }
            } else {
                Step::SignalAgain
            }
        }
        Stage::SignalledAgain { signalled_ms } => {
            let kill_ms = signalled_ms.saturating_add(KILL_AFTER_MS);
            if now_ms < kill_ms { Step::Wait { until_ms: Some(kill_ms) } } else { end }
        }
        Stage::Killed => Step::Wait { until_ms: None },
    }
}

#[cfg(test)]
mod tests;
