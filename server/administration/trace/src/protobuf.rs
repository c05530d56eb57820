//! [`Message`]: a message in the encoding of Protocol Buffers, while it is written.
//!
//! Used for OTLP and for Prometheus. Invariant: what is written is canonical: shortest numbers, and no
//! field with its default value unless the caller says so.

/// See the module.
#[derive(Debug)]
pub struct Message<'a>(&'a mut Vec<u8>);

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;
const FIXED_32: u32 = 5;
/// The most bytes of a number.
const VARINT_MAX_BYTES: usize = 10;

impl<'a> Message<'a> {
    /// A message that is appended.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    fn key(&mut self, field: u32, wire: u32) {
        put_varint(self.0, u64::from(field << 3 | wire));
    }

    /// `uint32`, `uint64`, `bool`, an enumeration; also `int64` by its two's complement.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        put_varint(self.0, value);
    }

    /// `sint32` or `sint64`.
    pub fn signed(&mut self, field: u32, value: i64) {
        self.number(field, (value << 1 ^ value >> 63) as u64);
    }

    /// `fixed32`.
    pub fn fixed_32(&mut self, field: u32, value: u32) {
        self.key(field, FIXED_32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// `fixed64`.
    pub fn fixed_64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed_64(field, value.to_bits());
    }

    /// `bytes`, `string`, or a message that is encoded already.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        put_varint(self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.key(field, BYTES);
        let from = self.0.len();
        write(&mut Message(self.0));
        self.insert_length(from);
    }

    /// Numbers in one field.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = i64>) {
        self.key(field, BYTES);
        let from = self.0.len();
        values.into_iter().for_each(|value| put_varint(self.0, (value << 1 ^ value >> 63) as u64));
        self.insert_length(from);
    }

    /// Inserts the length of what follows this place.
    fn insert_length(&mut self, from: usize) {
        let mut length = Vec::with_capacity(VARINT_MAX_BYTES);
        put_varint(&mut length, (self.0.len() - from) as u64);
        self.0.splice(from..from, length);
    }
}

/// Appends a number in base 128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
