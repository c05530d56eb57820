//! [`Decoder`]: from bytes to events, incrementally.
//!
//! Driven by [`crate::Reader`], and by clients that do not need a value as a whole. Invariants: the
//! events are the same however the input is cut, except for the pieces of strings; memory is bounded by
//! one line; a length or count beyond the limits is an error before any of its content arrives.

use std::fmt;
use std::str::FromStr;

/// The longest line, in bytes. Only bulk strings are longer.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The deepest nesting of arrays; Redis's own replies have up to five levels.
const DEPTH_MAX: usize = 8;

/// What one outermost value may have at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes on the wire.
    pub bytes: usize,
    /// Values within arrays, maps and sets, over all levels.
    pub values: usize,
}

/// Why the input is not a value. The connection cannot be used any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The input is not RESP.
    Malformed,
    /// The value exceeds the limits.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Malformed => "the server does not speak RESP",
            Self::TooLarge => "a reply exceeds the size limit",
        })
    }
}

impl std::error::Error for Error {}

/// What an array-like value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An array or a set; a map is one of keys and values in turn.
    Array,
    /// A message that is no reply.
    Push,
    /// Attributes of the value that follows; they are not counted as a value.
    Attribute,
}

/// One step through a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Null of RESP3, or a null string or array of RESP2.
    Null,
    /// An integer, or 0 and 1 for a Boolean.
    Integer {
        /// The number.
        value: i64,
        /// The number as it was sent.
        digits: &'a [u8],
    },
    /// A piece of a string; doubles and big numbers are strings as well.
    Text {
        /// The piece.
        bytes: &'a [u8],
        /// Whether it is the last piece of its string.
        is_last: bool,
    },
    /// The same of an error message.
    ErrorText {
        /// The piece.
        bytes: &'a [u8],
        /// Whether it is the last piece of its message.
        is_last: bool,
    },
    /// An array begins; its values follow up to [`Event::Close`].
    Open(Kind),
    /// The innermost array ends.
    Close,
}

/// See the module.
#[derive(Debug)]
pub struct Decoder {
    /// A line that came in pieces, until the event after it.
    line: Vec<u8>,
    state: State,
}

#[derive(Debug)]
struct State {
    limits: Limits,
    bytes_left: usize,
    values_left: usize,
    /// The string being read.
    string: Option<PartialString>,
    /// The arrays being read, outermost first.
    open: [OpenArray; DEPTH_MAX],
    depth: usize,
    is_complete: bool,
}

#[derive(Debug, Clone, Copy)]
struct PartialString {
    is_error: bool,
    /// Bytes to skip: the format of a verbatim string.
    prefix_left: usize,
    /// Includes the line end.
    left: usize,
}

#[derive(Debug, Clone, Copy)]
struct OpenArray {
    kind: Kind,
    left: usize,
}

impl Decoder {
    /// A decoder at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        let state = State {
            limits,
            bytes_left: limits.bytes,
            values_left: limits.values,
            string: None,
            open: [OpenArray { kind: Kind::Array, left: 0 }; DEPTH_MAX],
            depth: 0,
            is_complete: false,
        };
        Self { line: Vec::new(), state }
    }

    /// Whether the last event completed an outermost value.
    pub fn is_complete(&self) -> bool {
        self.state.is_complete
    }

    /// Removes the next event from the front of `input`. With `None` all of `input` has been consumed
    /// and more is needed.
    ///
    /// # Errors
    /// The input will never be a value within the limits.
    pub fn next<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'a>>, Error> {
        let state = &mut self.state;
        if let Some(event) = state.close() {
            return Ok(Some(event));
        }
        if input.is_empty() {
            return Ok(None);
        }
        if std::mem::take(&mut state.is_complete) {
            (state.bytes_left, state.values_left) = (state.limits.bytes, state.limits.values);
        }
        if state.string.is_none() {
            let Some(line) = read_line(&mut self.line, input)? else { return Ok(None) };
            if let Some(event) = state.line(line)? {
                return Ok(Some(event));
            }
        }
        state.string_piece(input)
    }
}

