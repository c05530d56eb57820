//! From requests to workers, and from their rings back.
//!
//! Called by the loop's idle hook, by connections that submit, and by the manager. Invariants: a
//! request waits only while no worker has room; whatever a worker has not started is given to
//! another when it leaves.

use super::budget::{Budget, Share};
use super::members::Members;
use super::worker::{Heard, More, News, Then, Worker};
use super::{Phase, Pool};
use crate::exchange::Exchange;
use outboard_log::Level;
use outboard_log::Reason;
use outboard_reactor::{contain, now_ms};
use outboard_ring::spsc::{Corrupt, Sleep};
use outboard_supervisor::plan::recycle;
use outboard_supervisor::worker::lifecycle::{LEAVING_GRACE_MS, State, Transition};
use std::rc::Rc;

impl Pool {
    /// Looks into the rings of all workers that could have news, within the budget. Returns whether
    /// any had, or has more.
    pub fn look(&self, budget: &mut Budget) -> bool {
        let had_news = self.has_asked() || self.look_at_all(budget);
        if self.said.take() {
            self.error_log.flush();
        }
        self.replace_used_forks();
        self.order_successors();
        self.begin_operations(budget);
        had_news
    }

    fn look_at_all(&self, budget: &mut Budget) -> bool {
        let mut members = self.members.borrow_mut();
        let (count, first) = (members.workers.len(), self.first_slot.get());
        let mut had_news = false;
        for turn in 0..count {
            let slot = if first + turn < count { first + turn } else { (first + turn) % count };
            had_news |= self.look_at(&mut members, slot, Share::LOOK, budget);
            if budget.is_spent() {
                self.first_slot.set(slot + 1);
                had_news = true;
                break;
            }
        }
        members.all_mut().for_each(Worker::ring_if_due);
        had_news
    }

    /// Announces to all workers that could have news that the gateway sleeps. For how many
    /// milliseconds it may; 0 when one has sent something meanwhile.
    pub fn prepare_sleep(&self) -> u64 {
        let mut members = self.members.borrow_mut();
        let mut most_ms = u64::MAX;
        for worker in members.all_mut().filter(|worker| worker.may_speak()) {
            match worker.prepare_sleep() {
                Ok(Sleep::Ready) => most_ms = 0,
                Ok(Sleep::MayBlock) if worker.ahead() > 0 => most_ms = most_ms.min(UNHEARD_MS),
                Ok(Sleep::MayBlock) => {}
                Err(corrupt) => self.condemn(worker, corrupt),
            }
        }
        most_ms
    }

    /// Takes the announcement back.
    pub fn cancel_sleep(&self) {
        self.members.borrow_mut().all_mut().for_each(Worker::cancel_sleep);
    }

    /// True as well when it has said more than its share.
    pub(super) fn look_at(
        &self,
        members: &mut Members,
        slot: usize,
        mut share: Share,
        budget: &mut Budget,
    ) -> bool {
        let mut had_news = false;
        while !share.is_spent() {
            let Some(worker) = members.workers[slot].as_mut() else { return had_news };
            if !worker.may_speak() {
                return had_news;
            }
            let count = |len| {
                share.count(len);
                budget.count(len);
                if share.is_spent() || budget.is_spent() { More::Later } else { More::Wanted }
            };
            match self.hear(worker, count) {
                Ok(Some(news)) => {
                    had_news = true;
                    if let Some(lease) = &news.finished {
                        self.finished(worker, lease);
                    }
                    self.act(members, slot, news.then);
                }
                Ok(None) => return had_news || share.is_spent(),
                Err(corrupt) => {
                    self.condemn(worker, corrupt);
                    members.settle(slot);
                    return true;
                }
            }
        }
        true
    }

