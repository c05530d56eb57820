//! [`Decoder`]: cuts a stream of bytes into messages.
//!
//! Used by each connection. Invariants: a message is never longer than the limit of its port; the work
//! per message is linear in its bytes.

use memchr::memmem;

/// How messages are recognised.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Framing {
    /// Not at all: what arrives together is one message.
    #[default]
    None,
    /// A message, or several of them, ends with these bytes (`open_eof_check`).
    Ends(Vec<u8>),
    /// These bytes end each message (`open_eof_split`).
    Splits(Vec<u8>),
    /// A field has the length (`open_length_check`).
    Length(LengthField),
    /// A function of the program computes the length (`package_length_func`); see
    /// [`Measure`](crate::measure::Measure).
    Measured,
}

/// Where the length of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthField {
    /// The number format.
    pub kind: LengthKind,
    /// Its offset in the message (`package_length_offset`).
    pub offset: usize,
    /// The offset from which it counts (`package_body_offset`).
    pub body_offset: usize,
}

/// The formats of `pack()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthKind {
    bytes: usize,
    is_little: bool,
    is_signed: bool,
}

/// The stream does not have the messages that it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A message is longer than the limit.
    TooLong,
    /// The length of a message is negative or zero.
    BadLength,
}

impl LengthKind {
    /// The format with this letter.
    pub fn of(letter: char) -> Option<Self> {
        let host = cfg!(target_endian = "little");
        let (bytes, is_little, is_signed) = match letter {
            'c' => (1, host, true),
            'C' => (1, host, false),
            's' => (2, host, true),
            'S' => (2, host, false),
            'n' => (2, false, false),
            'v' => (2, true, false),
            'l' => (4, host, true),
            'L' => (4, host, false),
            'N' => (4, false, false),
            'V' => (4, true, false),
            'q' => (8, host, true),
            'Q' => (8, host, false),
            'J' => (8, false, false),
            'P' => (8, true, false),
            _ => return None,
        };
        Some(Self { bytes, is_little, is_signed })
    }

    fn read(self, field: &[u8]) -> Option<u64> {
        let mut value = 0_u64;
        for at in 0..self.bytes {
            let byte = if self.is_little { field[self.bytes - 1 - at] } else { field[at] };
            value = value << 8 | u64::from(byte);
        }
        let is_negative = value >> (self.bytes * 8 - 1) & 1 == 1;
        (!(self.is_signed && is_negative)).then_some(value)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the next message begins.
    start: usize,
    /// Bytes from there that have no end mark.
    searched: usize,
}

impl Decoder {
    /// Appends bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that are not part of a message yet.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The first of them.
    pub fn pending(&self, most: usize) -> &[u8] {
        &self.buffer[self.start..][..most.min(self.pending_bytes())]
    }

    /// The memory that it holds.
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes the next complete message.
    ///
    /// # Errors
    /// [`Malformed`]: close the connection.
    pub fn next(
        &mut self,
        framing: &Framing,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        let pending = &self.buffer[self.start..];
        if pending.is_empty() {
            return Ok(None);
        }
        let length = match framing {
            Framing::None => Some(pending.len().min(max_bytes)),
            Framing::Ends(mark) => pending.ends_with(mark).then_some(pending.len()),
            Framing::Splits(mark) => {
                let from = self.searched.saturating_sub(mark.len().saturating_sub(1));
                let found = memmem::find(&pending[from..], mark).map(|at| from + at + mark.len());
                self.searched = pending.len();
                found
            }
            Framing::Length(field) => field.length(pending)?,
            Framing::Measured => None,
        };
        self.next_of(length, max_bytes)
    }

