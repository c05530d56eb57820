//! [`Connection`]: an HTTP/1.1 connection to an upstream, with one exchange at a time.
//!
//! Taken from the pool or opened by the client for each attempt, and returned after a response that was
//! read to its end. Invariants: a connection with an error or with unread bytes is never reused; an
//! ambiguous message is rejected (RFC 9112 6.3, 11.2), because a response could otherwise be assigned to
//! another request.

use crate::account::Share;
use crate::channel::Channel;
use crate::error::{Error, Kind};
use crate::request::Request;
use crate::response_facts::ResponseFacts;
use crate::tls::TlsOptions;
use crate::transport::{READ_BYTES, Transport};
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, ResponseBody, ResponseParser,
};
use std::io;

/// A body up to this size is sent in one write with its head.
const COPY_BYTES: usize = 16 * 1024;
/// The most interim responses (RFC 9110 15.2) before the final one.
const INTERIM_MAX: u32 = 16;
const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 8 * 1024, header_bytes: 256 * 1024, header_count: 256 };

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    tls: Option<TlsOptions>,
    parser: ResponseParser,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Whether it has received a response.
    was_used: bool,
}

/// Why there is no response head.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The peer closed before the first byte; it may not have received the request.
    Unanswered(Error),
    /// Another error.
    Failed(Error),
}

/// A head in the connection's input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    len: usize,
    body: ResponseBody,
    keep_alive: bool,
}

impl Head {
    /// The same head, on a connection that is not reused.
    pub(crate) fn at_the_end(self) -> Self {
        Self { keep_alive: false, ..self }
    }
}

impl Connection {
    /// A new connection; `tls` are the options of its session.
    pub(crate) fn new(transport: Transport, tls: Option<TlsOptions>) -> Self {
        Self {
            transport,
            tls,
            parser: ResponseParser::new(),
            input: Vec::new(),
            output: Vec::new(),
            was_used: false,
        }
    }

    pub(crate) fn tls(&self) -> Option<TlsOptions> {
        self.tls
    }

    /// Whether it has received a response.
    pub(crate) fn was_used(&self) -> bool {
        self.was_used
    }

    /// Whether it is open, without unsolicited data.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.transport.is_quiet()
    }

    /// Becomes idle, and frees memory that it does not need meanwhile.
    pub(crate) fn rest(&mut self) {
        self.transport.rest();
        for buffer in [&mut self.input, &mut self.output] {
            buffer.clear();
            buffer.shrink_to(READ_BYTES);
        }
    }

    /// Is in use again.
    pub(crate) fn resume(&mut self) {
        self.transport.resume();
    }

    /// Sends a request and reads the head of its response.
    pub(crate) async fn exchange(&mut self, request: &Request) -> Result<Head, Broken> {
        self.input.clear();
        self.output.clear();
        request.write_head(&mut self.output, None).map_err(Broken::Failed)?;
        let mut body = &request.body[..];
        if body.len() <= COPY_BYTES {
            self.output.extend_from_slice(body);
            body = b"";
        }
        // A peer that has responded early may have stopped reading, and its response is there to read.
        let written = self.transport.write_all(&self.output, body).await;
        let head = self.read_head(request).await;
        match (written, head) {
            (Err(error), Err(Broken::Unanswered(_))) => Err(unanswered(request, error)),
            (Err(_), head) => head.map(Head::at_the_end),
            (Ok(()), head) if request.shares_connection() => head,
            (Ok(()), head) => head.map(Head::at_the_end),
        }
    }

    /// Writes bytes of a request that [`Self::exchange`] does not send.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.input.clear();
        self.transport.write_all(bytes, b"").await
    }

    /// Waits for the head of the final response. Interim responses go to `request.interims`.
    pub(crate) async fn read_head(&mut self, request: &Request) -> Result<Head, Broken> {
        self.was_used = true;
        let broken = |why: &str| {
            let message = format!("{} sent an invalid response: {why}", request.server());
            Broken::Failed(Error::new(Kind::Protocol, message))
        };
        let mut interim = 0;
        loop {
            let parsed = match self.input.is_empty() {
                true => HeadStatus::Partial,
                false => self
                    .parser
                    .parse(&self.input, &LIMITS)
                    .map_err(|error| broken(error.reason()))?,
            };
            let HeadStatus::Complete { head_len } = parsed else {
                match self.read_more(request).await {
                    // The interim response shows that the peer has received the request.
                    Err(Broken::Unanswered(error)) if interim > 0 => {
                        return Err(Broken::Failed(error));
                    }
                    read => read?,
                }
                continue;
            };
            if self.parser.status() == 101 && request.switch_to.is_some() {
                // RFC 9110 7.8: the field names the new protocol.
                let spoken = self.parser.header(&self.input, b"upgrade");
                if !spoken
                    .zip(request.switch_to.as_deref())
                    .is_some_and(|(spoken, requested)| spoken.eq_ignore_ascii_case(requested))
                {
                    return Err(broken("a switch to a protocol that was not requested"));
                }
                return Ok(Head { len: head_len, body: ResponseBody::None, keep_alive: false });
            }
            if self.parser.status() == 101 {
                return Err(broken("a switch of protocols that was not requested"));
            }
            if !self.parser.is_interim() {
                let method = request.method_kind();
                return Ok(Head {
                    len: head_len,
                    body: self.parser.body(method),
                    keep_alive: self.parser.keep_alive(method),
                });
            }
            interim += 1;
            if interim > INTERIM_MAX {
                return Err(broken("too many interim responses"));
            }
            if let Some(interims) = &request.interims {
                let fields: Vec<_> = self.parser.headers(&self.input).collect();
                let status = self.parser.status();
                let facts = ResponseFacts::new(request, status, 1, fields.iter().copied());
                interims.add(status, facts.headers);
            }
            self.input.drain(..head_len);
            self.parser.reset();
        }
    }

    async fn read_more(&mut self, request: &Request) -> Result<(), Broken> {
        match self.transport.read(&mut self.input).await {
            Ok(0) if self.input.is_empty() => {
                Err(unanswered(request, io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(0) => {
                let message = format!("{} closed in the middle of a head", request.server());
                Err(Broken::Failed(Error::new(Kind::Protocol, message)))
            }
            Ok(_) => Ok(()),
            Err(error) if self.input.is_empty() => Err(unanswered(request, error)),
            Err(error) => {
                let message = format!("{}: {error}", request.server());
                Err(Broken::Failed(Error::new(Kind::Protocol, message).because(error)))
            }
        }
    }

    /// The status of the present response.
    pub(crate) fn status(&self) -> u16 {
        self.parser.status()
    }

    /// The fields of the present response.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.parser.headers(&self.input)
    }
}

fn unanswered(request: &Request, error: io::Error) -> Broken {
    let origin = request.server();
    let message = match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("{origin} closed without a response"),
        _ => format!("{origin} closed without a response: {error}"),
    };
    Broken::Unanswered(Error::new(Kind::Protocol, message).because(error))
}

