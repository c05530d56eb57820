//! The record cache of a namespace on disk, and the reads that will fill it.
//!
//! Used by [`super::Disk`], its reads and its writes. Invariant: a read that a write overtook does not
//! change the cache.

use crate::cache::Cache;
use crate::change::Written;
use crate::record::Record;
use std::collections::HashMap;

/// The cache, and the reads that will fill it.
pub(super) struct ReadCache {
    cache: Cache,
    reading: HashMap<Box<[u8]>, Reading>,
}

#[derive(Default)]
struct Reading {
    readers: u32,
    was_overtaken: bool,
}

impl ReadCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { cache: Cache::new(max_bytes), reading: HashMap::new() }
    }

    /// The number of entries, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        self.cache.size()
    }

    /// The cached state of a record that has not expired.
    pub(super) fn get(&self, id: &[u8], now_ms: u64) -> Option<Option<&Record>> {
        let known = self.cache.get(id)?;
        Some(known.filter(|record| record.is_alive(now_ms)))
    }

    pub(super) fn begin_read(&mut self, id: &[u8]) {
        match self.reading.get_mut(id) {
            Some(reading) => reading.readers += 1,
            None => {
                self.reading.insert(id.into(), Reading { readers: 1, was_overtaken: false });
            }
        }
    }

    /// Caches the result of a read, unless the record was written meanwhile.
    pub(super) fn end_read(&mut self, id: &[u8], found: Option<Option<&Record>>) {
        let Some(reading) = self.reading.get_mut(id) else { return };
        reading.readers -= 1;
        let was_overtaken = reading.was_overtaken;
        if reading.readers == 0 {
            self.reading.remove(id);
        }
        if let Some(found) = found
            && !was_overtaken
        {
            self.cache.put(id, found.cloned());
        }
    }

    /// Caches a committed write.
    pub(super) fn written(&mut self, id: &[u8], written: &Written) {
        if let Some(reading) = self.reading.get_mut(id) {
            reading.was_overtaken = true;
        }
        self.cache.put(id, written.record.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: u64) -> Record {
        Record { version, expires_ms: Some(100), value: [].into() }
    }

    fn written(version: u64) -> Written {
        Written { record: Some(record(version)), existed: None }
    }

    fn version(cache: &ReadCache) -> Option<Option<u64>> {
        cache.get(b"a", 0).map(|known| known.map(|record| record.version))
    }

    #[test]
    fn a_read_fills_the_cache_also_with_what_does_not_exist() {
        for found in [Some(record(3)), None] {
            let mut cache = ReadCache::new(1 << 20);
            cache.begin_read(b"a");
            assert_eq!(version(&cache), None);
            cache.end_read(b"a", Some(found.as_ref()));
            assert_eq!(version(&cache), Some(found.map(|record| record.version)));
            assert!(cache.reading.is_empty());
        }
    }

    #[test]
    fn reads_that_a_write_overtook_do_not_change_the_cache() {
        let mut cache = ReadCache::new(1 << 20);
        cache.begin_read(b"a");
        cache.begin_read(b"a");
        cache.written(b"a", &written(5));
        cache.end_read(b"a", Some(Some(&record(4))));
        assert_eq!(version(&cache), Some(Some(5)));
        // One that began after the write cannot be told from the others.
        cache.begin_read(b"a");
        cache.end_read(b"a", Some(None));
        cache.end_read(b"a", Some(Some(&record(4))));
        assert_eq!(version(&cache), Some(Some(5)));
        cache.begin_read(b"a");
        cache.end_read(b"a", Some(Some(&record(6))));
        assert_eq!(version(&cache), Some(Some(6)), "the next one does");
    }

    #[test]
    fn a_read_that_was_dropped_or_failed_changes_nothing() {
        let mut cache = ReadCache::new(1 << 20);
        cache.begin_read(b"a");
        cache.end_read(b"a", None);
        cache.end_read(b"a", Some(None));
        assert_eq!((version(&cache), cache.reading.len()), (None, 0), "no read was in progress");
    }

    #[test]
    fn an_expired_record_is_known_not_to_exist() {
        let mut cache = ReadCache::new(1 << 20);
        cache.written(b"a", &written(1));
        assert_eq!(cache.get(b"a", 99), Some(Some(&record(1))));
        assert_eq!(cache.get(b"a", 100), Some(None));
        assert_eq!(cache.size().0, 1);
    }
}
