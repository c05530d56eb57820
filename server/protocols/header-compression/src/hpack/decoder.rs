//! Decodes field blocks (RFC 7541 3 and 6).
//!
//! Called by the owner of a connection with each complete block (HEADERS with CONTINUATION). Invariant:
//! every byte of a block is decoded even if its fields are rejected, unless the connection ends.

use super::DEFAULT_TABLE_BYTES;
use super::static_table::STATIC_TABLE;
use crate::dynamic_table::DynamicTable;
use crate::error::DecodeError;
use crate::field_section::{FieldSection, FieldSink};
use crate::integer;
use crate::string::StringLiteral;
use std::ops::ControlFlow;

/// The decoder of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The announced SETTINGS_HEADER_TABLE_SIZE.
    table_bytes_max: usize,
    /// Where strings are decoded.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder for a peer to which SETTINGS_HEADER_TABLE_SIZE was announced before its first block.
    ///
    /// A value below the default of 4096 takes effect later, by [`Self::set_table_size`], because the
    /// peer may send blocks before it has read the settings.
    pub fn new(table_bytes_max: usize) -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE_BYTES),
            table_bytes_max: table_bytes_max.max(DEFAULT_TABLE_BYTES),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Sets the SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged.
    ///
    /// If the peer's table is larger, its next block has to reduce it (RFC 7541 4.2).
    pub fn set_table_size(&mut self, table_bytes_max: usize) {
        self.table_bytes_max = table_bytes_max;
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &DynamicTable {
        &self.table
    }

    /// Decodes a block and passes its fields to `visit`, as long as their size is within
    /// `list_bytes_max` (RFC 9113 6.5.2).
    ///
    /// # Errors
    /// The block is malformed: a connection error of type COMPRESSION_ERROR.
    pub fn decode<B>(
        &mut self,
        mut block: &[u8],
        list_bytes_max: usize,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<FieldSection<B>, DecodeError> {
        let mut sink = FieldSink::new(list_bytes_max, visit);
        self.read_table_size_updates(&mut block)?;
        while let Some(&first) = block.first() {
            match first {
                0x80.. => {
                    let index = integer::read(&mut block, 7)?;
                    let (name, value) = lookup(&self.table, index)?;
                    sink.push(name, value)?;
                }
                0x40.. => self.read_literal::<6, _, _>(&mut block, &mut sink)?,
                0x20.. => return Err(DecodeError::LateTableSizeUpdate),
                // Without indexing, or never indexed.
                _ => self.read_literal::<4, _, _>(&mut block, &mut sink)?,
            }
        }
        Ok(sink.end())
    }

    fn read_table_size_updates(&mut self, block: &mut &[u8]) -> Result<(), DecodeError> {
        while let Some(0x20..0x40) = block.first() {
            let size = usize::try_from(integer::read(block, 5)?);
            let size = size.map_err(|_| DecodeError::TableTooLarge)?;
            if size > self.table_bytes_max {
                return Err(DecodeError::TableTooLarge);
            }
            self.table.set_capacity(size);
        }
        let is_too_large = self.table.capacity() > self.table_bytes_max;
        if is_too_large { Err(DecodeError::MissingTableSizeUpdate) } else { Ok(()) }
    }

    /// Reads a literal whose index has a prefix of `PREFIX_BITS`: 6 with incremental indexing, else 4.
    #[inline]
    fn read_literal<const PREFIX_BITS: u8, B, F>(
        &mut self,
        block: &mut &[u8],
        sink: &mut FieldSink<B, F>,
    ) -> Result<(), DecodeError>
    where
        F: FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    {
        let index = integer::read(block, PREFIX_BITS)?;
        let name = if index == 0 {
            StringLiteral::read(block, 7)?.decode(&mut self.name)?
        } else {
            let (name, _) = lookup(&self.table, index)?;
            // The insertion may evict the entry (RFC 7541 4.4).
            self.name.clear();
            self.name.extend_from_slice(name);
            &self.name
        };
        let value = StringLiteral::read(block, 7)?.decode(&mut self.value)?;
        if PREFIX_BITS == 6 {
            self.table.insert::<false>(name, value);
        }
        sink.push(name, value)
    }
}

/// The entry with this index, in the space of both tables (RFC 7541 2.3.3).
#[inline]
fn lookup(table: &DynamicTable, index: u64) -> Result<(&[u8], &[u8]), DecodeError> {
    let position = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
    let position = position.ok_or(DecodeError::InvalidIndex)?;
    let found = match position.checked_sub(STATIC_TABLE.len()) {
        None => STATIC_TABLE.get(position).copied(),
        Some(dynamic) => table.get(dynamic),
    };
    found.ok_or(DecodeError::InvalidIndex)
}
