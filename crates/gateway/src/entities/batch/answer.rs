//! Doing what a [`Batch`] asks for.
//!
//! Called by [`crate::fetch`]. Invariant: writes of one batch are committed together as far as they may
//! wait together.

use super::{Batch, NONE};
use crate::entities::{Entities, Owner, reason};
use outboard_buffer::Held;
use outboard_entity_store::{Change, Namespace, Record, Scan, StoreError, Write};
use outboard_reactor::share_turn;
use std::sync::Arc;

/// Writes that are queued at once, fewer than may wait.
const TOGETHER: usize = 512;

/// What it takes to look one up, as bytes that are moved.
const LOOK_UP_BYTES: usize = 512;
/// An answer to reads up to this is put together; the values of a longer one stay where they are.
const COPIED_BYTES: usize = 1 << 20;
/// Records that are fetched from a disk before it is counted how long they are.
const FETCHED: usize = 32;
/// Bytes that a part of a scan may have; `Outboard\KV` asks for less.
const SCAN_MAX_BYTES: usize = 1 << 20;
/// What a name or a write takes beside its bytes.
const ENTRY_BYTES: usize = 128;

/// An answer: a status as over HTTP, and the bytes, or why there are none.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In parts, so that values need not be copied.
    pub(crate) body: Vec<Arc<[u8]>>,
}

impl Answer {
    fn refused(status: u16, why: &str) -> Self {
        Self { status, body: vec![why.as_bytes().into()] }
    }

    fn no_memory() -> Self {
        let why = "the answer is more than may be held in memory for the worker or the app; see \
                   limits.memory";
        Self::refused(503, why)
    }
}

impl From<Vec<u8>> for Answer {
    fn from(body: Vec<u8>) -> Self {
        Self { status: 200, body: vec![body.into()] }
    }
}

impl<A: Into<Self>> From<Result<A, StoreError>> for Answer {
    fn from(done: Result<A, StoreError>) -> Self {
        match done {
            Ok(done) => done.into(),
            // Only what counts can meet this, and nothing counts over HTTP.
            Err(error @ StoreError::NotANumber) => Self::refused(409, &error.to_string()),
            Err(error) => Self::refused(reason(&error).status(), &error.to_string()),
        }
    }
}

/// Does what a worker asks for, of which `held` counts the bytes; what else it takes is added.
pub(crate) async fn answer(
    entities: &Entities,
    owner: &Owner,
    namespace: &str,
    asked: &[u8],
    held: &mut Held,
) -> Answer {
    if !held.try_grow(Batch::count(asked).saturating_mul(ENTRY_BYTES)) {
        return Answer::no_memory();
    }
    let batch = Batch::read(asked);
    if let Err(why) = owner.may(namespace, batch.as_ref()) {
        return Answer::refused(403, &why);
    }
    let Some(namespace) = entities.namespace(namespace) else {
        return Answer::refused(404, "there is no such namespace; see [kv.namespace]");
    };
    match batch {
        Some(Batch::Reads(ids)) => reads(namespace, &ids, held).await.into(),
        Some(Batch::Writes(writes)) if writes.iter().any(|write| entities.is_too_long(write)) => {
            Answer::refused(413, "the value is longer than entities.max_value")
        }
        Some(Batch::Writes(writes)) => writes_of(namespace, writes).await.into(),
        Some(Batch::Scan { most_bytes, start, end }) => {
            scan(namespace.scan(start, end), most_bytes).await.into()
        }
        None => Answer::refused(400, "the operation cannot be read"),
    }
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
) -> Result<Answer, StoreError> {
    let mut shown = Shown::of(ids.len());
    let mut all_shown = true;
    for ids in ids.chunks(TOGETHER) {
        all_shown = namespace.show_many(ids, |record| shown.put(record))?;
        if !all_shown || shown.is_long {
            break;
        }
        share_turn(ids.len() * LOOK_UP_BYTES).await;
    }
    if all_shown && !shown.is_long {
        return Ok(shown.bytes.into());
    }
    drop(shown);
    let mut lengths = Vec::with_capacity(4 * ids.len());
    let mut body: Vec<Arc<[u8]>> = vec![Arc::default()];
    for ids in ids.chunks(FETCHED) {
        share_turn(ids.len() * LOOK_UP_BYTES).await;
        let records = namespace.get_many(ids).await?;
        lengths.extend(records.iter().flat_map(|record| length(record.as_ref())));
        let values = records.into_iter().flatten().map(|record| record.value);
        let from = body.len();
        body.extend(values);
        if !held.try_grow(body[from..].iter().map(|value| value.len()).sum()) {
            return Ok(Answer::no_memory());
        }
    }
    body[0] = lengths.into();
    Ok(Answer { status: 200, body })
}

fn length(record: Option<&Record>) -> [u8; 4] {
    record.map_or(NONE, |record| record.value.len() as u32).to_le_bytes()
}

/// A short answer to reads: all lengths, and the values behind them.
struct Shown {
    bytes: Vec<u8>,
    next_length: usize,
    /// It is not all there.
    is_long: bool,
}

impl Shown {
    fn of(count: usize) -> Self {
        Self { bytes: vec![0; 4 * count], next_length: 0, is_long: false }
    }

    fn put(&mut self, record: Option<&Record>) {
        self.bytes[self.next_length..][..4].copy_from_slice(&length(record));
        self.next_length += 4;
        let value = record.map_or(&[][..], |record| &record.value);
        self.is_long |= self.bytes.len() + value.len() > COPIED_BYTES;
        if !self.is_long {
            self.bytes.extend_from_slice(value);
        }
    }
}

async fn writes_of(namespace: &Namespace, writes: Vec<Write>) -> Result<Vec<u8>, StoreError> {
    let counts = |write: &Write| matches!(write.change, Change::Increment { .. });
    let counts: Vec<bool> = writes.iter().map(counts).collect();
    let mut done = Vec::with_capacity(writes.len());
    let mut writes = writes.into_iter();
    while writes.len() > 0 {
        let together: Vec<Write> = writes.by_ref().take(TOGETHER).collect();
        share_turn(together.len() * LOOK_UP_BYTES).await;
        done.extend(namespace.write_many(together).await);
    }
    let mut body = Vec::new();
    for (done, is_count) in done.into_iter().zip(counts) {
        let (state, value) = match done {
            Ok(written) => (u8::from(written.record.is_some()), written.record),
            Err(StoreError::ConditionFailed { .. }) => (2, None),
            Err(error) => return Err(error),
        };
        let value = value.filter(|_| is_count).map(|record| record.value);
        let value = value.as_deref().unwrap_or_default();
        body.push(state);
        body.extend_from_slice(&(value.len() as u32).to_le_bytes());
        body.extend_from_slice(value);
    }
    Ok(body)
}

async fn scan(mut scan: Scan, most_bytes: usize) -> Result<Vec<u8>, StoreError> {
    let (mut count, mut lengths, mut bytes) = (0_u32, Vec::new(), Vec::new());
    while bytes.len() < most_bytes.min(SCAN_MAX_BYTES) {
        let piece = scan.next().await?;
        share_turn(piece.len() * LOOK_UP_BYTES).await;
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
