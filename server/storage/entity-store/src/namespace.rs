//! A namespace: records under keys, with one durability, in one engine.
//!
//! Called by the gateway for every request for records. Invariants: results do not depend on the
//! engine, except for durability; while the records move to another process (`store/handover`), calls
//! wait, and nothing of the namespace is open here.

mod scan;

use crate::change::{Write, Written};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::memory::Memory;
use crate::record::{Record, is_id};
use crate::redis::Redis;
use crate::remote::Remote;
use crate::settings::{Durability, NamespaceSettings};
use crate::types::Stats;
use scan::Cursors;
use std::cell::{Cell, RefCell};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

pub use scan::Scan;

/// How long a call waits for records that move.
const MOVE_MS: u64 = 20_000;
/// The most calls that wait for them.
const MOVE_CALLS: usize = 4096;
const MOVE_PAUSE_MS: u64 = 2;

/// A namespace that is open.
pub struct Namespace {
    settings: NamespaceSettings,
    /// `None`: the records are moving.
    backend: RefCell<Option<Rc<Backend>>>,
    /// What was in memory, while another process gets it.
    pub(crate) resting: RefCell<Option<Rc<Backend>>>,
    /// The scans in progress.
    pub(crate) cursors: Cursors,
    waiting: Cell<usize>,
}

/// Where the records are.
pub(crate) enum Backend {
    Disk(Box<Disk>),
    Memory(Box<Memory>),
    /// With the prefix of its keys.
    Redis(Rc<Redis>, Arc<[u8]>),
    /// Another process has them.
    Remote(Rc<Remote>),
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Namespace").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Namespace {
    pub(crate) fn new(settings: NamespaceSettings, backend: Backend) -> Self {
        let backend = RefCell::new(Some(Rc::new(backend)));
        let (resting, cursors) = (RefCell::default(), Cursors::default());
        Self { settings, backend, resting, cursors, waiting: Cell::new(0) }
    }

    /// The records are here from now on; returns where they were.
    pub(crate) fn move_to(&self, backend: Option<Rc<Backend>>) -> Option<Rc<Backend>> {
        self.backend.replace(backend)
    }

    /// Where the records are now, unless they are moving.
    pub(crate) fn present(&self) -> Option<Rc<Backend>> {
        self.backend.borrow().clone()
    }

