//! HTTP/1.1 for a client that sends one request at a time (RFC 9112).
//!
//! [`write`] writes the bytes of a request, [`Reader`] parses those of responses. No I/O: the
//! connection passes bytes in whatever pieces they arrived. Invariant: the result does not depend
//! on how they were cut.

use crate::message::Message;
use crate::received::Malformed;
use crate::response::Response;
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

/// Parses the responses of one connection.
#[derive(Debug)]
pub(crate) struct Reader {
    parser: ResponseParser,
    limits: HeadLimits,
    chunks: Box<ChunkedDecoder>,
    state: State,
    /// The received part of an incomplete head.
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

    /// Prepares for the response to a request; only HEAD makes a difference.
    pub(crate) fn begin(&mut self, method: &str) {
        self.method = if method == "HEAD" { Method::Head } else { Method::Get };
        self.state = State::Head;
        self.head.clear();
        self.parser.reset();
    }

    /// Parses received bytes; true when the response is complete. Further bytes are malformed,
    /// since no request is pending that they could answer.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        if self.state != State::Head {
            return self.feed_body(bytes, response);
        }
        if self.head.is_empty() {
            let taken = self.feed_head(bytes, response)?;
            return self.after_head(taken, bytes, response);
        }
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(bytes);
        let taken = self.feed_head(&head, response)?;
        let result = self.after_head(taken, &head, response);
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
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        match taken {
            Some(taken) => self.feed_body(&bytes[taken..], response),
            None => {
                self.head.extend_from_slice(bytes);
                Ok(false)
            }
        }
    }

    /// Parses heads up to that of the final response and returns where the body starts.
    fn feed_head(
        &mut self,
        bytes: &[u8],
        response: &mut Response,
    ) -> Result<Option<usize>, Malformed> {
        let mut at = 0;
        loop {
            let status = self.parser.parse(&bytes[at..], &self.limits);
            let HeadStatus::Complete { head_len } = status.map_err(|_| Malformed)? else {
                // An interim head is parsed again together with the next bytes. This is rare and
                // has the same result.
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
            response.status = self.parser.status();
            response.keep_alive = self.parser.keep_alive(self.method);
            if response.wants_fields {
                self.parser
                    .headers(head)
                    .for_each(|(name, value)| response.take_field(name, value));
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

    fn feed_body(&mut self, bytes: &[u8], response: &mut Response) -> Result<bool, Malformed> {
        match self.state {
            State::Length(left) if bytes.len() as u64 > left => Err(Malformed),
            State::Length(left) => {
                response.take_body(bytes);
                let left = left - bytes.len() as u64;
                self.state = State::Length(left);
                Ok(left == 0)
            }
            State::UntilClose => {
                response.take_body(bytes);
                Ok(false)
            }
            State::Chunked => self.feed_chunks(bytes, response),
            State::Head => Err(Malformed),
        }
    }

    fn feed_chunks(&mut self, bytes: &[u8], response: &mut Response) -> Result<bool, Malformed> {
        let mut at = 0;
        loop {
            match self.chunks.decode(&bytes[at..]).map_err(|_| Malformed)? {
                Chunk::NeedMore => return Ok(false),
                Chunk::Data { range } => {
                    response.take_body(&bytes[at + range.start..at + range.end]);
                    at += range.end;
                }
                Chunk::End { consumed } if at + consumed == bytes.len() => return Ok(true),
                Chunk::End { .. } => return Err(Malformed),
            }
        }
    }

    /// Handles the end of the stream; true when it completes the response.
    pub(crate) fn end(&mut self) -> bool {
        self.state == State::UntilClose
    }
}

#[cfg(test)]
mod tests;
