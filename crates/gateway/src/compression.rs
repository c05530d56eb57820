//! [`Compression`]: compresses text responses of scripts for clients that accept it.
//!
//! Called where a script's response is sent. Invariants: a response with a coding, a partial one,
//! one with `no-transform` and an event stream are sent unchanged; a response that could be
//! compressed has `Vary: Accept-Encoding` either way (RFC 9110 12.5.5); large pieces are compressed
//! on a thread.

use crate::app::App;
use crate::request::RequestContext;
use crate::response_head::ResponseHead;
use outboard_http_semantics::{Coding, is_compressible};
use outboard_http_server::{Connection, HeaderBlock};
use outboard_http1::Method;
use outboard_page_cache::{COMPRESS_MIN_BYTES, Encoder};
use outboard_reactor::blocking;
use std::io;

/// Compressing a shorter piece takes less time than passing it to a thread.
const INLINE_BYTES: usize = 4 << 10;

/// The body of one response.
#[derive(Debug)]
pub(crate) struct Compression(Encoder);

impl Compression {
    /// The compression of a response with this head and body length, if that is known; it is added
    /// to the head. `None`: the response is sent unchanged.
    pub(crate) fn of(
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &App,
        head: &mut ResponseHead,
        body_bytes: Option<u64>,
    ) -> Option<Self> {
        let is_short = body_bytes.is_some_and(|bytes| bytes < COMPRESS_MIN_BYTES as u64);
        let is_enabled = app.config.compress && ctx.request.method != Method::Head && !is_short;
        if !is_enabled || ctx.gateway.development().is_some() || !is_eligible(head) {
            return None;
        }
        let buffers = connection.buffers();
        let accept_encoding = buffers.head.header(&buffers.input, b"accept-encoding");
        let coding = Coding::choose(accept_encoding, Coding::ALL);
        let encoder = coding.and_then(|coding| Some((coding, Encoder::new(coding).ok()?)));
        if !varies(&head.headers) {
            head.headers.add(b"Vary", b"Accept-Encoding").ok()?;
        }
        let (coding, encoder) = encoder?;
        head.headers.add(b"Content-Encoding", coding.token().as_bytes()).ok()?;
        weaken(&mut head.headers);
        head.content_length = None;
        Some(Self(encoder))
    }

    /// Compresses a piece that is not the last.
    pub(crate) async fn piece(self, bytes: Vec<u8>) -> io::Result<(Self, Vec<u8>)> {
        let is_short = bytes.len() <= INLINE_BYTES;
        let Self(mut encoder) = self;
        let work = move || encoder.push(&bytes).map(|coded| (Self(encoder), coded));
        if is_short { work() } else { blocking(work).await }
    }

    /// Compresses the last piece, or the only one.
    pub(crate) async fn end(self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if bytes.len() <= INLINE_BYTES {
            return self.0.end(&bytes);
        }
        blocking(move || self.0.end(&bytes)).await
    }
}

/// Whether the response is a complete text without a coding.
fn is_eligible(head: &ResponseHead) -> bool {
    let mut is_text = false;
    for (name, value) in head.headers.lines() {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"content-encoding") || is(b"content-range") {
            return false;
        }
        if is(b"cache-control") && contains_token(value, b"no-transform") {
            return false;
        }
        if is(b"content-type") {
            is_text = is_compressible(value) && !contains_token(value, b"text/event-stream");
        }
    }
    is_text && !matches!(head.status, 204 | 206 | 304)
}

/// Whether Vary names Accept-Encoding already.
fn varies(headers: &HeaderBlock) -> bool {
    headers.lines().any(|(name, value)| {
        name.eq_ignore_ascii_case(b"vary")
            && (value == b"*" || contains_token(value, b"accept-encoding"))
    })
}

fn contains_token(value: &[u8], token: &[u8]) -> bool {
    memchr::memmem::find(&value.to_ascii_lowercase(), token).is_some()
}

/// A strong validator identifies exact bytes, which compression changes (RFC 9110 8.8.3.3).
fn weaken(headers: &mut HeaderBlock) {
    let strong = headers.lines().find_map(|(name, value)| {
        let is_strong = name.eq_ignore_ascii_case(b"etag") && !value.starts_with(b"W/");
        is_strong.then(|| [b"W/", value].concat())
    });
    if let Some(weak) = strong {
        headers.remove(b"etag");
        // The value was valid before.
        let _ = headers.add(b"ETag", &weak);
    }
}
