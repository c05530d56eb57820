//! The side of a bridge that speaks HTTP/1.1 with a test.
//!
//! Invariants: what a client sends ahead waits in a buffer of bounded size; a response whose length is
//! not declared is chunked.

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use std::fmt::Write as _;
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
    /// It was read.
    Ended,
}

/// What the client sends.
pub(super) struct Reader {
    socket: OwnedReadHalf,
    ahead: BytesMut,
}

impl Reader {
    pub(super) fn new(socket: OwnedReadHalf) -> Reader {
        Reader { socket, ahead: BytesMut::new() }
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
            let size = std::str::from_utf8(&line).map_err(invalid)?;
            let size = u64::from_str_radix(size.trim(), 16).map_err(invalid)?;
            *body = if size > 0 { BodyReader::Chunked(size) } else { BodyReader::Ended };
            while size == 0 && !self.line().await?.is_empty() {}
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
    let mut headers = HeaderMap::new();
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(invalid)?;
        headers.append(name, HeaderValue::from_bytes(field.value).map_err(invalid)?);
    }
    let is_chunked = headers.contains_key(TRANSFER_ENCODING);
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = match (is_chunked, length) {
        (true, _) => BodyReader::Chunked(0),
        (false, Some(length)) => BodyReader::Length(length),
        (false, None) => BodyReader::None,
    };
    let closes = headers.get(CONNECTION).is_some_and(|value| value == "close");
    let host = headers.remove(HOST).ok_or(io::ErrorKind::InvalidData)?;
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(*name)));
    let mut request = Request::new(());
    *request.method_mut() =
        Method::from_bytes(parsed.method.unwrap_or_default().as_bytes()).map_err(invalid)?;
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority(host.as_bytes())
        .path_and_query(parsed.path.unwrap_or_default())
        .build()
        .map_err(invalid)?;
    *request.headers_mut() = headers;
    Ok(Some((Head { request, body, closes }, used)))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// How the body of a response is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its declared length, or because it has none.
    Length,
    Chunked,
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
        is_head: bool,
        closes: bool,
    ) -> io::Result<Framing> {
        let status = head.status();
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

    /// A piece of its body.
    pub(super) async fn piece(&mut self, framing: Framing, piece: &[u8]) -> io::Result<()> {
        if framing == Framing::Length {
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
        if framing == Framing::Length {
            return Ok(());
        }
        let mut end = String::from("0\r\n");
        trailers.into_iter().for_each(|trailers| push_fields(&mut end, trailers));
        end.push_str("\r\n");
        self.socket.write_all(end.as_bytes()).await
    }
}

fn text(head: &Response<()>, more: &str) -> String {
    let status = head.status();
    let mut text = format!(
        "HTTP/1.1 {} {}\r\n",
        status.as_str(),
        status.canonical_reason().unwrap_or_default()
    );
    push_fields(&mut text, head.headers());
    text.push_str(more);
    text.push_str("\r\n");
    text
}

fn push_fields(text: &mut String, fields: &HeaderMap) {
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value.as_bytes());
        let _ = write!(text, "{}: {value}\r\n", capitalized(name.as_str()));
    }
}

/// `content-type` as HTTP/1.1 servers write it.
fn capitalized(name: &str) -> String {
    if name == "etag" {
        return "ETag".to_owned();
    }
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