    /// What a worker has said. Should that make us panic, it costs this worker and no other.
    fn hear(
        &self,
        worker: &mut Worker,
        count: impl FnMut(usize) -> More,
    ) -> Result<Option<News>, Corrupt> {
        let heard = contain(|| {
            worker.pump()?;
            let scratch = &mut self.scratch.borrow_mut();
            worker.look(scratch, now_ms(), count, |worker, tag, heard| match heard {
                Heard::Line(line) => self.log(worker, tag, line),
                Heard::Operation(payload) => self.ask(worker, tag, payload),
            })
        });
        heard.unwrap_or(Err(PANICKED))
    }

    /// What follows from a worker's news.
    fn act(&self, members: &mut Members, slot: usize, then: Then) {
        match then {
            Then::Free => {
                if self.phase.get() != Phase::Retiring {
                    self.manager.borrow_mut().worked();
                }
                self.phase_changed.set();
                self.give_work(members, slot);
            }
            Then::Leaving => {
                if self.settings.forks_per_request() {
                    self.manager.borrow_mut().worked();
                    self.used_forks.set(self.used_forks.get() + 1);
                }
                members.settle(slot);
                let Some(worker) = members.workers[slot].as_mut() else { return };
                let unstarted = worker.withdraw_unstarted(now_ms());
                self.serve_again(members, unstarted);
            }
        }
    }

    /// Gives a request to a worker with room.
    pub(super) fn begin(&self, members: &mut Members, slot: usize, exchange: Rc<Exchange>) {
        if let Err(corrupt) = members.begin(slot, exchange, self.run_from(now_ms())) {
            if let Some(worker) = members.workers[slot].as_mut() {
                self.condemn(worker, corrupt);
            }
            members.settle(slot);
        }
    }

