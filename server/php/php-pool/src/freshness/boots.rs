//! What the renewal tells the [`Freshness`]: how far a start is, and whether files change.
//!
//! Called by the lead's task, and by a pool whose zygote has reported.

use super::file_watch::{FileWatch, SeenFile};
use super::{Cause, Freshness};
use outboard_reactor::now_ms;
use rustix::fd::OwnedFd;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the start of a script has read.
#[derive(Debug, Default)]
pub(crate) struct BootRead {
    /// The keys of other data.
    pub(crate) keys: BTreeSet<String>,
    /// The list of files that the host has sent, until they are watched.
    pub(crate) list: Option<OwnedFd>,
    /// The files, once they are watched.
    pub(crate) files: Option<FileWatch>,
    /// Whether changes of some of its files are not noticed at once.
    pub(crate) is_blind: bool,
    /// What the script allows.
    pub(crate) max_age_ms: Option<u64>,
    /// When its start began.
    pub(crate) began_ms: u64,
}

impl BootRead {
    /// When it is too old, and when it is replaced before that.
    pub(super) fn ends_ms(&self, max_age_ms: u64) -> (u64, u64) {
        let age_ms = self.max_age_ms.map_or(max_age_ms, |own_ms| own_ms.min(max_age_ms));
        (self.began_ms.saturating_add(age_ms), self.began_ms.saturating_add(age_ms / 4 * 3))
    }
}

impl Freshness {
    /// The pool that serves at first.
    pub(crate) fn set_first(&self, pool: u64, max_age_ms: u64) {
        let mut state = self.state();
        (state.current, state.max_age_ms, state.began_ms) = (Some(pool), max_age_ms, now_ms());
    }

    /// When the present snapshot is to be replaced because of its age, which happens in the background; `None` if it was
    /// not used. The first request after that wakes the lead.
    pub(crate) fn ages_at_ms(&self) -> Option<u64> {
        let state = self.state();
        let is_due = state.is_used && state.failed.is_none();
        Some(state.current_read()?.ends_ms(state.max_age_ms).1).filter(|_| is_due)
    }

    /// Whether the files that the present snapshot was made of are watched, or known not to be.
    pub(crate) fn is_watching(&self) -> bool {
        self.state().current_read().is_none_or(|read| read.files.is_some() || read.is_blind)
    }

    /// What the next start is for.
    pub(crate) fn pending(&self) -> Option<Cause> {
        self.state().pending.clone()
    }

    /// Whether the lead has something to do.
    pub(crate) fn has_news(&self) -> bool {
        let state = self.state();
        let has_list = state.reads.values().any(|read| read.list.is_some());
        state.pending.is_some() || has_list
    }

    /// A list of files that has to be watched, and its pool.
    pub(crate) fn take_list(&self) -> Option<(u64, OwnedFd)> {
        let mut state = self.state();
        state.reads.iter_mut().find_map(|(pool, read)| Some((*pool, read.list.take()?)))
    }

    /// Readable when there are events of the present watch.
    pub(crate) fn events(&self) -> Option<Arc<OwnedFd>> {
        self.state().current_files()?.events().cloned()
    }

    /// The files that have to be compared, and their pool.
    pub(crate) fn compared(&self) -> Option<(u64, Arc<[SeenFile]>)> {
        let state = self.state();
        Some((state.current?, state.current_files()?.compared().clone()))
    }

    /// When a file has changed last, while that is noted.
    pub(crate) fn last_file_change_ms(&self) -> u64 {
        self.state().files_changed_ms.unwrap_or_default()
    }

    /// A pool has reported what its start has read.
    pub(crate) fn booted(&self, pool: u64, mut read: BootRead) {
        let mut state = self.state();
        read.began_ms = state.began_ms;
        let is_first = state.current == Some(pool) && !state.is_booting;
        let noted = if is_first { std::mem::take(&mut state.noted_keys) } else { BTreeSet::new() };
        let outdated = noted.into_iter().find(|key| read.keys.contains(key));
        state.reads.insert(pool, read);
        if let Some(key) = outdated {
            self.raise(&mut state, Cause::Key(key));
        }
        self.wake_lead();
    }

