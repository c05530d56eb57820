//! The renewal of a retired snapshot: a pool is started on each thread, and all threads change to it together.
//!
//! One task per seat; that of the lead decides, and starts the first pool, whose zygote the others' are
//! siblings of. Invariants: one start is under way at a time; after the first change of a file it waits until
//! files have not changed for a moment; a start that fails changes nothing, and is tried again.

use super::file_watch::first_differing;
use super::pace::Pace;
use super::seat::{PoolSeat, Renewing};
use super::{Cause, Freshness, LEAD};
use crate::pool::PoolShards;
use outboard_log::Level;
use outboard_reactor::{
    Interest, MailboxReceiver, Source, blocking, now_ms, sleep, spawn, with_deadline,
};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// Files have not changed for so long when a snapshot is started.
const QUIET_MS: u64 = 50;
/// Requests wait for that no longer than this: then the present snapshot serves until files have not changed for
/// [`LONG_QUIET_MS`], as at the end of a deployment.
const CHANGING_MAX_MS: u64 = 1_000;
const LONG_QUIET_MS: u64 = 500;
/// Nor is a start delayed any longer than this.
const DEPLOYMENT_MAX_MS: u64 = 120_000;
const CHECK_MS: u64 = 100;
/// The interval of comparisons of files whose changes the kernel does not report.
const COMPARE_MS: u64 = 2_000;

/// What the tasks of the seats tell each other.
#[derive(Debug)]
pub(super) enum Step {
    /// The snapshot was retired, or the seat.
    Retired,
    /// Other files are watched.
    Watched,
    /// To the others: start a pool.
    Begin { number: u64, shards: Arc<PoolShards> },
    /// To the lead: a pool is ready, or why it is not.
    Ready { number: u64, outcome: Result<(), String> },
    /// To the others: the snapshots up to this number are settled.
    Settle { number: u64, has_succeeded: bool },
}

