//! [`Pace`]: when a thread sends, as soon as possible or by its schedule.
//!
//! Owned by the worker. Invariant: each request of a schedule is counted once: as sent, dropped at
//! its deadline, or unsent at the end.

use super::Worker;
use crate::plan::{Load, Plan};
use crate::recorder::Totals;
use crate::schedule::Schedule;
use crate::share::Share;
use std::cmp::Reverse;

/// When requests are sent.
pub(super) enum Pace {
    /// After the previous response, as long as some are left.
    Closed { left: u64 },
    /// When they are due.
    Open { schedule: Schedule, deadline_ns: u64 },
}

impl Pace {
    pub(super) fn new(plan: &Plan, share: Share) -> Self {
        match plan.load {
            Load::Closed => Self::Closed { left: plan.requests.map_or(u64::MAX, |n| share.of(n)) },
            Load::Open { rate, arrival, deadline } => Self::Open {
                schedule: Schedule::new(
                    rate,
                    arrival,
                    plan.duration.as_nanos() as u64,
                    (share.thread, share.threads),
                    plan.seed.wrapping_add(share.thread as u64),
                ),
                deadline_ns: deadline.map_or(u64::MAX, |deadline| deadline.as_nanos() as u64),
            },
        }
    }

    /// Takes the next request of the schedule if it is due, dropping those past their deadline, and
    /// returns when it was due.
    pub(super) fn take_due(&mut self, now_ns: u64, totals: &mut Totals) -> Option<u64> {
        let Self::Open { schedule, deadline_ns } = self else { return None };
        loop {
            let due_ns = schedule.next_ns().filter(|&due_ns| due_ns <= now_ns)?;
            schedule.take();
            totals.due += 1;
            if now_ns - due_ns <= *deadline_ns {
                return Some(due_ns);
            }
            totals.shed += 1;
        }
    }

    /// Takes the rest of the schedule and returns the number of its requests.
    pub(super) fn take_rest(&mut self) -> u64 {
        match self {
            Self::Closed { .. } => 0,
            Self::Open { schedule, .. } => schedule.take_rest(),
        }
    }
}

impl Worker<'_> {
    /// Ends the plan early; requests in flight are abandoned unless the plan drains.
    pub(super) fn end_at(&mut self, now_ns: u64) {
        self.end_ns = now_ns;
        self.is_stopped = true;
        if let Pace::Open { schedule, .. } = &mut self.pace {
            schedule.end_at(now_ns);
        }
    }

    /// A closed loop abandons requests in flight at its end unless it drains; an open loop waits
    /// for them, since slow responses matter most for latencies. Requests that were due before the
    /// end and had a free user are sent even when this thread is late.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        match &self.pace {
            Pace::Closed { .. } => {
                let is_done = self.in_flight == 0 && self.has_sent_all(now_ns);
                is_done || (now_ns >= self.end_ns && !self.plan.drains)
            }
            Pace::Open { .. } if self.is_stopped => !self.plan.drains || self.in_flight == 0,
            Pace::Open { schedule, .. } => {
                let may_send = !self.idle.is_empty() && schedule.next_ns().is_some();
                now_ns >= self.end_ns && self.in_flight == 0 && !may_send
            }
        }
    }

    /// Whether a closed loop has nothing left to send.
    pub(super) fn has_sent_all(&self, now_ns: u64) -> bool {
        let Pace::Closed { left } = &self.pace else { return false };
        *left == 0 || now_ns >= self.end_ns
    }

    /// When the loop must continue even without an event.
    pub(super) fn wake_ns(&self) -> u64 {
        let mut wake_ns = self.next_sweep_ns.min(self.recorder.boundary_ns());
        wake_ns = wake_ns.min(self.timer_ns());
        if let Some(Reverse((rested_ns, _))) = self.paused.peek() {
            wake_ns = wake_ns.min(*rested_ns);
        }
        if let (Pace::Open { schedule, .. }, false) = (&self.pace, self.idle.is_empty()) {
            wake_ns = wake_ns.min(schedule.next_ns().unwrap_or(u64::MAX));
        }
        wake_ns
    }

    /// Sends the due requests while users are free.
    pub(super) fn send_due(&mut self, now_ns: u64) {
        while let Some(&Reverse((rested_ns, place))) = self.paused.peek() {
            if rested_ns > now_ns {
                break;
            }
            self.paused.pop();
            self.users[place as usize].is_paused = false;
            self.free(place as usize, now_ns);
        }
        self.send_to_idle(now_ns);
        if let Pace::Open { schedule, .. } = &self.pace {
            self.recorder.backlog(schedule.waiting(now_ns));
        }
    }

    /// Assigns due requests to free users, longest waiting first.
    pub(super) fn send_to_idle(&mut self, now_ns: u64) {
        while let Some(&place) = self.idle.front() {
            let totals = &mut self.recorder.totals;
            let Some(intended_ns) = self.pace.take_due(now_ns, totals) else { break };
            self.idle.pop_front();
            self.begin(place as usize, intended_ns, self.now_ns());
        }
    }
}
