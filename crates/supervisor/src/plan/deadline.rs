//! What to do with a worker that has had too long.
//!
//! Called at each tick for each request of a worker, and for each worker that starts or drains.
//! The client gets its answer at the deadline; then the worker has a moment to say where it was;
//! then it is killed, which no script, lock or system call can refuse. A worker that has other
//! requests is told to end this one first. Invariants: the steps come in order, however late the
//! ticks are; a worker that does not end a request past its deadline is killed at last.

/// After the first wish for a backtrace, a second one reaches a worker that sits in a system call
/// ([`outboard_ring::control::BACKTRACE_SIGNAL`]).
pub const ASK_AGAIN_AFTER_MS: u64 = 50;
/// After the first wish for a backtrace, the worker is killed in any case: a busy machine may not
/// give it a turn any sooner, and its client has the answer already.
pub const KILL_AFTER_MS: u64 = 250;

/// After it was told to end a request, a worker that has not done so is killed.
pub const CANCEL_GRACE_MS: u64 = 250;

/// How far a worker that has had too long has been brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// It is in time.
    #[default]
    InTime,
    /// The client has its answer, a backtrace was wished for.
    Asked {
        /// When.
        asked_ms: u64,
    },
    /// It was wished for again.
    AskedAgain {
        /// When it was wished for first.
        asked_ms: u64,
    },
    /// It was told to end the request.
    Cancelled {
        /// When.
        cancelled_ms: u64,
    },
    /// It is being killed.
    Killed,
}

/// Which bound a worker has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its request's deadline: 504.
    Request,
    /// The drain deadline, with a request: it is cut short because the pool goes.
    Drain,
    /// The drain deadline without a request: it was told to leave and does not.
    Leaving,
    /// The time to get ready.
    Starting,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Request => "its request took longer than the deadline",
            Self::Drain => "its request took longer than draining may take",
            Self::Leaving => "it was told to leave and did not",
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
    /// It has no request and was told to leave.
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
    AnswerAndAsk(Cause),
    /// Send the backtrace signal again.
    AskAgain,
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
            (Self::AnswerAndAsk(_), _) => Stage::Asked { asked_ms: now_ms },
            (Self::AskAgain, Stage::Asked { asked_ms } | Stage::AskedAgain { asked_ms }) => {
                Stage::AskedAgain { asked_ms }
            }
            (Self::AskAgain, Stage::InTime) => Stage::AskedAgain { asked_ms: now_ms },
            (Self::AskAgain, Stage::Cancelled { .. }) => stage,
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
            Step::AnswerAndAsk(cause)
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
        Stage::Asked { asked_ms } => {
            let again_ms = asked_ms.saturating_add(ASK_AGAIN_AFTER_MS);
            if now_ms < again_ms { Step::Wait { until_ms: Some(again_ms) } } else { Step::AskAgain }
        }
        Stage::AskedAgain { asked_ms } => {
            let kill_ms = asked_ms.saturating_add(KILL_AFTER_MS);
            if now_ms < kill_ms { Step::Wait { until_ms: Some(kill_ms) } } else { end }
        }
        Stage::Killed => Step::Wait { until_ms: None },
    }
}

#[cfg(test)]
mod tests;
