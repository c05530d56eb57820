//! The common parts of request and response heads: limits, spans, and parsing progress.
//!
//! Called by `request` and `response`. Invariant: a head that arrives in pieces costs the same
//! number of byte visits, within a small factor, as one that arrives at once, and has the same result:
//! a line is parsed once it is complete or has reached its limit.

use crate::error::HeadError;

/// Bounds on a message head. A bound above 1 GiB counts as 1 GiB, so that offsets fit 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest request line or status line, in bytes, without its CRLF.
    pub request_line_bytes: usize,
    /// All field lines together, in bytes, with their CRLFs and the empty line that ends them.
    pub header_bytes: usize,
    /// Most field lines.
    pub header_count: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { request_line_bytes: 8 * 1024, header_bytes: 32 * 1024, header_count: 100 }
    }
}

/// Whether the head is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum HeadStatus {
    /// Valid so far; call again with the same bytes and more after them.
    Partial,
    /// Complete and valid; the body, or the next message, starts at `head_len`.
    Complete {
        /// Length of the head in bytes, from the start of the given buffer.
        head_len: usize,
    },
}

/// The protocol version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1. A higher minor version of HTTP/1 is read as this one (RFC 9110 2.5).
    Http11,
    /// HTTP/2, of a head that was composed with
    /// [`RequestHead::compose`](crate::RequestHead::compose).
    Http2,
    /// HTTP/3, likewise.
    Http3,
}

impl Version {
    /// The name in CGI's `SERVER_PROTOCOL`, as nginx writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }

    /// Whether a connection of this version has many requests at a time, each on a stream of its own.
    pub fn has_streams(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
    }
}

/// Reads `HTTP/digit.digit` at `at` (RFC 9112 2.3); returns the version and its end.
pub(crate) fn read_version(buf: &[u8], at: usize) -> Result<Step<(Version, usize)>, HeadError> {
    for (index, wanted) in b"HTTP/0.0".iter().enumerate() {
        match (wanted, buf.get(at + index)) {
            (_, None) => return Ok(Step::NeedMore),
            (b'0', Some(byte)) if byte.is_ascii_digit() => {}
            (wanted, Some(byte)) if wanted == byte => {}
            _ => return Err(HeadError::MalformedVersion),
        }
    }
    let end = at + 8;
    match &buf[at + 5..end] {
        b"1.0" => Ok(Step::Line((Version::Http10, end))),
        [b'1', ..] => Ok(Step::Line((Version::Http11, end))),
        _ => Err(HeadError::UnsupportedVersion),
    }
}

/// A range of the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The span from `start` to `end`, which fit 32 bits because the limits bound a head.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: (end - start) as u32 }
    }

    pub(crate) fn of(self, buf: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &buf[start..start + self.len as usize]
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.start as usize + self.len as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One step of a line parser that may run out of bytes.
pub(crate) enum Step<T> {
    /// The line is incomplete within the visible bytes.
    NeedMore,
    /// The line was read.
    Line(T),
}

/// The part of the head that the next line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    #[default]
    StartLine,
    Fields,
    Complete,
}

/// The progress of a parser through a head.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) stage: Stage,
    /// The start of the first unread line.
    pub(crate) next: usize,
    /// The start of the field lines.
    fields_start: usize,
    /// The length of the bytes that were searched for the end of the line at `next`.
    searched: usize,
}

/// Larger limits would let offsets exceed 32 bits; two of these and a few empty lines fit.
const LIMIT_MAX: usize = 1 << 30;

impl Progress {
    /// Records that the start line ends at `next`.
    pub(crate) fn start_fields(&mut self, next: usize) {
        self.stage = Stage::Fields;
        self.next = next;
        self.fields_start = next;
    }

    /// The end of the window in which the line at `next` has to end.
    fn window_end(&self, limits: &HeadLimits) -> usize {
        match self.stage {
            Stage::StartLine => self.next + limits.request_line_bytes.min(LIMIT_MAX) + 2,
            Stage::Fields | Stage::Complete => {
                self.fields_start + limits.header_bytes.min(LIMIT_MAX)
            }
        }
    }

    /// The bytes that the line at `next` may occupy.
    pub(crate) fn visible<'b>(&self, buf: &'b [u8], limits: &HeadLimits) -> &'b [u8] {
        &buf[..buf.len().min(self.window_end(limits))]
    }

    /// Whether a new attempt to read the line at `next` can succeed.
    pub(crate) fn worth_reading(&mut self, buf: &[u8], limits: &HeadLimits) -> bool {
        if self.searched <= self.next || buf.len() >= self.window_end(limits) {
            return true;
        }
        let fresh = buf.get(self.searched..).unwrap_or_default();
        let found = memchr::memchr(b'\n', fresh).is_some();
        if !found {
            self.searched = self.searched.max(buf.len());
        }
        found
    }

    /// Whether more bytes may complete the line at `next`.
    pub(crate) fn may_continue(&mut self, buf: &[u8], limits: &HeadLimits) -> bool {
        self.searched = buf.len();
        buf.len() < self.window_end(limits)
    }
}
