//! Any bytes as what a worker asks of the entity store: read or refused, and never more than there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_operations::fuzzing::kv_batch;

fuzz_target!(|input: (&[u8], Vec<&[u8]>)| {
    let (asked, ids) = input;
    assert!(kv_batch(asked).is_none_or(|bytes| bytes < asked.len()));

    let mut reads = vec![1];
    reads.extend_from_slice(&(ids.len() as u32).to_le_bytes());
    ids.iter().for_each(|id| reads.extend_from_slice(&(id.len() as u32).to_le_bytes()));
    ids.iter().for_each(|id| reads.extend_from_slice(id));
    assert_eq!(kv_batch(&reads), Some(ids.iter().map(|id| id.len()).sum()));
    assert_eq!(kv_batch(&reads[..reads.len() - 1]), None);
});
