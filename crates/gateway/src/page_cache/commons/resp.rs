//! The wire of Redis and Valkey: commands out, values in (RESP3, `redis.io/docs/reference/protocol-spec`).
//!
//! Used by [`super::link`]. Without I/O. Invariant: what comes is bounded in size and depth, and
//! anything that is no RESP3 is an error, after which the connection is of no use.

/// Longest string that is taken, in bytes.
const STRING_MAX_BYTES: usize = 64 << 20;
/// Most values in an array.
const ARRAY_MAX: usize = 1 << 16;
/// Most arrays within each other.
const DEPTH_MAX: usize = 8;
/// Longest line, in bytes.
const LINE_MAX_BYTES: usize = 64 << 10;

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Nothing,
    Number(i64),
    Bytes(Vec<u8>),
    /// Arrays and sets; maps with keys and values in turns.
    Array(Vec<Value>),
    /// What comes without having been asked for.
    Push(Vec<Value>),
    /// The command failed.
    Error(String),
}

/// The peer speaks something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoResp;

impl Value {
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// A number, also one that is written as a string.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => u64::try_from(*number).ok(),
            Self::Bytes(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Appends a command.
pub(super) fn put(out: &mut Vec<u8>, command: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
    for word in command {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads the first value of `input`, and how many bytes it took; `None` while it is not whole.
///
/// # Errors
/// It is no RESP3.
pub(crate) fn read(input: &[u8]) -> Result<Option<(Value, usize)>, NoResp> {
    let mut reader = Reader { input, at: 0 };
    match reader.value(0) {
        Ok(value) => Ok(Some((value, reader.at))),
        Err(Stop::Partial) => Ok(None),
        Err(Stop::NoResp) => Err(NoResp),
    }
}

enum Stop {
    Partial,
    NoResp,
}

struct Reader<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        if depth > DEPTH_MAX {
            return Err(Stop::NoResp);
        }
        let line = self.line()?;
        let (&kind, rest) = line.split_first().ok_or(Stop::NoResp)?;
        Ok(match kind {
            b'+' | b',' | b'(' => Value::Bytes(rest.to_vec()),
            b'-' => Value::Error(String::from_utf8_lossy(rest).into_owned()),
            b':' => Value::Number(number(rest)?),
            b'#' => Value::Number(i64::from(rest == b"t")),
            b'_' => Value::Nothing,
            b'$' | b'=' | b'!' => {
                if rest == b"-1" {
                    return Ok(Value::Nothing);
                }
                let text = self.string(length(rest, STRING_MAX_BYTES)?)?;
                match kind {
                    b'!' => Value::Error(String::from_utf8_lossy(text).into_owned()),
                    // "txt:" or "mkd:" stands before the text of a verbatim string.
                    b'=' => Value::Bytes(text.get(4..).unwrap_or_default().to_vec()),
                    _ => Value::Bytes(text.to_vec()),
                }
            }
            b'*' if rest == b"-1" => Value::Nothing,
            b'*' | b'~' => Value::Array(self.values(length(rest, ARRAY_MAX)?, depth)?),
            b'%' => Value::Array(self.values(2 * length(rest, ARRAY_MAX)?, depth)?),
            b'>' => Value::Push(self.values(length(rest, ARRAY_MAX)?, depth)?),
            // Attributes stand before the value that is meant.
            b'|' => {
                self.values(2 * length(rest, ARRAY_MAX)?, depth)?;
                self.value(depth + 1)?
            }
            _ => return Err(Stop::NoResp),
        })
    }

    fn values(&mut self, count: usize, depth: usize) -> Result<Vec<Value>, Stop> {
        (0..count).map(|_| self.value(depth + 1)).collect()
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.input[self.at..];
        let window = &rest[..rest.len().min(LINE_MAX_BYTES)];
        let Some(end) = memchr::memmem::find(window, b"\r\n") else {
            return Err(if window.len() == LINE_MAX_BYTES { Stop::NoResp } else { Stop::Partial });
        };
        self.at += end + 2;
        Ok(&rest[..end])
    }

    fn string(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let rest = &self.input[self.at..];
        let text = rest.get(..length).ok_or(Stop::Partial)?;
        match rest.get(length..length + 2) {
            None => Err(Stop::Partial),
            Some(b"\r\n") => {
                self.at += length + 2;
                Ok(text)
            }
            Some(_) => Err(Stop::NoResp),
        }
    }
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Result<N, Stop> {
    let text = std::str::from_utf8(text).map_err(|_| Stop::NoResp)?;
    text.parse().map_err(|_| Stop::NoResp)
}

fn length(text: &[u8], most: usize) -> Result<usize, Stop> {
    let length = number(text)?;
    if length > most { Err(Stop::NoResp) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Value {
        Value::Bytes(text.into())
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = Vec::new();
        put(&mut out, &[b"SET", b"a key", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$0\r\n\r\n");
    }

    #[test]
    fn each_kind_of_value_is_read() {
        for (wire, value) in [
            ("+OK\r\n", bytes("OK")),
            ("-ERR no\r\n", Value::Error("ERR no".into())),
            (":-7\r\n", Value::Number(-7)),
            ("$2\r\nab\r\n", bytes("ab")),
            ("$4\r\na\r\nb\r\n", bytes("a\r\nb")),
            ("$-1\r\n", Value::Nothing),
            ("_\r\n", Value::Nothing),
            ("#t\r\n", Value::Number(1)),
            ("=6\r\ntxt:ab\r\n", bytes("ab")),
            ("!5\r\nERR x\r\n", Value::Error("ERR x".into())),
            ("*2\r\n:1\r\n*0\r\n", Value::Array(vec![Value::Number(1), Value::Array(vec![])])),
            ("%1\r\n+a\r\n:1\r\n", Value::Array(vec![bytes("a"), Value::Number(1)])),
            (">1\r\n+message\r\n", Value::Push(vec![bytes("message")])),
            ("|1\r\n+a\r\n:1\r\n:2\r\n", Value::Number(2)),
        ] {
            assert_eq!(read(wire.as_bytes()), Ok(Some((value, wire.len()))), "{wire:?}");
            for end in 0..wire.len() {
                assert_eq!(read(&wire.as_bytes()[..end]), Ok(None), "{:?}", &wire[..end]);
            }
        }
    }

    #[test]
    fn what_is_no_resp_is_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 2);
        let long = "+".repeat(LINE_MAX_BYTES + 1);
        for wire in
            ["HTTP/1.1 400\r\n", "\r\n", "$x\r\n", "$3\r\nabcde", "*99999999\r\n", &deep, &long]
        {
            assert_eq!(read(wire.as_bytes()), Err(NoResp), "{wire:.40?}");
        }
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&input);
        }
    }
}
