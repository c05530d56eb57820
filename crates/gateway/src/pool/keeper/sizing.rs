//! The size of the pool: how many workers, and which of them to replace.

use super::super::worker::State;
use super::super::{Phase, Pool, PoolSettings};
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct Sizing {
    pub(crate) max: usize,
    pub(crate) why: String,
}

impl Sizing {
    pub(super) fn new(settings: &PoolSettings) -> Self {
        Self { max: settings.max.unwrap_or(32), why: String::new() }
    }
}

pub(super) fn recycle_after(settings: &PoolSettings, number: u64) -> u64 {
    let _ = number;
    settings.recycle_requests.unwrap_or(u64::MAX)
}

impl Pool {
    pub(super) fn resize(self: &Rc<Self>, now_ms: u64) {
        if self.phase.get() != Phase::Serving {
            return;
        }
        let (total, booting, queued) = {
            let members = self.members.borrow();
            let total = members
                .workers
                .iter()
                .flatten()
                .filter(|w| w.state != State::Killed && w.state != State::Stopping)
                .count();
            let booting =
                members.workers.iter().flatten().filter(|w| w.state == State::Booting).count();
            (
                total,
                booting,
                members.queue.front().is_some_and(|w| now_ms - w.exchange.submitted_ms >= 20),
            )
        };
        let target = if queued && booting == 0 { total + 1 } else { self.settings.min };
        let target = target.clamp(self.settings.min, self.keeping.borrow().sizing.max);
        for _ in total..target {
            self.fork();
        }
    }
}
