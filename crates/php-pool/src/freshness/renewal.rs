//! The renewal of a retired snapshot: a pool is started on each thread, and all threads change to it together.
//!
//! One task per seat; that of the lead decides, and starts the first pool, whose zygote the others' are
//! siblings of. Invariants: one start is under way at a time; after the first change of a file it waits until
//! files have not changed for a moment; a start that fails changes nothing, and is tried again.

mod files;

use super::pace::Pace;
use super::seat::{PoolSeat, Renewing};
use super::{Cause, Freshness, LEAD};
use crate::pool::PoolShards;
use outboard_log::Level;
use outboard_reactor::{MailboxReceiver, Source, now_ms, sleep, spawn, with_deadline};
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

/// What the tasks of the seats tell each other.
#[derive(Debug)]
pub(super) enum Step {
    /// The snapshot was retired, or the seat.
    Retired,
    /// Other files are watched.
    Watched,
    /// To the others: start a pool.
    Begin { attempt: u64, shards: Arc<PoolShards> },
    /// To the lead: a pool is ready, or why it is not.
    Ready { attempt: u64, outcome: Result<(), String> },
    /// To the others: the snapshots up to this number are settled.
    Settle { number: u64, has_succeeded: bool },
}

/// Follows the steps of the other threads until the seat is retired.
pub(super) async fn follow(seat: Rc<PoolSeat>, steps: MailboxReceiver<Step>) {
    let Some(renewing) = seat.renewing() else { return };
    if renewing.thread == LEAD {
        let (pace, attempts) = (RefCell::default(), Cell::new(0));
        let lead =
            Lead { seat: &seat, renewing, steps, pace, attempts, outdated_in_a_row: Cell::new(0) };
        return lead.run().await;
    }
    while !is_over(renewing) {
        match steps.next().await {
            Step::Begin { attempt, shards } => {
                let (seat, freshness) = (seat.clone(), renewing.freshness.clone());
                spawn(async move {
                    let outcome = start(&seat, &shards).await;
                    freshness.send(LEAD, Step::Ready { attempt, outcome });
                });
            }
            Step::Settle { number, has_succeeded } => seat.settle(number, has_succeeded),
            Step::Retired | Step::Watched | Step::Ready { .. } => {}
        }
    }
}

/// Whether nothing needs a snapshot any more: the server ends or has a new generation, and no request is held on any
/// thread.
fn is_over(renewing: &Renewing) -> bool {
    renewing.retire_by_ms.get().is_some() && renewing.freshness.held() == 0
}

/// Starts a pool on this thread.
async fn start(seat: &PoolSeat, shards: &Arc<PoolShards>) -> Result<(), String> {
    let Some(pool) = seat.prepare(shards) else { return Ok(()) };
    pool.ready().await.map_err(|error| error.message)
}

struct Lead<'a> {
    seat: &'a Rc<PoolSeat>,
    renewing: &'a Renewing,
    steps: MailboxReceiver<Step>,
    pace: RefCell<Pace>,
    attempts: Cell<u64>,
    /// Starts that were out of date when they were complete.
    outdated_in_a_row: Cell<u32>,
}

