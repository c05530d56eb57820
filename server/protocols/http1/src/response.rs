//! [`ResponseParser`]: the status line and fields of one response (RFC 9112 4 and 6.3).
//!
//! Called by the upstream client and the load generator. As strict as `request`: an ambiguous response
//! is refused, because the bytes after it could be read as the response to another request.

use crate::error::HeadError;
use crate::field;
use crate::framing::{BodyFraming, KnownField};
use crate::head::{self, HeadLimits, HeadStatus, Span, Step, Version};
use crate::head_reader::{self, Head, HeadParts};
use crate::method::Method;
use crate::scan;

/// How the body of a response is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseBody {
    /// No body, whatever the fields say.
    None,
    /// This number of bytes.
    Length(u64),
    /// Chunks; see [`ChunkedDecoder`](crate::ChunkedDecoder).
    Chunked,
    /// Everything until the connection closes.
    UntilClose,
}

/// The head of one response, as spans of the buffer that it was parsed from.
///
/// Accessors panic on a shorter buffer than the parsed one. After an interim response (1xx but 101),
/// parse the bytes behind it for the next one.
///
/// # Examples
///
/// ```
/// use outboard_http1::{HeadError, HeadLimits, HeadStatus, Method, ResponseBody, ResponseParser};
///
/// let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi";
/// let mut head = ResponseParser::new();
/// let status = head.parse(bytes, &HeadLimits::default())?;
/// assert_eq!(status, HeadStatus::Complete { head_len: bytes.len() - 2 });
/// assert_eq!(head.status(), 200);
/// assert_eq!(head.header(bytes, b"content-type"), Some(&b"text/plain"[..]));
/// // The method of the request decides whether a body follows.
/// assert_eq!(head.body(Method::Get), ResponseBody::Length(2));
/// assert_eq!(head.body(Method::Head), ResponseBody::None);
/// # Ok::<(), HeadError>(())
/// ```
#[derive(Debug)]
pub struct ResponseParser {
    parts: HeadParts,
    version: Version,
    status: u16,
    reason: Span,
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl Head for ResponseParser {
    fn parts(&mut self) -> &mut HeadParts {
        &mut self.parts
    }

    /// RFC 9112 4. The space before an absent reason phrase may be missing, as servers omit it.
    fn read_start(&mut self, visible: &[u8]) -> Result<Step<()>, HeadError> {
        let start = self.parts.progress.next;
        let Step::Line((version, version_end)) = head::read_version(visible, start)? else {
            return Ok(Step::NeedMore);
        };
        let Step::Line((status, status_end)) = read_status(visible, version_end)? else {
            return Ok(Step::NeedMore);
        };
        let Some(reason_len) = scan::find_control(&visible[status_end..]) else {
            return Ok(Step::NeedMore);
        };
        let reason_end = status_end + reason_len;
        let Step::Line(next) = field::read_line_end(visible, reason_end)? else {
            return Ok(Step::NeedMore);
        };
        let reason_start = match visible[status_end] {
            b' ' => status_end + 1,
            b'\r' => status_end,
            _ => return Err(HeadError::MalformedStatusLine),
        };
        self.version = version;
        self.status = status;
        self.reason = Span::new(reason_start, reason_end);
        self.parts.progress.start_fields(next);
        Ok(Step::Line(()))
    }

    fn note(&mut self, _: KnownField, _: Span, _: &[u8]) -> Result<(), HeadError> {
        Ok(())
    }

    fn finish(&mut self, _: &[u8]) -> Result<(), HeadError> {
        self.parts.framing.finish(self.version)
    }

    fn reset(&mut self) {
        ResponseParser::reset(self);
    }
}

/// Reads `SP 3DIGIT` at `at`; returns the status and its end.
fn read_status(buf: &[u8], at: usize) -> Result<Step<(u16, usize)>, HeadError> {
    let mut status = 0;
    for index in 0..4 {
        let Some(&byte) = buf.get(at + index) else {
            return Ok(Step::NeedMore);
        };
        match (index, byte) {
            (0, b' ') | (2.., b'0'..=b'9') | (1, b'1'..=b'9') => {}
            _ => return Err(HeadError::MalformedStatusLine),
        }
        if index > 0 {
            status = status * 10 + u16::from(byte - b'0');
        }
    }
    Ok(Step::Line((status, at + 4)))
}

impl ResponseParser {
    /// An empty head, ready to parse.
    pub fn new() -> Self {
        Self {
            parts: HeadParts::default(),
            version: Version::Http11,
            status: 0,
            reason: Span::default(),
        }
    }

    /// Resets everything except memory. `parse` does so itself after `Complete`.
    pub fn reset(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.reset();
        *self = Self { parts, ..Self::new() };
    }

    /// Parses the head at the start of `buf`; see [`RequestHead::parse`](crate::RequestHead::parse).
    pub fn parse(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<HeadStatus, HeadError> {
        head_reader::parse(self, buf, limits)
    }

    /// The protocol version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The status code, 100 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether another response to the same request follows (RFC 9110 15.2).
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// The reason phrase as received; may be empty.
    pub fn reason<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        self.reason.of(buf)
    }

    /// The fields in order, names as received, values trimmed.
    pub fn headers<'b>(&self, buf: &'b [u8]) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        self.parts.fields.iter(buf)
    }

    /// The value of the first field called `name`, whatever its case.
    pub fn header<'b>(&self, buf: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
        self.parts.fields.find(buf, name)
    }

    /// How the body is delimited, as the response to `request` (RFC 9112 6.3).
    pub fn body(&self, request: Method) -> ResponseBody {
        let is_tunnel = request == Method::Connect && (200..300).contains(&self.status);
        if request == Method::Head || is_tunnel || matches!(self.status, 100..200 | 204 | 304) {
            return ResponseBody::None;
        }
        match self.parts.framing.body() {
            BodyFraming::Chunked => ResponseBody::Chunked,
            BodyFraming::Length(length) => ResponseBody::Length(length),
            // Responses are not composed.
            BodyFraming::None | BodyFraming::Stream => ResponseBody::UntilClose,
        }
    }

    /// Whether the connection persists after this response to `request`.
    pub fn keep_alive(&self, request: Method) -> bool {
        self.parts.framing.keep_alive(self.version)
            && self.body(request) != ResponseBody::UntilClose
    }
}
