//! The sorted files of a namespace: a log-structured merge tree (the crate `lsm-tree`).
//!
//! The committer inserts, readers look up and scan, the compactor flushes and merges. Why this
//! library, and why not its journal: `docs/decisions/0009-storage-engine.md`. Invariant: the
//! checksum of a block is verified whenever the block is read from the disk.

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

/// Larger files are split.
const TABLE_BYTES: u64 = 64 << 20;

/// The block cache and open files that all namespaces of a store share.
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
    /// Held while a scan takes its snapshot, and while the oldest needed version is computed.
    snapshots: Mutex<()>,
    /// Files with a wrong checksum.
    damaged: Mutex<BTreeSet<String>>,
}

/// Records in the order of their names, as they were when the scan began.
pub(crate) type Snapshot = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>;

impl Levels {
    /// Opens or creates the tree in `folder`.
    ///
    /// # Errors
    /// The folder cannot be used, or a file is damaged.
    pub(crate) fn open(folder: &Path, blocks: &Blocks) -> Result<Self, OpenError> {
        let visible = SequenceNumberCounter::default();
        let config = Config::new(folder, SequenceNumberCounter::default(), visible.clone())
            .use_cache(blocks.cache.clone())
            .use_descriptor_table(Some(blocks.files.clone()))
            .with_compaction_filter_factory(Some(Arc::new(ExpiredFilterFactory)));
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

    /// The highest version in a sorted file.
    pub(crate) fn persisted_version(&self) -> Option<u64> {
        self.tree.get_highest_persisted_seqno()
    }

    /// Applies a committed write: a record, or a delete.
    pub(crate) fn put(&self, id: &[u8], version: u64, record: Option<&Record>) {
        match record {
            Some(record) => self.tree.insert(id, record.encode(), version),
            None => self.tree.remove(id, version),
        };
        self.visible.fetch_max(version + 1);
    }

    /// Looks up a record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) fn get(&self, id: &[u8]) -> Result<Option<Record>, StoreError> {
        let found = self.tree.get(id, SeqNo::MAX).map_err(|error| self.store_error(&error))?;
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
    /// As [`Levels::get`]; the scan continues after it.
    pub(crate) fn next(
        &self,
        scan: &mut Snapshot,
    ) -> Option<Result<(Vec<u8>, Record), StoreError>> {
        let (id, bytes) = match scan.next()?.into_inner() {
            Ok(pair) => pair,
            Err(error) => return Some(Err(self.store_error(&error))),
        };
        Some(self.decode(&bytes).map(|record| (id.to_vec(), record)))
    }

    /// Bytes in memory that are not yet sealed.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.tree.active_memtable().size()
    }

    /// The number of sealed buffers that are not flushed.
    pub(crate) fn sealed(&self) -> usize {
        self.tree.sealed_memtable_count()
    }

    /// Seals the buffer; later writes go into a new one.
    pub(crate) fn seal(&self) {
        self.tree.rotate_memtable();
    }

    /// Flushes all sealed buffers.
    ///
    /// # Errors
    /// The disk fails; the buffers stay.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let gc_watermark = self.gc_watermark();
        let lock = self.tree.get_flush_lock();
        self.tree.flush(&lock, gc_watermark).map_err(|error| self.store_error(&error))?;
        Ok(())
    }

    /// Merges files until nothing is gained by it.
    ///
    /// # Errors
    /// The disk fails; the files stay.
    pub(crate) fn merge(&self) -> Result<(), StoreError> {
        loop {
            let before = self.tree.current_version().id();
            let plan = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES));
            let merged = self.tree.compact(plan, self.gc_watermark());
            merged.map_err(|error| self.store_error(&error))?;
            if self.tree.current_version().id() == before {
                return Ok(());
            }
        }
    }

    /// Merges all files, so that deleted and expired records take no space.
    ///
    /// # Errors
    /// As [`Levels::merge`].
    pub(crate) fn merge_all(&self) -> Result<(), StoreError> {
        let merged = self.tree.major_compact(TABLE_BYTES, self.gc_watermark());
        merged.map_err(|error| self.store_error(&error))
    }

    /// States of a record that are older than this may be dropped if there is a newer one.
    fn gc_watermark(&self) -> SeqNo {
        let _held = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        self.visible.get()
    }

    /// The number of files, their bytes, and an estimate of the records.
    pub(crate) fn size(&self) -> (usize, u64, usize) {
        (self.tree.table_count(), self.tree.disk_space(), self.tree.approximate_len())
    }

    /// The paths of damaged files.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn store_error(&self, error: &lsm_tree::Error) -> StoreError {
        match error {
            lsm_tree::Error::Io(error) if is_full(error) => StoreError::Full,
            lsm_tree::Error::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                StoreError::Failed(format!("{}: {error}", self.folder.display()))
            }
            _ => StoreError::Damaged(self.find_damage()),
        }
    }

    /// Finds the damaged files: reads every block of those that are not known yet.
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

