//! Encodes field sections by the static table and literals (RFC 9204 4.5).
//!
//! Called by the owner of a connection for each message that it sends, field by field. Invariants: no
//! section refers to the dynamic table, so that the peer's is never used, no section blocks and there is
//! nothing to send on the encoder stream; no allocation.

use super::static_table::{STATIC_NAMES, STATIC_TABLE, STATUS_200};
use crate::error::DecodeError;
use crate::field_section::status_text;
use crate::indexing::{Indexing, indexing_of_all};
use crate::{integer, string};

static STATIC_INDEXING: [Indexing; STATIC_TABLE.len()] = indexing_of_all(&STATIC_TABLE);

/// The encoder of a connection.
#[derive(Debug, Default)]
pub struct Encoder {
    /// An incomplete instruction of the peer.
    incomplete: Vec<u8>,
}

impl Encoder {
    /// An encoder for a peer with any settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a field section at the end of `out`.
    pub fn begin<'e>(&'e mut self, out: &'e mut Vec<u8>) -> SectionWriter<'e> {
        // Required Insert Count and Base are 0.
        out.extend_from_slice(&[0, 0]);
        SectionWriter { out }
    }

    /// Reads the next bytes of the peer's decoder stream.
    ///
    /// # Errors
    /// The peer acknowledges what was not sent: a connection error of type QPACK_DECODER_STREAM_ERROR.
    pub fn read_instructions(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        for &byte in bytes {
            self.incomplete.push(byte);
            let mut input = &self.incomplete[..];
            // A Stream Cancellation is the only valid one (RFC 9204 4.4).
            if !matches!(self.incomplete[0], 0x40..0x80) {
                return Err(DecodeError::InvalidAcknowledgment);
            }
            match integer::read(&mut input, 6) {
                Ok(_) => self.incomplete.clear(),
                Err(DecodeError::Truncated) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes the fields of a section.
///
/// Names and values were validated by the caller: any bytes can be encoded, and the peer rejects those
/// that are not allowed in a field.
#[derive(Debug)]
pub struct SectionWriter<'e> {
    out: &'e mut Vec<u8>,
}

impl SectionWriter<'_> {
    /// Writes `:status`.
    pub fn status(&mut self, status: u16) {
        if status == 200 {
            return self.indexed(STATUS_200);
        }
        self.field(b":status", &status_text(status));
    }

    /// Writes a field, the name in lower case.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        let Some(index) = STATIC_NAMES.find(name) else {
            let is_sensitive = name.eq_ignore_ascii_case(b"proxy-authorization");
            return self.literal(is_sensitive, name, value);
        };
        match STATIC_NAMES.find_value(index, value) {
            Some(index) => self.indexed(index),
            None => {
                let is_sensitive = STATIC_INDEXING[index].of_value(value) == Indexing::Never;
                self.name_reference(is_sensitive, index, value);
            }
        }
    }

    /// Writes a field that no intermediary may add to a table (RFC 9204 7.1.3).
    pub fn sensitive_field(&mut self, name: &[u8], value: &[u8]) {
        match STATIC_NAMES.find(name) {
            Some(index) => self.name_reference(true, index, value),
            None => self.literal(true, name, value),
        }
    }

    #[inline]
    fn indexed(&mut self, index: usize) {
        integer::write(self.out, 0xc0, 6, index as u64);
    }

    fn name_reference(&mut self, is_sensitive: bool, index: usize, value: &[u8]) {
        let flags = if is_sensitive { 0x70 } else { 0x50 };
        integer::write(self.out, flags, 4, index as u64);
        string::write::<false>(self.out, 0, 7, value);
    }

    fn literal(&mut self, is_sensitive: bool, name: &[u8], value: &[u8]) {
        let flags = if is_sensitive { 0x30 } else { 0x20 };
        string::write::<true>(self.out, flags, 3, name);
        string::write::<false>(self.out, 0, 7, value);
    }
}
