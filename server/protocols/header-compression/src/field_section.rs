//! The size of decoded fields and its limit (RFC 9113 6.5.2, RFC 9114 4.2.2), and the value of `:status`.
//!
//! Called by both decoders and both encoders. Invariant: fields beyond the limit are not passed on, and
//! the work for them is bounded too.

use crate::error::DecodeError;
use std::ops::ControlFlow;

/// What is added to the lengths of a name and its value (RFC 7541 4.1, RFC 9204 3.2.1).
pub(crate) const FIELD_OVERHEAD_BYTES: usize = 32;

/// So many times the limit is decoded, for the sake of the tables, before the connection ends.
///
/// A field of two bytes can copy a name of the size of the table.
const EXCESS_FACTOR: usize = 16;

/// How the decoding of a field section ended. The tables are in step with the peer in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum FieldSection<B> {
    /// All fields were passed on.
    Complete,
    /// The fields are larger than the limit; those beyond it were not passed on.
    TooLong,
    /// The caller rejected a field; later ones were not passed on.
    Stopped(B),
}

/// The size of a field as the limits count it.
#[inline]
pub(crate) fn field_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len().saturating_add(value.len()).saturating_add(FIELD_OVERHEAD_BYTES)
}

/// The value of `:status` (RFC 9113 8.3.2, RFC 9114 4.3.2).
pub(crate) fn status_text(status: u16) -> [u8; 3] {
    [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8)
}

/// Passes fields on as long as they are within the limit and accepted.
pub(crate) struct FieldSink<B, F> {
    visit: F,
    bytes: usize,
    bytes_max: usize,
    end: FieldSection<B>,
}

impl<B, F: FnMut(&[u8], &[u8]) -> ControlFlow<B>> FieldSink<B, F> {
    pub(crate) fn new(bytes_max: usize, visit: F) -> Self {
        Self { visit, bytes: 0, bytes_max, end: FieldSection::Complete }
    }

    /// Counts a field and passes it on.
    #[inline]
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), DecodeError> {
        self.bytes = self.bytes.saturating_add(field_bytes(name, value));
        if self.bytes > self.bytes_max {
            return self.exceed();
        }
        if let FieldSection::Complete = self.end
            && let ControlFlow::Break(reason) = (self.visit)(name, value)
        {
            self.end = FieldSection::Stopped(reason);
        }
        Ok(())
    }

    #[cold]
    fn exceed(&mut self) -> Result<(), DecodeError> {
        if let FieldSection::Complete = self.end {
            self.end = FieldSection::TooLong;
        }
        let is_far = self.bytes > self.bytes_max.saturating_mul(EXCESS_FACTOR);
        if is_far { Err(DecodeError::ListFarTooLong) } else { Ok(()) }
    }

    pub(crate) fn end(self) -> FieldSection<B> {
        self.end
    }
}
