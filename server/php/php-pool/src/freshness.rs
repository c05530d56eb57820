//! [`Freshness`]: whether an app's snapshot is out of date: the memory of a booted script, of which its
//! workers are forks. All threads of the server share it.
//!
//! Asked by the [seat](crate::renewal::seat) of each thread before every request. Scripts, the admin socket and the [`file_watch`]
//! retire the snapshot. Retirements are numbered: a request needs a snapshot of at least the number that is
//! [wanted](Freshness::wanted) when it begins. Invariants: retirements before a start has begun are one, so any
//! number of them costs two starts at most; a retirement by a key counts for a start that has not reported its
//! keys yet.

mod boots;
mod cause;
pub(crate) mod file_watch;
mod snapshots;

pub(crate) use boots::BootRead;
pub use cause::Cause;
use file_watch::FileWatch;
use outboard_admin_api::status as api;
use outboard_log::Wall;
use outboard_reactor::{MailboxReceiver, MailboxSender, mailbox, now_ms};
pub use snapshots::Snapshots;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys that are noted while a script boots; with more, each counts as one of its own.
const NOTED_KEYS_MAX: usize = 1_000;

/// See the module.
#[derive(Debug)]
pub struct Freshness {
    wanted: AtomicU64,
    /// Requests that wait for a snapshot, on all threads.
    pub(crate) held: AtomicUsize,
    state: Mutex<State>,
    news: MailboxSender<()>,
    receiver: Mutex<Option<MailboxReceiver<()>>>,
}

#[derive(Debug, Default)]
struct State {
    /// What pools have read at their start, by pool.
    reads: HashMap<u64, BootRead>,
    /// The pool that serves; `None` if no snapshot is taken.
    current: Option<u64>,
    /// The last pool whose start failed: a change of what it has read may help.
    failed: Option<u64>,
    /// What the next start is for.
    pending: Option<Cause>,
    /// Whether a start is under way.
    is_booting: bool,
    /// Retired while it was.
    noted_keys: BTreeSet<String>,
    /// A file has changed after it was read.
    changed_while_booting: Option<PathBuf>,
    /// Files change for so long that the present snapshot serves meanwhile; the last time that one did.
    files_changed_ms: Option<u64>,
    max_age_ms: u64,
    /// When the last start began.
    began_ms: u64,
    /// Whether a request has come since then.
    is_used: bool,
    retired: u64,
    failures: u64,
    last: Option<(Cause, Wall)>,
}

impl Freshness {
    /// Of a snapshot that is yet to be taken.
    pub(crate) fn new() -> Arc<Self> {
        let (news, receiver) = mailbox();
        Arc::new(Self {
            wanted: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            state: Mutex::default(),
            news,
            receiver: Mutex::new(Some(receiver)),
        })
    }

    /// What wakes the thread that renews the snapshot; taken once.
    pub(crate) fn news(&self) -> Option<MailboxReceiver<()>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The number of the snapshot that a request needs which begins now.
    pub(crate) fn wanted(&self) -> u64 {
        let mut state = self.state();
        self.check(&mut state);
        self.check_age(&mut state);
        self.wanted.load(Ordering::SeqCst)
    }

    fn check_age(&self, state: &mut State) {
        let is_first = !std::mem::replace(&mut state.is_used, true);
        let Some(read) = state.current_read() else { return };
        let (now_ms, (end_ms, soon_ms)) = (now_ms(), read.ends_ms(state.max_age_ms));
        if now_ms >= end_ms && state.failed.is_none() {
            self.raise(state, Cause::Age);
        } else if is_first && now_ms >= soon_ms {
            self.wake_lead();
        }
    }

    /// Retires the snapshot, with a key only if it depends on it. Returns whether it did.
    pub fn retire(&self, key: Option<&str>, cause: Cause) -> bool {
        let mut state = self.state();
        if state.current.is_none() {
            return false;
        }
        let Some(key) = key.filter(|key| !state.depends_on(key)) else {
            self.raise(&mut state, cause);
            return true;
        };
        if state.is_booting || state.current_read().is_none() {
            if state.noted_keys.len() >= NOTED_KEYS_MAX {
                self.raise(&mut state, cause);
                return true;
            }
            state.noted_keys.insert(key.to_owned());
        }
        false
    }

