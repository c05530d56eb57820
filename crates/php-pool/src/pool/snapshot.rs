//! What a pool tells and knows of its snapshot: the memory of a booted script, of which its workers are forks.
//!
//! Called by the manager for the zygote's report, and by the [seat](crate::freshness::seat) of the pool.

use super::Pool;
use crate::freshness::file_watch::FileWatch;
use crate::freshness::{BootRead, Freshness};
use outboard_admin_api::status as api;
use outboard_log::Level;
use rustix::fd::OwnedFd;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

impl Pool {
    /// Unique in this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The maximum number of queued requests.
    pub(crate) fn queue_length(&self) -> usize {
        self.settings.queue_length
    }

    /// The longest time in the queue.
    pub(crate) fn queue_timeout_ms(&self) -> u64 {
        self.settings.queue_timeout_ms
    }

    /// Logs an event of the app.
    pub(crate) fn log_note(&self, level: Level, text: &str) {
        self.log(level, text);
    }

    /// Sets whom it tells what the start of its script has read.
    pub(crate) fn set_freshness(&self, freshness: Arc<Freshness>) {
        self.freshness.replace(Some(freshness));
    }

    /// Goes on counting where the pool ended that it replaces.
    pub(crate) fn continue_counts(&self, before: &Rc<Self>) {
        let earlier = before.counters.take();
        let mut counters = self.counters.borrow_mut();
        counters.requests += earlier.requests;
        counters.queued += earlier.queued;
        counters.rejected += earlier.rejected;
        counters.crashes += earlier.crashes;
        counters.deadlines += earlier.deadlines;
        counters.recycled += earlier.recycled;
        counters.forks += earlier.forks;
        for (sum, more) in counters.waits.iter_mut().zip(earlier.waits) {
            super::manager::add_waits(sum, more);
        }
    }

    /// The zygote has reported what the start of the script has read.
    pub(super) fn boot_read(&self, keys: Vec<String>, is_complete: bool) {
        let freshness = self.freshness.borrow().clone();
        let Some(freshness) = freshness else { return };
        let descriptors = self.zygote.borrow().as_ref().map(|zygote| zygote.take_descriptors());
        let files = match <[OwnedFd; 2]>::try_from(descriptors.unwrap_or_default()) {
            Ok([inotify, list]) => {
                let files = FileWatch::new(inotify, list, is_complete);
                let report = |error: &io::Error| {
                    self.log(Level::Error, &format!("changes of files are not noticed: {error}"));
                };
                files.inspect_err(report).ok()
            }
            Err(_) => None,
        };
        if let Some(files) = &files {
            self.report_files(files);
        }
        let keys = keys.into_iter().collect();
        freshness.booted(self.id, BootRead { keys, files });
    }

    fn report_files(&self, files: &FileWatch) {
        let compared = files.compared().len();
        if compared > 0 {
            let text = format!(
                "the kernel does not report changes of {compared} of the {} files that the start of the script \
                 has read, so they are compared every two seconds: is fs.inotify.max_user_watches or \
                 max_user_instances too small?",
                files.len()
            );
            self.log(Level::Warn, &text);
        }
        if !files.is_complete() {
            let text = "the start of the script reads more files than can be watched: changes of some are \
                        not noticed";
            self.log(Level::Warn, text);
        }
    }

    pub(super) fn snapshot_status(&self) -> Option<api::Snapshot> {
        self.freshness.borrow().as_ref().map(|freshness| freshness.status())
    }
}
