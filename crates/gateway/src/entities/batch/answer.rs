//! Doing what a [`Batch`] asks for.
//!
//! Called by [`crate::fetch`]. Invariant: writes of one batch are committed together as far as they may
//! wait together.

use super::super::{Entities, Owner, reason};
use super::{Batch, NONE};
use outboard_entity_store::{Change, Namespace, Record, Scan, StoreError, Write};

/// Writes that are queued at once, fewer than may wait.
const TOGETHER: usize = 512;

/// An answer: a status as over HTTP, and the bytes, or why there are none.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn refused(status: u16, why: &str) -> Self {
        Self { status, body: why.as_bytes().to_vec() }
    }
}

impl From<Result<Vec<u8>, StoreError>> for Answer {
    fn from(done: Result<Vec<u8>, StoreError>) -> Self {
        match done {
            Ok(body) => Self { status: 200, body },
            // Only what counts can meet this, and nothing counts over HTTP.
            Err(error @ StoreError::NotANumber) => Self::refused(409, &error.to_string()),
            Err(error) => Self::refused(reason(&error).status(), &error.to_string()),
        }
    }
}

/// Does what a worker asks for.
pub(crate) async fn answer(
    entities: &Entities,
    owner: &Owner,
    namespace: &str,
    asked: &[u8],
) -> Answer {
    let batch = Batch::read(asked);
    if let Err(why) = owner.may(namespace, batch.as_ref()) {
        return Answer::refused(403, &why);
    }
    let Some(namespace) = entities.namespace(namespace) else {
        return Answer::refused(404, "there is no such namespace; see [entities.namespace]");
    };
    match batch {
        Some(Batch::Reads(ids)) => reads(namespace, &ids).await.into(),
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
            if value.len() as u64 > self.config.value_max_bytes)
    }
}

async fn reads(namespace: &Namespace, ids: &[&[u8]]) -> Result<Vec<u8>, StoreError> {
    let mut answer = Records::of(ids.len());
    if !namespace.show_many(ids, |record| answer.put(record))? {
        answer = Records::of(ids.len());
        namespace.get_many(ids).await?.iter().for_each(|record| answer.put(record.as_ref()));
    }
    Ok(answer.bytes)
}

/// The answer to reads: all lengths, and the values behind them.
struct Records {
    bytes: Vec<u8>,
    next_length: usize,
}

impl Records {
    fn of(count: usize) -> Self {
        Self { bytes: vec![0; 4 * count], next_length: 0 }
    }

    fn put(&mut self, record: Option<&Record>) {
        let length = record.map_or(NONE, |record| record.value.len() as u32);
        let place = &mut self.bytes[self.next_length..][..4];
        place.copy_from_slice(&length.to_le_bytes());
        self.next_length += 4;
        if let Some(record) = record {
            self.bytes.extend_from_slice(&record.value);
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
    while bytes.len() < most_bytes {
        let piece = scan.next().await?;
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
