//! HTTP/1.1 as a client of one request after the other (RFC 9112).
//!
//! [`write`] makes the bytes of a request, [`Reader`] takes those of answers. No I/O: the
//! connection brings bytes in whatever pieces they came. Invariant: how they were cut changes
//! nothing.

use crate::answer::Answer;
use crate::codec::Malformed;
use crate::message::Message;
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, Method, ResponseBody,
    ResponseParser, write_content_length,
};

/// Appends the bytes of `message`.
pub(crate) fn write(message: &Message, keep_alive: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(message.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(&message.path);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let mut field = |name: &[u8], value: &[u8]| {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    };
    field(b"Host", &message.host);
    message.fields().for_each(|(name, value)| field(name.as_bytes(), value));
    if !keep_alive {
        field(b"Connection", b"close");
    }
    if message.has_body() {
        write_content_length(out, message.body.len() as u64);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&message.body);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    Chunked,
    UntilClose,
}

/// Reads the answers of one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    parser: ResponseParser,
    limits: HeadLimits,
    chunks: Box<ChunkedDecoder>,
    state: State,
    /// A head that came in pieces, as far as it has come.
    head: Vec<u8>,
    method: Method,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            parser: ResponseParser::new(),
            limits: HeadLimits::default(),
            chunks: Box::new(ChunkedDecoder::new(ChunkLimits::default())),
            state: State::Head,
            head: Vec::new(),
            method: Method::Get,
        }
    }

    /// A request was sent; only whether it was HEAD decides anything.
    pub(crate) fn begin(&mut self, method: &str) {
        self.method = if method == "HEAD" { Method::Head } else { Method::Get };
        self.state = State::Head;
        self.head.clear();
        self.parser.reset();
    }

    /// Takes what came; true when the answer is whole. Bytes after it are malformed: nothing was
    /// asked yet that they could answer.
    pub(crate) fn feed(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<bool, Malformed> {
        if self.state != State::Head {
            return self.feed_body(bytes, answer);
        }
        if self.head.is_empty() {
            let taken = self.feed_head(bytes, answer)?;
            return self.after_head(taken, bytes, answer);
        }
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(bytes);
        let taken = self.feed_head(&head, answer)?;
        let result = self.after_head(taken, &head, answer);
        if taken.is_some() {
            head.clear();
            self.head = head;
        }
        result
    }

    fn after_head(
        &mut self,
        taken: Option<usize>,
        bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<bool, Malformed> {
        match taken {
            Some(taken) => self.feed_body(&bytes[taken..], answer),
            None => {
                self.head.extend_from_slice(bytes);
                Ok(false)
            }
        }
    }

    /// Reads heads until that of the final answer; gives where the body starts.
    fn feed_head(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<Option<usize>, Malformed> {
        let mut at = 0;
        loop {
            let status = self.parser.parse(&bytes[at..], &self.limits);
            let HeadStatus::Complete { head_len } = status.map_err(|_| Malformed)? else {
                // An interim head is read once more with what follows: rare, and the same again.
                if at > 0 {
                    self.parser.reset();
                }
                return Ok(None);
            };
            let head = &bytes[at..at + head_len];
            at += head_len;
            if self.parser.is_interim() {
                continue;
            }
            answer.status = self.parser.status();
            answer.keep_alive = self.parser.keep_alive(self.method);
            if answer.wants_fields {
                self.parser.headers(head).for_each(|(name, value)| answer.take_field(name, value));
            }
            self.state = match self.parser.body(self.method) {
                ResponseBody::None => State::Length(0),
                ResponseBody::Length(length) => State::Length(length),
                ResponseBody::UntilClose => State::UntilClose,
                ResponseBody::Chunked => {
                    self.chunks.reset();
                    State::Chunked
                }
            };
            return Ok(Some(at));
        }
    }

    fn feed_body(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<bool, Malformed> {
        match self.state {
            State::Length(left) if bytes.len() as u64 > left => Err(Malformed),
            State::Length(left) => {
                answer.take_body(bytes);
                let left = left - bytes.len() as u64;
                self.state = State::Length(left);
                Ok(left == 0)
            }
            State::UntilClose => {
                answer.take_body(bytes);
                Ok(false)
            }
            State::Chunked => self.feed_chunks(bytes, answer),
            State::Head => Err(Malformed),
        }
    }

    fn feed_chunks(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<bool, Malformed> {
        let mut at = 0;
        loop {
            match self.chunks.decode(&bytes[at..]).map_err(|_| Malformed)? {
                Chunk::NeedMore => return Ok(false),
                Chunk::Data { range } => {
                    answer.take_body(&bytes[at + range.start..at + range.end]);
                    at += range.end;
                }
                Chunk::End { consumed } if at + consumed == bytes.len() => return Ok(true),
                Chunk::End { .. } => return Err(Malformed),
            }
        }
    }

    /// The peer sends nothing more; true when that is how the answer ends.
    pub(crate) fn end(&mut self) -> bool {
        self.state == State::UntilClose
    }
}

#[cfg(test)]
mod tests;
