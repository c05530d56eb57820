//! Workers that the pool of one thread forks for the requests of another.
//!
//! Called by the manager, and for [`Message`]s. Each thread may fork its part of the workers of the app;
//! if all requests come to one thread, its part is not enough. Invariant: the pools of all threads
//! together have no more workers than the app may have.

use super::super::messages::Message;
use super::super::{Phase, Pool};
use outboard_reactor::now_ms;
use outboard_supervisor::plan::scale::{Decision, PoolView, Reason, decide};
use outboard_supervisor::worker::lifecycle::State;

impl Pool {
    /// Requests workers of other threads if this one may not fork those that it needs. They come as
    /// loans.
    pub(super) fn grow_elsewhere(&self, view: &PoolView) {
        if self.shard.count() == 1 {
            return;
        }
        self.shard.publish_vacant(self.vacant());
        let mut manager = self.manager.borrow_mut();
        let sizing = &mut manager.sizing;
        if sizing.decision != Some(Decision::Hold(Reason::AtMaximum)) {
            return;
        }
        let vacant = self.shard.vacant_elsewhere().map(|(_, vacant)| vacant).sum();
        let Decision::Grow(mut count, _) = decide(&sizing.bounds.with_more(vacant), view) else {
            return;
        };
        sizing.last_grow_ms = Some(view.now_ms);
        for (at, vacant) in self.shard.vacant_elsewhere() {
            let part = count.min(vacant);
            count -= part;
            if part > 0 {
                self.shard.send(at, Message::Grow { count: part });
            }
        }
    }

    /// Another thread needs workers. Those that start already are counted.
    pub(in crate::pool) fn grow_for_others(&self, count: usize) {
        let may_fork = self.manager.borrow().may_fork(now_ms());
        if self.phase.get() != Phase::Serving || !may_fork {
            return;
        }
        let starting = {
            let members = self.members.borrow();
            let is_starting = |state| matches!(state, State::Forking | State::Booting);
            members.own().filter(|worker| is_starting(worker.state())).count()
        };
        for _ in 0..count.saturating_sub(starting).min(self.vacant()) {
            self.fork();
        }
        self.shard.publish_vacant(self.vacant());
        self.end_rest();
    }

    /// How many workers it may still fork.
    fn vacant(&self) -> usize {
        self.manager.borrow().sizing.bounds.max().saturating_sub(self.members.borrow().active())
    }
}
