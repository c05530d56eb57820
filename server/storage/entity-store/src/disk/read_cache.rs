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
