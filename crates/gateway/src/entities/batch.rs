//! What a worker's `Outboard\KV` asks for: many reads, many writes or a part of a scan in one
//! operation.
//!
//! Called by [`crate::fetch`] with the body of a fetch of `entities:NAMESPACE`; `runtime/kv.php` of
//! the host is the other half. Numbers are little-endian; lengths stand together before the bytes,
//! so that PHP packs and unpacks them all at once. Invariant: every length is checked against what
//! is there.
//!
//! ```text
//!  reads:   u8 1 │ u32 count │ u32 id length … │ ids
//!    answer:  u32 value length, NONE for no record … │ values
//!  writes:  u8 2 │ u32 count │ write …
//!    write:   u8 change │ u8 condition │ u64 ttl_ms or all ones │ i64 by │ u32 id length
//!             │ u32 value length │ u32 expected length │ id │ value │ expected
//!    answer:  for each u8 0 gone, 1 there, 2 refused │ u32 value length │ value of a count
//!  scan:    u8 3 │ u32 most bytes │ u8 1 to leave out the start │ u32 start length
//!           │ u32 end length or NONE │ start │ end
//!    answer:  u32 count │ u32 id length, u32 value length … │ id, value …
//! ```

use super::Entities;
use outboard_entity_store::{Change, Condition, Namespace, StoreError, Write};
use std::ops::Bound;
use std::rc::Rc;

const NONE: u32 = u32::MAX;
const READS: u8 = 1;
const WRITES: u8 = 2;
const SCAN: u8 = 3;

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

    fn failed(error: &StoreError) -> Self {
        let status = match error {
            StoreError::Overloaded => 503,
            StoreError::Full => 507,
            StoreError::NotANumber => 409,
            StoreError::TooFewCopies { .. } | StoreError::Unreachable(_) => 504,
            _ => 500,
        };
        Self::refused(status, &error.to_string())
    }
}

/// Does what a worker asks for.
pub(crate) async fn answer(entities: &Entities, namespace: &str, asked: &[u8]) -> Answer {
    let Some(namespace) = entities.namespace(namespace) else {
        return Answer::refused(404, "there is no such namespace; see [entities.namespace]");
    };
    let done = match asked.split_first() {
        Some((&READS, rest)) => reads(namespace, rest).await,
        Some((&WRITES, rest)) => writes(entities, namespace, rest).await,
        Some((&SCAN, rest)) => scan(namespace, rest).await,
        _ => None,
    };
    done.unwrap_or_else(|| Answer::refused(400, "the operation cannot be read"))
}

async fn reads(namespace: &Namespace, mut rest: &[u8]) -> Option<Answer> {
    let count = take_u32(&mut rest)? as usize;
    let lengths = take(&mut rest, count.checked_mul(4)?)?;
    let mut ids = Vec::with_capacity(count);
    for length in lengths.chunks_exact(4) {
        let length = u32::from_le_bytes(length.try_into().ok()?);
        ids.push(take(&mut rest, length as usize)?);
    }
    let records = match namespace.get_many(&ids).await {
        Ok(records) => records,
        Err(error) => return Some(Answer::failed(&error)),
    };
    let bytes: usize = records.iter().flatten().map(|record| record.value.len()).sum();
    let mut body = Vec::with_capacity(count * 4 + bytes);
    for record in &records {
        let length = record.as_ref().map_or(NONE, |record| record.value.len() as u32);
        body.extend_from_slice(&length.to_le_bytes());
    }
    for record in records.iter().flatten() {
        body.extend_from_slice(&record.value);
    }
    Some(Answer { status: 200, body })
}

async fn writes(entities: &Entities, namespace: &Namespace, mut rest: &[u8]) -> Option<Answer> {
    let count = take_u32(&mut rest)? as usize;
    let mut writes = Vec::new();
    for _ in 0..count {
        let write = take_write(&mut rest)?;
        let is_long = matches!(&write.change, Change::Put { value, .. }
            if value.len() as u64 > entities.config.value_max_bytes);
        if is_long {
            return Some(Answer::refused(413, "the value is longer than entities.max_value"));
        }
        writes.push(write);
    }
    let is_count: Vec<bool> =
        writes.iter().map(|write| matches!(write.change, Change::Increment { .. })).collect();
    let mut body = Vec::new();
    let mut done = Vec::with_capacity(writes.len());
    let mut writes = writes.into_iter();
    loop {
        let together: Vec<Write> = writes.by_ref().take(TOGETHER).collect();
        if together.is_empty() {
            break;
        }
        done.extend(namespace.write_many(together).await);
    }
    for (done, is_count) in done.into_iter().zip(is_count) {
        let (state, value) = match done {
            Ok(written) => (u8::from(written.record.is_some()), written.record),
            Err(StoreError::ConditionFailed { .. }) => (2, None),
            Err(error) => return Some(Answer::failed(&error)),
        };
        let value = value.filter(|_| is_count).map(|record| record.value);
        let value = value.as_deref().unwrap_or_default();
        body.push(state);
        body.extend_from_slice(&(value.len() as u32).to_le_bytes());
        body.extend_from_slice(value);
    }
    Some(Answer { status: 200, body })
}

fn take_write(rest: &mut &[u8]) -> Option<Write> {
    let kinds = take(rest, 2)?;
    let ttl_ms = Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?));
    let ttl_ms = ttl_ms.filter(|ttl_ms| *ttl_ms != u64::MAX);
    let by = i64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
    let (id, value, expected) = (take_u32(rest)?, take_u32(rest)?, take_u32(rest)?);
    let id = take(rest, id as usize)?.into();
    let value = take(rest, value as usize)?.into();
    let expected = take(rest, expected as usize)?.into();
    let change = match kinds[0] {
        1 => Change::Put { value, ttl_ms },
        2 => Change::Delete,
        3 => Change::Increment { by, ttl_ms },
        _ => return None,
    };
    let condition = match kinds[1] {
        0 => Condition::Always,
        1 => Condition::Absent,
        2 => Condition::Present,
        3 => Condition::Value(expected),
        _ => return None,
    };
    Some(Write { id, change, condition })
}

async fn scan(namespace: &Rc<Namespace>, mut rest: &[u8]) -> Option<Answer> {
    let most = take_u32(&mut rest)? as usize;
    let is_behind = take(&mut rest, 1)?[0] == 1;
    let (start, end) = (take_u32(&mut rest)?, take_u32(&mut rest)?);
    let start = take(&mut rest, start as usize)?.to_vec();
    let start = if is_behind { Bound::Excluded(start) } else { Bound::Included(start) };
    let end = match end {
        NONE => Bound::Unbounded,
        length => Bound::Excluded(take(&mut rest, length as usize)?.to_vec()),
    };
    let mut scan = namespace.scan(start, end);
    let (mut count, mut lengths, mut bytes) = (0_u32, Vec::new(), Vec::new());
    while bytes.len() < most {
        let piece = match scan.next().await {
            Ok(piece) => piece,
            Err(error) => return Some(Answer::failed(&error)),
        };
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
    Some(Answer { status: 200, body: [&count.to_le_bytes()[..], &lengths, &bytes].concat() })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}
