//! [`ChunkedDecoder`]: decodes the chunked transfer coding (RFC 9112 7.1).
//!
//! Called with the bytes of a body as they arrive. Invariants: every byte of input is read once; the
//! split of the input does not change the result; the size of the framing is bounded by that of the
//! body.

use std::fmt;
use std::ops::Range;

use crate::chunk_extension::Extension;
use crate::error::HeadError;
use crate::field::{self, FieldLine, FieldTable};
use crate::framing::KnownField;
use crate::head::Step;

/// The extensions of all chunks may exceed the body by this. A signature per chunk of 64 KiB passes;
/// one-byte chunks with an extension each soon fail.
const EXTENSION_EXCESS_BYTES: u64 = 16 * 1024;

/// Bounds on the framing of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Longest extension of one chunk, in bytes, with its `;`.
    pub extension_bytes: usize,
    /// All trailer lines together, in bytes, with their CRLFs and the empty line after them.
    pub trailer_bytes: usize,
    /// Most trailer lines.
    pub trailer_count: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { extension_bytes: 1024, trailer_bytes: 8 * 1024, trailer_count: 32 }
    }
}

/// The result of one call of [`ChunkedDecoder::decode`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Chunk {
    /// All input is consumed; call again when there is more.
    NeedMore,
    /// `range` of the input is body. Input is consumed up to `range.end`; call again with the rest.
    Data {
        /// Not empty.
        range: Range<usize>,
    },
    /// The body has ended; the next message starts `consumed` bytes into the input.
    End {
        /// Bytes of the input that still belong to this body.
        consumed: usize,
    },
}

/// Why a chunked body is refused; the connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkError {
    /// The chunk size is not hexadecimal digits, or neither `;` nor CRLF follows it.
    InvalidSize,
    /// The chunk size has more than 16 digits, or the body exceeds `i64::MAX` bytes.
    SizeOverflow,
    /// CR that LF does not follow.
    BareCr,
    /// LF that CR does not precede.
    BareLf,
    /// A chunk extension that is not `;name` or `;name=value`.
    InvalidExtension,
    /// Chunk extensions exceed their limit, or outweigh the body.
    ExtensionTooLong,
    /// Chunk data is not followed by CRLF.
    MissingDataEnd,
    /// The trailer section exceeds its limit.
    TrailersTooLong,
    /// A trailer line that would be refused in a head.
    InvalidTrailer(HeadError),
    /// A trailer field that decides framing or routing (RFC 9110 6.5.1).
    ForbiddenTrailer,
}

impl ChunkError {
    /// The status code that a server answers before it closes the connection.
    pub fn status(self) -> u16 {
        match self {
            Self::TrailersTooLong => 431,
            Self::InvalidTrailer(error) => error.status(),
            _ => 400,
        }
    }

    /// A stable name in snake case, for logs and counters.
    pub fn reason(self) -> &'static str {
        match self {
            Self::InvalidSize => "chunk_invalid_size",
            Self::SizeOverflow => "chunk_size_overflow",
            Self::BareCr => "chunk_bare_cr",
            Self::BareLf => "chunk_bare_lf",
            Self::InvalidExtension => "chunk_invalid_extension",
            Self::ExtensionTooLong => "chunk_extension_too_long",
            Self::MissingDataEnd => "chunk_missing_data_end",
            Self::TrailersTooLong => "trailers_too_long",
            Self::InvalidTrailer(_) => "invalid_trailer",
            Self::ForbiddenTrailer => "forbidden_trailer",
        }
    }
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidTrailer(error) => write!(f, "{}: {error}", self.reason()),
            _ => f.write_str(self.reason()),
        }
    }
}

impl std::error::Error for ChunkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InvalidTrailer(error) => Some(error),
            _ => None,
        }
    }
}

/// The state before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { size: u64, digits: u8 },
    Extension { size: u64, bytes: usize, place: Extension },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    Trailers,
    End,
}

