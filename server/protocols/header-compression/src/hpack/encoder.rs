//! Encodes field blocks (RFC 7541 6).
//!
//! Called by the owner of a connection for each message that it sends, field by field. Invariants: the
//! blocks are sent in the order in which they were encoded; no allocation in steady state; an index that
//! is written was compared with its entry.

use super::DEFAULT_TABLE_BYTES;
use super::static_table::{STATIC_NAMES, STATIC_TABLE, STATUS_200};
use crate::dynamic_table::DynamicTable;
use crate::field_section::{field_bytes, status_text};
use crate::indexing::{Indexing, indexing_of_all};
use crate::{integer, string};

const SLOTS: usize = 128;
const SEEN: usize = 64;

static STATIC_INDEXING: [Indexing; STATIC_TABLE.len()] = indexing_of_all(&STATIC_TABLE);

/// The encoder of a connection.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// The smallest size since the last block, if the size changed (RFC 7541 4.2).
    smallest_size: Option<usize>,
    /// By hash of a field, how many entries were inserted before that of the field, modulo 2^16.
    slots: [u16; SLOTS],
    /// By hash of a field, a part of the hash of the last one that got no entry.
    seen: [u16; SEEN],
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for a peer with the initial table size.
    pub fn new() -> Self {
        Self {
            table: DynamicTable::new(DEFAULT_TABLE_BYTES),
            smallest_size: None,
            slots: [0; SLOTS],
            seen: [0; SEEN],
        }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE; no more than 4096 bytes of it are used.
    pub fn set_table_size(&mut self, table_bytes_max: usize) {
        let capacity = table_bytes_max.min(DEFAULT_TABLE_BYTES);
        if capacity != self.table.capacity() {
            let smallest = self.smallest_size.unwrap_or(capacity);
            self.smallest_size = Some(smallest.min(capacity));
            self.table.set_capacity(capacity);
        }
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &DynamicTable {
        &self.table
    }

    /// Begins a block at the end of `out`.
    pub fn begin<'e>(&'e mut self, out: &'e mut Vec<u8>) -> BlockWriter<'e> {
        if let Some(smallest) = self.smallest_size.take() {
            if smallest < self.table.capacity() {
                integer::write(out, 0x20, 5, smallest as u64);
            }
            integer::write(out, 0x20, 5, self.table.capacity() as u64);
        }
        BlockWriter { encoder: self, out }
    }

    /// The relative index of this field in the dynamic table.
    #[inline]
    fn find(&self, hash: u32, name: &[u8], value: &[u8]) -> Option<usize> {
        let number = self.slots[hash as usize % SLOTS];
        let age = (self.table.inserted() as u16).wrapping_sub(number);
        let index = usize::from(age).checked_sub(1)?;
        let (found_name, found_value) = self.table.get(index)?;
        let is_found = found_value == value && found_name.eq_ignore_ascii_case(name);
        is_found.then_some(index)
    }

    /// Whether a field gets an entry; if not now, then next time.
    #[inline]
    fn is_worth_an_entry(&mut self, indexing: Indexing, hash: u32, bytes: usize) -> bool {
        if bytes > self.table.capacity() / 2 {
            return false;
        }
        let seen = &mut self.seen[(hash >> 7) as usize % SEEN];
        let part = (hash >> 16) as u16;
        let is_again = std::mem::replace(seen, part) == part;
        is_again || indexing == Indexing::Immediate
    }

    fn insert(&mut self, hash: u32, name: &[u8], value: &[u8]) {
        self.slots[hash as usize % SLOTS] = self.table.inserted() as u16;
        self.table.insert::<true>(name, value);
    }
}

/// Writes the fields of a block.
///
/// Names and values were validated by the caller: any bytes can be encoded, and the peer rejects those
/// that are not allowed in a field.
#[derive(Debug)]
pub struct BlockWriter<'e> {
    encoder: &'e mut Encoder,
    out: &'e mut Vec<u8>,
}

impl BlockWriter<'_> {
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
        let static_name = STATIC_NAMES.find(name);
        let mut indexing = Indexing::Repeated;
        if let Some(position) = static_name {
            if let Some(position) = STATIC_NAMES.find_value(position, value) {
                return self.indexed(position);
            }
            indexing = STATIC_INDEXING[position].of_value(value);
        }
        match indexing {
            Indexing::None => self.literal::<4>(0x00, static_name, name, value),
            Indexing::Never => self.literal::<4>(0x10, static_name, name, value),
            _ => self.dynamic(indexing, static_name, name, value),
        }
    }

    /// Writes a field that no intermediary may add to a table (RFC 7541 6.2.3).
    pub fn sensitive_field(&mut self, name: &[u8], value: &[u8]) {
        self.literal::<4>(0x10, STATIC_NAMES.find(name), name, value);
    }

    /// Writes a field by the dynamic table.
    fn dynamic(
        &mut self,
        indexing: Indexing,
        static_name: Option<usize>,
        name: &[u8],
        value: &[u8],
    ) {
        let hash = hash(name, value);
        if let Some(index) = self.encoder.find(hash, name, value) {
            return self.indexed(STATIC_TABLE.len() + index);
        }
        if self.encoder.is_worth_an_entry(indexing, hash, field_bytes(name, value)) {
            self.literal::<6>(0x40, static_name, name, value);
            self.encoder.insert(hash, name, value);
        } else {
            self.literal::<4>(0x00, static_name, name, value);
        }
    }

    /// Writes the field at a position, which is an index minus 1.
    #[inline]
    fn indexed(&mut self, position: usize) {
        integer::write(self.out, 0x80, 7, position as u64 + 1);
    }

    #[inline]
    fn literal<const PREFIX_BITS: u8>(
        &mut self,
        flags: u8,
        static_name: Option<usize>,
        name: &[u8],
        value: &[u8],
    ) {
        if let Some(position) = static_name {
            integer::write(self.out, flags, PREFIX_BITS, position as u64 + 1);
        } else {
            self.out.push(flags);
            string::write::<true>(self.out, 0, 7, name);
        }
        string::write::<false>(self.out, 0, 7, value);
    }
}

/// A hash of a field, independent of the case of its name.
#[inline]
fn hash(name: &[u8], value: &[u8]) -> u32 {
    const LOWER: u64 = 0x2020_2020_2020_2020;
    let hash = mix_bytes(name.len() as u64, name, LOWER);
    let hash = mix_bytes(hash ^ value.len() as u64, value, 0);
    (hash >> 32) as u32
}

#[inline]
fn mix_bytes(mut hash: u64, bytes: &[u8], or: u64) -> u64 {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        hash = mix(hash, u64::from_le_bytes(*word) | or);
        rest = after;
    }
    match bytes.last_chunk::<8>() {
        // The last word overlaps with the one before it.
        Some(word) => mix(hash, u64::from_le_bytes(*word) | or),
        None => rest.iter().fold(hash, |hash, &byte| mix(hash, u64::from(byte) | or)),
    }
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
