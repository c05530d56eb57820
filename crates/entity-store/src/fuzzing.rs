//! What fuzz targets reach of the parsers here. Compiled for them alone, with `--cfg fuzzing`.

use crate::journal::{self, Flaw};
use crate::record::Record;
use crate::redis;
use std::convert::Infallible;

/// A write that a journal has: its name, its version, and the record unless it was deleted.
pub type Entry = (Vec<u8>, u64, Option<Record>);

/// What a start finds in a segment of the journal: the writes, and where what it cannot believe begins.
pub fn replayed(segment: &[u8]) -> (Vec<Entry>, Vec<u64>) {
    let mut entries = Vec::new();
    let flaws = journal::replay_bytes::<Infallible>(segment, |entry| {
        entries.push((entry.id.to_vec(), entry.version, entry.record));
        Ok(())
    });
    let Ok(flaws) = flaws;
    let at = |flaw| match flaw {
        Flaw::Cut { at } | Flaw::Damage { at, .. } => at,
    };
    (entries, flaws.into_iter().map(at).collect())
}

/// A record as sorted files have it, written again as it was read.
pub fn record_again(bytes: &[u8]) -> Option<Vec<u8>> {
    Record::decode(bytes).map(|record| record.encode())
}

/// How many of the bytes are a reply of Redis, after it was taken for all that a reply can be.
pub fn redis_reply(bytes: &[u8]) -> Option<usize> {
    redis::read_as_everything(bytes)
}
