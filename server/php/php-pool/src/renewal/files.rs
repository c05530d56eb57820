//! The files of the snapshot, for its renewal: they are watched, compared, and waited for.
//!
//! Called by the lead. Invariant: no start begins while files change, unless something else requires one.

use super::lead::Lead;
use crate::freshness::Cause;
use crate::freshness::file_watch::{FileWatch, first_differing};
use outboard_log::Level;
use outboard_reactor::{Interest, Source, blocking, now_ms, sleep};

/// Files have not changed for so long when a snapshot is started.
const QUIET_MS: u64 = 50;
/// Requests wait for that no longer than this: then the present snapshot serves until files have not changed for
/// [`LONG_QUIET_MS`], as at the end of a deployment.
const CHANGING_MAX_MS: u64 = 1_000;
const LONG_QUIET_MS: u64 = 500;
/// Nor is a start delayed any longer than this.
const DEPLOYMENT_MAX_MS: u64 = 120_000;
const CHECK_MS: u64 = 100;
/// After many changes files have not changed for so long.
const REST_MS: u64 = 2_000;
const _: () = assert!(QUIET_MS < CHANGING_MAX_MS, "no start would wait for files");
const _: () =
    assert!(QUIET_MS < LONG_QUIET_MS && LONG_QUIET_MS < REST_MS, "longer changes wait longer");
const _: () = assert!(CHECK_MS < LONG_QUIET_MS && REST_MS < DEPLOYMENT_MAX_MS);

impl Lead<'_> {
    /// Watches the files of starts that have been reported.
    pub(super) async fn watch_files(&self) {
        loop {
            let Some((pool, list)) = self.freshness().take_list() else { return };
            match blocking(move || FileWatch::begin(list)).await {
                Ok((files, changed)) => {
                    self.report_files(&files);
                    self.freshness().watched(pool, files, changed);
                }
                Err(error) => {
                    self.freshness().is_not_watched(pool);
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
                 has read, so they are compared every two seconds, and in classic mode it is not used: is \
                 fs.inotify.max_user_watches too small?"
            );
            self.log(Level::Warn, &text);
        }
        if unseen > 0 {
            let text = format!(
                "changes of {unseen} of the {all} files that the start of the script has read are not noticed, \
                 since the user of the server cannot see them; in classic mode it is not used"
            );
            self.log(Level::Warn, &text);
        }
    }

    /// The events of the present watch, by a descriptor of its own.
    pub(super) fn events(&self) -> Option<Source> {
        let events = self.freshness().events()?.try_clone().ok()?;
        Source::new(events, Interest::Read).ok()
    }

    pub(super) fn has_compared(&self) -> bool {
        self.freshness().compared().is_some_and(|(_, files)| !files.is_empty())
    }

    /// Compares files whose changes the kernel does not report.
    pub(super) async fn compare(&self) {
        let Some((pool, files)) = self.freshness().compared() else { return };
        let differing = blocking(move || first_differing(&files)).await;
        if let Some(path) = differing {
            self.freshness().files_differ(pool, path);
        }
    }

    /// Waits until files have not changed for a moment. False if they changed for so long that the present
    /// snapshot served meanwhile; their cause is pending again, or another one.
    pub(super) async fn are_files_complete(&self) -> bool {
        if self.is_quiet().await {
            return true;
        }
        let Some(number) = self.freshness().begin_deployment() else { return true };
        self.settle(number, false);
        self.log(
            Level::Info,
            "files that the snapshot was made of change for longer than a second: it serves until they are \
             complete",
        );
        let begun_ms = now_ms();
        loop {
            sleep(CHECK_MS).await;
            self.freshness().check_files();
            let is_overdue = now_ms() >= begun_ms + DEPLOYMENT_MAX_MS;
            let is_over = is_overdue || self.is_over();
            if self.freshness().end_deployment(LONG_QUIET_MS, is_over) {
                return is_overdue;
            }
        }
    }

    /// Files change all the time: unless requests wait for a start, there is none until that ends.
    pub(super) async fn wait_for_rest(&self) {
        self.freshness().note_file_changes(true);
        let is_busy = || now_ms() < self.freshness().last_file_change_ms() + REST_MS;
        let is_file = || matches!(self.freshness().pending(), Some(Cause::File(_)));
        while is_busy() && is_file() && self.freshness().held() == 0 && !self.is_over() {
            sleep(CHECK_MS).await;
            self.freshness().check_files();
        }
        self.freshness().note_file_changes(false);
    }

    /// Waits until no file has changed for a moment, or the snapshot is retired for another reason, for which
    /// nothing is waited for. False if files change for long.
    async fn is_quiet(&self) -> bool {
        let begun_ms = now_ms();
        self.freshness().note_file_changes(true);
        let is_quiet = loop {
            sleep(QUIET_MS / 2).await;
            self.freshness().check_files();
            let last_ms = self.freshness().last_file_change_ms();
            let is_file = matches!(self.freshness().pending(), Some(Cause::File(_)));
            if now_ms() >= last_ms + QUIET_MS || !is_file {
                break true;
            }
            if now_ms() >= begun_ms + CHANGING_MAX_MS {
                break false;
            }
        };
        self.freshness().note_file_changes(false);
        is_quiet
    }
}
