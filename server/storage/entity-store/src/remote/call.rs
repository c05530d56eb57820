//! [`Call`] and [`Reply`]: what the processes of an upgrade send each other about records.
//!
//! Encoded by [`super::Remote`] and decoded by the store of the other process. The format belongs to one
//! version of the link (`outboard_upgrade::LINK_VERSION`). Invariant: what is decoded equals what was
//! encoded.

use super::codec::{Reader, Writer};
use crate::change::{Change, Condition, Write, Written};
use crate::error::StoreError;
use crate::record::Record;
use crate::types::Piece;
use std::ops::Bound;

/// What is to be done in a namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Get(Vec<Box<[u8]>>),
    /// With the number of copies.
    Write(Vec<Write>, u32),
    /// The first piece of a range.
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Compact,
    /// Records of a namespace in memory, as they are.
    Adopt(Piece),
}

/// Its outcome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Records(Vec<Option<Record>>),
    Written(Vec<Result<Written, StoreError>>),
    Piece(Piece),
    Done,
    Failed(StoreError),
}

impl Call {
    /// The frame of a call with this number.
    pub(super) fn encode(&self, number: u64, namespace: &str) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(number);
        out.bytes(namespace.as_bytes());
        match self {
            Self::Get(ids) => {
                out.u8(0);
                out.many(ids, |out, id| out.bytes(id));
            }
            Self::Write(writes, copies) => {
                out.u8(1);
                out.u64((*copies).into());
                out.many(writes, put_write);
            }
            Self::Scan(start, end) => {
                out.u8(2);
                out.bound(start);
                out.bound(end);
            }
            Self::Compact => out.u8(3),
            Self::Adopt(records) => {
                out.u8(4);
                put_piece(&mut out, records);
            }
        }
        out.0
    }

    /// Number, namespace and call of a frame.
    pub(crate) fn decode(frame: &[u8]) -> Option<(u64, String, Self)> {
        let mut from = Reader(frame);
        let (number, namespace) = (from.u64()?, from.text()?);
        let call = match from.u8()? {
            0 => Self::Get(from.many(|from| from.bytes().map(Box::from))?),
            1 => {
                let copies = u32::try_from(from.u64()?).ok()?;
                Self::Write(from.many(write)?, copies)
            }
            2 => Self::Scan(from.bound()?, from.bound()?),
            3 => Self::Compact,
            4 => Self::Adopt(piece(&mut from)?),
            _ => return None,
        };
        Some((number, namespace, call))
    }
}

impl Reply {
    /// The frame of the reply to the call with this number.
    pub(crate) fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(number);
        match self {
            Self::Records(records) => {
                out.u8(0);
                out.many(records, |out, record| out.record(record.as_ref()));
            }
            Self::Written(results) => {
                out.u8(1);
                out.many(results, put_result);
            }
            Self::Piece(records) => {
                out.u8(2);
                put_piece(&mut out, records);
            }
            Self::Done => out.u8(3),
            Self::Failed(error) => {
                out.u8(4);
                put_error(&mut out, error);
            }
        }
        out.0
    }

    /// The number of the call, and the reply.
    pub(super) fn decode(frame: &[u8]) -> Option<(u64, Self)> {
        let mut from = Reader(frame);
        let number = from.u64()?;
        let reply = match from.u8()? {
            0 => Self::Records(from.many(Reader::record)?),
            1 => Self::Written(from.many(result)?),
            2 => Self::Piece(piece(&mut from)?),
            3 => Self::Done,
            4 => Self::Failed(error(&mut from)?),
            _ => return None,
        };
        Some((number, reply))
    }
}