impl Lead<'_> {
    async fn run(&self) {
        while let Some(cause) = self.next_cause().await {
            if matches!(cause, Cause::File(_)) && !self.are_files_complete().await {
                continue;
            }
            self.wait_for_pace(&cause).await;
            self.renew(&cause).await;
        }
        for thread in self.freshness().others() {
            self.freshness().send(thread, Step::Retired);
        }
    }

    fn freshness(&self) -> &Arc<Freshness> {
        &self.renewing.freshness
    }

    fn is_over(&self) -> bool {
        is_over(self.renewing)
    }

    /// Waits for a retirement; `None` at the end of the seat.
    async fn next_cause(&self) -> Option<Cause> {
        loop {
            self.watch_files().await;
            self.report();
            let events = self.events();
            while !self.has_news() {
                let retry_ms = self.pace.borrow().retry_ms();
                let compare_ms = self.has_compared().then(|| now_ms() + COMPARE_MS);
                let ignored_ms = self.freshness().state().noise.ends_ms();
                let until_ms = retry_ms.into_iter().chain(compare_ms).chain(ignored_ms).min();
                let until_ms = until_ms.unwrap_or(u64::MAX);
                if with_deadline(until_ms, self.woken(events.as_ref())).await.is_ok() {
                    continue;
                }
                if retry_ms.is_some_and(|at_ms| at_ms <= now_ms()) {
                    return Some(Cause::Retry);
                }
                self.freshness().check_ignored();
                self.compare().await;
            }
            if self.is_over() {
                return None;
            }
            if let Some(cause) = self.freshness().state().pending.clone() {
                return Some(cause);
            }
        }
    }

    /// Whether there is something to be done.
    fn has_news(&self) -> bool {
        let state = self.freshness().state();
        let has_list = state.reads.values().any(|read| read.list.is_some());
        let has_news = state.pending.is_some() || has_list || state.noise.has_news();
        drop(state);
        has_news || self.is_over()
    }

    /// Waits for a step or for events of files, which are handled.
    async fn woken(&self, events: Option<&Source>) {
        let has_events = poll_fn(|context| {
            if self.steps.poll_next(context).is_ready() {
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
        let (at_ms, begins) = self.pace.borrow_mut().next_ms(now_ms());
        if begins {
            self.log(
                Level::Warn,
                &format!(
                    "snapshots are retired all the time, last because of {cause}: from now on one is started \
                     every second at most, and requests wait for it"
                ),
            );
        }
        sleep(at_ms.saturating_sub(now_ms())).await;
        while self.seat.leaving() >= LEAVING_MAX && !self.is_over() {
            sleep(CHECK_MS).await;
        }
    }

    /// Starts a pool on each thread, and changes to them.
    async fn renew(&self, cause: &Cause) {
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
                let text = format!("a new snapshot serves after {took_ms} ms: {cause}");
                self.log(Level::Info, &text);
            }
            // It was given up, because the server ends or is reloaded.
            Err(_) if self.is_over() => self.settle(number, false),
            Err(why) => {
                self.freshness().set_failed(candidate);
                self.settle(number, false);
                let text = format!(
                    "the retired snapshot ({cause}) goes on serving, since no new one starts: {why}"
                );
                self.log(Level::Error, &text);
            }
        }
        if let Some(outdated) = outdated {
            self.freshness().retire_again(outdated);
        }
    }

    async fn start_all(&self) -> Result<(), String> {
        let freshness = self.freshness();
        let shards = PoolShards::new(freshness.threads());
        self.attempts.update(|attempt| attempt + 1);
        let attempt = self.attempts.get();
        let are_told = freshness
            .others()
            .all(|thread| freshness.send(thread, Step::Begin { attempt, shards: shards.clone() }));
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
        // The first one has told by now what is to be known of the others' time.
        let until_ms = now_ms() + self.seat.pool().start_timeout_ms();
        let mut missing = self.freshness().others().count();
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

    fn settle(&self, number: u64, has_succeeded: bool) {
        let freshness = self.freshness();
        for thread in freshness.others() {
            freshness.send(thread, Step::Settle { number, has_succeeded });
        }
        self.seat.settle(number, has_succeeded);
    }

    /// Logs what is to be known of the watch.
    fn report(&self) {
        let news = self.freshness().state().noise.take_news();
        for path in news {
            let text = format!(
                "{} changes all the time, although the start of the script reads it: for ten minutes it retires \
                 no snapshot",
                path.display()
            );
            self.log(Level::Warn, &text);
        }
    }

    fn log(&self, level: Level, text: &str) {
        self.seat.pool().log_note(level, text);
    }
}
