//! [`Output`]: the frames that the server has not written to its socket yet.
//!
//! Owned by `connection`. Invariant: the bytes are contiguous and begin where the last write ended; a
//! buffer that is empty is used again from its start.

/// Written bytes in front of the others are removed from so many on.
const COMPACT_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Already written.
    start: usize,
}

impl Output {
    /// The number of bytes to write.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The bytes to write.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// For appending; bytes that are there may not be changed by other callers.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Removes written bytes.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.start = self.bytes.len().min(self.start + bytes);
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start >= COMPACT_BYTES {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Gives back memory if nothing is left.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_removed_and_memory_is_used_again() {
        let mut output = Output::default();
        output.buffer().extend_from_slice(b"abcd");
        output.sent(1);
        assert_eq!((output.bytes(), output.len()), (&b"bcd"[..], 3));
        output.buffer().extend_from_slice(&[b'e'; COMPACT_BYTES]);
        output.sent(COMPACT_BYTES);
        assert_eq!(output.bytes(), b"eee");
        output.sent(100);
        assert_eq!((output.bytes(), output.start), (&b""[..], 0));
        assert!(output.capacity_bytes() > 0);
        output.shrink();
        assert_eq!(output.capacity_bytes(), 0);
    }
}