/// Follows the steps of the other threads until the seat is retired.
pub(super) async fn follow(seat: Rc<PoolSeat>, steps: MailboxReceiver<Step>) {
    let Some(renewing) = seat.renewing() else { return };
    if renewing.thread == LEAD {
        return Lead { seat: &seat, renewing, steps, pace: RefCell::default() }.run().await;
    }
    while !renewing.is_over() {
        match steps.next().await {
            Step::Begin { number, shards } => {
                let (seat, freshness) = (seat.clone(), renewing.freshness.clone());
                spawn(async move {
                    let outcome = start(&seat, &shards).await;
                    freshness.send(LEAD, Step::Ready { number, outcome });
                });
            }
            Step::Settle { number, has_succeeded } => seat.settle(number, has_succeeded),
            Step::Retired | Step::Watched | Step::Ready { .. } => {}
        }
    }
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
        let freshness = self.freshness();
        for thread in (0..freshness.threads()).filter(|thread| *thread != LEAD) {
            freshness.send(thread, Step::Retired);
        }
    }

    fn freshness(&self) -> &Arc<Freshness> {
        &self.renewing.freshness
    }

    /// Whether all seats are retired, and no request is held.
    fn is_over(&self) -> bool {
        use std::sync::atomic::Ordering;
        self.renewing.retire_by_ms.get().is_some()
            && self.freshness().held.load(Ordering::Relaxed) == 0
    }

    /// Waits for a retirement; `None` at the end of the seat.
    async fn next_cause(&self) -> Option<Cause> {
        loop {
            self.report();
            let events = self.events();
            let retry_ms = self.pace.borrow().retry_ms();
            let compare_ms = self.has_compared().then(|| now_ms() + COMPARE_MS);
            let until_ms = retry_ms.into_iter().chain(compare_ms).min().unwrap_or(u64::MAX);
            let woken = poll_fn(|context| {
                if self.is_over() || self.freshness().state().pending.is_some() {
                    return Poll::Ready(());
                }
                let step = self.steps.poll_next(context).map(drop);
                let event = events.as_ref().map_or(Poll::Pending, Source::poll_readable);
                if event.is_ready() {
                    self.freshness().check_files();
                    events.iter().for_each(Source::clear_readable);
                }
                if event.is_ready() { event } else { step }
            });
            let is_late = with_deadline(until_ms, woken).await.is_err();
            if self.is_over() {
                return None;
            }
            if let Some(cause) = self.freshness().state().pending.clone() {
                return Some(cause);
            }
            if is_late && retry_ms.is_some_and(|at_ms| at_ms <= now_ms()) {
                return Some(Cause::Retry);
            }
            if is_late {
                self.compare().await;
            }
        }
    }

    /// The events of the present watch. A descriptor of its own: it is closed with this.
    fn events(&self) -> Option<Source> {
        let state = self.freshness().state();
        let files = state.current_read()?.files.as_ref()?;
        // Without directories it is no inotify instance.
        let events = (files.directories() > 0).then(|| files.events().try_clone().ok())??;
        drop(state);
        Source::new(events, Interest::Read).ok()
    }

    fn has_compared(&self) -> bool {
        let state = self.freshness().state();
        let files = state.current_read().and_then(|read| read.files.as_ref());
        files.is_some_and(|files| !files.compared().is_empty())
    }

    /// Compares files whose changes the kernel does not report.
    async fn compare(&self) {
        let (current, files) = {
            let state = self.freshness().state();
            let files = state.current_read().and_then(|read| read.files.as_ref());
            let Some(files) = files else { return };
            (state.current, files.compared().clone())
        };
        let differing = blocking(move || first_differing(&files)).await;
        if let Some(path) = differing
            && self.freshness().state().current == current
        {
            self.freshness().files_differ(path);
        }
    }

    /// Waits until files have not changed for a moment. False if they changed for so long that the present
    /// snapshot served meanwhile; their cause is pending again.
    async fn are_files_complete(&self) -> bool {
        if self.is_quiet(QUIET_MS, CHANGING_MAX_MS).await {
            return true;
        }
        self.log(
            Level::Info,
            "files that the snapshot was made of change for longer than a second: it serves until they are \
             complete",
        );
        let number = self.begin_deployment();
        self.settle(number, false);
        let begun_ms = now_ms();
        loop {
            sleep(CHECK_MS).await;
            self.freshness().check_files();
            let mut state = self.freshness().state();
            let is_overdue = now_ms() >= begun_ms + DEPLOYMENT_MAX_MS;
            let last_ms = state.files_changed_ms.unwrap_or_default();
            let is_over = is_overdue || now_ms() >= last_ms + LONG_QUIET_MS || state.pending.is_some();
            if !is_over && !self.is_over() {
                continue;
            }
            state.files_changed_ms = None;
            let last = state.last.as_ref().map(|(cause, _)| cause.clone());
            let retired = state.retired;
            self.freshness().raise(&mut state, last.unwrap_or(Cause::Retry));
            // It is the same retirement.
            state.retired = retired;
            return is_overdue;
        }
    }

    /// Nothing is wanted until the files are complete.
    fn begin_deployment(&self) -> u64 {
        let mut state = self.freshness().state();
        state.files_changed_ms = Some(now_ms());
        state.pending = None;
        self.freshness().wanted.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Waits until no file has changed for `quiet_ms`; false after `max_ms`.
    async fn is_quiet(&self, quiet_ms: u64, max_ms: u64) -> bool {
        let begun_ms = now_ms();
        self.freshness().state().files_changed_ms = Some(begun_ms);
        let is_quiet = loop {
            sleep(quiet_ms / 2).await;
            self.freshness().check_files();
            let last_ms = self.freshness().state().files_changed_ms.unwrap_or_default();
            if now_ms() >= last_ms + quiet_ms {
                break true;
            }
            if now_ms() >= begun_ms + max_ms {
                break false;
            }
        };
        self.freshness().state().files_changed_ms = None;
        is_quiet
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
    }

    /// Starts a pool on each thread, and changes to them.
    async fn renew(&self, cause: &Cause) {
        let (freshness, began_ms) = (self.freshness(), now_ms());
        let number = {
            let mut state = freshness.state();
            state.pending = None;
            state.is_booting = true;
            state.noted_keys.clear();
            freshness.wanted.load(std::sync::atomic::Ordering::SeqCst)
        };
        let outcome = self.start_all(number).await;
        let (pool, is_outdated) = {
            let mut state = freshness.state();
            state.is_booting = false;
            (self.seat.candidate(), self.is_outdated(&mut state))
        };
        self.pace.borrow_mut().ended(began_ms, now_ms(), outcome.is_ok());
        match outcome {
            // Data have changed while it started, of which it was not known that it reads them. Requests go on
            // waiting for the next.
            Ok(()) if is_outdated => {
                let mut state = freshness.state();
                freshness.raise(&mut state, cause.clone());
                drop(state);
                self.settle(0, false);
            }
            Ok(()) => {
                {
                    let mut state = freshness.state();
                    state.current = pool.or(state.current);
                    state.failed = None;
                    let current = state.current;
                    state.reads.retain(|pool, _| Some(*pool) == current);
                }
                self.settle(number, true);
                let took_ms = now_ms() - began_ms;
                self.log(Level::Info, &format!("a new snapshot serves after {took_ms} ms: {cause}"));
            }
            Err(why) => {
                {
                    let mut state = freshness.state();
                    state.failures += 1;
                    state.failed = pool;
                    let kept = [state.current, pool];
                    state.reads.retain(|pool, _| kept.contains(&Some(*pool)));
                }
                self.settle(number, false);
                self.log(
                    Level::Error,
                    &format!("the retired snapshot goes on serving, since no new one starts ({cause}): {why}"),
                );
            }
        }
    }

    /// Whether what was retired during the start is what it has read.
    fn is_outdated(&self, state: &mut super::State) -> bool {
        let noted = std::mem::take(&mut state.noted_keys);
        let read = self.seat.candidate().and_then(|pool| state.reads.get(&pool));
        read.is_some_and(|read| noted.iter().any(|key| read.keys.contains(key)))
    }

    async fn start_all(&self, number: u64) -> Result<(), String> {
        let freshness = self.freshness();
        let shards = PoolShards::new(freshness.threads());
        for thread in (0..freshness.threads()).filter(|thread| *thread != LEAD) {
            freshness.send(thread, Step::Begin { number, shards: shards.clone() });
        }
        let mut outcome = start(self.seat, &shards).await;
        let mut missing = freshness.threads() - 1;
        while missing > 0 && outcome.is_ok() {
            if let Step::Ready { number: of, outcome: other } = self.steps.next().await
                && of == number
            {
                outcome = other;
                missing -= 1;
            }
        }
        if outcome.is_err() {
            shards.give_up();
        }
        outcome
    }

    fn settle(&self, number: u64, has_succeeded: bool) {
        let freshness = self.freshness();
        for thread in (0..freshness.threads()).filter(|thread| *thread != LEAD) {
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
