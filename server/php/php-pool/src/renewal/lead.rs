//! [`Lead`]: decides when a retired snapshot is replaced, and has it done.
//!
//! The task of the first thread's seat. Invariants: one start is under way at a time; after the first change of a
//! file it waits until files have not changed for a moment; a start that fails changes nothing, and is tried
//! again.

use super::pace::Pace;
use super::seat::{PoolSeat, Renewing};
use super::{Step, is_over, start};
use crate::freshness::{Cause, Freshness};
use crate::pool::PoolShards;
use outboard_log::Level;
use outboard_reactor::{MailboxReceiver, Source, now_ms, sleep, with_deadline};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// The interval of checks whether a condition still holds.
const CHECK_MS: u64 = 100;
/// The interval of comparisons of files whose changes the kernel does not report.
const COMPARE_MS: u64 = 2_000;

/// Events of files are handled no more often than this without requests.
const EVENTS_PAUSE_MS: u64 = 20;

/// So often in a row requests wait for the next start, since something has changed during the last one. A start
/// may change what it has read itself.
const OUTDATED_MAX: u32 = 2;

/// Pools that finish their requests while others have replaced them. With more, the next one waits.
const LEAVING_MAX: usize = 8;

/// See the module.
pub(super) struct Lead<'a> {
    seat: &'a Rc<PoolSeat>,
    renewing: &'a Renewing,
    steps: MailboxReceiver<Step>,
    news: MailboxReceiver<()>,
    pace: RefCell<Pace>,
    attempts: Cell<u64>,
    /// Starts that were out of date when they were complete.
    outdated_in_a_row: Cell<u32>,
}

impl<'a> Lead<'a> {
    pub(super) fn new(
        seat: &'a Rc<PoolSeat>,
        renewing: &'a Renewing,
        steps: MailboxReceiver<Step>,
        news: MailboxReceiver<()>,
    ) -> Self {
        let (pace, attempts, outdated_in_a_row) = (RefCell::default(), Cell::new(0), Cell::new(0));
        Self { seat, renewing, steps, news, pace, attempts, outdated_in_a_row }
    }
}