impl State {
    /// Interprets a line; `None` if a string follows it.
    fn line<'a>(&mut self, line: &'a [u8]) -> Result<Option<Event<'a>>, Error> {
        self.bytes_left = self.bytes_left.checked_sub(line.len() + 2).ok_or(Error::TooLarge)?;
        let (&kind, text) = line.split_first().ok_or(Error::Malformed)?;
        let event = match kind {
            b'+' | b',' | b'(' => Event::Text { bytes: text, is_last: true },
            b'-' => Event::ErrorText { bytes: text, is_last: true },
            b':' => Event::Integer { value: number(text)?, digits: text },
            b'#' => match text {
                b"t" => Event::Integer { value: 1, digits: b"1" },
                b"f" => Event::Integer { value: 0, digits: b"0" },
                _ => return Err(Error::Malformed),
            },
            b'_' if text.is_empty() => Event::Null,
            b'$' | b'*' if text == b"-1" => Event::Null,
            b'$' | b'!' | b'=' => return self.open_string(kind, number(text)?).map(|()| None),
            b'*' | b'~' => return self.open_array(Kind::Array, 1, number(text)?),
            b'%' => return self.open_array(Kind::Array, 2, number(text)?),
            b'|' => return self.open_array(Kind::Attribute, 2, number(text)?),
            b'>' if self.depth == 0 => return self.open_array(Kind::Push, 1, number(text)?),
            _ => return Err(Error::Malformed),
        };
        self.count_value();
        Ok(Some(event))
    }

    fn open_string(&mut self, kind: u8, length: usize) -> Result<(), Error> {
        let prefix_left = if kind == b'=' { "txt:".len() } else { 0 };
        if length < prefix_left {
            return Err(Error::Malformed);
        }
        let left = length.checked_add(2).ok_or(Error::TooLarge)?;
        self.bytes_left = self.bytes_left.checked_sub(left).ok_or(Error::TooLarge)?;
        self.string = Some(PartialString { is_error: kind == b'!', prefix_left, left });
        Ok(())
    }

    fn open_array(
        &mut self,
        kind: Kind,
        each: usize,
        count: usize,
    ) -> Result<Option<Event<'static>>, Error> {
        let left = count.checked_mul(each).ok_or(Error::TooLarge)?;
        self.values_left = self.values_left.checked_sub(left).ok_or(Error::TooLarge)?;
        *self.open.get_mut(self.depth).ok_or(Error::TooLarge)? = OpenArray { kind, left };
        self.depth += 1;
        Ok(Some(Event::Open(kind)))
    }

    /// Closes the innermost array if all of its values have come.
    fn close(&mut self) -> Option<Event<'static>> {
        let innermost = self.depth.checked_sub(1)?;
        let OpenArray { kind, left: 0 } = self.open[innermost] else { return None };
        self.depth = innermost;
        if kind != Kind::Attribute {
            self.count_value();
        }
        Some(Event::Close)
    }

    /// Counts a value that is whole.
    fn count_value(&mut self) {
        match self.depth.checked_sub(1) {
            Some(innermost) => self.open[innermost].left -= 1,
            None => self.is_complete = true,
        }
    }

    /// Takes what there is of a string.
    fn string_piece<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        let Some(mut string) = self.string.filter(|_| !input.is_empty()) else { return Ok(None) };
        let (piece, rest) = input.split_at(string.left.min(input.len()));
        let (content, end) = piece.split_at(piece.len().min(string.left.saturating_sub(2)));
        let skipped = content.len().min(string.prefix_left);
        string.prefix_left -= skipped;
        string.left -= piece.len();
        if !b"\r\n"[..2_usize.saturating_sub(string.left)].ends_with(end) {
            return Err(Error::Malformed);
        }
        *input = rest;
        let (bytes, is_last) = (&content[skipped..], string.left == 0);
        self.string = Some(string).filter(|_| !is_last);
        if is_last {
            self.count_value();
        }
        Ok(Some(match string.is_error {
            true => Event::ErrorText { bytes, is_last },
            false => Event::Text { bytes, is_last },
        }))
    }
}

/// The next line without its end; in `buffer` if it came in pieces.
fn read_line<'a, 'i: 'a>(
    buffer: &'a mut Vec<u8>,
    input: &mut &'i [u8],
) -> Result<Option<&'a [u8]>, Error> {
    if buffer.ends_with(b"\n") {
        buffer.clear();
    }
    let end = memchr::memchr(b'\n', input);
    let (piece, rest) = input.split_at(end.map_or(input.len(), |end| end + 1));
    if buffer.len() + piece.len() > LINE_BYTES_MAX {
        return Err(Error::TooLarge);
    }
    *input = rest;
    let line = if end.is_some() && buffer.is_empty() {
        piece
    } else {
        buffer.extend_from_slice(piece);
        buffer.as_slice()
    };
    match end {
        Some(_) => line.strip_suffix(b"\r\n").map(Some).ok_or(Error::Malformed),
        None => Ok(None),
    }
}

/// A number or a length.
fn number<N: FromStr>(digits: &[u8]) -> Result<N, Error> {
    let digits = std::str::from_utf8(digits).map_err(|_| Error::Malformed)?;
    digits.parse().map_err(|_| Error::Malformed)
}
