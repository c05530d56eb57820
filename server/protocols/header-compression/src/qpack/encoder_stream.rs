//! The instructions of the encoder stream, which fill the dynamic table (RFC 9204 4.3).
//!
//! Called by `decoder` with the bytes as they arrive. Invariant: an instruction is executed once, when
//! it is complete; the bytes of an incomplete one are bounded.

use super::static_table;
use crate::dynamic_table::DynamicTable;
use crate::error::DecodeError;
use crate::integer;
use crate::string::StringLiteral;

/// The longest code of a character has four times its size.
const EXPANSION: usize = 4;

/// Three prefixed integers.
const OVERHEAD_BYTES: usize = 32;

/// The receiving end of the stream.
#[derive(Debug)]
pub(super) struct EncoderStream {
    /// The announced SETTINGS_QPACK_MAX_TABLE_CAPACITY.
    capacity_max: usize,
    /// An incomplete instruction.
    incomplete: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl EncoderStream {
    pub(super) fn new(capacity_max: usize) -> Self {
        Self { capacity_max, incomplete: Vec::new(), name: Vec::new(), value: Vec::new() }
    }

    /// Executes the instructions that the next `bytes` complete.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        table: &mut DynamicTable,
    ) -> Result<(), DecodeError> {
        if self.incomplete.is_empty() {
            let rest = self.execute_all(bytes, table)?;
            self.incomplete.extend_from_slice(rest);
        } else {
            let mut buffer = std::mem::take(&mut self.incomplete);
            buffer.extend_from_slice(bytes);
            let rest = self.execute_all(&buffer, table)?.len();
            buffer.drain(..buffer.len() - rest);
            self.incomplete = buffer;
        }
        let is_too_long = self.incomplete.len() > self.capacity_max * EXPANSION + OVERHEAD_BYTES;
        if is_too_long { Err(DecodeError::EntryTooLarge) } else { Ok(()) }
    }

    /// Returns the incomplete instruction at the end.
    fn execute_all<'b>(
        &mut self,
        bytes: &'b [u8],
        table: &mut DynamicTable,
    ) -> Result<&'b [u8], DecodeError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut input = rest;
            match self.execute(&mut input, table) {
                Ok(()) => rest = input,
                Err(DecodeError::Truncated) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(rest)
    }

    fn execute(&mut self, input: &mut &[u8], table: &mut DynamicTable) -> Result<(), DecodeError> {
        match input.first().copied().unwrap_or_default() {
            first @ 0x80.. => self.insert_with_name_reference(input, first & 0x40 != 0, table),
            0x40.. => {
                let name = StringLiteral::read(input, 5)?;
                let value = StringLiteral::read(input, 7)?;
                let name = name.decode(&mut self.name)?;
                insert(table, name, value.decode(&mut self.value)?)
            }
            0x20.. => {
                let capacity = usize::try_from(integer::read(input, 5)?);
                let capacity = capacity.ok().filter(|capacity| *capacity <= self.capacity_max);
                table.set_capacity(capacity.ok_or(DecodeError::TableTooLarge)?);
                Ok(())
            }
            _ => {
                let (name, value) = dynamic(table, integer::read(input, 5)?)?;
                copy(&mut self.name, name);
                copy(&mut self.value, value);
                insert(table, &self.name, &self.value)
            }
        }
    }

    fn insert_with_name_reference(
        &mut self,
        input: &mut &[u8],
        is_static: bool,
        table: &mut DynamicTable,
    ) -> Result<(), DecodeError> {
        let index = integer::read(input, 6)?;
        let value = StringLiteral::read(input, 7)?;
        let (name, _) =
            if is_static { static_table::lookup(index)? } else { dynamic(table, index)? };
        // The insertion may evict the entry (RFC 9204 3.2.2).
        copy(&mut self.name, name);
        insert(table, &self.name, value.decode(&mut self.value)?)
    }
}

fn copy(target: &mut Vec<u8>, source: &[u8]) {
    target.clear();
    target.extend_from_slice(source);
}

/// The entry with this relative index (RFC 9204 3.2.5).
fn dynamic(table: &DynamicTable, index: u64) -> Result<(&[u8], &[u8]), DecodeError> {
    let found = usize::try_from(index).ok().and_then(|index| table.get(index));
    found.ok_or(DecodeError::InvalidIndex)
}

fn insert(table: &mut DynamicTable, name: &[u8], value: &[u8]) -> Result<(), DecodeError> {
    let is_inserted = table.insert::<false>(name, value);
    if is_inserted { Ok(()) } else { Err(DecodeError::EntryTooLarge) }
}
