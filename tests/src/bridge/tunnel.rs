//! A tunnel through HTTP/3: the request of an extended CONNECT (RFC 9220), on a stream of its own.
//!
//! The library of the other requests does not know the protocol of WebSocket; what it says of the
//! connection holds for this stream as well. Invariant: DATA frames are all that follows the head.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use outboard_http3::{
    ClientConfig, ClientConnection, ClientEvent, RequestLine, StreamError, write_request,
};
use std::io;

/// What the library would use for its own streams.
const READ_BYTES: usize = 64 * 1024;
/// RFC 9114, section 7.2.1.
const DATA_FRAME: u8 = 0;

/// The sending side.
pub(super) struct TunnelOut(quinn::SendStream);

/// The receiving side.
pub(super) struct TunnelIn {
    stream: quinn::RecvStream,
    protocol: ClientConnection,
    head: Option<Response<()>>,
    data: Vec<u8>,
}

/// Requests a tunnel.
pub(super) async fn open(
    connection: &quinn::Connection,
    request: &Request<()>,
) -> io::Result<(TunnelOut, TunnelIn)> {
    let (mut send, stream) = connection.open_bi().await.map_err(io::Error::other)?;
    let uri = request.uri();
    let line = RequestLine {
        method: b"CONNECT",
        scheme: b"https",
        authority: uri.authority().map_or("", |authority| authority.as_str()).as_bytes(),
        path: uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes(),
    };
    let mut bytes = Vec::new();
    write_request(
        &mut bytes,
        &line,
        |fields| {
            fields.field(b":protocol", b"websocket");
            for (name, value) in request.headers() {
                fields.field(name.as_str().as_bytes(), value.as_bytes());
            }
        },
        b"",
    );
    send.write_all(&bytes).await.map_err(io::Error::other)?;
    let mut protocol = ClientConnection::new(ClientConfig::default());
    protocol.expect_response(stream.id().into(), false);
    Ok((TunnelOut(send), TunnelIn { stream, protocol, head: None, data: Vec::new() }))
}

impl TunnelOut {
    pub(super) async fn data(&mut self, piece: &[u8]) -> io::Result<()> {
        // A length of four bytes (RFC 9000, section 16).
        let length = (piece.len() as u32 | 0x8000_0000).to_be_bytes();
        self.0.write_all(&[DATA_FRAME]).await.map_err(io::Error::other)?;
        self.0.write_all(&length).await.map_err(io::Error::other)?;
        self.0.write_all(piece).await.map_err(io::Error::other)
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(io::Error::other)
    }

    pub(super) fn cancel(&mut self) {
        // It may have ended.
        let _ = self.0.reset(quinn::VarInt::from_u32(CANCELLED));
    }
}

impl TunnelIn {
    pub(super) async fn head(&mut self) -> io::Result<Response<()>> {
        while self.head.is_none() {
            if !self.read().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.head.take().expect("it was read"))
    }

    pub(super) async fn data(&mut self) -> io::Result<Option<Bytes>> {
        while self.data.is_empty() {
            if !self.read().await? {
                return Ok(None);
            }
        }
        Ok(Some(std::mem::take(&mut self.data).into()))
    }

    pub(super) fn cancel(&mut self) {
        let _ = self.stream.stop(quinn::VarInt::from_u32(CANCELLED));
    }

    /// Reads once; whether there was more.
    async fn read(&mut self) -> io::Result<bool> {
        let chunk = self.stream.read_chunk(READ_BYTES, true).await.map_err(io::Error::other)?;
        let id = self.stream.id().into();
        let (bytes, is_end) = chunk.map_or((Bytes::new(), true), |chunk| (chunk.bytes, false));
        let (head, data) = (&mut self.head, &mut self.data);
        let mut failed: Option<StreamError> = None;
        let received = self.protocol.receive(id, &bytes, is_end, |event| match event {
            ClientEvent::Head { head: found, .. } => {
                let status = StatusCode::from_u16(found.status()).unwrap_or_default();
                let mut response = Response::builder().status(status);
                for (name, value) in found.fields().iter() {
                    response = response.header(name, value);
                }
                *head = response.body(()).ok();
            }
            ClientEvent::Data { range, .. } => data.extend_from_slice(&bytes[range]),
            ClientEvent::StreamError { error, .. } => failed = Some(error),
            _ => {}
        });
        received.map_err(io::Error::other)?;
        match failed {
            Some(error) => Err(io::Error::other(format!("{error:?}"))),
            None => Ok(!is_end),
        }
    }
}

/// H3_REQUEST_CANCELLED (RFC 9114, section 8.1).
const CANCELLED: u32 = 0x10c;
