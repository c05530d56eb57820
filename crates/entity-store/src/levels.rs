//! The sorted files of a namespace: a log-structured merge tree (the crate `lsm-tree`).
//!
//! The committer inserts, readers look up and scan, the keeper moves what is in memory to disk and
//! merges files. Why this library, and why not the journal that comes with it:
//! `docs/decisions/0009-storage-engine.md`. Invariant: every block of a file has a checksum, which
//! is looked at whenever the block is read from the disk.

use crate::error::{OpenError, StoreError};
use crate::record::{Record, unix_ms};
use lsm_tree::compaction::Leveled;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, Config, DescriptorTable, Guard, IterGuardImpl, SeqNo,
    SequenceNumberCounter,
};
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files above this are split.
const TABLE_BYTES: u64 = 64 << 20;

/// What the namespaces of a store share.
#[derive(Clone)]
pub(crate) struct Blocks {
    cache: Arc<Cache>,
    files: Arc<DescriptorTable>,
}

impl Blocks {
    pub(crate) fn new(cache_bytes: usize, open_files: usize) -> Self {
        Self {
            cache: Arc::new(Cache::with_capacity_bytes(cache_bytes as u64)),
            files: Arc::new(DescriptorTable::new(open_files)),
        }
    }
}

/// The tree of a namespace.
pub(crate) struct Levels {
    tree: AnyTree,
    folder: PathBuf,
    visible: SequenceNumberCounter,
    /// Held while a scan takes its snapshot and while what may be forgotten is decided.
    snapshots: Mutex<()>,
    /// Files that did not match their checksums.
    damaged: Mutex<BTreeSet<String>>,
}

/// Records in the order of their names, as they were when the scan began.
pub(crate) type Snapshot = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>;

impl Levels {
    /// Opens the tree in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be used, or a file in it is not what it was.
    pub(crate) fn open(folder: &Path, blocks: &Blocks) -> Result<Self, OpenError> {
        let visible = SequenceNumberCounter::default();
        let config = Config::new(folder, SequenceNumberCounter::default(), visible.clone())
            .use_cache(blocks.cache.clone())
            .use_descriptor_table(Some(blocks.files.clone()))
            .with_compaction_filter_factory(Some(Arc::new(Ended)));
        let tree = config.open().map_err(|error| match error {
            lsm_tree::Error::Io(source) => OpenError::Io { path: folder.to_owned(), source },
            other => OpenError::Damaged { path: folder.to_owned(), what: other.to_string() },
        })?;
        visible.fetch_max(tree.get_highest_seqno().map_or(0, |highest| highest + 1));
        Ok(Self {
            tree,
            folder: folder.to_owned(),
            visible,
            snapshots: Mutex::default(),
            damaged: Mutex::default(),
        })
    }

    /// The highest version that is on the disk.
    pub(crate) fn persisted_version(&self) -> Option<u64> {
        self.tree.get_highest_persisted_seqno()
    }

    /// Puts what was committed: a record, or that there is none.
    pub(crate) fn put(&self, id: &[u8], version: u64, record: Option<&Record>) {
        match record {
            Some(record) => self.tree.insert(id, record.encode(), version),
            None => self.tree.remove(id, version),
        };
        self.visible.fetch_max(version + 1);
    }