/// Whether the disk or the quota is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Drops expired records when files are merged.
struct ExpiredFilterFactory;

impl Factory for ExpiredFilterFactory {
    fn name(&self) -> &str {
        "expired"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(ExpiredFilter { now_ms: unix_ms() })
    }
}

struct ExpiredFilter {
    now_ms: u64,
}

impl CompactionFilter for ExpiredFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        let expires_ms = Record::encoded_expires_ms(&item.value()?);
        Ok(match expires_ms {
            Some(expires_ms) if expires_ms <= self.now_ms => Verdict::Remove,
            _ => Verdict::Keep,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    fn open(folder: &Folder) -> Levels {
        Levels::open(folder.path(), &Blocks::new(1 << 20, 16)).unwrap()
    }

    fn record(version: u64, expires_ms: Option<u64>) -> Record {
        Record { version, expires_ms, value: version.to_string().into_bytes().into() }
    }

    fn ids(levels: &Levels, mut scan: Snapshot) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| levels.next(&mut scan)).map(|next| next.unwrap().0).collect()
    }

    #[test]
    fn the_latest_version_of_a_record_is_found_also_after_a_flush() {
        let folder = Folder::new();
        let levels = open(&folder);
        assert_eq!(levels.get(b"a"), Ok(None));
        levels.put(b"a", 1, Some(&record(1, None)));
        levels.put(b"a", 2, Some(&record(2, None)));
        assert_eq!(levels.persisted_version(), None);
        levels.seal();
        levels.flush().unwrap();
        assert_eq!(levels.persisted_version(), Some(2));
        assert_eq!(levels.get(b"a"), Ok(Some(record(2, None))));
        levels.put(b"a", 3, None);
        assert_eq!(levels.get(b"a"), Ok(None));
        drop(levels);
        assert_eq!(open(&folder).get(b"a"), Ok(Some(record(2, None))), "the journal has the rest");
    }

    #[test]
    fn a_scan_sees_the_state_at_its_beginning_within_its_bounds() {
        let folder = Folder::new();
        let levels = open(&folder);
        for (version, id) in (1..).zip([b"a", b"b", b"c", b"d"]) {
            levels.put(id, version, Some(&record(version, None)));
        }
        let scan = levels.scan(Bound::Excluded(b"a"), Bound::Included(b"d"));
        levels.put(b"c", 5, None);
        levels.put(b"cc", 6, Some(&record(6, None)));
        levels.seal();
        levels.flush().unwrap();
        levels.merge().unwrap();
        assert_eq!(ids(&levels, scan), [b"b", b"c", b"d"]);
        let scan = levels.scan(Bound::Unbounded, Bound::Excluded(b"d"));
        assert_eq!(ids(&levels, scan), [&b"a"[..], b"b", b"cc"]);
    }

    #[test]
    fn merging_all_files_drops_what_is_deleted_or_expired() {
        let folder = Folder::new();
        let levels = open(&folder);
        levels.put(b"expired", 1, Some(&record(1, Some(1))));
        levels.put(b"later", 2, Some(&record(2, Some(u64::MAX))));
        levels.put(b"deleted", 3, Some(&record(3, None)));
        levels.put(b"stays", 4, Some(&record(4, None)));
        levels.put(b"deleted", 5, None);
        levels.seal();
        levels.flush().unwrap();
        levels.merge_all().unwrap();
        let scan = levels.scan(Bound::Unbounded, Bound::Unbounded);
        assert_eq!(ids(&levels, scan), [&b"later"[..], b"stays"]);
        assert_eq!((levels.size().2, levels.damaged()), (2, vec![]));
    }

    #[test]
    fn a_full_disk_and_a_full_quota_are_not_taken_for_damage() {
        let folder = Folder::new();
        let levels = open(&folder);
        for (kind, is_expected) in [
            (io::ErrorKind::StorageFull, StoreError::Full),
            (io::ErrorKind::QuotaExceeded, StoreError::Full),
            (
                io::ErrorKind::PermissionDenied,
                StoreError::Failed(format!("{}: permission denied", folder.path().display())),
            ),
            (
                io::ErrorKind::UnexpectedEof,
                StoreError::Damaged(format!("a file in {}", folder.path().display())),
            ),
        ] {
            assert_eq!(levels.store_error(&lsm_tree::Error::Io(kind.into())), is_expected);
        }
    }
}
