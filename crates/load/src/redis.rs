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
    /// A command was sent.
    pub(crate) fn begin(&mut self) {
        *self = Self { is_awaited: true, is_first: true, ..Self::default() };
    }

    /// Takes what came; true when the reply is whole.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<bool, Malformed> {
        while self.is_awaited {
            let event = self.decoder.next(&mut bytes).map_err(|_| Malformed)?;
            let Some(event) = event else { return Ok(false) };
            let is_first = std::mem::take(&mut self.is_first);
            if is_first {
                (answer.status, answer.keep_alive) = (200, true);
            }
            match event {
                Event::Null if is_first => answer.status = 404,
                Event::Text { bytes, .. } | Event::Integer { digits: bytes, .. } => {
                    answer.take_body(bytes);
                }
                Event::ErrorText { bytes, .. } => {
                    answer.status = 500;
                    answer.take_body(bytes);
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
