//! The side of a bridge that speaks HTTP/1.1 with a test.
//!
//! Invariants: what a client sends ahead waits in a buffer of bounded size; a response whose length is
//! not declared is chunked.

use super::head_text::{push_fields, text};
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// What a client may send before it is asked for.
const AHEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 1_000;

/// Fields that are about an HTTP/1.1 connection, and that other versions do not have (RFC 9113, 8.2.2).
const OF_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The head of a request, and how its body is read.
pub(super) struct Head {
    pub(super) request: Request<()>,
    pub(super) body: BodyReader,
    /// Whether the client wants the connection closed afterwards.
    pub(super) closes: bool,
}

/// How the rest of a request body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyReader {
    /// There is none.
    None,
    /// So many bytes are left.
    Length(u64),
    /// Chunked; so many bytes of a chunk are left.
    Chunked(u64),
    /// What follows a switch to WebSocket, until the client closes its side.
    Tunnel,
    /// It was read.
    Ended,
}

/// What the client sends.
pub(super) struct Reader {
    socket: OwnedReadHalf,
    ahead: BytesMut,
    /// Those of the last body.
    pub(super) trailers: Option<HeaderMap>,
}

impl Reader {
    pub(super) fn new(socket: OwnedReadHalf) -> Reader {
        Reader { socket, ahead: BytesMut::new(), trailers: None }
    }

    /// The head of the next request; `None` when the client closes in place of one.
    pub(super) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some((head, used)) = parse(&self.ahead)? {
                let _ = self.ahead.split_to(used);
                return Ok(Some(head));
            }
            if self.fill().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// The next piece of a body; `None` at its end.
    pub(super) async fn piece(&mut self, body: &mut BodyReader) -> io::Result<Option<Bytes>> {
        if let BodyReader::Chunked(0) = body {
            let line = self.line().await?;
            let line = std::str::from_utf8(&line).map_err(invalid)?;
            let size = line.split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(size.trim(), 16).map_err(invalid)?;
            *body = if size > 0 { BodyReader::Chunked(size) } else { BodyReader::Ended };
            if size == 0 {
                self.read_trailers().await?;
            }
        }
        if *body == BodyReader::Tunnel {
            if self.ahead.is_empty() && self.socket.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
            return Ok(Some(self.ahead.split().freeze()));
        }
        let (BodyReader::Length(left) | BodyReader::Chunked(left)) = body else { return Ok(None) };
        if *left == 0 {
            *body = BodyReader::Ended;
            return Ok(None);
        }
        if self.ahead.is_empty() {
            self.fill().await?;
        }
        let count = (self.ahead.len() as u64).min(*left);
        *left -= count;
        let piece = self.ahead.split_to(count as usize).freeze();
        if let BodyReader::Chunked(0) = body {
            self.line().await?;
        }
        Ok(Some(piece))
    }

    /// Waits until the client closes or fails; what it sends meanwhile is kept for later.
    pub(super) async fn gone(&mut self) -> io::Error {
        loop {
            if self.ahead.len() >= AHEAD_BYTES {
                return std::future::pending().await;
            }
            if let Err(error) = self.fill().await {
                return error;
            }
        }
    }

    /// Reads what a client still sends until it closes.
    pub(super) async fn discard(&mut self) {
        while self.fill().await.is_ok() {
            self.ahead.clear();
        }
    }

    async fn read_trailers(&mut self) -> io::Result<()> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await?;
            lines.extend_from_slice(&line);
            lines.extend_from_slice(b"\r\n");
            if line.is_empty() {
                break;
            }
        }
        let mut fields = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
        httparse::parse_headers(&lines, &mut fields).map_err(invalid)?;
        let fields = fields.iter().take_while(|field| !field.name.is_empty());
        let trailers = header_map(fields)?;
        self.trailers = (!trailers.is_empty()).then_some(trailers);
        Ok(())
    }

    async fn line(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(at) = self.ahead.windows(2).position(|end| end == b"\r\n") {
                let line = self.ahead.split_to(at).freeze();
                let _ = self.ahead.split_to(2);
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.socket.read_buf(&mut self.ahead).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The head at the beginning of these bytes, and its length, once it is complete.
fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut fields = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(used) = parsed.parse(bytes).map_err(invalid)? else {
        return Ok(None);
    };
    let mut headers = header_map(parsed.headers.iter())?;
    let is_chunked = headers.contains_key(TRANSFER_ENCODING);
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = match (is_chunked, length) {
        (true, _) => BodyReader::Chunked(0),
        (false, Some(length)) => BodyReader::Length(length),
        (false, None) => BodyReader::None,
    };
    let connection = headers.get(CONNECTION).and_then(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        connection.into_iter().flat_map(|list| list.split(',')).filter_map(field_name).collect();
    let closes = named.iter().any(|name| name == "close");
    let method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes());
    let method = method.map_err(invalid)?;
    let switches = body == BodyReader::None
        && method == Method::GET
        && headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let body = if switches { BodyReader::Tunnel } else { body };
    let host = headers.remove(HOST).ok_or(io::ErrorKind::InvalidData)?;
    // The authority of an absolute target is the host (RFC 9112, section 3.2.2).
    let target = parsed.path.unwrap_or_default();
    let absolute = target.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (authority, path) = match absolute {
        Some((authority, path)) => (authority.as_bytes(), format!("/{path}")),
        None => (host.as_bytes(), target.to_owned()),
    };
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(*name)));
    named.iter().for_each(|name| drop(headers.remove(name)));
    let mut request = Request::new(());
    *request.method_mut() = if switches { Method::CONNECT } else { method };
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(invalid)?;
    *request.headers_mut() = headers;
    Ok(Some((Head { request, body, closes }, used)))
}