impl Lead<'_> {
    /// Until the seat is retired.
    pub(super) async fn run(&self) {
        while let Some(cause) = self.next_cause().await {
            if matches!(cause, Cause::File(_)) && !self.are_files_complete().await {
                continue;
            }
            self.wait_for_pace(&cause).await;
            self.renew(&cause).await;
        }
        self.tell_others(|| Step::Retired);
    }

    pub(super) fn freshness(&self) -> &Arc<Freshness> {
        self.renewing.freshness()
    }

    /// False if one of them is gone.
    fn tell_others(&self, step: impl Fn() -> Step) -> bool {
        let shared = &self.renewing.shared;
        // All get it, even if one of them does not.
        shared.others().filter(|thread| !shared.send(*thread, step())).count() == 0
    }

    pub(super) fn is_over(&self) -> bool {
        is_over(self.renewing)
    }

    /// Waits for a retirement; `None` at the end of the seat.
    async fn next_cause(&self) -> Option<Cause> {
        loop {
            self.watch_files().await;
            self.release();
            let events = self.events();
            while !self.has_news() {
                let retry_ms = self.pace.borrow().retry_ms();
                let compare_ms = self.has_compared().then(|| now_ms() + COMPARE_MS);
                let age_ms = self.freshness().ages_at_ms();
                let until_ms = retry_ms.into_iter().chain(compare_ms).chain(age_ms).min();
                let until_ms = until_ms.unwrap_or(u64::MAX);
                if with_deadline(until_ms, self.woken(events.as_ref())).await.is_ok() {
                    continue;
                }
                if retry_ms.is_some_and(|at_ms| at_ms <= now_ms()) {
                    return Some(Cause::Retry);
                }
                if age_ms.is_some_and(|at_ms| at_ms <= now_ms()) {
                    return Some(Cause::Age);
                }
                self.compare().await;
            }
            if self.is_over() {
                return None;
            }
            if let Some(cause) = self.freshness().pending() {
                return Some(cause);
            }
        }
    }

    /// Whether there is something to be done.
    fn has_news(&self) -> bool {
        self.freshness().has_news() || self.is_over()
    }

    /// Waits for a step or for events of files, which are handled.
    async fn woken(&self, events: Option<&Source>) {
        let has_events = poll_fn(|context| {
            let step = self.steps.poll_next(context).map(drop);
            if step.is_ready() || self.news.poll_next(context).is_ready() {
                return Poll::Ready(false);
            }
            events.map_or(Poll::Pending, Source::poll_readable).map(|()| true)
        });
        if has_events.await {
            events.iter().for_each(|events| events.clear_readable());
            self.freshness().check_files();
            // Files that do not matter may change all the time, and requests check by themselves.
            sleep(EVENTS_PAUSE_MS).await;
        }
    }

    async fn wait_for_pace(&self, cause: &Cause) {
        let began_ms = now_ms();
        let (at_ms, begins) = self.pace.borrow_mut().next_ms(began_ms);
        if begins {
            self.log(
                Level::Warn,
                &format!(
                    "snapshots are retired all the time, last because of {cause}: from now on one is started \
                     every second at most, and until then there is none"
                ),
            );
        }
        sleep(at_ms.saturating_sub(now_ms())).await;
        if matches!(cause, Cause::File(_)) && at_ms > began_ms {
            self.wait_for_rest().await;
        }
        while self.seat.leaving() >= LEAVING_MAX && !self.is_over() {
            sleep(CHECK_MS).await;
        }
    }

    /// Starts a pool on each thread, and changes to them.
    async fn renew(&self, cause: &Cause) {
        debug_assert!(self.seat.candidate().is_none(), "a start is under way");
        let (number, began_ms) = (self.freshness().begin_boot(), now_ms());
        let outcome = self.start_all().await;
        self.watch_files().await;
        let candidate = self.seat.candidate();
        let outdated = self.freshness().end_boot(candidate);
        self.pace.borrow_mut().ended(began_ms, now_ms(), outcome.is_ok());
        let is_tried_again = outdated.is_some() && self.outdated_in_a_row.get() < OUTDATED_MAX;
        self.outdated_in_a_row.update(|count| if outdated.is_some() { count + 1 } else { 0 });
        match outcome {
            // Requests go on waiting, for the next.
            Ok(()) if is_tried_again => self.settle(0, false),
            Ok(()) => {
                self.freshness().set_current(candidate);
                self.settle(number, true);
                let took_ms = now_ms() - began_ms;
                let level = if *cause == Cause::Age { Level::Debug } else { Level::Info };
                self.log(level, &format!("a new snapshot serves after {took_ms} ms: {cause}"));
            }
            // It was given up, because the server ends or is reloaded.
            Err(_) if self.is_over() => self.settle(number, false),
            Err(why) => {
                self.freshness().set_failed(candidate);
                self.settle(number, false);
                let instead = match self.seat.pool().settings().boots_classic_script() {
                    true => "requests are handled in classic mode",
                    false => "the retired one goes on serving",
                };
                let text = format!("no new snapshot starts ({cause}), so {instead}: {why}");
                self.log(Level::Error, &text);
            }
        }
        if let Some(outdated) = outdated {
            self.freshness().retire_again(outdated);
        }
    }

    async fn start_all(&self) -> Result<(), String> {
        let shards = PoolShards::new(self.renewing.shared.threads());
        self.attempts.update(|attempt| attempt + 1);
        let attempt = self.attempts.get();
        let are_told = self.tell_others(|| Step::Begin { attempt, shards: shards.clone() });
        let outcome = match are_told {
            true => self.all_ready(attempt, &shards).await,
            false => Err("a thread of the server has ended".to_owned()),
        };
        if outcome.is_err() {
            shards.give_up();
        }
        outcome
    }

    /// Waits until the pools of all threads are ready.
    async fn all_ready(&self, attempt: u64, shards: &Arc<PoolShards>) -> Result<(), String> {
        start(self.seat, shards).await?;
        // Theirs are forks of the first one, which has booted.
        let until_ms = now_ms() + self.seat.pool().settings().start_timeout_ms;
        let mut missing = self.renewing.shared.others().count();
        while missing > 0 {
            let step = with_deadline(until_ms, self.steps.next()).await;
            match step.map_err(|_| "a thread of the server does not respond")? {
                Step::Ready { attempt: of, outcome } if of == attempt => {
                    outcome?;
                    missing -= 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn settle(&self, number: u64, has_succeeded: bool) {
        self.tell_others(|| Step::Settle { number, has_succeeded });
        self.seat.settle(number, has_succeeded);
    }

    /// Requests that wait until files are watched need not any more.
    fn release(&self) {
        self.tell_others(|| Step::Watched);
        self.seat.watched();
    }

    pub(super) fn log(&self, level: Level, text: &str) {
        self.seat.pool().log_note(level, text);
    }
}
