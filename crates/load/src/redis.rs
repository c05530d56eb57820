//! The Redis protocol (RESP 2) for a client that sends one command at a time.
//!
//! [`write`] writes the bytes of a command, [`Reader`] parses those of replies. No I/O. The method
//! of a request is the command, the segments of its path are the arguments, and its body, if any,
//! is the last argument: `SET` of `/name` with a body. A reply has the equivalent HTTP status: 200,
//! 404 for nil, 500 for an error. Its body is the bytes of its strings and numbers in order.
//! Invariant: the result does not depend on how the bytes are cut.

use crate::codec::Malformed;
use crate::message::Message;
use crate::response::Response;

/// A longer line is malformed: only strings with a length are long.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The limit of Redis (`proto-max-bulk-len`).
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

/// Percent-decodes (RFC 3986 2.1); invalid sequences stay as they are.
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

/// Parses the replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The received part of the current line.
    line: Vec<u8>,
    /// The rest of a string, including its end of line.
    string_left: u64,
    /// Values that the reply still needs.
    values_left: u64,
    /// Whether the next value is the whole reply or its outermost array.
    is_outermost: bool,
}

impl Reader {
    /// Prepares for the reply to a command.
    pub(crate) fn begin(&mut self) {
        self.line.clear();
        (self.string_left, self.values_left, self.is_outermost) = (0, 1, true);
    }

    /// Parses received bytes; true when the reply is complete.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        while !bytes.is_empty() {
            if self.values_left == 0 {
                return Err(Malformed);
            }
            bytes = match self.string_left {
                0 => self.take_line(bytes, response)?,
                _ => self.take_string(bytes, response),
            };
        }
        Ok(self.values_left == 0)
    }

    fn take_string<'b>(&mut self, bytes: &'b [u8], response: &mut Response) -> &'b [u8] {
        let taken = (bytes.len() as u64).min(self.string_left) as usize;
        let (piece, rest) = bytes.split_at(taken);
        // The last two bytes end the line.
        let content = self.string_left.saturating_sub(2).min(taken as u64) as usize;
        response.take_body(&piece[..content]);
        self.string_left -= taken as u64;
        if self.string_left == 0 {
            self.values_left -= 1;
        }
        rest
    }

    fn take_line<'b>(
        &mut self,
        bytes: &'b [u8],
        response: &mut Response,
    ) -> Result<&'b [u8], Malformed> {
        let end = memchr::memchr(b'\n', bytes);
        let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err(Malformed);
        }
        self.line.extend_from_slice(piece);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.take_value(line.strip_suffix(b"\r\n").ok_or(Malformed)?, response)?;
            self.line = line;
            self.line.clear();
        }
        Ok(rest)
    }

    fn take_value(&mut self, line: &[u8], response: &mut Response) -> Result<(), Malformed> {
        let (kind, text) = line.split_first().ok_or(Malformed)?;
        let is_outermost = std::mem::take(&mut self.is_outermost);
        if is_outermost {
            (response.status, response.keep_alive) = (200, true);
        }
        self.values_left -= 1;
        match kind {
            b'+' | b':' => response.take_body(text),
            b'-' => {
                response.status = 500;
                response.take_body(text);
            }
            b'$' | b'*' => match (length(text)?, kind) {
                (None, _) if is_outermost => response.status = 404,
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