    /// Looks a record up.
    ///
    /// # Errors
    /// The file that has it cannot be read, or is damaged.
    pub(crate) fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let found = self.tree.get(id, SeqNo::MAX).map_err(|error| self.failed(&error))?;
        found.map(|bytes| self.decode(&bytes)).transpose()
    }

    fn decode(&self, bytes: &[u8]) -> Result<Record, StoreError> {
        let short = || StoreError::Damaged(format!("a short record in {}", self.folder.display()));
        Record::decode(bytes).ok_or_else(short)
    }

    /// Begins a scan.
    pub(crate) fn scan(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Snapshot {
        let _held = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        self.tree.range::<&[u8], _>((start, end), self.visible.get(), None)
    }

    /// The next record of a scan.
    ///
    /// # Errors
    /// As [`Levels::get`]; the scan goes on behind it.
    pub(crate) fn next(
        &self,
        scan: &mut Snapshot,
    ) -> Option<Result<(Vec<u8>, Record), StoreError>> {
        let (id, bytes) = match scan.next()?.into_inner() {
            Ok(pair) => pair,
            Err(error) => return Some(Err(self.failed(&error))),
        };
        Some(self.decode(&bytes).map(|record| (id.to_vec(), record)))
    }

    /// Bytes in memory that are not yet sealed.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.tree.active_memtable().size()
    }

    /// How many sealed buffers wait for the keeper.
    pub(crate) fn sealed(&self) -> usize {
        self.tree.sealed_memtable_count()
    }

    /// What was put from now on goes into another buffer.
    pub(crate) fn seal(&self) {
        self.tree.rotate_memtable();
    }

    /// Writes all sealed buffers to disk.
    ///
    /// # Errors
    /// What the disk says; the buffers stay.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let forget_before = self.forget_before();
        let lock = self.tree.get_flush_lock();
        self.tree.flush(&lock, forget_before).map_err(|error| self.failed(&error))?;
        Ok(())
    }

    /// Merges files until there is nothing to gain by it.
    ///
    /// # Errors
    /// What the disk says; the files stay as they were.
    pub(crate) fn merge(&self) -> Result<(), StoreError> {
        loop {
            let before = self.tree.current_version().id();
            let plan = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES));
            let merged = self.tree.compact(plan, self.forget_before());
            merged.map_err(|error| self.failed(&error))?;
            if self.tree.current_version().id() == before {
                return Ok(());
            }
        }
    }

    /// Merges everything, so that deleted and ended records take no room.
    ///
    /// # Errors
    /// As [`Levels::merge`].
    pub(crate) fn merge_all(&self) -> Result<(), StoreError> {
        let merged = self.tree.major_compact(TABLE_BYTES, self.forget_before());
        merged.map_err(|error| self.failed(&error))
    }

    /// Older states than this of a record that has a newer one can go.
    fn forget_before(&self) -> SeqNo {
        let _held = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        self.visible.get()
    }

    /// Files, bytes on disk, and records (an estimate).
    pub(crate) fn size(&self) -> (usize, u64, usize) {
        (self.tree.table_count(), self.tree.disk_space(), self.tree.approximate_len())
    }

    /// Names of files that were found damaged.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn failed(&self, error: &lsm_tree::Error) -> StoreError {
        match error {
            lsm_tree::Error::Io(error) if is_full(error) => StoreError::Full,
            lsm_tree::Error::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                StoreError::Failed(format!("{}: {error}", self.folder.display()))
            }
            _ => StoreError::Damaged(self.find_damage()),
        }
    }

    /// Which files it is: reads every block of those that are not known yet.
    fn find_damage(&self) -> String {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        for table in self.tree.current_version().iter_tables() {
            let name = table.path.display().to_string();
            let is_whole = || table.scan().is_ok_and(|mut items| items.all(|item| item.is_ok()));
            if !damaged.contains(&name) && !is_whole() {
                damaged.insert(name);
            }
        }
        match damaged.is_empty() {
            true => format!("a file in {}", self.folder.display()),
            false => damaged.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        }
    }
}

/// Whether the disk or the quota is used up.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Has ended records left out when files are merged.
struct Ended;

impl Factory for Ended {
    fn name(&self) -> &str {
        "ended"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(EndedBy { now_ms: unix_ms() })
    }
}

struct EndedBy {
    now_ms: u64,
}

impl CompactionFilter for EndedBy {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let expires_ms = Record::encoded_expires_ms(&item.value()?);
        Ok(match expires_ms {
            Some(expires_ms) if expires_ms <= self.now_ms => Verdict::Remove,
            _ => Verdict::Keep,
        })
    }
}
