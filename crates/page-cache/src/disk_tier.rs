//! The disk tier: a file for each stored page, behind the memory.
//!
//! Owned by [`crate::PageCache`]. Entries are written in the background by a thread; an entry that
//! memory lacks is read from here once, and is then in memory again. A gateway that starts takes over
//! the files of its predecessor, also after `kill -9`; after a reload the directory is empty, like the
//! cache.
//!
//! Invariants: no request waits for a write; a file is complete or ignored (it gets its name when it is
//! written, and its checksum is verified by every read); a purged entry does not return after a crash:
//! a purge is in the log before it returns, and the log is emptied only when all of its files are
//! removed.

mod directory;

use crate::clock::now_s;
use crate::disk_index::DiskIndex;
use crate::entry::{Entry, Shared};
use crate::key::Key;
use crate::purge::Selector;
use crate::record::{decoded, encoded};
use directory::{Directory, Job, Recovered};
use outboard_config::PageCacheDisk;
use outboard_log::{ErrorLog, Event, Level};
use outboard_reactor::{blocking, now_ms, on_disk_thread};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

/// A page that is useful for less is not worth a file.
const USEFUL_MIN_S: u64 = 10;
/// A fault of the disk is logged at most once in this time.
const LOG_EACH_MS: u64 = 60_000;
/// The bytes that wait to be written at most; beyond, pages stay in memory only.
const WAITING_MAX_BYTES: usize = 32 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct DiskTier {
    index: RefCell<DiskIndex>,
    directory: Directory,
    next_file: Cell<u64>,
    app: Box<str>,
    log: Rc<ErrorLog>,
    /// When a fault was last logged.
    logged_ms: Cell<Option<u64>>,
}

impl DiskTier {
    /// The directory of an app's pages: that of the predecessor if this process has just started, else
    /// a new one.
    ///
    /// # Errors
    /// It cannot be created or written to, or another server holds it.
    pub(crate) fn open(
        configured: &PageCacheDisk,
        app: &str,
        is_first: bool,
        log: &Rc<ErrorLog>,
    ) -> io::Result<Self> {
        let directory = Directory::open(&configured.path.join(app), is_first)?;
        Ok(Self {
            index: RefCell::new(DiskIndex::new(configured.max_bytes)),
            next_file: Cell::new(directory.first_file()),
            directory,
            app: app.into(),
            log: log.clone(),
            logged_ms: Cell::new(None),
        })
    }