    /// Where the records are. Waits while they are moving.
    pub(crate) async fn backend(&self) -> Result<Rc<Backend>, StoreError> {
        if let Some(backend) = self.present() {
            return Ok(backend);
        }
        if self.waiting.get() >= MOVE_CALLS {
            return Err(StoreError::Overloaded);
        }
        let _waiting = Waiting::begin(&self.waiting);
        let until_ms = outboard_reactor::now_ms() + MOVE_MS;
        while outboard_reactor::now_ms() < until_ms {
            outboard_reactor::sleep(MOVE_PAUSE_MS).await;
            if let Some(backend) = self.present() {
                return Ok(backend);
            }
        }
        Err(StoreError::Unreachable("the store is being handed over to another process".into()))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The durability of a write; `None` if Redis decides.
    pub fn durability(&self) -> Option<Durability> {
        match self.present().as_deref() {
            Some(Backend::Redis(..)) => None,
            _ => Some(self.settings.durability),
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The key is invalid, too many reads wait, or the disk fails.
    pub async fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        check(id)?;
        match &*self.backend().await? {
            Backend::Disk(disk) => disk.get(id).await,
            Backend::Memory(memory) => Ok(memory.get(id)),
            Backend::Redis(redis, prefix) => {
                let mut found = redis.get_many(prefix, vec![id.into()]).await?;
                Ok(found.pop().flatten())
            }
            Backend::Remote(remote) => {
                let mut found = remote.get_many(self.name(), &[id]).await?;
                Ok(found.pop().flatten())
            }
        }
    }

    /// Reads records; one result for each key, in order.
    ///
    /// # Errors
    /// As [`Namespace::get`], for the whole call.
    pub async fn get_many(&self, ids: &[&[u8]]) -> Result<Vec<Option<Record>>, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        match &*self.backend().await? {
            Backend::Disk(disk) => disk.get_many(ids).await,
            Backend::Memory(memory) => {
                let mut records = Vec::with_capacity(ids.len());
                memory.show_many(ids, |record| records.push(record.cloned()));
                Ok(records)
            }
            Backend::Redis(redis, prefix) => {
                redis.get_many(prefix, ids.iter().map(|id| Box::from(*id)).collect()).await
            }
            Backend::Remote(remote) => remote.get_many(self.name(), ids).await,
        }
    }

    /// Passes cached records to `each`, one for each key, in order. Returns false when one of them
    /// is not cached; the caller then discards the others and calls [`Namespace::get_many`].
    /// Nothing is copied or counted: reference counts of ten thousand records cost more than
    /// reading them.
    ///
    /// # Errors
    /// A key is invalid.
    pub fn show_many(
        &self,
        ids: &[&[u8]],
        each: impl FnMut(Option<&Record>),
    ) -> Result<bool, StoreError> {
        ids.iter().try_for_each(|id| check(id))?;
        Ok(match self.backend.borrow().as_deref() {
            Some(Backend::Disk(disk)) => disk.show_many(ids, each),
            Some(Backend::Memory(memory)) => {
                memory.show_many(ids, each);
                true
            }
            Some(Backend::Redis(..) | Backend::Remote(_)) | None => false,
        })
    }

    /// Writes a record; returns when it is as durable as configured.
    ///
    /// # Errors
    /// The key is invalid, the condition does not hold, too many writes wait, or the disk is full
    /// or fails.
    pub async fn write(&self, write: Write) -> Result<Written, StoreError> {
        self.write_copies(write, 1).await
    }

    /// Writes a record; returns when this many nodes have it.
    ///
    /// # Errors
    /// As [`Namespace::write`], or too few nodes confirmed in time.
    pub async fn write_copies(&self, write: Write, copies: u32) -> Result<Written, StoreError> {
        check(&write.id)?;
        match &*self.backend().await? {
            Backend::Disk(disk) => disk.write(write).await,
            Backend::Memory(memory) => memory.write(&write),
            Backend::Redis(redis, prefix) => {
                let mut written = redis.write_many(prefix, vec![write], copies).await;
                written.pop().unwrap_or(Err(StoreError::TooFewCopies { answered: 0 }))
            }
            Backend::Remote(remote) => {
                let mut written = remote.write_many(self.name(), vec![write], copies).await;
                written.pop().unwrap_or_else(|| Err(StoreError::thread_ended()))
            }
        }
    }

    /// The number of nodes that have a record.
    pub fn copies(&self) -> u32 {
        match self.present().as_deref() {
            Some(Backend::Redis(redis, _)) => redis.copies(),
            _ => 1,
        }
    }

    /// Writes records that do not depend on each other; one result for each, in order. They are
    /// queued together and committed together. If one key is invalid, nothing is written.
    pub async fn write_many(&self, writes: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        if let Err(error) = writes.iter().try_for_each(|write| check(&write.id)) {
            return vec![Err(error); writes.len()];
        }
        let backend = match self.backend().await {
            Ok(backend) => backend,
            Err(error) => return vec![Err(error); writes.len()],
        };
        match &*backend {
            Backend::Disk(disk) => disk.write_many(writes).await,
            Backend::Memory(memory) => writes.iter().map(|write| memory.write(write)).collect(),
            Backend::Redis(redis, prefix) => redis.write_many(prefix, writes, 1).await,
            Backend::Remote(remote) => remote.write_many(self.name(), writes, 1).await,
        }
    }

    /// Begins a scan of the records between two keys, in order. On disk it sees the state at its
    /// first piece, unless the records move meanwhile. In Redis it sees each record as it is when its
    /// piece is read, and may miss a record whose slot moves to another node meanwhile.
    pub fn scan(self: &Rc<Self>, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Scan {
        Scan::new(self.clone(), start, end)
    }

    /// Merges all files, so that deleted and expired records take no space.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn compact(&self) -> Result<(), StoreError> {
        match &*self.backend().await? {
            Backend::Disk(disk) => disk.compact().await,
            Backend::Memory(_) | Backend::Redis(..) => Ok(()),
            Backend::Remote(remote) => remote.compact(self.name()).await,
        }
    }

    /// Statistics; those of another process are not known here.
    pub fn stats(&self) -> Stats {
        match self.present().as_deref() {
            Some(Backend::Disk(disk)) => disk.stats(),
            Some(Backend::Memory(memory)) => memory.stats(),
            Some(Backend::Redis(redis, _)) => redis.stats(),
            Some(Backend::Remote(_)) | None => Stats::default(),
        }
    }
}

/// Sorted files cannot store other keys.
fn check(id: &[u8]) -> Result<(), StoreError> {
    if is_id(id) { Ok(()) } else { Err(StoreError::InvalidKey { bytes: id.len() }) }
}

/// Counts a call that waits, until it is dropped.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn begin(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
