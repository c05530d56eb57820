//! What the renewal tells the [`Freshness`]: how far a start is, and whether files change.
//!
//! Called by the lead's task, and by a pool whose zygote has reported.

use super::file_watch::FileWatch;
use super::{Cause, Freshness, LEAD, renewal};
use outboard_reactor::now_ms;
use rustix::fd::OwnedFd;
use std::collections::BTreeSet;
use std::path::PathBuf;
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
}

impl Freshness {
    /// A pool has told what its start has read.
    pub(crate) fn booted(&self, pool: u64, read: BootRead) {
        let mut state = self.state();
        let is_first = state.current == Some(pool) && !state.is_booting;
        let noted = if is_first { std::mem::take(&mut state.noted_keys) } else { BTreeSet::new() };
        let outdated = noted.into_iter().find(|key| read.keys.contains(key));
        state.reads.insert(pool, read);
        if let Some(key) = outdated {
            self.raise(&mut state, Cause::Key(key));
        }
        self.send(LEAD, renewal::Step::Watched);
    }

    /// The files of a start are watched. One of them may have changed since it was read.
    pub(crate) fn watched(&self, pool: u64, files: FileWatch, changed: Option<PathBuf>) {
        let mut state = self.state();
        let Some(read) = state.reads.get_mut(&pool) else { return };
        read.files = Some(files);
        if let Some(path) = changed {
            match state.current == Some(pool) {
                true => self.file_changed(&mut state, path),
                false => state.changed_while_booting = Some(path),
            }
        }
    }

    /// A start begins; the number that it is for.
    pub(crate) fn begin_boot(&self) -> u64 {
        let mut state = self.state();
        state.pending = None;
        state.is_booting = true;
        state.noted_keys.clear();
        state.changed_while_booting = None;
        self.wanted.load(Ordering::SeqCst)
    }

    /// The start of a pool has ended. Returns what has changed meanwhile that it may have read before.
    pub(crate) fn end_boot(&self, pool: Option<u64>) -> Option<Cause> {
        let mut state = self.state();
        state.is_booting = false;
        let noted = std::mem::take(&mut state.noted_keys);
        let changed = state.changed_while_booting.take();
        let changed = changed.filter(|path| state.noise.admits(path, now_ms())).map(Cause::File);
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