/// The body of a response, with its connection.
#[derive(Debug)]
pub(crate) struct Body {
    connection: Box<Connection>,
    /// The position in the connection's input.
    at: usize,
    rest: Rest,
    keep_alive: bool,
}

/// The rest of the body.
#[derive(Debug)]
enum Rest {
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    UntilClose,
    Nothing,
}

impl Body {
    pub(crate) fn new(connection: Box<Connection>, head: Head) -> Self {
        let rest = match head.body {
            ResponseBody::None | ResponseBody::Length(0) => Rest::Nothing,
            ResponseBody::Length(length) => Rest::Length(length),
            ResponseBody::Chunked => {
                Rest::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
            }
            ResponseBody::UntilClose => Rest::UntilClose,
        };
        Self { connection, at: head.len, rest, keep_alive: head.keep_alive }
    }

    /// The announced length.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.rest {
            Rest::Length(length) => Some(length),
            _ => None,
        }
    }

    /// Whether all of it has been read.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.rest, Rest::Nothing)
    }

    /// The connection, if another request can use it.
    pub(crate) fn into_idle(self) -> Option<Box<Connection>> {
        let clean = self.keep_alive && self.is_over() && self.at == self.connection.input.len();
        clean.then_some(self.connection)
    }

    /// The connection and the bytes behind the head, after a switch of protocols.
    pub(crate) fn into_channel(self, share: Option<Share>) -> Channel {
        let Connection { mut transport, mut input, .. } = *self.connection;
        transport.count_for_origin(None);
        input.drain(..self.at);
        Channel::new(transport, input, share)
    }

    /// Waits for more of it and appends it to `out`.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        loop {
            self.take(out)?;
            if out.len() > before || self.is_over() {
                return Ok(());
            }
            self.connection.input.clear();
            self.at = 0;
            let read = self.connection.transport.read(&mut self.connection.input).await;
            match (read, &self.rest) {
                (Ok(0), Rest::UntilClose) => self.rest = Rest::Nothing,
                (Ok(0), _) => return Err(cut(io::ErrorKind::UnexpectedEof.into())),
                (Ok(_), _) => {}
                (Err(error), _) => return Err(cut(error)),
            }
        }
    }

    /// Moves bytes from the input to `out`.
    fn take(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let input = &self.connection.input[..];
        match &mut self.rest {
            Rest::Nothing => {}
            Rest::UntilClose => {
                out.extend_from_slice(&input[self.at..]);
                self.at = input.len();
            }
            Rest::Length(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let end = input.len().min(self.at.saturating_add(most));
                out.extend_from_slice(&input[self.at..end]);
                *left -= (end - self.at) as u64;
                self.at = end;
                if *left == 0 {
                    self.rest = Rest::Nothing;
                }
            }
            Rest::Chunked(decoder) => loop {
                let broken = |error: outboard_http1::ChunkError| {
                    let message =
                        format!("the chunks of the response are invalid: {}", error.reason());
                    Error::new(Kind::Protocol, message).because(error)
                };
                match decoder.decode(&input[self.at..]).map_err(broken)? {
                    Chunk::Data { range } => {
                        out.extend_from_slice(&input[self.at..][range.clone()]);
                        self.at += range.end;
                    }
                    Chunk::NeedMore => {
                        self.at = input.len();
                        break;
                    }
                    Chunk::End { consumed } => {
                        self.at += consumed;
                        self.rest = Rest::Nothing;
                        break;
                    }
                }
            },
        }
        Ok(())
    }
}

fn cut(error: io::Error) -> Error {
    let message = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the response ended within its body".to_owned(),
        _ => format!("the response broke off: {error}"),
    };
    Error::new(Kind::Protocol, message).because(error)
}
