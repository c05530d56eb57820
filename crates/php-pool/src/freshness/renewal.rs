//! The renewal of a retired snapshot: a pool is started on each thread, and all threads change to it together.
//!
//! One task per seat; that of the lead decides, and starts the first pool, whose zygote the others' are
//! siblings of. Invariants: one start is under way at a time; after the first change of a file it waits until
//! files have not changed for a moment; a start that fails changes nothing, and is tried again.

use super::file_watch::{FileWatch, first_differing};
use super::pace::Pace;
use super::seat::{PoolSeat, Renewing};
use super::{Cause, Freshness, LEAD};
use crate::pool::PoolShards;
use outboard_log::Level;
use outboard_reactor::{
    Interest, MailboxReceiver, Source, blocking, now_ms, sleep, spawn, with_deadline,
};
use std::cell::{Cell, RefCell};
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

/// Events of files are handled no more often than this without requests.
const EVENTS_PAUSE_MS: u64 = 20;

/// So often in a row requests wait for the next start, since something has changed during the last one. A start
/// may change what it has read itself.
const OUTDATED_MAX: u32 = 2;

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
        let (pace, outdated_in_a_row) = (RefCell::default(), Cell::new(0));
        return Lead { seat: &seat, renewing, steps, pace, outdated_in_a_row }.run().await;
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
            self.watch_files().await;
            self.report();
            let events = self.events();
            while !self.has_news() {
                let retry_ms = self.pace.borrow().retry_ms();
                let compare_ms = self.has_compared().then(|| now_ms() + COMPARE_MS);
                let until_ms = retry_ms.into_iter().chain(compare_ms).min().unwrap_or(u64::MAX);
                if with_deadline(until_ms, self.woken(events.as_ref())).await.is_ok() {
                    continue;
                }
                if retry_ms.is_some_and(|at_ms| at_ms <= now_ms()) {
                    return Some(Cause::Retry);
                }
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

    /// Watches the files of starts that have been reported.
    async fn watch_files(&self) {
        loop {
            let next = {
                let mut state = self.freshness().state();
                state.reads.iter_mut().find_map(|(pool, read)| Some((*pool, read.list.take()?)))
            };
            let Some((pool, list)) = next else { return };
            match blocking(move || FileWatch::begin(list)).await {
                Ok((files, changed)) => {
                    self.report_files(&files);
                    self.freshness().watched(pool, files, changed);
                }
                Err(error) => {
                    self.log(Level::Error, &format!("changes of files are not noticed: {error}"));
                }
            }
        }
    }

    fn report_files(&self, files: &FileWatch) {
        let (all, compared, unseen) = (files.count(), files.compared().len(), files.unseen());
        if compared > 0 {
            let text = format!(
                "the kernel does not report changes of {compared} of the {all} files that the start of the script \
                 has read, so they are compared every two seconds: is fs.inotify.max_user_watches too small?"
            );
            self.log(Level::Warn, &text);
        }
        if unseen > 0 {
            let text = format!(
                "changes of {unseen} of the {all} files that the start of the script has read are not noticed, \
                 since the user of the server cannot see them"
            );
            self.log(Level::Warn, &text);
        }
    }

    /// The events of the present watch, by a descriptor of its own.
    fn events(&self) -> Option<Source> {
        let events = {
            let state = self.freshness().state();
            let files = state.current_read()?.files.as_ref()?;
            files.events()?.try_clone().ok()?
        };
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
            let is_over =
                is_overdue || now_ms() >= last_ms + LONG_QUIET_MS || state.pending.is_some();
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
        let (number, began_ms) = (self.freshness().begin_boot(), now_ms());
        let outcome = self.start_all(number).await;
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
