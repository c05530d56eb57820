//! The Redis protocol (RESP 2) for a client that sends one command at a time.
//!
//! [`write`] writes the bytes of a command, [`Reader`] parses those of replies. No I/O. The method
//! of a request is the command, the segments of its path are the arguments, and its body, if any,
//! is the last argument: `SET` of `/name` with a body. A reply has the equivalent HTTP status: 200,
//! 404 for nil, 500 for an error. Its body is the bytes of its strings and numbers in order.
//! Invariant: the result does not depend on how the bytes are cut.

use crate::message::Message;
use crate::received::Malformed;
use crate::response::Response;
use outboard_resp::{Decoder, Event, Kind, Limits, bulk};

/// Replies are counted and not stored, so their size is of no concern.
const LIMITS: Limits = Limits { bytes: 1 << 40, values: 1 << 40 };

/// Appends the command of `message`.
pub(crate) fn write(message: &Message, out: &mut Vec<u8>) {
    let path = message.path.strip_prefix(b"/").unwrap_or(&message.path);
    let has_path = !path.is_empty();
    let segments = || path.split(|&byte| byte == b'/').filter(|_| has_path);
    let body = (!message.body.is_empty()).then_some(&message.body);
    let count = 1 + segments().count() + usize::from(body.is_some());
    outboard_resp::array(out, count);
    bulk(out, message.method.as_bytes());
    let mut argument = Vec::new();
    for segment in segments() {
        argument.clear();
        decode(segment, &mut argument);
        bulk(out, &argument);
    }
    if let Some(body) = body {
        bulk(out, body);
    }
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
#[derive(Debug)]
pub(crate) struct Reader {
    decoder: Decoder,
    /// A command was sent, and its reply is not complete.
    is_awaited: bool,
    /// Nothing of the reply has come.
    is_first: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self { decoder: Decoder::new(LIMITS), is_awaited: false, is_first: false }
    }
}

impl Reader {
    /// Prepares for the reply to a command.
    pub(crate) fn begin(&mut self) {
        *self = Self { is_awaited: true, is_first: true, ..Self::default() };
    }

    /// Parses received bytes; true when the reply is complete.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        while self.is_awaited {
            let event = self.decoder.next(&mut bytes).map_err(|_| Malformed)?;
            let Some(event) = event else { return Ok(false) };
            let is_first = std::mem::take(&mut self.is_first);
            if is_first {
                (response.status, response.keep_alive) = (200, true);
            }
            match event {
                Event::Null if is_first => response.status = 404,
                Event::Text { bytes, .. } | Event::Integer { digits: bytes, .. } => {
                    response.take_body(bytes);
                }
                Event::ErrorText { bytes, .. } => {
                    response.status = 500;
                    response.take_body(bytes);
                }
                Event::Null | Event::Open(Kind::Array) | Event::Close => {}
                // Only a client that asks for RESP3 gets these.
                Event::Open(Kind::Push | Kind::Attribute) => return Err(Malformed),
            }
            self.is_awaited = !self.decoder.is_complete();
        }
        if bytes.is_empty() { Ok(true) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests;
