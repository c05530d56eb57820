//! The disk tier: a file for each stored page, behind the memory.
//!
//! Owned by [`crate::Pages`] for all shards. Entries are written in the background by a thread; an entry that
//! memory lacks is read from here once, and is then in memory again. A gateway that starts takes over
//! the files of its predecessor, also after `kill -9`; after a reload the directory is empty, like the
//! cache.
//!
//! Invariants: no request waits for a write; a file is complete or ignored (it gets its name when it is
//! written, and its checksum is verified by every read); a purged entry does not return after a crash:
//! a purge is in the log before it returns, and the log is emptied only when all of its files are
//! removed.
//!
//! The lock of the index is taken for lookups that memory does not answer. A purge holds it while it
//! purges memory and disk, and the others look into memory's purges while they hold it. So for them a
//! purge has happened in both tiers or in none: an entry is neither written nor loaded after a purge
//! that selects it.

mod directory;

use crate::clock::now_s;
use crate::disk_index::DiskIndex;
use crate::entry::Entry;
use crate::key::Key;
use crate::purge::Selector;
use crate::record::{decoded, encoded};
use crate::store::PurgeEpoch;
use directory::{Directory, Job, Recovered};
use outboard_config::PageCacheDisk;
use outboard_reactor::{blocking, now_ms, on_disk_thread};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A page that is useful for less is not worth a file.
const USEFUL_MIN_S: u64 = 10;
/// A fault of the disk is reported at most once in this time.
const REPORT_EACH_MS: u64 = 60_000;
/// The bytes that wait to be written at most; beyond, pages stay in memory only.
const WAITING_MAX_BYTES: usize = 32 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct DiskTier {
    index: Mutex<DiskIndex>,
    directory: Directory,
    next_file: AtomicU64,
    /// From when on a fault is reported again.
    report_again_ms: AtomicU64,
    /// Whether the directory is removed.
    is_over: AtomicBool,
}

