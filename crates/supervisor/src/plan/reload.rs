//! How one generation of processes follows another without losing a connection.
//!
//! Called with every event that concerns a reload; what comes out is done in order. The old
//! generation serves until the new one has shown that it can: whatever fails before that is
//! undone, nothing after it is. Invariants: exactly one generation takes new requests at any
//! time; a reload always ends, since every phase has a deadline.
//!
//! ```text
//!  Starting ──workers ready──▶ Checking ──passed──▶ Draining ──old gone──▶ Done
//!     │                           │                    └─deadline─▶ Ending ─gone, or late─▶ Done
//!     └──────── RolledBack ◀──────┘
//! ```

use std::fmt;

/// Workers that are told to die at the drain deadline are gone after this, or the kernel is stuck.
pub const END_GRACE_MS: u64 = 5_000;

/// How a reload is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Workers of the new generation that must be ready before it is checked.
    pub workers: usize,
    /// Whether a request is to be answered before the new generation takes over.
    pub has_check: bool,
    /// Longest time until the new generation is ready and checked.
    pub start_timeout_ms: u64,
    /// Longest time that the old generation may take to finish what it has.
    pub drain_timeout_ms: u64,
}

/// Where a reload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The new generation starts.
    Starting {
        /// Until then.
        until_ms: u64,
    },
    /// The new generation answers the check request.
    Checking {
        /// Until then.
        until_ms: u64,
    },
    /// The new generation serves; the old one finishes what it has.
    Draining {
        /// Until then.
        until_ms: u64,
    },
    /// What is left of the old generation is being killed.
    Ending {
        /// Nobody waits longer than this.
        until_ms: u64,
    },
    /// The new generation serves and the old one is gone.
    Done,
    /// The old generation serves on, the new one is discarded.
    RolledBack(Reason),
}

/// Why a reload was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// PHP did not start, in its own words.
    StartFailed(String),
    /// The new generation's zygote or workers died.
    Died(String),
    /// Too few workers were ready in time.
    NotReady {
        /// So many were.
        ready: usize,
        /// So many should have been.
        wanted: usize,
    },
    /// The check request was not answered as it should have been.
    CheckFailed(String),
    /// The check request was not answered in time.
    CheckTimedOut,
    /// The gateway stops, or another reload takes this one's place.
    Cancelled,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartFailed(words) => write!(f, "PHP did not start: {words}"),
            Self::Died(how) => write!(f, "the new processes died: {how}"),
            Self::NotReady { ready, wanted } => {
                write!(f, "only {ready} of {wanted} new workers were ready in time")
            }
            Self::CheckFailed(how) => write!(f, "the check request failed: {how}"),
            Self::CheckTimedOut => f.write_str("the check request was not answered in time"),
            Self::Cancelled => f.write_str("it was cancelled"),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// So many workers of the new generation are ready now.
    Ready {
        /// The number, not the change of it.
        workers: usize,
    },
    /// The new generation's PHP did not start.
    StartFailed {
        /// PHP's own words.
        message: String,
    },
    /// The new generation is dead beyond what its back-off repairs.
    NewDied {
        /// How.
        how: String,
    },
    /// The check request was answered as it should be.
    CheckPassed,
    /// The check request was answered, but not as it should be.
    CheckFailed {
        /// What came.
        how: String,
    },
    /// The old generation has no process left.
    OldGone,
    /// The reload is not wanted any more.
    Cancel,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start the new generation.
    StartNew,
    /// Send the check request to the new generation.
    SendCheck,
    /// New requests go to the new generation from now on.
    Swap,
    /// The old generation finishes what it has.
    DrainOld {
        /// Until then.
        deadline_ms: u64,
    },
    /// Kill what is left of the old generation.
    KillOld,
    /// Kill the new generation; the old one has never stopped serving.
    DiscardNew,
    /// It is over: the phase says how.
    Finish,
}

/// One reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reload {
    plan: Plan,
    phase: Phase,
    ready: usize,
}

impl Reload {
    /// Begins a reload.
    pub fn begin(plan: Plan, now_ms: u64) -> (Self, Vec<Effect>) {
        let until_ms = now_ms.saturating_add(plan.start_timeout_ms);
        let reload = Self { plan, phase: Phase::Starting { until_ms }, ready: 0 };
        (reload, vec![Effect::StartNew])
    }

