//! [`Response`]: a response of an upstream with a complete head and a streamed body.
//!
//! Created by the client. Invariants: a body is never longer than the request allows, before and after
//! decoding; the connection returns to its pool when the body has been read to its end, and is closed
//! when the response is dropped earlier.

use crate::channel::Channel;
use crate::connection::{self, Connection};
use crate::connections::Connections;
use crate::decode::Decoder;
use crate::error::{Error, Kind};
use crate::http2;
use crate::origin_pool::Permit;
use crate::request::Request;
use crate::response_facts::ResponseFacts;
use crate::url::Url;
use outboard_reactor::{Elapsed, now_ms, with_deadline};
use std::rc::Rc;

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status, 200 to 999, or 101 if the request asked to switch protocols.
    pub status: u16,
    /// The major version of HTTP.
    pub http_version: u8,
    /// The URL, after redirects.
    pub url: Url,
    /// Header lines `Name: value`, each ended by a newline, without connection fields and without the
    /// fields that no longer match a decoded body.
    pub headers: Vec<u8>,
    content: Content,
}

/// The body of a response over either protocol.
#[derive(Debug)]
pub(crate) enum Body {
    Http1(connection::Body),
    Http2(http2::Body),
}

impl Body {
    /// The response whose head is in the connection's input.
    pub(crate) fn of_http1(
        request: &Request,
        connection: Box<Connection>,
        head: connection::Head,
    ) -> (ResponseFacts, Self) {
        let fields: Vec<_> = connection.headers().collect();
        let status = connection.status();
        let facts = ResponseFacts::new(request, status, 1, fields.iter().copied());
        (facts, Self::Http1(connection::Body::new(connection, head)))
    }

    fn length(&self) -> Option<u64> {
        match self {
            Self::Http1(body) => body.length(),
            Self::Http2(body) => body.length(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_over(),
            Self::Http2(body) => body.is_over(),
        }
    }

    async fn read(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Http1(body) => body.read(out).await,
            Self::Http2(body) => body.read(out).await,
        }
    }

    /// The HTTP/1.1 connection, if another request can use it.
    fn into_idle(self) -> Option<Box<Connection>> {
        match self {
            Self::Http1(body) => body.into_idle(),
            Self::Http2(_) => None,
        }
    }
}

/// The rest of the body.
#[derive(Debug)]
struct Content {
    connections: Rc<Connections>,
    /// `None` after the end of the body.
    under_way: Option<(Body, Permit)>,
    decoder: Option<Decoder>,
    encoded: Vec<u8>,
    left_bytes: u64,
    deadline: Deadline,
}

/// The deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    /// Monotonic.
    pub(crate) at_ms: u64,
    /// The time-out of the request, for messages.
    pub(crate) timeout_ms: u64,
}

impl Deadline {
    pub(crate) fn error(self, server: &str) -> Error {
        let message = format!("no complete response from {server} in {} ms", self.timeout_ms);
        Error::new(Kind::Timeout, message)
    }
}

impl Response {
    pub(crate) fn new(
        connections: Rc<Connections>,
        request: &Request,
        head: ResponseFacts,
        body: Body,
        permit: Permit,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let most = request.max_body_bytes;
        if head.decoder.is_none() && body.length().is_some_and(|length| length > most) {
            return Err(too_large(most));
        }
        let content = Content {
            connections,
            under_way: Some((body, permit)),
            decoder: head.decoder,
            encoded: Vec::new(),
            left_bytes: most,
            deadline,
        };
        let mut response = Self {
            status: head.status,
            http_version: head.http_version,
            url: request.url.clone(),
            headers: head.headers,
            content,
        };
        // A connection that was switched goes to the caller that requested the upgrade.
        if response.status != 101 {
            response.content.settle();
        }
        Ok(response)
    }

    /// The connection, if it was switched to another protocol.
    pub fn into_channel(self) -> Option<Channel> {
        match self.content.under_way {
            Some((Body::Http1(body), permit)) if self.status == 101 => {
                Some(body.into_channel(permit.into_channel()))
            }
            _ => None,
        }
    }

    /// Waits for more of the body and appends it to `out`; false at the end of the body. Uses the task's
    /// deadline.
    ///
    /// # Errors
    /// The body will not be complete.
    pub async fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        let read = self.content.read(out, &self.url).await;
        if let Err(error) = &read {
            self.content.connections.count(|counters| counters.failed(error.kind));
            self.content.under_way = None;
        }
        read
    }

    /// Replaces the deadline of the request by one from now on.
    pub fn wait_at_most(&mut self, timeout_ms: u64) {
        self.content.deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
    }

    /// Counts as a response from now on, below that limit: a body can take hours, and should not occupy
    /// the place of a request.
    pub fn count_as_response(&mut self) {
        if let Some((_, permit)) = &mut self.content.under_way {
            permit.count_as_response();
        }
    }

    /// Whether all of the body has been read.
    pub fn is_over(&self) -> bool {
        self.content.under_way.is_none()
    }

    /// The value of the first field with this name, in lower case.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        self.headers.split(|&byte| byte == b'\n').find_map(|line| {
            let (theirs, rest) = line.split_at_checked(name.len())?;
            let value = rest.strip_prefix(b": ")?;
            theirs.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The target of a redirect (RFC 9110 15.4).
    pub(crate) fn location(&self) -> Option<&[u8]> {
        matches!(self.status, 301 | 302 | 303 | 307 | 308).then(|| self.header(b"location"))?
    }
}

impl Content {
    async fn read(&mut self, out: &mut Vec<u8>, url: &Url) -> Result<bool, Error> {
        let Some((body, _)) = &mut self.under_way else { return Ok(false) };
        let begin = out.len();
        let target = if self.decoder.is_some() { &mut self.encoded } else { &mut *out };
        match with_deadline(self.deadline.at_ms, body.read(target)).await {
            Ok(outcome) => outcome?,
            Err(Elapsed) => return Err(self.deadline.error(url.origin())),
        }
        let is_over = body.is_over();
        let came = match &self.decoder {
            None => out.len() - begin,
            Some(_) => self.encoded.len(),
        };
        let Some(left_bytes) = self.left_bytes.checked_sub(came as u64) else {
            return Err(too_large(self.left_bytes));
        };
        self.left_bytes = left_bytes;
        if let Some(decoder) = &mut self.decoder {
            decoder.decode(&self.encoded, out)?;
            self.encoded.clear();
            if is_over {
                decoder.finish(out)?;
            }
        }
        self.settle();
        Ok(!is_over)
    }

    /// Returns the connection to the pool at the end of the body.
    fn settle(&mut self) {
        if let Some((body, permit)) = self.under_way.take_if(|(body, _)| body.is_over()) {
            let pool = permit.pool().clone();
            self.connections.keep(&pool, body.into_idle());
        }
    }
}

fn too_large(most: u64) -> Error {
    Error::new(Kind::TooLarge, format!("the body is larger than {most} bytes"))
}