    /// Notices changes of files.
    pub(crate) fn check_files(&self) {
        self.check(&mut self.state());
    }

    fn check(&self, state: &mut State) {
        if let Some(path) = state.changed_file() {
            self.file_changed(state, path);
        }
    }

    /// A file of the pool has another state, as found by comparing it.
    pub(crate) fn files_differ(&self, pool: u64, path: PathBuf) {
        let mut state = self.state();
        if state.current == Some(pool) {
            self.file_changed(&mut state, path);
        }
    }

    fn file_changed(&self, state: &mut State, path: PathBuf) {
        match &mut state.files_changed_ms {
            Some(last_ms) => *last_ms = now_ms(),
            None => self.raise(state, Cause::File(path)),
        }
    }

    /// The next number is wanted, unless its start has not begun yet. A cause that is no file is one that
    /// does not wait for files.
    fn raise(&self, state: &mut State, cause: Cause) {
        if state.pending.is_none() {
            state.retired += 1;
            let last = self.wanted.fetch_add(1, Ordering::SeqCst);
            debug_assert!(state.retired <= last + 1, "two retirements have one number");
            self.wake_lead();
        } else if matches!(cause, Cause::File(_)) || !matches!(state.pending, Some(Cause::File(_)))
        {
            return;
        }
        state.last = Some((cause.clone(), Wall::now()));
        state.pending = Some(cause);
    }

    /// Whether a retired snapshot serves, since the last start has failed or files change, or a change of what it has
    /// read might not be noticed.
    pub(crate) fn may_be_old(&self) -> bool {
        let state = self.state();
        let is_sure =
            state.current_read().is_some_and(|read| !read.is_blind && read.files.is_some());
        state.failed.is_some() || state.files_changed_ms.is_some() || !is_sure
    }

    /// For `outboard status`.
    pub(crate) fn status(&self) -> api::Snapshot {
        let state = self.state();
        let read = state.current_read();
        let files = read.and_then(|read| read.files.as_ref());
        let keys = read.map(|read| read.keys.iter().cloned().collect());
        api::Snapshot {
            retired: state.retired,
            failures: state.failures,
            last_cause: state.last.as_ref().map(|(cause, _)| cause.to_string()),
            last_at_s: state.last.as_ref().map(|(_, at)| at.unix_s()),
            files: files.map_or(0, FileWatch::count) as u64,
            watched_directories: files.map_or(0, FileWatch::directories) as u64,
            compared_files: files.map_or(0, |files| files.compared().len()) as u64,
            unseen_files: files.map_or(0, FileWatch::unseen) as u64,
            keys: keys.unwrap_or_default(),
            held: self.held() as u64,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread look that renews the snapshot.
    pub(crate) fn wake_lead(&self) {
        // At its end it needs no news.
        let _ = self.news.send(());
    }

    /// Requests that wait for a snapshot.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl State {
    fn current_read(&self) -> Option<&BootRead> {
        self.reads.get(&self.current?)
    }

    fn current_files(&self) -> Option<&FileWatch> {
        self.current_read()?.files.as_ref()
    }

    fn depends_on(&self, key: &str) -> bool {
        self.current_read().is_some_and(|read| read.keys.contains(key))
    }

    fn forget_others(&mut self) {
        let kept = [self.current, self.failed];
        self.reads.retain(|pool, _| kept.contains(&Some(*pool)));
    }

    /// A file that has changed since the present snapshot was taken, or since the last start failed.
    fn changed_file(&mut self) -> Option<PathBuf> {
        let of_interest = [self.current, self.failed];
        let mut changed = None;
        for pool in of_interest.into_iter().flatten() {
            let read = self.reads.get_mut(&pool);
            let files = read.and_then(|read| read.files.as_mut());
            changed = changed.or(files.and_then(FileWatch::changed));
        }
        changed
    }
}

#[cfg(test)]
mod tests;
