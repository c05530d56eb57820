//! Body length and connection persistence (RFC 9112 6 and 9.3).
//!
//! Called by `request` and `response` with each field. Invariant: either exactly one framing follows
//! from the fields, or the head is refused.

use crate::error::HeadError;
use crate::head::Version;
use crate::scan;

/// How the body of a request is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body.
    None,
    /// The number of bytes in Content-Length; may be 0.
    Length(u64),
    /// Chunks; see [`ChunkedDecoder`](crate::ChunkedDecoder).
    Chunked,
    /// By the end of the stream (RFC 9113 8.1, RFC 9114 4.1).
    Stream,
}

/// The fields that this crate interprets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownField {
    Host,
    Expect,
    Cookie,
    Upgrade,
    Connection,
    ContentLength,
    TransferEncoding,
}

impl KnownField {
    /// The field called `name`. Lengths are compared first, so most names need no comparison.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let (spelling, field): (&[u8], _) = match name.len() {
            4 => (b"host", Self::Host),
            6 if name[0] | 0x20 == b'c' => (b"cookie", Self::Cookie),
            6 => (b"expect", Self::Expect),
            7 => (b"upgrade", Self::Upgrade),
            10 => (b"connection", Self::Connection),
            14 => (b"content-length", Self::ContentLength),
            17 => (b"transfer-encoding", Self::TransferEncoding),
            _ => return None,
        };
        name.eq_ignore_ascii_case(spelling).then_some(field)
    }
}

/// Framing and persistence according to the fields read so far.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    upgrade: bool,
    /// The end of the stream is not the end of the head.
    stream_goes_on: bool,
}

impl Framing {
    pub(crate) fn note_content_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.content_length.is_some() {
            return Err(HeadError::DuplicateContentLength);
        }
        self.content_length = Some(read_length(value).ok_or(HeadError::MalformedContentLength)?);
        Ok(())
    }

    pub(crate) fn note_transfer_encoding(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.chunked {
            return Err(HeadError::DuplicateTransferEncoding);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(refusal_of_transfer_encoding(value));
        }
        self.chunked = true;
        Ok(())
    }

    /// RFC 9110 7.6.1: a list of options; unknown options are ignored.
    pub(crate) fn note_connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(scan::trim_ows) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// Checks the rules between fields once all are read.
    pub(crate) fn finish(&self, version: Version) -> Result<(), HeadError> {
        if self.chunked && version == Version::Http10 {
            return Err(HeadError::TransferEncodingInHttp10);
        }
        if self.chunked && self.content_length.is_some() {
            return Err(HeadError::LengthWithTransferEncoding);
        }
        Ok(())
    }

    pub(crate) fn body(&self) -> BodyFraming {
        match self.content_length {
            _ if self.chunked => BodyFraming::Chunked,
            Some(length) => BodyFraming::Length(length),
            None if self.stream_goes_on => BodyFraming::Stream,
            None => BodyFraming::None,
        }
    }

    /// The body of a head that was composed: it has one unless the stream has ended.
    pub(crate) fn note_stream(&mut self, has_ended: bool) {
        self.stream_goes_on = !has_ended;
    }

    /// RFC 9112 9.3.
    pub(crate) fn keep_alive(&self, version: Version) -> bool {
        !self.close && (version != Version::Http10 || self.keep_alive)
    }

    /// As if Connection named `upgrade`: an extended CONNECT (RFC 8441) is one.
    pub(crate) fn note_upgrade(&mut self) {
        self.upgrade = true;
    }

    /// Whether Connection names `upgrade` (RFC 9110 7.8).
    pub(crate) fn upgrade(&self) -> bool {
        self.upgrade
    }
}

/// RFC 9110 8.6: digits alone. Up to `i64::MAX`, so that sums and file offsets stay in range.
/// Leading zeros are valid (`1*DIGIT`); upstreams get the number that was read, not these digits.
fn read_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let length = value.iter().try_fold(0u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })?;
    (length <= i64::MAX as u64).then_some(length)
}

/// The rule that a Transfer-Encoding other than `chunked` violates (RFC 9112 6.1, 6.3 and 7).
#[cold]
fn refusal_of_transfer_encoding(value: &[u8]) -> HeadError {
    let mut codings = value.split(|&byte| byte == b',').map(scan::trim_ows);
    if !codings.clone().all(scan::is_token) {
        return HeadError::MalformedTransferEncoding;
    }
    let last = codings.next_back();
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if codings.any(is_chunked) && last.is_some() {
        return HeadError::ChunkedNotLast;
    }
    HeadError::UnknownTransferCoding
}
