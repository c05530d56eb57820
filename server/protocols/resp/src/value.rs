//! [`Value`], and [`Reader`]: from bytes to values.
//!
//! Fed by clients that keep a reply. Invariant: memory grows with what has arrived, within the limits,
//! and never with what a length announces.

use crate::decoder::{Decoder, Error, Event, Kind, Limits};
use std::mem::take;

/// A reply, or a message that was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Null, or a missing string or array of RESP2.
    Null,
    /// An integer, or a Boolean as 0 or 1.
    Integer(i64),
    /// A string; a double or a big number as it was sent.
    Bytes(Vec<u8>),
    /// An array or a set; a map as keys and values in turn.
    Array(Vec<Value>),
    /// A message that is no reply.
    Push(Vec<Value>),
    /// The command failed, with this message.
    Error(String),
}

impl Value {
    /// The bytes of a string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of a string.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The values of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The values of an array.
    pub fn into_array(self) -> Option<Vec<Value>> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// An integer, also one that is sent as a string, as values of hashes are.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Reads the values of one connection.
#[derive(Debug)]
pub struct Reader {
    decoder: Decoder,
    /// The string being read.
    text: Vec<u8>,
    /// The arrays being read, outermost first.
    open: Vec<(Kind, Vec<Value>)>,
}

impl Reader {
    /// A reader at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { decoder: Decoder::new(limits), text: Vec::new(), open: Vec::new() }
    }

    /// Removes the next value from the front of `input`. With `None` all of `input` has been consumed
    /// and more is needed.
    ///
    /// # Errors
    /// The input will never be a value within the limits.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Value>, Error> {
        while let Some(event) = self.decoder.next(input)? {
            let value = match event {
                Event::Null => Value::Null,
                Event::Integer { value, .. } => Value::Integer(value),
                Event::Text { bytes, is_last } | Event::ErrorText { bytes, is_last } => {
                    self.text.extend_from_slice(bytes);
                    if !is_last {
                        continue;
                    }
                    let text = take(&mut self.text);
                    match event {
                        Event::Text { .. } => Value::Bytes(text),
                        _ => Value::Error(String::from_utf8_lossy(&text).into_owned()),
                    }
                }
                Event::Open(kind) => {
                    self.open.push((kind, Vec::new()));
                    continue;
                }
                Event::Close => match self.open.pop() {
                    Some((Kind::Array, values)) => Value::Array(values),
                    Some((Kind::Push, values)) => Value::Push(values),
                    Some((Kind::Attribute, _)) | None => continue,
                },
            };
            match self.open.last_mut() {
                Some((_, values)) => values.push(value),
                None => return Ok(Some(value)),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
