//! Decodes field sections, and reports to the peer which it has decoded (RFC 9204 2.2).
//!
//! Called by the owner of a connection with each complete field section and with the bytes of the peer's
//! encoder stream. Invariants: no section waits that could be decoded; the number of blocked streams is
//! at most the announced one.

use super::encoder_stream::EncoderStream;
use super::section::{LineReader, Prefix};
use crate::dynamic_table::DynamicTable;
use crate::error::DecodeError;
use crate::field_section::{FIELD_OVERHEAD_BYTES, FieldSection, FieldSink};
use crate::integer;
use std::ops::ControlFlow;

/// What became of a field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decoded<B> {
    /// It refers to entries that have not arrived yet; the caller stores it, and decodes it again when
    /// [`Decoder::next_unblocked`] returns its stream.
    Blocked,
    /// It was decoded.
    Section(FieldSection<B>),
}

/// A stream whose field section waits for entries.
#[derive(Debug)]
struct BlockedStream {
    id: u64,
    required_insert_count: u64,
}

/// The decoder of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    encoder_stream: EncoderStream,
    /// The number of entries with which the Required Insert Count is encoded (RFC 9204 4.5.1.1).
    entries_max: u64,
    blocked_max: usize,
    blocked: Vec<BlockedStream>,
    instructions: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder for a peer to which these SETTINGS_QPACK_MAX_TABLE_CAPACITY and
    /// SETTINGS_QPACK_BLOCKED_STREAMS are announced.
    ///
    /// With a capacity of 0 a section is never blocked, and there are no instructions to send.
    pub fn new(capacity_max: usize, blocked_max: usize) -> Self {
        Self {
            table: DynamicTable::new(0),
            encoder_stream: EncoderStream::new(capacity_max),
            entries_max: (capacity_max / FIELD_OVERHEAD_BYTES) as u64,
            blocked_max,
            blocked: Vec::new(),
            instructions: Vec::new(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Reads the next bytes of the peer's encoder stream.
    ///
    /// The work is bounded by the announced capacity for each byte: an instruction can duplicate the
    /// largest entry.
    ///
    /// # Errors
    /// An instruction is invalid: a connection error of type QPACK_ENCODER_STREAM_ERROR.
    pub fn read_instructions(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let before = self.table.inserted();
        self.encoder_stream.read(bytes, &mut self.table)?;
        let increment = self.table.inserted() - before;
        if increment > 0 {
            // Insert Count Increment (RFC 9204 4.4.3).
            integer::write(&mut self.instructions, 0x00, 6, increment);
        }
        Ok(())
    }

    /// A stream that was blocked and is no longer; each is returned once.
    pub fn next_unblocked(&mut self) -> Option<u64> {
        let inserted = self.table.inserted();
        let is_unblocked = |stream: &BlockedStream| stream.required_insert_count <= inserted;
        let position = self.blocked.iter().position(is_unblocked)?;
        Some(self.blocked.remove(position).id)
    }

    /// Decodes the field section of a stream and passes its fields to `visit`, as long as their size is
    /// within `section_bytes_max` (RFC 9114 4.2.2).
    ///
    /// # Errors
    /// The section is malformed: a connection error of type QPACK_DECOMPRESSION_FAILED.
    pub fn decode<B>(
        &mut self,
        stream_id: u64,
        mut section: &[u8],
        section_bytes_max: usize,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Decoded<B>, DecodeError> {
        let inserted = self.table.inserted();
        let prefix = Prefix::read(&mut section, self.entries_max, inserted)?;
        let required_insert_count = prefix.required_insert_count;
        self.blocked.retain(|stream| stream.id != stream_id);
        if required_insert_count > inserted {
            if self.blocked.len() >= self.blocked_max {
                return Err(DecodeError::TooManyBlockedStreams);
            }
            self.blocked.push(BlockedStream { id: stream_id, required_insert_count });
            return Ok(Decoded::Blocked);
        }
        let mut sink = FieldSink::new(section_bytes_max, visit);
        let (table, name, value) = (&self.table, &mut self.name, &mut self.value);
        let mut lines = LineReader { prefix, table, name, value };
        while !section.is_empty() {
            lines.read(&mut section, &mut sink)?;
        }
        if required_insert_count > 0 {
            // Section Acknowledgment (RFC 9204 4.4.1).
            integer::write(&mut self.instructions, 0x80, 7, stream_id);
        }
        Ok(Decoded::Section(sink.end()))
    }

    /// Forgets a stream that was reset, or whose fields will not be read (RFC 9204 2.2.2.2).
    pub fn cancel_stream(&mut self, stream_id: u64) {
        self.blocked.retain(|stream| stream.id != stream_id);
        if self.entries_max > 0 {
            // Stream Cancellation (RFC 9204 4.4.2).
            integer::write(&mut self.instructions, 0x40, 6, stream_id);
        }
    }

    /// What is to be sent on the decoder stream; the caller removes what it has sent.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &DynamicTable {
        &self.table
    }
}
