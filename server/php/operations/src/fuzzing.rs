//! The parser of batches, for fuzz targets. Compiled with `--cfg fuzzing` only.

use crate::entities::Batch;

/// The bytes of the ids of a worker's operation on the entity store.
pub fn kv_batch(operation: &[u8]) -> Option<usize> {
    Some(match Batch::read(operation)? {
        Batch::Reads(ids) => ids.iter().map(|id| id.len()).sum(),
        Batch::Writes(writes) => writes.iter().map(|write| write.id.len()).sum(),
        Batch::Scan { .. } => 0,
    })
}
