//! Kept pages on disk: a file for each, beside the memory that answers.
//!
//! What is kept is written behind on a thread; what memory has not is read from there, once, and
//! then in memory again. A gateway that starts takes over what its predecessor left, also after
//! `kill -9`; after a reload the folder is a new one, as the pages are.
//!
//! Invariants: no request waits for a write; a file is whole or it is nothing (it gets its name when
//! it is written, and its checksum is looked at whenever it is read); what was purged is not there
//! after a crash either: a purge is in the log before it returns, and the log is emptied only when
//! all of its files are gone.

mod folder;

use super::{PageCache, now_s};
use crate::generation::Logs;
use folder::{Folder, Job};
use outboard_config as config;
use outboard_log::{Event, Level};
use outboard_page_cache::{DiskIndex, Entry, Key, Selector, Shared, decoded, encoded};
use outboard_reactor::{blocking, now_ms, spawn};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

/// A page that lives more shortly is not worth a file.
const USEFUL_MIN_S: u64 = 10;
/// What is wrong with the disk is said once in this time.
const TELL_EACH_MS: u64 = 60_000;
/// Most bytes that wait to be written; beyond, pages stay in memory alone.
const WAITING_MAX_BYTES: usize = 32 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Disk {
    shelf: RefCell<DiskIndex>,
    folder: Folder,
    next_file: Cell<u64>,
    app: Box<str>,
    logs: Rc<Logs>,
    /// When it was last told that pages cannot be written.
    told_ms: Cell<Option<u64>>,
}

impl Disk {
    /// The folder of an app's pages: that of before if this process has just begun, else a new one.
    ///
    /// # Errors
    /// It cannot be made or written to, or another server has it.
    pub(super) fn open(
        app: &config::App,
        is_first: bool,
        logs: &Rc<Logs>,
    ) -> io::Result<Option<Self>> {
        let Some(disk) = app.page_cache.as_ref().and_then(|cache| cache.disk.as_ref()) else {
            return Ok(None);
        };
        let folder = Folder::open(&disk.path.join(&app.name), is_first)?;
        Ok(Some(Self {
            shelf: RefCell::new(DiskIndex::new(disk.max_bytes)),
            next_file: Cell::new(folder.first_file()),
            folder,
            app: app.name.as_str().into(),
            logs: logs.clone(),
            told_ms: Cell::new(None),
        }))
    }

    /// Says that the disk is full, or what else it is, once in a while: pages are kept in memory alone
    /// then, which nobody would notice.
    fn tell_fault(&self) {
        let Some(fault) = self.folder.take_fault() else { return };
        let now_ms = now_ms();
        if self.told_ms.get().is_some_and(|told_ms| now_ms < told_ms + TELL_EACH_MS) {
            return;
        }
        self.told_ms.set(Some(now_ms));
        let text = format!("pages cannot be kept on disk, see page_cache.disk: {fault}");
        let event = Event { app: Some(&self.app), text: &text, ..Event::default() };
        self.logs.error.write(Level::Warn, event);
    }

    /// How many pages lie there, and what they take in bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        let shelf = self.shelf.borrow();
        (shelf.len(), shelf.used_bytes())
    }

    /// Writes an entry down, behind; unless it is not worth it or too much waits already.
    fn put(&self, entry: &Shared) {
        self.tell_fault();
        if self.shelf.borrow().has_newer(entry) {
            return;
        }
        let is_useful = entry.times().useful_until_s() >= now_s() + USEFUL_MIN_S;
        if !is_useful || self.folder.waiting_bytes() > WAITING_MAX_BYTES {
            // The one of before is not it any more.
            let known =
                self.shelf.borrow().find(entry.key(), |one| one.variant() == entry.variant());
            known.into_iter().for_each(|file| self.remove(file));
            return;
        }
        let file = self.next_file.replace(self.next_file.get() + 1);
        let bytes = encoded(entry);
        let gone = self.shelf.borrow_mut().insert(file, entry, bytes.len() as u64);
        self.folder.send(Job::Write { file, bytes });
        gone.into_iter().for_each(|file| self.folder.send(Job::Remove { file }));
    }

    /// The pages of an old generation are of no use to anybody.
    pub(super) fn give_up(&self) {
        self.folder.send(Job::RemoveAll);
    }

    fn remove(&self, file: u64) {
        self.shelf.borrow_mut().remove(file);
        self.folder.send(Job::Remove { file });
    }

    /// Purges; it is in effect, also after a crash, when this returns.
    pub(super) fn purge(&self, selector: &Selector) {
        let place = self.folder.log(selector);
        for file in self.shelf.borrow_mut().purge(selector) {
            self.folder.send(Job::Remove { file });
        }
        self.folder.send(Job::Forget { place });
    }
}

impl PageCache {
    /// Takes over what lies on disk, behind.
    pub(crate) fn recover(self: &Rc<Self>) {
        let Some(disk) = &self.disk else { return };
        let (cache, began) = (self.clone(), self.store.borrow().purge_epoch());
        let scan = disk.folder.scan();
        spawn(async move {
            let found = blocking(scan).await;
            let Some(disk) = &cache.disk else { return };
            for (file, bytes, entry) in found {
                let is_gone = cache.store.borrow().was_purged(began, &entry)
                    || entry.times().useful_until_s() < now_s()
                    || disk.shelf.borrow().has(&entry);
                if is_gone {
                    disk.folder.send(Job::Remove { file });
                    continue;
                }
                let gone = disk.shelf.borrow_mut().insert(file, &entry, bytes);
                gone.into_iter().for_each(|file| disk.folder.send(Job::Remove { file }));
            }
        });
    }

    /// Writes a page to disk, if there is one for it, and puts it where pages are shared.
    pub(super) fn shelve(&self, entry: &Shared) {
        if let Some(disk) = &self.disk {
            disk.put(entry);
        }
        if let Some(commons) = &self.commons {
            commons.put(entry);
        }
    }

    /// The file of what answers a request, by `answers`.
    pub(super) fn on_disk(&self, key: &Key, answers: impl FnMut(&Entry) -> bool) -> Option<u64> {
        self.disk.as_ref()?.shelf.borrow().find(key, answers)
    }

    /// Reads a file, and puts it into memory unless it was purged meanwhile.
    pub(super) async fn unshelve(&self, key: &Key, file: u64) -> Option<Shared> {
        let disk = self.disk.as_ref()?;
        let began = self.store.borrow().purge_epoch();
        let read = disk.folder.reader(file);
        let entry = blocking(move || decoded(&read().ok()?)).await;
        match entry.filter(|entry| entry.key() == key) {
            Some(entry) => self.store.borrow_mut().insert(entry, began, now_s()).ok(),
            // Not written yet, or damaged.
            None => {
                disk.remove(file);
                None
            }
        }
    }
}
