//! [`Codec`]: the protocol of one connection behind one interface.

use crate::message::Message;
use crate::received::{Malformed, ReceivedLanes};
use crate::response::Response;
use crate::target::{Protocol, Target};
use crate::{fastcgi, http1, http2, http3, redis};

/// The state of one protocol on one connection.
pub(crate) enum Codec {
    Http1(http1::Reader),
    Http2(Box<http2::Session>),
    Http3(Box<http3::Session>),
    FastCgi { reader: fastcgi::Reader, keep_alive: bool },
    Redis(redis::Reader),
}

impl Codec {
    pub(crate) fn new(target: &Target, keep_alive: bool, lanes: usize) -> Self {
        match target.protocol {
            Protocol::Http1 => Codec::Http1(http1::Reader::new()),
            Protocol::Http2 => {
                Codec::Http2(Box::new(http2::Session::new(target.tls_name.is_some(), lanes)))
            }
            Protocol::Http3 => Codec::Http3(Box::new(http3::Session::new(lanes))),
            Protocol::FastCgi => Codec::FastCgi { reader: fastcgi::Reader::default(), keep_alive },
            Protocol::Redis => Codec::Redis(redis::Reader::default()),
        }
    }

    /// Prepares for a new connection; HTTP/3 does so when it connects.
    pub(crate) fn reset(&mut self) {
        if let Codec::Http2(session) = self {
            session.reset();
        }
    }

    /// Prepares for the response to a request of this method, whose bytes are sent as they are.
    pub(crate) fn begin(&mut self, method: &str) {
        match self {
            Codec::Http1(reader) => reader.begin(method),
            Codec::FastCgi { reader, .. } => reader.begin(),
            Codec::Redis(reader) => reader.begin(),
            Codec::Http3(session) => session.begin(method),
            Codec::Http2(_) => {}
        }
    }

    /// Parses received bytes, a datagram in HTTP/3, and records the lanes concerned in `received`. Only
    /// HTTP/2 and HTTP/3 have several.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        responses: &mut [Response],
        received: &mut ReceivedLanes,
    ) -> Result<(), Malformed> {
        let is_whole = match self {
            Codec::Http1(reader) => reader.feed(bytes, &mut responses[0])?,
            Codec::Http2(session) => return session.feed(bytes, responses, received),
            Codec::Http3(session) => {
                session.feed(bytes, responses, received);
                return Ok(());
            }
            Codec::FastCgi { reader, keep_alive } => {
                responses[0].keep_alive = *keep_alive;
                reader.feed(bytes, &mut responses[0])?
            }
            Codec::Redis(reader) => reader.feed(bytes, &mut responses[0])?,
        };
        if is_whole {
            received.complete.push(0);
        }
        Ok(())
    }

    /// Handles the end of the stream; true when it completes the response.
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Codec::Http1(reader) => reader.end(),
            Codec::Http2(_) | Codec::Http3(_) | Codec::FastCgi { .. } | Codec::Redis(_) => false,
        }
    }
}

/// Writes the bytes of `message`; `None` in HTTP/2, where they depend on those before.
pub(crate) fn write(
    protocol: Protocol,
    message: &Message,
    keep_alive: bool,
    out: &mut Vec<u8>,
) -> Option<()> {
    match protocol {
        Protocol::Http1 => http1::write(message, keep_alive, out),
        Protocol::FastCgi => fastcgi::write(message, keep_alive, out),
        Protocol::Redis => redis::write(message, out),
        Protocol::Http3 => http3::write(message, out),
        Protocol::Http2 => return None,
    }
    Some(())
}

/// Parses `bytes`, cut in two, as the response to a `GET` and returns its status and the length of
/// its body, or nothing when it is incomplete or malformed. For the fuzz target of the readers.
#[doc(hidden)]
pub fn read_response(protocol: Protocol, bytes: &[u8], cut: usize) -> Option<(u16, u64)> {
    let mut response = [Response { wants_fields: true, wants_body: true, ..Response::default() }];
    let mut codec = match protocol {
        Protocol::Http1 | Protocol::Http2 | Protocol::Http3 => Codec::Http1(http1::Reader::new()),
        Protocol::FastCgi => {
            Codec::FastCgi { reader: fastcgi::Reader::default(), keep_alive: true }
        }
        Protocol::Redis => Codec::Redis(redis::Reader::default()),
    };
    codec.begin("GET");
    let mut received = ReceivedLanes::default();
    for piece in [&bytes[..cut], &bytes[cut..]] {
        if !piece.is_empty() {
            // Bytes after a complete response belong to no response.
            let was_whole = !received.complete.is_empty();
            received.clear();
            if !was_whole {
                codec.feed(piece, &mut response, &mut received).ok()?;
            }
        }
    }
    (!received.complete.is_empty() || codec.end())
        .then_some((response[0].status, response[0].body_bytes))
}
