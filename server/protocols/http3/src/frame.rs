//! Frames (RFC 9114 7): their types, and a reader for the bytes of a stream.
//!
//! Called by `connection` with the bytes of a stream as they arrive. Invariant: the reader stores at
//! most the head of a frame; the payload is passed on in pieces.

use crate::varint::{VARINT_BYTES_MAX, read_varint, write_varint};

/// The types of frames (RFC 9114 7.2, RFC 9218 7.2).
pub mod frame_type {
    /// A part of the body.
    pub const DATA: u64 = 0x0;
    /// A field section.
    pub const HEADERS: u64 = 0x1;
    /// A push is not needed.
    pub const CANCEL_PUSH: u64 = 0x3;
    /// The parameters of a side.
    pub const SETTINGS: u64 = 0x4;
    /// The request of a push.
    pub const PUSH_PROMISE: u64 = 0x5;
    /// The connection is going to be closed.
    pub const GOAWAY: u64 = 0x7;
    /// The number of pushes that are allowed.
    pub const MAX_PUSH_ID: u64 = 0xd;
    /// The priority of a request.
    pub const PRIORITY_UPDATE: u64 = 0xf0700;
    /// The priority of a push.
    pub const PRIORITY_UPDATE_OF_PUSH: u64 = 0xf0701;

    /// Whether the type is one of HTTP/2 that is not allowed here (RFC 9114 7.2.8).
    pub fn is_of_http2_only(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// The next part of a stream of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePart<'a> {
    /// A frame begins.
    Start {
        /// Its type.
        kind: u64,
        /// The length of its payload.
        len: u64,
    },
    /// The next bytes of the payload; not empty.
    Payload(&'a [u8]),
    /// The frame ends.
    End,
}

/// Reads the frames of a stream.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The bytes of an incomplete head.
    head: [u8; 2 * VARINT_BYTES_MAX],
    head_len: usize,
    /// The rest of the payload of the current frame.
    remaining: Option<u64>,
}

impl FrameReader {
    /// A reader at the start of a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next part from the start of `input`; `None` if it has none.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<FramePart<'a>> {
        match self.remaining {
            None => self.read_head(input),
            Some(0) => {
                self.remaining = None;
                Some(FramePart::End)
            }
            Some(_) if input.is_empty() => None,
            Some(remaining) => {
                let len =
                    usize::try_from(remaining).map_or(input.len(), |len| len.min(input.len()));
                let (payload, rest) = input.split_at(len);
                *input = rest;
                self.remaining = Some(remaining - len as u64);
                Some(FramePart::Payload(payload))
            }
        }
    }

    /// Whether the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.remaining.is_none() && self.head_len == 0
    }

    fn read_head<'a>(&mut self, input: &mut &'a [u8]) -> Option<FramePart<'a>> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            // Two complete integers fill it at most, and are removed at once.
            self.head[self.head_len] = byte;
            self.head_len += 1;
            let mut head = &self.head[..self.head_len];
            if let (Some(kind), Some(len)) = (read_varint(&mut head), read_varint(&mut head)) {
                self.head_len = 0;
                self.remaining = Some(len);
                return Some(FramePart::Start { kind, len });
            }
        }
        None
    }
}

/// Appends the head of a frame whose payload follows.
pub(crate) fn write_frame_head(out: &mut Vec<u8>, kind: u64, len: u64) {
    write_varint(out, kind);
    write_varint(out, len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The frames of a stream, and whether it may end there.
    fn read(pieces: &[&[u8]]) -> (Vec<(u64, Vec<u8>, bool)>, bool) {
        let (mut reader, mut frames) = (FrameReader::new(), Vec::new());
        for mut piece in pieces.iter().copied() {
            while let Some(part) = reader.next(&mut piece) {
                match (part, frames.last_mut()) {
                    (FramePart::Start { kind, .. }, _) => frames.push((kind, Vec::new(), false)),
                    (FramePart::Payload(bytes), Some((_, payload, false))) => {
                        assert!(!bytes.is_empty());
                        payload.extend_from_slice(bytes);
                    }
                    (FramePart::End, Some((_, _, is_complete @ false))) => *is_complete = true,
                    (part, _) => panic!("{part:?}"),
                }
            }
            assert!(piece.is_empty());
        }
        (frames, reader.is_between_frames())
    }

    #[test]
    fn frames_are_read() {
        let frames = |bytes: &[u8]| read(&[bytes]);
        assert_eq!(frames(b""), (vec![], true));
        assert_eq!(frames(&[0]), (vec![], false));
        assert_eq!(frames(&[0, 0]), (vec![(0, vec![], true)], true));
        assert_eq!(frames(&[0, 2, 1]), (vec![(0, vec![1], false)], false));
        assert_eq!(frames(&[0x40, 1, 0x40, 1, 9]), (vec![(1, vec![9], true)], true));
        let long = [0xc0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7];
        assert_eq!(frames(&long), (vec![(1, vec![7], false)], false));
    }

    proptest! {
        #[test]
        fn frames_in_pieces_are_the_same(
            bytes in proptest::collection::vec(prop_oneof![0..8u8, any::<u8>()], 0..100),
            cut in 0..100usize,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[first, second]), read(&[&bytes]));
        }
    }
}
