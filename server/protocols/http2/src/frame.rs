//! Frames (RFC 9113 4.1, 6): their heads, types and flags, and the writers of those with a fixed form.
//!
//! Used by `connection`; neither side of a connection is special here. Invariant: a frame is written
//! complete, with its length, so that the output is a sequence of frames at any time.

use crate::error::ErrorCode;

/// The first bytes of a client (RFC 9113 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's head.
pub(crate) const FRAME_HEAD_BYTES: usize = 9;
/// The smallest value of SETTINGS_MAX_FRAME_SIZE, and its default.
pub(crate) const MIN_MAX_FRAME_BYTES: u32 = 1 << 14;
/// A buffer for this many bytes of input always suffices.
pub const MAX_INPUT_BYTES: usize = MIN_MAX_FRAME_BYTES as usize + FRAME_HEAD_BYTES;
/// The largest value of SETTINGS_MAX_FRAME_SIZE.
pub(crate) const MAX_MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// The largest stream identifier.
pub(crate) const MAX_STREAM_ID: u32 = (1 << 31) - 1;

/// The types of frames (RFC 9113 6, RFC 9218 7.1).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// The flags of frames (RFC 9113 6).
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The head of a frame (RFC 9113 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// The length of the payload.
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// 0 is the connection.
    pub(crate) stream_id: u32,
}

impl FrameHead {
    /// Reads the head at the start of `bytes`; `None` if it is incomplete.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream_id @ ..] = bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        Some(Self {
            len: u32::from_be_bytes([0, *a, *b, *c]) as usize,
            kind: *kind,
            flags: *flags,
            // The first bit is reserved and ignored.
            stream_id: u32::from_be_bytes(*stream_id) & MAX_STREAM_ID,
        })
    }

    /// The bytes of the head. `len` is below 2^24.
    pub(crate) fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [d, e, f, g] = self.stream_id.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a frame whose payload is complete.
pub(crate) fn write_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream_id: u32, payload: &[u8]) {
    out.reserve(FRAME_HEAD_BYTES + payload.len());
    out.extend_from_slice(&FrameHead { len: payload.len(), kind, flags, stream_id }.bytes());
    out.extend_from_slice(payload);
}

/// Writes RST_STREAM (RFC 9113 6.4).
pub(crate) fn write_rst_stream(out: &mut Vec<u8>, stream_id: u32, code: ErrorCode) {
    write_frame(out, kind::RST_STREAM, 0, stream_id, &code.0.to_be_bytes());
}

/// Writes WINDOW_UPDATE (RFC 9113 6.9).
pub(crate) fn write_window_update(out: &mut Vec<u8>, stream_id: u32, increment: u32) {
    write_frame(out, kind::WINDOW_UPDATE, 0, stream_id, &increment.to_be_bytes());
}

/// Writes PING (RFC 9113 6.7).
pub(crate) fn write_ping(out: &mut Vec<u8>, opaque: [u8; 8], is_ack: bool) {
    write_frame(out, kind::PING, if is_ack { flag::ACK } else { 0 }, 0, &opaque);
}

/// Writes GOAWAY (RFC 9113 6.8) with the name of an error.
pub(crate) fn write_goaway(out: &mut Vec<u8>, last_stream_id: u32, code: ErrorCode, debug: &str) {
    let head =
        FrameHead { len: 8 + debug.len(), kind: kind::GOAWAY, flags: 0, stream_id: 0 }.bytes();
    out.extend_from_slice(&head);
    out.extend_from_slice(&last_stream_id.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

/// The first 32 bits of a payload.
pub(crate) fn read_u32(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// The payload without padding (RFC 9113 6.1, 6.2); `None` if there is more padding than payload.
pub(crate) fn without_padding(head: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.len().checked_sub(padding.into()).and_then(|len| rest.get(..len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_as_it_was_written() {
        let head = FrameHead { len: 0x12_3456, kind: 9, flags: 0x2d, stream_id: 0x7fff_fffe };
        assert_eq!(FrameHead::read(&head.bytes()), Some(head));
        assert_eq!(FrameHead::read(&head.bytes()[..8]), None);
    }

    #[test]
    fn the_reserved_bit_is_ignored() {
        let bytes = [0, 0, 0, 0, 0, 0x80, 0, 0, 5];
        assert_eq!(FrameHead::read(&bytes).map(|head| head.stream_id), Some(5));
    }

    #[test]
    fn padding_longer_than_the_payload_is_refused() {
        let head = |len| FrameHead { len, kind: kind::DATA, flags: flag::PADDED, stream_id: 1 };
        assert_eq!(without_padding(head(4), b"\x01ab\0"), Some(&b"ab"[..]));
        assert_eq!(without_padding(head(2), b"\x01\0"), Some(&b""[..]));
        assert_eq!(without_padding(head(2), b"\x02\0"), None);
        assert_eq!(without_padding(head(0), b""), None);
    }
}
