//! An encoded field section: its prefix and its field lines (RFC 9204 4.5).
//!
//! Called by `decoder`. Invariant: a reference is to an entry below the Required Insert Count.

use super::static_table;
use crate::dynamic_table::DynamicTable;
use crate::error::DecodeError;
use crate::field_section::FieldSink;
use crate::integer;
use crate::string::StringLiteral;
use std::ops::ControlFlow;

/// The prefix of a field section (RFC 9204 4.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) required_insert_count: u64,
    base: u64,
}

impl Prefix {
    /// Reads a prefix for a table with at most `entries_max` entries, of `inserted` ever.
    pub(super) fn read(
        input: &mut &[u8],
        entries_max: u64,
        inserted: u64,
    ) -> Result<Self, DecodeError> {
        let encoded = integer::read(input, 8)?;
        let required_insert_count = required_insert_count(encoded, entries_max, inserted)?;
        let is_negative = input.first().is_some_and(|first| first & 0x80 != 0);
        let delta = integer::read(input, 7)?;
        let base = if is_negative {
            required_insert_count.checked_sub(delta).and_then(|base| base.checked_sub(1))
        } else {
            required_insert_count.checked_add(delta)
        };
        Ok(Self { required_insert_count, base: base.ok_or(DecodeError::InvalidBase)? })
    }

    /// The entry of a reference to before the Base (RFC 9204 3.2.5).
    fn before_base<'t>(self, table: &'t DynamicTable, index: u64) -> Entry<'t> {
        let absolute = index.checked_add(1).and_then(|index| self.base.checked_sub(index));
        self.entry(table, absolute)
    }

    /// The entry of a reference to after the Base (RFC 9204 3.2.6).
    fn after_base<'t>(self, table: &'t DynamicTable, index: u64) -> Entry<'t> {
        self.entry(table, self.base.checked_add(index))
    }

    fn entry<'t>(self, table: &'t DynamicTable, absolute: Option<u64>) -> Entry<'t> {
        let absolute = absolute.filter(|index| *index < self.required_insert_count);
        absolute.and_then(|index| table.get_absolute(index)).ok_or(DecodeError::InvalidIndex)
    }
}

type Entry<'t> = Result<(&'t [u8], &'t [u8]), DecodeError>;

/// The Required Insert Count, of which a part is encoded (RFC 9204 4.5.1.1).
fn required_insert_count(
    encoded: u64,
    entries_max: u64,
    inserted: u64,
) -> Result<u64, DecodeError> {
    let range = 2 * entries_max;
    if encoded == 0 {
        return Ok(0);
    }
    if encoded > range {
        return Err(DecodeError::InvalidRequiredInsertCount);
    }
    let count_max = inserted + entries_max;
    let mut count = count_max / range * range + encoded - 1;
    if count > count_max {
        count = count.checked_sub(range).ok_or(DecodeError::InvalidRequiredInsertCount)?;
    }
    if count == 0 { Err(DecodeError::InvalidRequiredInsertCount) } else { Ok(count) }
}

/// Reads field lines.
pub(super) struct LineReader<'t> {
    pub(super) prefix: Prefix,
    pub(super) table: &'t DynamicTable,
    pub(super) name: &'t mut Vec<u8>,
    pub(super) value: &'t mut Vec<u8>,
}

impl LineReader<'_> {
    /// Reads the next line of `input`, which is not empty.
    #[inline]
    pub(super) fn read<B, F>(
        &mut self,
        input: &mut &[u8],
        sink: &mut FieldSink<B, F>,
    ) -> Result<(), DecodeError>
    where
        F: FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    {
        let first = input.first().copied().unwrap_or_default();
        let (prefix, table) = (self.prefix, self.table);
        let name = match first {
            0x80.. => {
                let index = integer::read(input, 6)?;
                let is_static = first & 0x40 != 0;
                let (name, value) = if is_static {
                    static_table::lookup(index)?
                } else {
                    prefix.before_base(table, index)?
                };
                return sink.push(name, value);
            }
            0x40.. => {
                let index = integer::read(input, 4)?;
                let is_static = first & 0x10 != 0;
                if is_static {
                    static_table::lookup(index)?.0
                } else {
                    prefix.before_base(table, index)?.0
                }
            }
            0x20.. => StringLiteral::read(input, 3)?.decode(self.name)?,
            0x10.. => {
                let (name, value) = prefix.after_base(table, integer::read(input, 4)?)?;
                return sink.push(name, value);
            }
            _ => prefix.after_base(table, integer::read(input, 3)?)?.0,
        };
        sink.push(name, StringLiteral::read(input, 7)?.decode(self.value)?)
    }
}
