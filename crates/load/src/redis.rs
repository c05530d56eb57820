//! Redis's protocol (RESP 2) as a client of one command after the other.
//!
//! [`write`] makes the bytes of a command, [`Reader`] takes those of replies. No I/O. The method of
//! a request is the command, the segments of its path the arguments, its body, if it has one, the
//! last of them: `SET` of `/name` with a body. A reply has the status that HTTP would have for it:
//! 200, 404 for nil, 500 for an error; its body are the bytes of its strings and numbers, one after
//! the other. Invariant: how the bytes were cut changes nothing.

use crate::answer::Answer;
use crate::codec::Malformed;
use crate::message::Message;

/// A line longer than this is none: only strings with a length are long.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// What Redis takes at most (`proto-max-bulk-len`).
const STRING_BYTES_MAX: u64 = 512 << 20;

/// Appends the command of `message`.
pub(crate) fn write(message: &Message, out: &mut Vec<u8>) {
    let path = message.path.strip_prefix(b"/").unwrap_or(&message.path);
    let has_path = !path.is_empty();
    let segments = || path.split(|&byte| byte == b'/').filter(|_| has_path);
    let body = (!message.body.is_empty()).then_some(&message.body);
    let count = 1 + segments().count() + usize::from(body.is_some());
    out.extend_from_slice(format!("*{count}\r\n").as_bytes());
    string(message.method.as_bytes(), out);
    let mut argument = Vec::new();
    for segment in segments() {
        argument.clear();
        decode(segment, &mut argument);
        string(&argument, out);
    }
    if let Some(body) = body {
        string(body, out);
    }
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'$');
    outboard_http1::write_u64(out, bytes.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Takes the percent-encoding off (RFC 3986 2.1); what is none stays as it is.
fn decode(segment: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = segment.get(at) {
        let digits = segment.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads the replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The present line, as far as it has come.
    line: Vec<u8>,
    /// What is left of a string, its end of line included.
    string_left: u64,
    /// Values that have to come until the reply is whole.
    values_left: u64,
    /// Whether the next value is the whole reply or its outermost array.
    is_outermost: bool,
}

impl Reader {
    /// A command was sent.
    pub(crate) fn begin(&mut self) {
        self.line.clear();
        (self.string_left, self.values_left, self.is_outermost) = (0, 1, true);
    }

    /// Takes what came; true when the reply is whole.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<bool, Malformed> {
        while !bytes.is_empty() {
            if self.values_left == 0 {
                return Err(Malformed);
            }
            bytes = match self.string_left {
                0 => self.take_line(bytes, answer)?,
                _ => self.take_string(bytes, answer),
            };
        }
        Ok(self.values_left == 0)
    }

    fn take_string<'b>(&mut self, bytes: &'b [u8], answer: &mut Answer) -> &'b [u8] {
        let taken = (bytes.len() as u64).min(self.string_left) as usize;
        let (piece, rest) = bytes.split_at(taken);
        // The last two bytes end the line.
        let content = self.string_left.saturating_sub(2).min(taken as u64) as usize;
        answer.take_body(&piece[..content]);
        self.string_left -= taken as u64;
        if self.string_left == 0 {
            self.values_left -= 1;
        }
        rest
    }

    fn take_line<'b>(
        &mut self,
        bytes: &'b [u8],
        answer: &mut Answer,
    ) -> Result<&'b [u8], Malformed> {
        let end = memchr::memchr(b'\n', bytes);
        let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err(Malformed);
        }
        self.line.extend_from_slice(piece);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.take_value(line.strip_suffix(b"\r\n").ok_or(Malformed)?, answer)?;
            self.line = line;
            self.line.clear();
        }
        Ok(rest)
    }

    fn take_value(&mut self, line: &[u8], answer: &mut Answer) -> Result<(), Malformed> {
        let (kind, text) = line.split_first().ok_or(Malformed)?;
        let is_outermost = std::mem::take(&mut self.is_outermost);
        if is_outermost {
            (answer.status, answer.keep_alive) = (200, true);
        }
        self.values_left -= 1;
        match kind {
            b'+' | b':' => answer.take_body(text),
            b'-' => {
                answer.status = 500;
                answer.take_body(text);
            }
            b'$' | b'*' => match (length(text)?, kind) {
                (None, _) if is_outermost => answer.status = 404,
                (None, _) => {}
                (Some(bytes), b'$') if bytes <= STRING_BYTES_MAX => {
                    self.string_left = bytes + 2;
                    self.values_left += 1;
                }
                (Some(count), b'*') => {
                    self.values_left = self.values_left.checked_add(count).ok_or(Malformed)?;
                }
                _ => return Err(Malformed),
            },
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

/// A length; `None` for nil.
fn length(text: &[u8]) -> Result<Option<u64>, Malformed> {
    let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
    match text {
        "-1" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| Malformed),
    }
}

#[cfg(test)]
mod tests;
