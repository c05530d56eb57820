//! [`Compression`]: compresses text responses for clients that accept it.
//!
//! Called where a response of a script, a composed page or the response of another server is sent.
//! Invariants: a response with a coding, a partial one, one with `no-transform` and an event stream are
//! sent unchanged; a response that could be compressed has `Vary: Accept-Encoding` either way (RFC 9110
//! 12.5.5); the event loop compresses only short pieces itself, and while too many responses wait for
//! the threads that compress, further ones are sent as they are.

use crate::app::App;
use crate::request::Request;
use crate::response_head::ResponseHead;
use outboard_http_semantics::{Coding, is_compressible};
use outboard_http_server::{Client, HeaderBlock};
use outboard_http1::Method;
use outboard_log::Reason;
use outboard_page_cache::{COMPRESS_MIN_BYTES, Encoder};
use outboard_reactor::{are_cpu_threads_busy, on_cpu_thread};

/// Compressing a shorter piece takes less time than passing it to a thread.
const INLINE_BYTES: usize = 4 << 10;

/// The coding of one response's body, if it is to have one.
#[derive(Debug)]
pub(crate) struct Compression(Option<Encoder>);

impl Compression {
    /// For a body that is sent as it is.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The compression of a response with this head and body length, if that is known; it is added
    /// to the head.
    pub(crate) fn of(
        request: &Request<'_>,
        app: &App,
        head: &mut ResponseHead,
        body_bytes: Option<u64>,
    ) -> Self {
        let is_short = body_bytes.is_some_and(|bytes| bytes < COMPRESS_MIN_BYTES as u64);
        let is_enabled = app.config.compress && request.method() != Method::Head && !is_short;
        if !is_enabled || request.gateway.development().is_some() || !is_eligible(head) {
            return Self::none();
        }
        Self(Self::encoder(request, head))
    }

    fn encoder(request: &Request<'_>, head: &mut ResponseHead) -> Option<Encoder> {
        let accept_encoding = request.header(b"accept-encoding");
        let coding = Coding::choose(accept_encoding, Coding::ALL);
        let coding = coding.filter(|_| !are_cpu_threads_busy());
        let encoder = coding.and_then(|coding| Some((coding, Encoder::new(coding).ok()?)));
        if !varies(&head.headers) {
            head.headers.add(b"Vary", b"Accept-Encoding").ok()?;
        }
        let (coding, encoder) = encoder?;
        head.headers.add(b"Content-Encoding", coding.token().as_bytes()).ok()?;
        weaken(&mut head.headers);
        // Ranges are those of the bytes that the origin has sent.
        head.headers.remove(b"accept-ranges");
        head.content_length = None;
        Some(encoder)
    }

    /// The next piece of the body as it is sent.
    ///
    /// # Errors
    /// The client is gone, or there is no memory.
    pub(crate) async fn encode(
        &mut self,
        client: &Client,
        bytes: Vec<u8>,
        is_last: bool,
    ) -> Result<Vec<u8>, Reason> {
        if bytes.is_empty() && !is_last {
            return Ok(bytes);
        }
        let Some(mut encoder) = self.0.take() else { return Ok(bytes) };
        let is_short = bytes.len() <= INLINE_BYTES;
        let work = move || match is_last {
            true => encoder.end(&bytes).map(|coded| (coded, None)),
            false => encoder.push(&bytes).map(|coded| (coded, Some(encoder))),
        };
        let outcome = match is_short {
            true => work(),
            // Boxed, so that it does not enlarge the task of every connection.
            false => Box::pin(client.unless_gone(on_cpu_thread(work))).await?,
        };
        let (coded, encoder) = outcome.map_err(|_| Reason::Internal)?;
        self.0 = encoder;
        Ok(coded)
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

#[cfg(test)]
mod tests;