/// A field that Connection names, which is about this connection as well (RFC 9110, section 7.6.1).
fn field_name(word: &str) -> Option<HeaderName> {
    HeaderName::from_bytes(word.trim().as_bytes()).ok()
}

fn header_map<'a>(fields: impl Iterator<Item = &'a httparse::Header<'a>>) -> io::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(invalid)?;
        headers.append(name, HeaderValue::from_bytes(field.value).map_err(invalid)?);
    }
    Ok(headers)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// What the framing of a response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseTo {
    pub(super) is_head: bool,
    pub(super) closes: bool,
    pub(super) is_tunnel: bool,
}

/// How the body of a response is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its declared length, or because it has none.
    Length,
    Chunked,
    /// By the end of the connection.
    Tunnel,
}

/// What the client receives.
pub(super) struct Writer {
    socket: OwnedWriteHalf,
}

impl Writer {
    pub(super) fn new(socket: OwnedWriteHalf) -> Writer {
        Writer { socket }
    }

    /// The head of a response with a status of 1xx.
    pub(super) async fn interim(&mut self, head: &Response<()>) -> io::Result<()> {
        self.socket.write_all(text(head, "").as_bytes()).await
    }

    /// The head of a response.
    pub(super) async fn head(
        &mut self,
        head: &Response<()>,
        request: ResponseTo,
    ) -> io::Result<Framing> {
        let ResponseTo { is_head, closes, is_tunnel } = request;
        let status = head.status();
        if is_tunnel && status == StatusCode::OK {
            return self.switched(head).await;
        }
        let is_bodiless =
            is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let has_length = head.headers().contains_key(CONTENT_LENGTH);
        let framing = if is_bodiless || has_length { Framing::Length } else { Framing::Chunked };
        let mut more = String::new();
        if framing == Framing::Chunked {
            more.push_str("Transfer-Encoding: chunked\r\n");
        }
        if closes {
            more.push_str("Connection: close\r\n");
        }
        self.socket.write_all(text(head, &more).as_bytes()).await?;
        Ok(framing)
    }

    /// The response to a request of WebSocket, which is 200 in the other versions (RFC 8441, section 5).
    async fn switched(&mut self, head: &Response<()>) -> io::Result<Framing> {
        let (parts, ()) = head.clone().into_parts();
        let mut switched = Response::from_parts(parts, ());
        *switched.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let more = "Connection: upgrade\r\nUpgrade: websocket\r\n";
        self.socket.write_all(text(&switched, more).as_bytes()).await?;
        Ok(Framing::Tunnel)
    }

    /// A piece of its body.
    pub(super) async fn piece(&mut self, framing: Framing, piece: &[u8]) -> io::Result<()> {
        if framing != Framing::Chunked {
            return self.socket.write_all(piece).await;
        }
        if piece.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        self.socket.write_all(&chunk).await
    }

    /// Its end.
    pub(super) async fn end(
        &mut self,
        framing: Framing,
        trailers: Option<&HeaderMap>,
    ) -> io::Result<()> {
        if framing != Framing::Chunked {
            return Ok(());
        }
        let mut end = String::from("0\r\n");
        trailers.into_iter().for_each(|trailers| push_fields(&mut end, trailers));
        end.push_str("\r\n");
        self.socket.write_all(end.as_bytes()).await
    }

    /// Nothing more is sent.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.socket.shutdown().await
    }
}