    /// The files of a start are watched. One of them may have changed since it was read.
    pub(crate) fn watched(&self, pool: u64, files: FileWatch, changed: Option<PathBuf>) {
        let mut state = self.state();
        let Some(read) = state.reads.get_mut(&pool) else { return };
        read.is_blind |= !files.notices_all();
        read.files = Some(files);
        if let Some(path) = changed {
            match state.current == Some(pool) {
                true => self.file_changed(&mut state, path),
                false => state.changed_while_booting = Some(path),
            }
        }
    }

    /// The files of a start cannot be watched.
    pub(crate) fn is_not_watched(&self, pool: u64) {
        if let Some(read) = self.state().reads.get_mut(&pool) {
            read.is_blind = true;
        }
    }

    /// A start begins; the number that it is for.
    pub(crate) fn begin_boot(&self) -> u64 {
        let mut state = self.state();
        state.pending = None;
        (state.is_booting, state.is_used, state.began_ms) = (true, false, now_ms());
        state.noted_keys.clear();
        state.changed_while_booting = None;
        self.wanted.load(Ordering::SeqCst)
    }

    /// The start of a pool has ended. Returns what has changed meanwhile that it may have read before.
    pub(crate) fn end_boot(&self, pool: Option<u64>) -> Option<Cause> {
        let mut state = self.state();
        state.is_booting = false;
        let noted = std::mem::take(&mut state.noted_keys);
        let changed = state.changed_while_booting.take().map(Cause::File);
        let read = pool.and_then(|pool| state.reads.get(&pool));
        let key = read.and_then(|read| noted.into_iter().find(|key| read.keys.contains(key)));
        key.map(Cause::Key).or(changed)
    }

    /// The pool serves from now on.
    pub(crate) fn set_current(&self, pool: Option<u64>) {
        let mut state = self.state();
        state.current = pool.or(state.current);
        state.failed = None;
        state.forget_others();
    }

    /// The pool could not be started.
    pub(crate) fn set_failed(&self, pool: Option<u64>) {
        let mut state = self.state();
        state.failures += 1;
        state.failed = pool;
        state.forget_others();
    }

    /// What has changed during a start retires it, too.
    pub(crate) fn retire_again(&self, cause: Cause) {
        self.raise(&mut self.state(), cause);
    }

    /// Changes of files are noted from now on, and retire nothing; or they do again.
    pub(crate) fn note_file_changes(&self, notes: bool) {
        self.state().files_changed_ms = notes.then(now_ms);
    }

    /// Nothing is wanted until files do not change any more. The last number that was; `None` if something else
    /// wants it as well.
    pub(crate) fn begin_deployment(&self) -> Option<u64> {
        let mut state = self.state();
        state.pending.take_if(|cause| matches!(cause, Cause::File(_)))?;
        state.files_changed_ms = Some(now_ms());
        Some(self.wanted.load(Ordering::SeqCst))
    }

    /// Ends that, if no file has changed for `quiet_ms`, or something else has retired the snapshot, or in any
    /// case; returns whether it did.
    pub(crate) fn end_deployment(&self, quiet_ms: u64, in_any_case: bool) -> bool {
        let mut state = self.state();
        let last_ms = state.files_changed_ms.unwrap_or_default();
        if now_ms() < last_ms + quiet_ms && state.pending.is_none() && !in_any_case {
            return false;
        }
        state.files_changed_ms = None;
        if state.pending.is_none() {
            let last = state.last.as_ref().map(|(cause, _)| cause.clone());
            self.raise(&mut state, last.unwrap_or(Cause::Retry));
            // It is the same retirement.
            state.retired -= 1;
        }
        true
    }
}