    /// Where it is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::RolledBack(_))
    }

    /// When [`Event::Tick`] is due at the latest; `None` once it is over.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Starting { until_ms }
            | Phase::Checking { until_ms }
            | Phase::Draining { until_ms }
            | Phase::Ending { until_ms } => Some(until_ms),
            Phase::Done | Phase::RolledBack(_) => None,
        }
    }

    /// Takes an event; what comes out is to be done in order. Events that do not concern the
    /// present phase are late and change nothing.
    pub fn on(&mut self, event: Event, now_ms: u64) -> Vec<Effect> {
        match self.phase {
            Phase::Starting { until_ms } => self.on_starting(event, now_ms, until_ms),
            Phase::Checking { until_ms } => self.on_checking(event, now_ms, until_ms),
            Phase::Draining { until_ms } => self.on_draining(&event, now_ms, until_ms),
            Phase::Ending { until_ms } => self.on_ending(&event, now_ms, until_ms),
            Phase::Done | Phase::RolledBack(_) => Vec::new(),
        }
    }

    fn on_starting(&mut self, event: Event, now_ms: u64, until_ms: u64) -> Vec<Effect> {
        if let Event::Ready { workers } = event {
            self.ready = workers;
            if workers >= self.plan.workers {
                return self.check_or_swap(now_ms, until_ms);
            }
        }
        let (ready, wanted) = (self.ready, self.plan.workers);
        self.fail(event, now_ms, until_ms, Reason::NotReady { ready, wanted })
    }

    fn check_or_swap(&mut self, now_ms: u64, until_ms: u64) -> Vec<Effect> {
        if !self.plan.has_check {
            return self.swap(now_ms);
        }
        self.phase = Phase::Checking { until_ms };
        vec![Effect::SendCheck]
    }

    fn on_checking(&mut self, event: Event, now_ms: u64, until_ms: u64) -> Vec<Effect> {
        match event {
            Event::CheckPassed => self.swap(now_ms),
            Event::CheckFailed { how } => self.roll_back(Reason::CheckFailed(how)),
            event => self.fail(event, now_ms, until_ms, Reason::CheckTimedOut),
        }
    }

    /// What undoes a reload in every phase before the swap.
    fn fail(&mut self, event: Event, now_ms: u64, until_ms: u64, late: Reason) -> Vec<Effect> {
        match event {
            Event::StartFailed { message } => self.roll_back(Reason::StartFailed(message)),
            Event::NewDied { how } => self.roll_back(Reason::Died(how)),
            Event::Cancel => self.roll_back(Reason::Cancelled),
            _ if now_ms >= until_ms => self.roll_back(late),
            _ => Vec::new(),
        }
    }

    fn roll_back(&mut self, reason: Reason) -> Vec<Effect> {
        self.phase = Phase::RolledBack(reason);
        vec![Effect::DiscardNew, Effect::Finish]
    }

    fn swap(&mut self, now_ms: u64) -> Vec<Effect> {
        let deadline_ms = now_ms.saturating_add(self.plan.drain_timeout_ms);
        self.phase = Phase::Draining { until_ms: deadline_ms };
        vec![Effect::Swap, Effect::DrainOld { deadline_ms }]
    }

    fn on_draining(&mut self, event: &Event, now_ms: u64, until_ms: u64) -> Vec<Effect> {
        if *event == Event::OldGone {
            return self.finish();
        }
        if now_ms < until_ms {
            return Vec::new();
        }
        self.phase = Phase::Ending { until_ms: now_ms.saturating_add(END_GRACE_MS) };
        vec![Effect::KillOld]
    }

    fn on_ending(&mut self, event: &Event, now_ms: u64, until_ms: u64) -> Vec<Effect> {
        if *event == Event::OldGone || now_ms >= until_ms { self.finish() } else { Vec::new() }
    }

    fn finish(&mut self) -> Vec<Effect> {
        self.phase = Phase::Done;
        vec![Effect::Finish]
    }
}

#[cfg(test)]
mod tests;
