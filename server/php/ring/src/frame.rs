//! Frames: kind, length, and the request that a frame belongs to.
//!
//! Used by both ends of a ring. Invariant: an unknown kind is [`Corrupt`], and every kind that is sent is known.

use crate::corrupt::Corrupt;

/// Size of an encoded [`FrameHeader`].
pub const FRAME_HEADER_BYTES: usize = 16;

/// What a frame carries. The payloads are in [`crate::request`] and [`crate::response`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Gateway → worker: a request begins ([`crate::request::RequestView`]).
    Request = 1,
    /// Gateway → worker: bytes of the request body, in order, up to its content length.
    RequestBody = 2,
    /// Gateway → worker: exit.
    Stop = 3,
    /// Gateway → worker: the request has exceeded its deadline; end it without harm to the others.
    Cancel = 4,
    /// Gateway → worker: the result of an operation ([`crate::operation::Completion`]).
    Completion = 5,
    /// Gateway → worker: the client reads the response again.
    Resume = 6,
    /// Gateway → worker: something has happened on a raw connection
    /// ([`crate::stream::StreamEvent`]).
    Stream = 7,
    /// Gateway → worker: a request that requests of direct connections may be like, as `Request`.
    Template = 8,
    /// Worker → gateway: booted, ready for the first request. Empty payload.
    Ready = 16,
    /// Worker → gateway: status and header lines ([`crate::response::ResponseHead`]).
    Head = 17,
    /// Worker → gateway: bytes of the response body.
    Body = 18,
    /// Worker → gateway: send the response so far to the client now (PHP's `flush()`).
    Flush = 19,
    /// Worker → gateway: the response is complete, the script continues
    /// (`fastcgi_finish_request()`).
    End = 20,
    /// Worker → gateway: the request is over and the worker free ([`crate::response::Done`]).
    Done = 21,
    /// Worker → gateway: a line for the error log ([`crate::response::LogLine`]).
    Log = 22,
    /// Worker → gateway: do something for the request ([`crate::operation::Operation`]); the tag
    /// is the request's, or the default for one that belongs to none.
    Operation = 23,
    /// Worker → gateway: an interim answer (RFC 9110 15.2), for the client at once; as `Head`.
    Interim = 24,
    /// Worker → gateway: the trailer fields, before the end of the response
    /// ([`crate::response::Trailers`]).
    Trailers = 25,
    /// Worker → gateway: a whole response and the end of its request, in the place of `Head`, `Body` and `Done`
    /// ([`crate::response::Whole`]).
    Whole = 26,
    /// Worker → gateway: a request has come on a direct connection and is run
    /// ([`crate::direct::Taken`]).
    Taken = 27,
    /// Worker → gateway: the worker has answered it ([`crate::direct::Answered`]).
    Answered = 28,
    /// Worker → gateway: a direct connection is the gateway's again ([`crate::direct::Returned`]).
    Returned = 29,
}

impl FrameKind {
    /// Whether the gateway sends it.
    pub(crate) fn is_to_worker(self) -> bool {
        (self as u8) < Self::Ready as u8
    }

    fn from_wire(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Request,
            2 => Self::RequestBody,
            3 => Self::Stop,
            4 => Self::Cancel,
            5 => Self::Completion,
            6 => Self::Resume,
            7 => Self::Stream,
            8 => Self::Template,
            16 => Self::Ready,
            17 => Self::Head,
            18 => Self::Body,
            19 => Self::Flush,
            20 => Self::End,
            21 => Self::Done,
            22 => Self::Log,
            23 => Self::Operation,
            24 => Self::Interim,
            25 => Self::Trailers,
            26 => Self::Whole,
            27 => Self::Taken,
            28 => Self::Answered,
            29 => Self::Returned,
            _ => return None,
        })
    }
}

/// Names one request of a worker: the lease that it has and a number that no other request of this
/// worker has. A frame whose generation is not the slot's present one is late and is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tag {
    /// Index of the lease, below [`crate::channel::LEASES`], or that of a direct connection from there on.
    pub slot: u32,
    /// Counts the worker's requests, from 1.
    pub generation: u32,
}

/// The 16 bytes before each payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Payload length in bytes; set by the ring.
    pub len: u32,
    /// What the payload is.
    pub kind: FrameKind,
    /// The request that it belongs to.
    pub tag: Tag,
}

impl FrameHeader {
    /// A header for a frame of `kind` about `tag`.
    pub fn new(kind: FrameKind, tag: Tag) -> Self {
        Self { len: 0, kind, tag }
    }

    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        debug_assert_eq!(FrameKind::from_wire(self.kind as u8), Some(self.kind));
        let mut raw = [0; FRAME_HEADER_BYTES];
        raw[0..4].copy_from_slice(&self.len.to_le_bytes());
        raw[4] = self.kind as u8;
        raw[8..12].copy_from_slice(&self.tag.slot.to_le_bytes());
        raw[12..16].copy_from_slice(&self.tag.generation.to_le_bytes());
        raw
    }

    pub(crate) fn decode(raw: &[u8; FRAME_HEADER_BYTES]) -> Result<Self, Corrupt> {
        let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let kind =
            FrameKind::from_wire(raw[4]).ok_or(Corrupt { what: "a frame of an unknown kind" })?;
        Ok(Self { len: word(0), kind, tag: Tag { slot: word(8), generation: word(12) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_has_one_number_and_one_direction() {
        let known: Vec<(u8, FrameKind)> =
            (0..=u8::MAX).filter_map(|raw| Some((raw, FrameKind::from_wire(raw)?))).collect();
        assert!(known.iter().all(|(raw, kind)| *kind as u8 == *raw));
        let (to_worker, to_gateway): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|(_, kind)| kind.is_to_worker());
        assert_eq!((to_worker.len(), to_gateway.len()), (8, 14));
        assert!(to_worker.iter().all(|(raw, _)| *raw < to_gateway[0].0));
    }

    #[test]
    fn a_frame_of_an_unknown_kind_is_corrupt() {
        let mut raw = FrameHeader::new(FrameKind::Done, Tag::default()).encode();
        for kind in [0, 9, 15, 30, u8::MAX] {
            raw[4] = kind;
            let refused = FrameHeader::decode(&raw);
            assert_eq!(refused, Err(Corrupt { what: "a frame of an unknown kind" }), "{kind}");
        }
    }

    proptest! {
        #[test]
        fn a_header_comes_back_whatever_is_in_its_padding(
            len: u32, slot: u32, generation: u32, padding: [u8; 3],
        ) {
            let header = FrameHeader { len, kind: FrameKind::Head, tag: Tag { slot, generation } };
            let mut raw = header.encode();
            raw[5..8].copy_from_slice(&padding);
            prop_assert_eq!(FrameHeader::decode(&raw), Ok(header));
        }
    }
}
