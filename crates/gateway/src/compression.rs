//! [`Compression`]: texts that PHP makes, compressed for clients that take it.
//!
//! Called where a script's answer is sent. Invariants: what has a coding, is a part, is for nobody's
//! cache to touch (`no-transform`) or is pushed in events goes out as it is; what could have been
//! compressed says `Vary: Accept-Encoding` either way (RFC 9110 12.5.5); large pieces are worked
//! on beside the loop.

use crate::app::App;
use crate::request::RequestContext;
use crate::response_head::ResponseHead;
use outboard_http_semantics::{Coding, is_compressible};
use outboard_http_server::Connection;
use outboard_http_server::HeaderBlock;
use outboard_http1::Method;
use outboard_page_cache::{COMPRESS_MIN_BYTES, Encoder};
use outboard_reactor::blocking;
use std::io;

/// A shorter piece takes less time than handing it to a thread.
const QUICK_BYTES: usize = 4 << 10;

/// The body of one answer.
#[derive(Debug)]
pub(crate) struct Compression(Encoder);

impl Compression {
    /// For an answer with this head and a body that is as long, if that is known; the head says so
    /// then. `None`: it goes out as it is.
    pub(crate) fn of(
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &App,
        head: &mut ResponseHead,
        body_bytes: Option<u64>,
    ) -> Option<Self> {
        let is_short = body_bytes.is_some_and(|bytes| bytes < COMPRESS_MIN_BYTES as u64);
        let is_wanted = app.config.compress && ctx.request.method != Method::Head && !is_short;
        if !is_wanted || ctx.gateway.development().is_some() || !is_fit(head) {
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

    /// A piece that others follow.
    pub(crate) async fn piece(self, bytes: Vec<u8>) -> io::Result<(Self, Vec<u8>)> {
        let is_quick = bytes.len() <= QUICK_BYTES;
        let Self(mut encoder) = self;
        let work = move || encoder.push(&bytes).map(|coded| (Self(encoder), coded));
        if is_quick { work() } else { blocking(work).await }
    }

    /// The last piece, or all.
    pub(crate) async fn end(self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if bytes.len() <= QUICK_BYTES {
            return self.0.end(&bytes);
        }
        blocking(move || self.0.end(&bytes)).await
    }
}

/// Whether the answer is a whole text that nobody has put into a coding.
fn is_fit(head: &ResponseHead) -> bool {
    let mut is_text = false;
    for (name, value) in head.headers.lines() {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"content-encoding") || is(b"content-range") {
            return false;
        }
        if is(b"cache-control") && has_word(value, b"no-transform") {
            return false;
        }
        if is(b"content-type") {
            is_text = is_compressible(value) && !has_word(value, b"text/event-stream");
        }
    }
    is_text && !matches!(head.status, 204 | 206 | 304)
}

/// Whether caches have been told already that it depends on Accept-Encoding.
fn varies(headers: &HeaderBlock) -> bool {
    headers.lines().any(|(name, value)| {
        name.eq_ignore_ascii_case(b"vary") && (value == b"*" || has_word(value, b"accept-encoding"))
    })
}

fn has_word(value: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(&value.to_ascii_lowercase(), word).is_some()
}

/// Other bytes are no longer what a strong validator stands for (RFC 9110 8.8.3.3).
fn weaken(headers: &mut HeaderBlock) {
    let strong = headers.lines().find_map(|(name, value)| {
        let is_strong = name.eq_ignore_ascii_case(b"etag") && !value.starts_with(b"W/");
        is_strong.then(|| [b"W/", value].concat())
    });
    if let Some(weak) = strong {
        headers.remove(b"etag");
        // It was a valid value before.
        let _ = headers.add(b"ETag", &weak);
    }
}