    /// Has a worker with room go on with what lies ahead, or gives it what waits, or lets it idle,
    /// or sees it off.
    pub(super) fn give_work(&self, members: &mut Members, slot: usize) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        let went_on = worker.ahead() > 0 && worker.go_on(self.run_from(now_ms()));
        if !went_on && self.should_leave(members, slot) {
            if let Some(worker) = members.workers[slot].as_mut() {
                self.see_off(worker);
            }
            return members.settle(slot);
        }
        if !went_on && self.is_beyond_maximum(members) {
            return self.serve_own(members, slot);
        }
        while members.workers[slot].as_ref().is_some_and(Worker::has_room) {
            let Some(exchange) = members.next_waiting() else { break };
            self.begin(members, slot, exchange);
        }
        members.settle(slot);
        self.fill_ahead(members, slot);
    }

    /// Whether a worker is there for requests of our own workers alone.
    fn is_beyond_maximum(&self, members: &Members) -> bool {
        let max = self.manager.borrow().sizing.bounds.max() + self.successors();
        // Seldom are there so many slots, and then they are counted.
        members.workers.len() > max && members.staying() > max
    }

    /// Gives a worker beyond the maximum a request that another worker waits for; it leaves when
    /// there is none. Were it given another's, that could wait for a worker in turn.
    fn serve_own(&self, members: &mut Members, slot: usize) {
        match members.next_own() {
            Some(exchange) => self.begin(members, slot, exchange),
            None => {
                if let Some(worker) = members.workers[slot].as_mut() {
                    self.see_off(worker);
                }
                members.settle(slot);
            }
        }
    }

    /// Puts a request ahead in the ring of the quick worker that has fewest there.
    pub(super) fn lead(&self, members: &mut Members, exchange: &Rc<Exchange>) -> bool {
        if !exchange.body.borrow().is_spent() {
            return false;
        }
        let quick = members.all_mut().filter(|worker| worker.can_lead());
        let Some(worker) = quick.min_by_key(|worker| worker.ahead()) else { return false };
        if let Err(corrupt) = worker.lead(exchange.clone()) {
            self.condemn(worker, corrupt);
        }
        true
    }

    /// Moves waiting requests ahead into a quick worker's ring.
    fn fill_ahead(&self, members: &mut Members, slot: usize) {
        if self.phase.get() == Phase::Retiring {
            return;
        }
        while members.workers[slot].as_ref().is_some_and(Worker::can_lead) {
            let Some(exchange) = members.next_waiting() else { return };
            if !exchange.body.borrow().is_spent() {
                return members.wait_again(vec![exchange]);
            }
            let Some(worker) = members.workers[slot].as_mut() else { return };
            if let Err(corrupt) = worker.lead(exchange) {
                self.condemn(worker, corrupt);
            }
        }
    }

    /// What lies ahead of a worker that will not come to it soon goes to others.
    pub(super) fn redistribute(&self, members: &mut Members, slot: usize) {
        let Some(worker) = members.workers[slot].as_mut() else { return };
        let withdrawn = worker.withdraw_ahead(now_ms());
        self.serve_again(members, withdrawn);
    }

    /// Requests that were taken back go to others, before those that wait.
    pub(super) fn serve_again(&self, members: &mut Members, exchanges: Vec<Rc<Exchange>>) {
        members.wait_again(exchanges);
        while !members.queue.is_empty() {
            let Some(slot) = members.pick() else { return };
            let Some(exchange) = members.next_waiting() else { return };
            self.begin(members, slot, exchange);
        }
    }

    /// Whether a worker is to be replaced, or not needed any more.
    pub(super) fn should_leave(&self, members: &Members, slot: usize) -> bool {
        if self.phase.get() == Phase::Retiring && self.may_retire(members, slot) {
            return true;
        }
        let Some(worker) = members.workers[slot].as_ref() else { return false };
        let Some(reason) = self.manager.borrow().sizing.due(worker) else { return false };
        if !self.has_successor(members, worker) {
            return false;
        }
        let all = members.all();
        let away =
            all.clone().filter(|worker| !matches!(worker.state(), State::Idle | State::Busy));
        if away.count() >= recycle::max_unavailable(all.count()) {
            return false;
        }
        self.counters.borrow_mut().recycled += 1;
        let text = format!("a worker is replaced: {reason}");
        self.say_of(worker, Level::Debug, &text);
        true
    }

    /// Tells a worker to leave, once what it has is over.
    pub(super) fn see_off(&self, worker: &mut Worker) {
        let longest_ms = if worker.in_flight() > 0 { self.settings.deadline_ms } else { 0 };
        let until_ms = now_ms().saturating_add(longest_ms).saturating_add(LEAVING_GRACE_MS);
        if worker.process.drain(until_ms).is_err() {
            self.kill(worker);
        }
    }

    /// A worker that broke the protocol is not talked to any more. What it has is failed, or given
    /// to others, when its exit is reported.
    pub(super) fn condemn(&self, worker: &mut Worker, corrupt: Corrupt) {
        self.report(worker, Reason::WorkerProtocolError, &corrupt.to_string());
        worker.give_up();
        self.kill(worker);
    }

    pub(super) fn kill(&self, worker: &mut Worker) {
        if worker.process.lifecycle.kill() == Transition::Applied {
            worker.killed_ms = Some(now_ms());
            self.signal(worker.process.number, SIGKILL);
        }
    }

    pub(super) fn signal(&self, worker: u64, signal: i32) {
        if let Some(zygote) = self.zygote.borrow().as_ref()
            && let Err(error) = zygote.signal(worker, signal)
        {
            self.error_log.note(Level::Error, &format!("cannot signal a worker: {error}"));
        }
    }
}

/// What is said of a worker whose words made the gateway panic.
pub(super) const PANICKED: Corrupt =
    Corrupt { what: "what it said made the gateway panic, which standard error tells of" };

/// A worker for which requests lie ahead does not ring for each answer (`Link::publish_answer` of the
/// host). Should the next request take long, the answers before it wait no longer than this.
const UNHEARD_MS: u64 = 1;

/// Fixed by Linux on every architecture.
const SIGKILL: i32 = 9;
