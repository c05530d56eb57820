//! Direct connections: client connections whose socket a worker has as well, so that it reads requests and answers
//! them without the gateway.
//!
//! The gateway keeps its own descriptor. It sends the worker a duplicate with a [`Greeting`], over a socket pair that
//! each worker of an app with direct connections has. A word of the ring's header ([`crate::channel`]) says whose
//! move it is. The worker reports what it does in frames, without waking the gateway: [`Taken`], then
//! [`Answered`], or ordinary frames of a response that the gateway has to send; at last [`Returned`]. Invariants:
//! bytes that the worker has read are in a frame before anything follows from them; every frame is validated.

use crate::corrupt::Corrupt;
use crate::frame::Tag;
use serde::{Deserialize, Serialize};

/// For how long a request that the gateway has routed is a template for others with its host and path.
pub const TEMPLATE_MS: u64 = 1_000;

/// What a worker learns of a connection, in the packet that has its descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Slot and generation of its requests.
    pub slot: u32,
    /// See `slot`.
    pub generation: u32,
    /// The requests that the worker may answer, at most.
    pub requests: u32,
    /// The id of the first; the next ones count up.
    pub request_id: u64,
    /// `REMOTE_ADDR`.
    pub remote_addr: String,
    /// `REMOTE_PORT`.
    pub remote_port: u16,
    /// `SERVER_ADDR`.
    pub server_addr: String,
    /// `SERVER_PORT`.
    pub server_port: u16,
    /// Responses from this length on are the gateway's to compress, if the client accepts it; 0: none.
    pub compress_min_bytes: u32,
    /// The longest request line.
    pub request_line_bytes: u32,
    /// The longest head.
    pub head_bytes: u32,
    /// The most header fields.
    pub header_count: u32,
    /// The longest body.
    pub body_bytes: u64,
}

impl Greeting {
    /// The tag of its requests.
    pub fn tag(&self) -> Tag {
        Tag { slot: self.slot, generation: self.generation }
    }
}

/// A request that the worker has read and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    /// Its id.
    pub request_id: u64,
    /// Wall-clock time of its arrival, µs.
    pub received_us: u64,
    /// Its head and its body, as they were received.
    pub request: &'a [u8],
}

impl<'a> Taken<'a> {
    /// The bytes before the request.
    pub fn prefix(&self) -> [u8; 16] {
        debug_assert!(!self.request.is_empty(), "a request has bytes");
        let mut raw = [0; 16];
        raw[..8].copy_from_slice(&self.request_id.to_le_bytes());
        raw[8..].copy_from_slice(&self.received_us.to_le_bytes());
        raw
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        const SHORT: Corrupt =
            Corrupt { what: "a request of a direct connection that is too short" };
        let (fixed, request) = payload.split_at_checked(16).ok_or(SHORT)?;
        Ok(Self { request_id: long(fixed, 0), received_us: long(fixed, 8), request })
    }
}

/// How the worker has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// Whether the response is what the script meant.
    pub handled: bool,
    /// The length of the body.
    pub body_bytes: u64,
    /// When the response was written, µs.
    pub ended_us: u64,
    /// The peak memory of the request.
    pub peak_memory_bytes: u64,
}

const ANSWERED_BYTES: usize = 32;

impl Answered {
    /// The payload.
    pub fn encode(&self) -> [u8; ANSWERED_BYTES] {
        let mut raw = [0; ANSWERED_BYTES];
        raw[..2].copy_from_slice(&self.status.to_le_bytes());
        raw[2] = u8::from(self.handled);
        raw[8..16].copy_from_slice(&self.body_bytes.to_le_bytes());
        raw[16..24].copy_from_slice(&self.ended_us.to_le_bytes());
        raw[24..].copy_from_slice(&self.peak_memory_bytes.to_le_bytes());
        raw
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It has another length, or no final status.
    pub fn decode(payload: &[u8]) -> Result<Self, Corrupt> {
        const BAD: Corrupt = Corrupt { what: "an account of a direct connection that is none" };
        if payload.len() != ANSWERED_BYTES {
            return Err(BAD);
        }
        let status = u16::from_le_bytes([payload[0], payload[1]]);
        if !(200..=999).contains(&status) {
            return Err(BAD);
        }
        Ok(Self {
            status,
            handled: payload[2] == 1,
            body_bytes: long(payload, 8),
            ended_us: long(payload, 16),
            peak_memory_bytes: long(payload, 24),
        })
    }
}

/// What is left of a connection that goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Returned<'a> {
    /// The end of the last response, which the socket did not take.
    pub unsent: &'a [u8],
    /// What was read behind the last request.
    pub unread: &'a [u8],
}

impl<'a> Returned<'a> {
    /// The bytes before both.
    pub fn prefix(&self) -> [u8; 4] {
        (self.unsent.len() as u32).to_le_bytes()
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It is too short.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        const SHORT: Corrupt = Corrupt { what: "a returned connection without its bytes" };
        let (length, rest) = payload.split_at_checked(4).ok_or(SHORT)?;
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let (unsent, unread) = rest.split_at_checked(length).ok_or(SHORT)?;
        Ok(Self { unsent, unread })
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_of_direct_connections_come_back(
            request_id: u64, received_us: u64, bytes in vec(any::<u8>(), 1..50), more: Vec<u8>, status in 200..=999_u16,
            handled: bool,
        ) {
            let taken = Taken { request_id, received_us, request: &bytes };
            let payload = [&taken.prefix()[..], &bytes].concat();
            prop_assert_eq!(Taken::decode(&payload), Ok(taken));
            let (body_bytes, ended_us, peak_memory_bytes) = (request_id, received_us, !received_us);
            let answered = Answered { status, handled, body_bytes, ended_us, peak_memory_bytes };
            prop_assert_eq!(Answered::decode(&answered.encode()), Ok(answered));
            let returned = Returned { unsent: &bytes, unread: &more };
            let payload = [&returned.prefix()[..], &bytes, &more].concat();
            prop_assert_eq!(Returned::decode(&payload), Ok(returned));
        }

        #[test]
        fn no_payload_panics(payload: Vec<u8>) {
            let _ = (Taken::decode(&payload), Answered::decode(&payload), Returned::decode(&payload));
        }
    }

    #[test]
    fn a_status_that_is_none_is_corrupt() {
        for status in [0, 100, 199, 1000] {
            let answered = Answered { status, ..Answered::default() };
            assert!(Answered::decode(&answered.encode()).is_err(), "{status}");
        }
    }
}
