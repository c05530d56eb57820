//! Entry points of the fuzz targets. Compiled only with `--cfg fuzzing`.

use crate::journal::{self, Flaw};
use crate::record::Record;
use crate::redis;
use std::convert::Infallible;

/// A write of a journal: its key, its version, and the record unless it was deleted.
pub type Entry = (Vec<u8>, u64, Option<Record>);

/// Replays a segment: the writes, and the offsets of unreadable parts.
pub fn replayed(segment: &[u8]) -> (Vec<Entry>, Vec<u64>) {
    let mut entries = Vec::new();
    let flaws = journal::replay_bytes::<Infallible>(segment, |entry| {
        entries.push((entry.id.to_vec(), entry.version, entry.record));
        Ok(())
    });
    let Ok(flaws) = flaws;
    let at = |flaw| match flaw {
        Flaw::Truncated { at } | Flaw::Damage { at, .. } => at,
    };
    (entries, flaws.into_iter().map(at).collect())
}

/// Decodes and encodes a record of a sorted file.
pub fn record_again(bytes: &[u8]) -> Option<Vec<u8>> {
    Record::decode(bytes).map(|record| record.encode())
}

/// Interprets bytes from a Redis node as each kind of reply.
pub fn redis_reply(bytes: &[u8]) {
    redis::interpret_reply(bytes);
}
