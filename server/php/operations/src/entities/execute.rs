//! Executes a [`Batch`].
//!
//! Called by [`crate::fetch`]. Invariant: writes of one batch are committed together, up to
//! [`MAX_QUEUED`] at a time.

use super::batch::{Batch, NONE, Reading, STEP_ENTRIES};
use super::owner::Owner;
use super::{Entities, reason};
use outboard_buffer::Held;
use outboard_entity_store::{Change, Namespace, Record, Scan, StoreError, Write};
use outboard_reactor::share_turn;
use std::sync::Arc;

/// Operations that are queued at once, fewer than the queue holds.
const MAX_QUEUED: usize = 512;

/// The cost of one lookup, as bytes that could be copied in its time.
const LOOKUP_COST_BYTES: usize = 512;
/// A result of reads is copied up to this length; the values of a longer one are shared.
const MAX_COPIED_BYTES: usize = 1 << 20;
/// Records that are read from disk before their length is counted.
const READS_PER_STEP: usize = 32;
/// Largest part of a scan; `Outboard\KV` requests less.
const SCAN_MAX_BYTES: usize = 1 << 20;
/// The memory of an id or a write in addition to its bytes.
const ENTRY_BYTES: usize = 128;

/// A status as in the HTTP API, and the result or an error message.
pub(crate) struct BatchResult {
    pub(crate) status: u16,
    /// In parts, so that values need not be copied.
    pub(crate) body: Vec<Arc<[u8]>>,
}

impl BatchResult {
    fn refused(status: u16, why: &str) -> Self {
        Self { status, body: vec![why.as_bytes().into()] }
    }

    fn no_memory() -> Self {
        let why = "the result exceeds the memory limit of the worker or the app; see limits.memory";
        Self::refused(503, why)
    }
}

impl From<Vec<u8>> for BatchResult {
    fn from(body: Vec<u8>) -> Self {
        Self { status: 200, body: vec![body.into()] }
    }
}

impl<A: Into<Self>> From<Result<A, StoreError>> for BatchResult {
    fn from(done: Result<A, StoreError>) -> Self {
        match done {
            Ok(done) => done.into(),
            // The HTTP API has no increments, so no status for this.
            Err(error @ StoreError::NotANumber) => Self::refused(409, &error.to_string()),
            Err(error) => Self::refused(reason(&error).status(), &error.to_string()),
        }
    }
}

/// Executes an operation of a worker. `held` counts its bytes; further memory is added to it.
pub(crate) async fn execute(
    entities: &Entities,
    owner: &Owner,
    namespace: &str,
    operation: &[u8],
    held: &mut Held,
) -> BatchResult {
    if !held.try_grow(Batch::count(operation).saturating_mul(ENTRY_BYTES)) {
        return BatchResult::no_memory();
    }
    let batch = read(operation).await;
    if let Err(why) = owner.check(namespace, batch.as_ref()) {
        return BatchResult::refused(403, &why);
    }
    let Some(namespace) = entities.namespace(namespace) else {
        return BatchResult::refused(404, "there is no such namespace; see [kv.namespace]");
    };
    match batch {
        Some(Batch::Reads(ids)) => reads(namespace, &ids, held).await.into(),
        Some(Batch::Writes(writes)) if writes.iter().any(|write| entities.is_too_long(write)) => {
            BatchResult::refused(413, "the value is longer than entities.max_value")
        }
        Some(Batch::Writes(writes)) => self::writes(namespace, writes).await.into(),
        Some(Batch::Scan { max_bytes, start, end }) => {
            scan(namespace.scan(start, end), max_bytes).await.into()
        }
        None => BatchResult::refused(400, "the operation is invalid"),
    }
}

async fn read(operation: &[u8]) -> Option<Batch<'_>> {
    let mut reading = Reading::begin(operation)?;
    while !reading.step()? {
        share_turn(STEP_ENTRIES * LOOKUP_COST_BYTES).await;
    }
    Some(reading.batch)
}

impl Entities {
    fn is_too_long(&self, write: &Write) -> bool {
        matches!(&write.change, Change::Put { value, .. }
            if value.len() as u64 > self.config.max_value_bytes)
    }
}