impl DiskTier {
    /// The directory of an app's pages: that of the predecessor if this process has just started, else
    /// a new one.
    ///
    /// # Errors
    /// It cannot be created or written to, or another server holds it.
    pub(crate) fn open(configured: &PageCacheDisk, app: &str, is_first: bool) -> io::Result<Self> {
        let directory = Directory::open(&configured.path.join(app), is_first)?;
        Ok(Self {
            index: Mutex::new(DiskIndex::new(configured.max_bytes)),
            next_file: AtomicU64::new(directory.first_file()),
            directory,
            report_again_ms: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    fn index(&self) -> MutexGuard<'_, DiskIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of files, and their size in bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        let index = self.index();
        (index.len(), index.used_bytes())
    }

    /// Reads which entries the predecessor left, in the background.
    pub(crate) fn scan(&self) -> impl Future<Output = Vec<Recovered>> + use<> {
        blocking(self.directory.scan())
    }

    /// Takes over scanned entries, except those that `was_purged` meanwhile.
    pub(crate) fn adopt(&self, found: Vec<Recovered>, was_purged: impl Fn(&Entry) -> bool) {
        for (file, bytes, entry) in found {
            let mut index = self.index();
            let is_gone =
                was_purged(&entry) || entry.times().useful_until_s() < now_s() || index.has(&entry);
            if is_gone {
                self.directory.send(Job::Remove { file });
            } else {
                self.add(&mut index, file, &entry, bytes);
            }
        }
    }

    /// Writes an entry in the background, unless it `was_purged`, is not worth it or too much waits
    /// already.
    pub(crate) fn put(&self, entry: &Entry, was_purged: impl FnOnce() -> bool) {
        let is_useful = entry.times().useful_until_s() >= now_s() + USEFUL_MIN_S;
        let has_room = self.directory.waiting_bytes() <= WAITING_MAX_BYTES;
        let bytes = (is_useful && has_room).then(|| encoded(entry));
        let mut index = self.index();
        if self.is_over.load(Ordering::Relaxed) || index.has_newer(entry) || was_purged() {
            return;
        }
        let Some(bytes) = bytes else {
            // The file of its predecessor is outdated.
            let known = index.find(entry.key(), |other| other.variant() == entry.variant());
            return known.into_iter().for_each(|file| self.remove(&mut index, file));
        };
        let file = self.next_file.fetch_add(1, Ordering::Relaxed);
        let size_bytes = bytes.len() as u64;
        // Before the removal of its predecessor, and of itself if it is larger than the budget.
        self.directory.send(Job::Write { file, bytes });
        self.add(&mut index, file, entry, size_bytes);
    }

    fn add(&self, index: &mut DiskIndex, file: u64, entry: &Entry, bytes: u64) {
        let evicted = index.insert(file, entry, bytes);
        evicted.into_iter().for_each(|file| self.directory.send(Job::Remove { file }));
    }

    /// The file of the entry under `key` for which `matches` holds.
    pub(crate) fn find(&self, key: &Key, matches: impl FnMut(&Entry) -> bool) -> Option<u64> {
        self.index().find(key, matches)
    }

    /// The present epoch, if the file is still to be used: its entry is as new as that.
    pub(crate) fn epoch(&self, file: u64, epoch: impl Fn() -> PurgeEpoch) -> Option<PurgeEpoch> {
        self.index().contains(file).then(epoch)
    }

    /// Reads a file; `None`, and the file is removed, if it does not contain an entry under `key`.
    pub(crate) async fn read(&self, key: &Key, file: u64) -> Option<Entry> {
        let read = self.directory.reader(file);
        let entry = on_disk_thread(move || decoded(&read().ok()?)).await;
        let entry = entry.filter(|entry| entry.key() == key);
        if entry.is_none() {
            // It is not written yet, or damaged.
            self.remove(&mut self.index(), file);
        }
        entry
    }

    fn remove(&self, index: &mut DiskIndex, file: u64) {
        index.remove(file);
        self.directory.send(Job::Remove { file });
    }

    /// Purges, together with memory; this is in effect, also after a crash, when it returns.
    pub(crate) fn purge<T>(&self, selector: &Selector, purge_memory: impl FnOnce() -> T) -> T {
        let mut index = self.index();
        let purged = purge_memory();
        let place = self.directory.log(selector);
        for file in index.purge(selector) {
            self.directory.send(Job::Remove { file });
        }
        self.directory.send(Job::Forget { place });
        purged
    }

    /// Removes the directory: the entries of an old generation are of no use.
    pub(crate) fn remove_all(&self) {
        let _index = self.index();
        self.is_over.store(true, Ordering::Relaxed);
        self.directory.send(Job::RemoveAll);
    }

    /// A fault to be logged, from time to time: if the disk is full or faulty, pages are stored in
    /// memory only, which would stay unnoticed.
    pub(crate) fn fault(&self) -> Option<io::Error> {
        let fault = self.directory.take_fault()?;
        let (now_ms, again_ms) = (now_ms(), self.report_again_ms.load(Ordering::Relaxed));
        if now_ms < again_ms {
            return None;
        }
        let next_ms = now_ms + REPORT_EACH_MS;
        let (ok, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        self.report_again_ms.compare_exchange(again_ms, next_ms, ok, failed).ok()?;
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{Scratch, entry, key, until};
    use outboard_reactor::run;
    use std::fs;
    use std::path::PathBuf;

    fn open(scratch: &Scratch, max_bytes: u64) -> DiskTier {
        let configured = PageCacheDisk { path: scratch.0.clone(), max_bytes };
        DiskTier::open(&configured, "site", true).unwrap()
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
        tier.put(&entry(path, now_s()), || false);
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
            tier.put(&entry("/other", now_s() - 995), || false);
            assert_eq!(tier.size().0, 1);
            tier.put(&entry("/a", now_s() - 995), || false);
            assert!(find(&tier, "/a").is_some(), "the file is more recent");
            let soon = entry("/a", now_s()).expired(now_s(), 1);
            tier.put(&soon, || false);
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
                tier.put(&entry(path, now_s()), || false);
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
            tier.purge(&Selector::url(b"/purged before"), || ());
            drop(tier);
            let tier = open(&scratch, 1 << 20);
            tier.put(&entry("/newer", now_s() + 1), || false);
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