    /// The number of files, and their size in bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        let index = self.index.borrow();
        (index.len(), index.used_bytes())
    }

    /// Reads which entries the predecessor left, in the background.
    pub(crate) fn scan(&self) -> impl Future<Output = Vec<Recovered>> + use<> {
        blocking(self.directory.scan())
    }

    /// Takes over scanned entries, except those that `was_purged` meanwhile.
    pub(crate) fn adopt(&self, found: Vec<Recovered>, was_purged: impl Fn(&Entry) -> bool) {
        for (file, bytes, entry) in found {
            let is_gone = was_purged(&entry)
                || entry.times().useful_until_s() < now_s()
                || self.index.borrow().has(&entry);
            if is_gone {
                self.directory.send(Job::Remove { file });
            } else {
                self.add(file, &entry, bytes);
            }
        }
    }

    /// Writes an entry in the background, unless it is not worth it or too much waits already.
    pub(crate) fn put(&self, entry: &Shared) {
        self.log_fault();
        if self.index.borrow().has_newer(entry) {
            return;
        }
        let is_useful = entry.times().useful_until_s() >= now_s() + USEFUL_MIN_S;
        if !is_useful || self.directory.waiting_bytes() > WAITING_MAX_BYTES {
            // The file of its predecessor is outdated.
            let known = self.find(entry.key(), |other| other.variant() == entry.variant());
            known.into_iter().for_each(|file| self.remove(file));
            return;
        }
        let file = self.next_file.replace(self.next_file.get() + 1);
        let bytes = encoded(entry);
        let size_bytes = bytes.len() as u64;
        // Before the removal of its predecessor, and of itself if it is larger than the budget.
        self.directory.send(Job::Write { file, bytes });
        self.add(file, entry, size_bytes);
    }

    fn add(&self, file: u64, entry: &Entry, bytes: u64) {
        let evicted = self.index.borrow_mut().insert(file, entry, bytes);
        evicted.into_iter().for_each(|file| self.directory.send(Job::Remove { file }));
    }

    /// The file of the entry under `key` for which `matches` holds.
    pub(crate) fn find(&self, key: &Key, matches: impl FnMut(&Entry) -> bool) -> Option<u64> {
        self.index.borrow().find(key, matches)
    }

    /// Reads a file; `None`, and the file is removed, if it does not contain an entry under `key`.
    pub(crate) async fn read(&self, key: &Key, file: u64) -> Option<Entry> {
        let read = self.directory.reader(file);
        let entry = on_disk_thread(move || decoded(&read().ok()?)).await;
        let entry = entry.filter(|entry| entry.key() == key);
        if entry.is_none() {
            // It is not written yet, or damaged.
            self.remove(file);
        }
        entry
    }

    fn remove(&self, file: u64) {
        self.index.borrow_mut().remove(file);
        self.directory.send(Job::Remove { file });
    }

    /// Purges; this is in effect, also after a crash, when it returns.
    pub(crate) fn purge(&self, selector: &Selector) {
        let place = self.directory.log(selector);
        for file in self.index.borrow_mut().purge(selector) {
            self.directory.send(Job::Remove { file });
        }
        self.directory.send(Job::Forget { place });
    }

    /// Removes the directory: the entries of an old generation are of no use.
    pub(crate) fn remove_all(&self) {
        self.directory.send(Job::RemoveAll);
    }

    /// Logs from time to time that the disk is full or faulty: pages are stored in memory only then,
    /// which would stay unnoticed.
    fn log_fault(&self) {
        let Some(fault) = self.directory.take_fault() else { return };
        let now_ms = now_ms();
        if self.logged_ms.get().is_some_and(|logged_ms| now_ms < logged_ms + LOG_EACH_MS) {
            return;
        }
        self.logged_ms.set(Some(now_ms));
        let text = format!("pages cannot be stored on disk, see page_cache.disk: {fault}");
        let event = Event { app: Some(&self.app), text: &text, ..Event::default() };
        self.log.write(Level::Warn, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{Scratch, entry, error_log, key, until};
    use outboard_reactor::run;
    use std::fs;
    use std::path::PathBuf;

    fn open(scratch: &Scratch, max_bytes: u64) -> DiskTier {
        let configured = PageCacheDisk { path: scratch.0.clone(), max_bytes };
        DiskTier::open(&configured, "site", true, &error_log()).unwrap()
    }

    /// The files of entries, once the thread has nothing left to write.
    fn files(scratch: &Scratch) -> Vec<PathBuf> {
        let generations = fs::read_dir(scratch.0.join("site")).unwrap();
        let files = generations.flat_map(|one| fs::read_dir(one.unwrap().path()).unwrap());
        let is_entry = |path: &PathBuf| {
            path.extension().is_none() && path.file_name().is_some_and(|name| name.len() == 20)
        };
        files.map(|file| file.unwrap().path()).filter(is_entry).collect()
    }

    async fn put(tier: &DiskTier, scratch: &Scratch, path: &str) {
        let count = files(scratch).len();
        tier.put(&entry(path, now_s()).into());
        until(|| files(scratch).len() > count).await;
    }

    fn find(tier: &DiskTier, path: &str) -> Option<u64> {
        tier.find(&key(path), |_| true)
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        run(async {
            let scratch = Scratch::new();
            let tier = open(&scratch, 1 << 20);
            put(&tier, &scratch, "/a").await;
            let file = find(&tier, "/a").unwrap();
            let found = tier.read(&key("/a"), file).await.unwrap();
            assert_eq!(found.plain().body, entry("/a", 1).plain().body);
            assert_eq!(find(&tier, "/b"), None);
            assert_eq!(tier.size().0, 1);
        })
        .unwrap();
    }

    #[test]
    fn a_damaged_file_is_removed() {
        run(async {
            let scratch = Scratch::new();
            let tier = open(&scratch, 1 << 20);
            put(&tier, &scratch, "/a").await;
            fs::write(&files(&scratch)[0], b"damaged").unwrap();
            let file = find(&tier, "/a").unwrap();
            assert!(tier.read(&key("/a"), file).await.is_none());
            assert_eq!((find(&tier, "/a"), tier.size()), (None, (0, 0)));
            until(|| files(&scratch).is_empty()).await;
        })
        .unwrap();
    }

    #[test]
    fn an_entry_that_expires_soon_replaces_its_file_by_none() {
        run(async {
            let scratch = Scratch::new();
            let tier = open(&scratch, 1 << 20);
            put(&tier, &scratch, "/a").await;
            tier.put(&entry("/other", now_s() - 995).into());
            assert_eq!(tier.size().0, 1);
            tier.put(&entry("/a", now_s() - 995).into());
            assert!(find(&tier, "/a").is_some(), "the file is more recent");
            let soon = entry("/a", now_s()).expired(now_s(), 1);
            tier.put(&soon.into());
            assert_eq!(find(&tier, "/a"), None);
            until(|| files(&scratch).is_empty()).await;
        })
        .unwrap();
    }

    #[test]
    fn the_oldest_files_leave_within_the_budget() {
        run(async {
            let scratch = Scratch::new();
            let size_bytes = encoded(&entry("/1", now_s())).len() as u64;
            let tier = open(&scratch, 2 * size_bytes);
            for path in ["/1", "/2", "/3"] {
                tier.put(&entry(path, now_s()).into());
            }
            assert_eq!(tier.size(), (2, 2 * size_bytes));
            assert_eq!(
                ["/1", "/2", "/3"].map(|path| find(&tier, path).is_some()),
                [false, true, true]
            );
            until(|| files(&scratch).len() == 2).await;
        })
        .unwrap();
    }

    #[test]
    fn the_next_process_adopts_entries_that_are_still_valid() {
        run(async {
            let scratch = Scratch::new();
            let tier = open(&scratch, 1 << 20);
            for path in ["/a", "/purged before", "/purged meanwhile", "/newer"] {
                put(&tier, &scratch, path).await;
            }
            tier.purge(&Selector::url(b"/purged before"));
            drop(tier);
            let tier = open(&scratch, 1 << 20);
            tier.put(&entry("/newer", now_s() + 1).into());
            let newer = find(&tier, "/newer");
            let found = tier.scan().await;
            assert_eq!(found.len(), 3);
            tier.adopt(found, |entry| entry.key() == &key("/purged meanwhile"));
            assert_eq!(tier.size().0, 2);
            assert!(find(&tier, "/a").is_some() && find(&tier, "/newer") == newer);
            until(|| files(&scratch).len() == 2).await;
            tier.remove_all();
            until(|| !scratch.0.join("site").read_dir().unwrap().any(|_| true)).await;
        })
        .unwrap();
    }
}