async fn reads(
    namespace: &Namespace,
    ids: &[&[u8]],
    held: &mut Held,
) -> Result<BatchResult, StoreError> {
    let mut copied = CopiedReads::new(ids.len());
    let mut is_complete = true;
    for ids in ids.chunks(MAX_QUEUED) {
        is_complete = namespace.show_many(ids, |record| copied.put(record))?;
        if !is_complete || copied.is_long {
            break;
        }
        share_turn(ids.len() * LOOKUP_COST_BYTES).await;
    }
    if is_complete && !copied.is_long {
        return Ok(copied.bytes.into());
    }
    drop(copied);
    let mut lengths = Vec::with_capacity(4 * ids.len());
    let mut body: Vec<Arc<[u8]>> = vec![Arc::default()];
    for ids in ids.chunks(READS_PER_STEP) {
        share_turn(ids.len() * LOOKUP_COST_BYTES).await;
        let records = namespace.get_many(ids).await?;
        lengths.extend(records.iter().flat_map(|record| length(record.as_ref())));
        let values = records.into_iter().flatten().map(|record| record.value);
        let from = body.len();
        body.extend(values);
        if !held.try_grow(body[from..].iter().map(|value| value.len()).sum()) {
            return Ok(BatchResult::no_memory());
        }
    }
    body[0] = lengths.into();
    Ok(BatchResult { status: 200, body })
}

fn length(record: Option<&Record>) -> [u8; 4] {
    record.map_or(NONE, |record| record.value.len() as u32).to_le_bytes()
}

/// A short result of reads: all lengths, followed by the values.
struct CopiedReads {
    bytes: Vec<u8>,
    next_length: usize,
    /// It exceeds [`MAX_COPIED_BYTES`], so that values are missing.
    is_long: bool,
}

impl CopiedReads {
    fn new(count: usize) -> Self {
        Self { bytes: vec![0; 4 * count], next_length: 0, is_long: false }
    }

    fn put(&mut self, record: Option<&Record>) {
        self.bytes[self.next_length..][..4].copy_from_slice(&length(record));
        self.next_length += 4;
        let value = record.map_or(&[][..], |record| &record.value);
        self.is_long |= self.bytes.len() + value.len() > MAX_COPIED_BYTES;
        if !self.is_long {
            self.bytes.extend_from_slice(value);
        }
    }
}

async fn writes(namespace: &Namespace, writes: Vec<Write>) -> Result<Vec<u8>, StoreError> {
    let (mut body, mut failed) = (Vec::new(), None);
    let mut writes = writes.into_iter();
    while writes.len() > 0 {
        let together: Vec<Write> = writes.by_ref().take(MAX_QUEUED).collect();
        share_turn(together.len() * LOOKUP_COST_BYTES).await;
        let is_increment = |write: &Write| matches!(write.change, Change::Increment { .. });
        let increments: Vec<bool> = together.iter().map(is_increment).collect();
        let done = namespace.write_many(together).await;
        for (done, is_count) in done.into_iter().zip(increments) {
            let (state, value) = match done {
                Ok(written) => (u8::from(written.record.is_some()), written.record),
                Err(StoreError::ConditionFailed { .. }) => (2, None),
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let value = value.filter(|_| is_count).map(|record| record.value);
            let value = value.as_deref().unwrap_or_default();
            body.push(state);
            body.extend_from_slice(&(value.len() as u32).to_le_bytes());
            body.extend_from_slice(value);
        }
    }
    failed.map_or(Ok(body), Err)
}

async fn scan(mut scan: Scan, max_bytes: usize) -> Result<Vec<u8>, StoreError> {
    let (mut count, mut lengths, mut bytes) = (0_u32, Vec::new(), Vec::new());
    while bytes.len() < max_bytes.min(SCAN_MAX_BYTES) {
        let piece = scan.next().await?;
        share_turn(piece.len() * LOOKUP_COST_BYTES).await;
        if piece.is_empty() {
            break;
        }
        for (id, record) in piece {
            count += 1;
            lengths.extend_from_slice(&(id.len() as u32).to_le_bytes());
            lengths.extend_from_slice(&(record.value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&id);
            bytes.extend_from_slice(&record.value);
        }
    }
    Ok([&count.to_le_bytes()[..], &lengths, &bytes].concat())
}

#[cfg(test)]
mod tests;
