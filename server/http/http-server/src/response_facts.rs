//! What a response is, apart from its header lines and its body.
//!
//! Chosen by handlers, written by [`crate::response_writer`].

use crate::request::Request;
use outboard_http1::{Method, Version};

/// The outcome of writing a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it was written.
    Complete {
        /// Whether the head allowed another request.
        keep_alive: bool,
    },
    /// `101` was written: the upgrade handler receives the connection.
    Upgraded,
    /// The client is gone, or the response is incomplete.
    Broken,
}

/// How the client finds the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body: 204, 304, or a response to HEAD. The length is announced if it is known.
    Bodyless(Option<u64>),
    /// By its length.
    Length(u64),
    /// By the last chunk.
    Chunked,
    /// The connection ends with the body (HTTP/1.0).
    UntilClose,
    /// The stream ends with the body or with trailers (HTTP/2).
    Stream,
}

/// The properties of a request that its response depends on.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts {
    /// The method.
    pub method: Method,
    /// The version of HTTP.
    pub version: Version,
    /// Whether another request may follow on the connection.
    pub keep_alive: bool,
}

impl RequestFacts {
    /// Of a request whose head could not be read.
    pub(crate) const UNREAD: Self =
        Self { method: Method::Get, version: Version::Http11, keep_alive: false };

    /// Of a request.
    pub(crate) fn of(request: &Request, may_continue: bool) -> Self {
        let (head, _) = request.head();
        Self {
            method: head.method_kind(),
            version: head.version(),
            keep_alive: head.keep_alive() && may_continue,
        }
    }

    /// A response head with the server's own `Date` and `Server`.
    pub fn head(&self, status: u16, framing: Framing) -> HeadFacts<'static> {
        HeadFacts {
            status,
            reason: b"",
            framing,
            keep_alive: self.keep_alive && framing != Framing::UntilClose,
            version: self.version,
            own_date: false,
            own_server: false,
        }
    }

    /// The framing of a complete body.
    pub fn framing_of_whole(&self, status: u16, length: u64) -> Framing {
        match status {
            // RFC 9110 15.4.5: a length in a 304 would have to be that of the 200.
            304 => Framing::Bodyless(None),
            _ => self.framing(status, Some(length)),
        }
    }

    /// The framing of a body whose length may be known.
    pub fn framing(&self, status: u16, length: Option<u64>) -> Framing {
        if self.method == Method::Head || matches!(status, 204 | 304) {
            let length = if status == 204 { None } else { length };
            return Framing::Bodyless(length);
        }
        match length {
            Some(length) => Framing::Length(length),
            None => match self.version {
                Version::Http10 => Framing::UntilClose,
                Version::Http11 => Framing::Chunked,
                Version::Http2 | Version::Http3 => Framing::Stream,
            },
        }
    }
}

/// A response head without its header lines.
#[derive(Debug, Clone, Copy)]
pub struct HeadFacts<'a> {
    /// The status code.
    pub status: u16,
    /// The reason phrase; empty: the standard one.
    pub reason: &'a [u8],
    /// How the body ends.
    pub framing: Framing,
    /// Whether another request may follow.
    pub keep_alive: bool,
    /// The version of the request.
    pub version: Version,
    /// The header lines decide about `Date`.
    pub own_date: bool,
    /// The header lines decide about `Server`.
    pub own_server: bool,
}