const START: State = State::Size { size: 0, digits: 0 };

/// Decodes one chunked body, then another after [`reset`](Self::reset).
///
/// # Examples
///
/// ```
/// use outboard_http1::{Chunk, ChunkError, ChunkLimits, ChunkedDecoder};
///
/// let input = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET / HTTP/1.1";
/// let (mut decoder, mut at, mut body) = (ChunkedDecoder::new(ChunkLimits::default()), 0, Vec::new());
/// loop {
///     match decoder.decode(&input[at..])? {
///         Chunk::Data { range } => {
///             body.extend_from_slice(&input[at..][range.clone()]);
///             at += range.end;
///         }
///         Chunk::NeedMore => unreachable!("the input holds the whole body"),
///         Chunk::End { consumed } => break at += consumed,
///     }
/// }
/// assert_eq!(body, b"abcde");
/// // The next message follows.
/// assert_eq!(&input[at..], b"GET / HTTP/1.1");
/// # Ok::<(), ChunkError>(())
/// ```
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: State,
    limits: ChunkLimits,
    body_bytes: u64,
    extension_bytes: u64,
    /// The trailer section as received.
    trailer: Vec<u8>,
    /// The start of the incomplete trailer line.
    trailer_line: usize,
    trailer_fields: FieldTable,
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    pub fn new(limits: ChunkLimits) -> Self {
        Self {
            state: START,
            limits,
            body_bytes: 0,
            extension_bytes: 0,
            trailer: Vec::new(),
            trailer_line: 0,
            trailer_fields: FieldTable::default(),
        }
    }

    /// Starts a new body and reuses the memory of the trailers.
    pub fn reset(&mut self) {
        self.state = START;
        self.body_bytes = 0;
        self.extension_bytes = 0;
        self.trailer.clear();
        self.trailer_line = 0;
        self.trailer_fields.clear();
    }

    /// Body bytes announced by the chunks so far, including the present one.
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Whether the body has ended.
    pub fn is_end(&self) -> bool {
        self.state == State::End
    }

    /// The trailer fields, once the body has ended.
    pub fn trailers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.trailer_fields.iter(&self.trailer)
    }

    /// Reads `input` up to the end of the next run of body bytes, of the body, or of `input`.
    ///
    /// After an error only [`reset`](Self::reset) makes sense.
    pub fn decode(&mut self, input: &[u8]) -> Result<Chunk, ChunkError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Data { left } => {
                    let end =
                        at + usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - at);
                    if end == at {
                        return Ok(Chunk::NeedMore);
                    }
                    let left = left - (end - at) as u64;
                    self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                    return Ok(Chunk::Data { range: at..end });
                }
                State::End => return Ok(Chunk::End { consumed: at }),
                _ if at == input.len() => return Ok(Chunk::NeedMore),
                State::Extension { size, bytes, place } => {
                    at += self.read_extension(&input[at..], size, bytes, place)?;
                }
                State::Trailers => at += self.read_trailers(&input[at..])?,
                _ => {
                    self.state = self.after_byte(input[at])?;
                    at += 1;
                }
            }
        }
    }

    /// The state after one byte of framing outside extensions and trailers.
    fn after_byte(&mut self, byte: u8) -> Result<State, ChunkError> {
        match (self.state, byte) {
            (State::Size { size, digits }, _) => self.after_size_byte(size, digits, byte),
            (State::SizeLf { size }, b'\n') => self.start_data(size),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(START),
            (State::SizeLf { .. }, _) => Err(ChunkError::BareCr),
            _ => Err(ChunkError::MissingDataEnd),
        }
    }

    /// RFC 9112 7.1: hexadecimal digits, then at once an extension or CRLF.
    fn after_size_byte(&self, size: u64, digits: u8, byte: u8) -> Result<State, ChunkError> {
        if let Some(digit) = hex_digit(byte) {
            // Sixteen digits fit 64 bits; leading zeros count too, so that they are bounded.
            if digits == 16 {
                return Err(ChunkError::SizeOverflow);
            }
            return Ok(State::Size { size: size << 4 | u64::from(digit), digits: digits + 1 });
        }
        match byte {
            b'\n' => Err(ChunkError::BareLf),
            _ if digits == 0 => Err(ChunkError::InvalidSize),
            b'\r' => Ok(State::SizeLf { size }),
            b';' => Ok(State::Extension { size, bytes: 1, place: Extension::BeforeName }),
            _ => Err(ChunkError::InvalidSize),
        }
    }

    /// Ends the line of a chunk size.
    fn start_data(&mut self, size: u64) -> Result<State, ChunkError> {
        if size == 0 {
            return Ok(State::Trailers);
        }
        let total = self.body_bytes.checked_add(size).filter(|&total| total <= i64::MAX as u64);
        self.body_bytes = total.ok_or(ChunkError::SizeOverflow)?;
        Ok(State::Data { left: size })
    }

    /// Skips a chunk extension (RFC 9112 7.1.1) and returns the number of bytes consumed.
    fn read_extension(
        &mut self,
        input: &[u8],
        size: u64,
        mut bytes: usize,
        mut place: Extension,
    ) -> Result<usize, ChunkError> {
        for (at, &byte) in input.iter().enumerate() {
            match byte {
                b'\r' if place.may_end() => {
                    self.state = State::SizeLf { size };
                    return Ok(at + 1);
                }
                b'\n' => return Err(ChunkError::BareLf),
                _ => place = place.after(byte).ok_or(ChunkError::InvalidExtension)?,
            }
            bytes += 1;
            self.extension_bytes += 1;
            let outweighs = self.extension_bytes > self.body_bytes + EXTENSION_EXCESS_BYTES;
            if bytes > self.limits.extension_bytes || outweighs {
                return Err(ChunkError::ExtensionTooLong);
            }
        }
        self.state = State::Extension { size, bytes, place };
        Ok(input.len())
    }

    /// Collects trailers up to the end of a line (RFC 9112 7.1.2) and returns the number of bytes
    /// consumed.
    fn read_trailers(&mut self, input: &[u8]) -> Result<usize, ChunkError> {
        let line_end = memchr::memchr(b'\n', input);
        let len = line_end.map_or(input.len(), |at| at + 1);
        if self.trailer.len() + len > self.limits.trailer_bytes {
            return Err(ChunkError::TrailersTooLong);
        }
        self.trailer.extend_from_slice(&input[..len]);
        if line_end.is_some() {
            self.read_trailer_line()?;
        }
        Ok(len)
    }

    fn read_trailer_line(&mut self) -> Result<(), ChunkError> {
        let line = field::read_field_line(&self.trailer, self.trailer_line);
        match line.map_err(ChunkError::InvalidTrailer)? {
            Step::Line(FieldLine::Field { name, value, next }) => {
                if is_forbidden_trailer(name.of(&self.trailer)) {
                    return Err(ChunkError::ForbiddenTrailer);
                }
                self.trailer_fields
                    .push(name, value, self.limits.trailer_count)
                    .map_err(|_| ChunkError::TrailersTooLong)?;
                self.trailer_line = next;
            }
            Step::Line(FieldLine::End { .. }) => self.state = State::End,
            Step::NeedMore => {}
        }
        Ok(())
    }
}

/// Whether a field may not be a trailer because a recipient must have it before the body (RFC 9110
/// 6.5.1).
pub fn is_forbidden_trailer(name: &[u8]) -> bool {
    use KnownField::{Connection, ContentLength, Expect, Host, TransferEncoding, Upgrade};
    match KnownField::of(name) {
        Some(Host | Expect | Upgrade | Connection | ContentLength | TransferEncoding) => true,
        None | Some(KnownField::Cookie) => {
            name.eq_ignore_ascii_case(b"trailer") || name.eq_ignore_ascii_case(b"te")
        }
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