fn put_write(out: &mut Writer, write: &Write) {
    out.bytes(&write.id);
    match &write.change {
        Change::Put { value, ttl_ms } => {
            out.u8(0);
            out.bytes(value);
            out.optional(*ttl_ms);
        }
        Change::Delete => out.u8(1),
        Change::Increment { by, ttl_ms } => {
            out.u8(2);
            out.u64(by.cast_unsigned());
            out.optional(*ttl_ms);
        }
    }
    match &write.condition {
        Condition::Always => out.u8(0),
        Condition::Absent => out.u8(1),
        Condition::Present => out.u8(2),
        Condition::VersionIn(versions) => {
            out.u8(3);
            out.many(versions, |out, version| out.u64(*version));
        }
        Condition::VersionNotIn(versions) => {
            out.u8(4);
            out.many(versions, |out, version| out.u64(*version));
        }
        Condition::Value(value) => {
            out.u8(5);
            out.bytes(value);
        }
    }
}

fn write(from: &mut Reader<'_>) -> Option<Write> {
    let id = from.bytes()?.into();
    let change = match from.u8()? {
        0 => Change::Put { value: from.bytes()?.into(), ttl_ms: from.optional()? },
        1 => Change::Delete,
        2 => Change::Increment { by: from.u64()?.cast_signed(), ttl_ms: from.optional()? },
        _ => return None,
    };
    let condition = match from.u8()? {
        0 => Condition::Always,
        1 => Condition::Absent,
        2 => Condition::Present,
        3 => Condition::VersionIn(from.many(Reader::u64)?),
        4 => Condition::VersionNotIn(from.many(Reader::u64)?),
        5 => Condition::Value(from.bytes()?.into()),
        _ => return None,
    };
    Some(Write { id, change, condition })
}

fn put_piece(out: &mut Writer, records: &Piece) {
    out.many(records, |out, (id, record)| {
        out.bytes(id);
        out.record(Some(record));
    });
}

fn piece(from: &mut Reader<'_>) -> Option<Piece> {
    from.many(|from| Some((from.bytes()?.into(), from.record()??)))
}

fn put_result(out: &mut Writer, result: &Result<Written, StoreError>) {
    match result {
        Ok(Written { record, existed }) => {
            out.u8(existed.map_or(2, u8::from));
            out.record(record.as_ref());
        }
        Err(error) => {
            out.u8(3);
            put_error(out, error);
        }
    }
}

fn result(from: &mut Reader<'_>) -> Option<Result<Written, StoreError>> {
    let existed = match from.u8()? {
        0 => Some(false),
        1 => Some(true),
        2 => None,
        3 => return error(from).map(Err),
        _ => return None,
    };
    Some(Ok(Written { record: from.record()?, existed }))
}

fn put_error(out: &mut Writer, error: &StoreError) {
    let (kind, number, text) = match error {
        StoreError::Overloaded => (0, None, ""),
        StoreError::InvalidKey { bytes } => (1, Some(*bytes as u64), ""),
        StoreError::ConditionFailed { present } => (2, *present, ""),
        StoreError::NotANumber => (3, None, ""),
        StoreError::Full => (4, None, ""),
        StoreError::TooFewCopies { answered } => (5, Some(u64::from(*answered)), ""),
        StoreError::Unreachable(text) => (6, None, &**text),
        StoreError::Damaged(text) => (7, None, &**text),
        StoreError::Failed(text) => (8, None, &**text),
    };
    out.u8(kind);
    out.optional(number);
    out.bytes(text.as_bytes());
}

fn error(from: &mut Reader<'_>) -> Option<StoreError> {
    let (kind, number, text) = (from.u8()?, from.optional()?, from.text()?);
    Some(match kind {
        0 => StoreError::Overloaded,
        1 => StoreError::InvalidKey { bytes: usize::try_from(number?).ok()? },
        2 => StoreError::ConditionFailed { present: number },
        3 => StoreError::NotANumber,
        4 => StoreError::Full,
        5 => StoreError::TooFewCopies { answered: u32::try_from(number?).ok()? },
        6 => StoreError::Unreachable(text),
        7 => StoreError::Damaged(text),
        8 => StoreError::Failed(text),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