    /// Takes the next message, whose length is this, if it is known.
    ///
    /// # Errors
    /// [`Malformed`]: close the connection.
    pub fn next_of(
        &mut self,
        length: Option<usize>,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        match length {
            Some(length) if length > max_bytes => Err(Malformed::TooLong),
            Some(length) if length <= self.pending_bytes() => Ok(Some(self.take(length))),
            _ if self.pending_bytes() >= max_bytes => Err(Malformed::TooLong),
            _ => Ok(None),
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        self.searched = 0;
        if self.start == 0 && length == self.buffer.len() {
            return std::mem::take(&mut self.buffer);
        }
        let message = self.buffer[self.start..self.start + length].to_vec();
        self.start += length;
        if self.start == self.buffer.len() {
            self.buffer = Vec::new();
            self.start = 0;
        }
        message
    }
}

impl LengthField {
    /// The length of the message that begins here, if that is known.
    fn length(&self, pending: &[u8]) -> Result<Option<usize>, Malformed> {
        let end = self.offset.saturating_add(self.kind.bytes);
        let Some(field) = pending.get(self.offset..end) else { return Ok(None) };
        let counted = self.kind.read(field).ok_or(Malformed::BadLength)?;
        let counted = usize::try_from(counted).map_err(|_| Malformed::TooLong)?;
        match self.body_offset.saturating_add(counted) {
            0 => Err(Malformed::BadLength),
            length => Ok(Some(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 64;

    fn length(letter: char, offset: usize, body_offset: usize) -> Framing {
        Framing::Length(LengthField { kind: LengthKind::of(letter).unwrap(), offset, body_offset })
    }

    /// The messages of a stream that arrives in pieces of this length.
    fn messages(framing: &Framing, stream: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, Malformed> {
        let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            decoder.push(bytes);
            while let Some(message) = decoder.next(framing, MAX)? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn each_mark_ends_a_message_wherever_the_pieces_end() {
        let framing = Framing::Splits(b"\r\n".to_vec());
        for piece in 1..12 {
            let found = messages(&framing, b"one\r\n\r\ntwo\r\nrest", piece).unwrap();
            assert_eq!(found, [&b"one\r\n"[..], b"\r\n", b"two\r\n"], "{piece}");
        }
    }

    #[test]
    fn a_mark_at_the_end_ends_all_that_has_arrived() {
        let framing = Framing::Ends(b"\n".to_vec());
        assert_eq!(messages(&framing, b"a\nb\nc", 5).unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(messages(&framing, b"a\nb\nc\n", 6).unwrap(), [b"a\nb\nc\n"]);
    }

    #[test]
    fn a_length_counts_from_the_body_offset() {
        for piece in 1..9 {
            let found = messages(&length('N', 0, 4), b"\0\0\0\x02hi\0\0\0\0\0\0", piece).unwrap();
            assert_eq!(found, [&b"\0\0\0\x02hi"[..], b"\0\0\0\0"], "{piece}");
        }
        // A length that includes the header.
        assert_eq!(messages(&length('n', 1, 0), b"x\0\x05hi", 2).unwrap(), [b"x\0\x05hi"]);
        assert_eq!(messages(&length('v', 0, 2), b"\x01\0!", 3).unwrap(), [b"\x01\0!"]);
    }

    #[test]
    fn lengths_that_cannot_be_are_malformed() {
        assert_eq!(messages(&length('N', 0, 4), b"\xff\xff\xff\xff", 4), Err(Malformed::TooLong));
        assert_eq!(messages(&length('l', 0, 4), b"\xff\xff\xff\xff", 4), Err(Malformed::BadLength));
        assert_eq!(messages(&length('C', 0, 0), b"\0", 1), Err(Malformed::BadLength));
        assert_eq!(messages(&length('J', 0, 8), &[0xff; 8], 8), Err(Malformed::TooLong));
        let framing = Framing::Splits(b"\n".to_vec());
        assert_eq!(messages(&framing, &[b'x'; MAX], 7), Err(Malformed::TooLong));
    }

    proptest! {
        #[test]
        fn messages_are_the_stream_in_order_and_within_the_limit(
            stream in prop::collection::vec(any::<u8>(), 0..300),
            piece in 1_usize..40,
            which in 0_usize..5,
        ) {
            let framing = [
                Framing::None,
                Framing::Ends(b"\x01".to_vec()),
                Framing::Splits(b"\x01\x02".to_vec()),
                length('C', 0, 1),
                length('n', 2, 0),
            ];
            if let Ok(found) = messages(&framing[which], &stream, piece) {
                prop_assert!(found.iter().all(|one| !one.is_empty() && one.len() <= MAX));
                prop_assert!(stream.starts_with(&found.concat()));
            }
        }
    }
}
