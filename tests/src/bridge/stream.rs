//! The side of a bridge that speaks HTTP/2 or HTTP/3 with the server.
//!
//! Invariant: both behave alike, as far as their libraries let them.

use crate::Protocol;
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use outboard_tls::{Trust, client_settings};
use quinn_proto::crypto::rustls::QuicClientConfig;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use tokio::net::TcpStream;
use tokio::sync::watch;

type Http3Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
type Http3Out = h3::client::RequestStream<h3_quinn::SendStream<Bytes>, Bytes>;
type Http3In = h3::client::RequestStream<h3_quinn::RecvStream, Bytes>;

/// A connection to the server.
pub(super) struct Peer {
    sender: Sender,
    /// Changes or fails when the connection has ended.
    end: watch::Receiver<()>,
}

enum Sender {
    Http2(h2::client::SendRequest<Bytes>),
    Http3(Http3Sender),
}

/// A request that is being sent.
pub(super) enum Outgoing {
    Http2(h2::SendStream<Bytes>),
    Http3(Box<Http3Out>),
}

/// A response that is being received.
pub(super) enum Incoming {
    Http2 { response: h2::client::ResponseFuture, body: Option<h2::RecvStream> },
    Http3(Http3In),
}

impl Peer {
    pub(super) async fn connect(server: SocketAddr, protocol: Protocol) -> io::Result<Peer> {
        let (ended, end) = watch::channel(());
        if protocol == Protocol::Http3 {
            let (mut driver, sender) = quic(server).await?;
            tokio::spawn(async move {
                poll_fn(|cx| driver.poll_close(cx)).await;
                drop(ended);
            });
            return Ok(Peer { sender: Sender::Http3(sender), end });
        }
        let socket = TcpStream::connect(server).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = h2::client::handshake(socket).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            let _ = connection.await;
            drop(ended);
        });
        Ok(Peer { sender: Sender::Http2(sender), end })
    }

    /// Waits until the server has closed the connection.
    pub(super) async fn closed(&mut self) {
        while self.end.changed().await.is_ok() {}
    }

    /// Sends the head of a request, and its end if it has no body.
    pub(super) async fn send(
        &mut self,
        mut request: Request<()>,
        ends: bool,
    ) -> io::Result<(Outgoing, Incoming)> {
        match &mut self.sender {
            Sender::Http2(sender) => {
                poll_fn(|cx| sender.poll_ready(cx)).await.map_err(io::Error::other)?;
                let (response, body) =
                    sender.send_request(request, ends).map_err(io::Error::other)?;
                Ok((Outgoing::Http2(body), Incoming::Http2 { response, body: None }))
            }
            Sender::Http3(sender) => {
                let mut parts = request.uri().clone().into_parts();
                parts.scheme = Some(http::uri::Scheme::HTTPS);
                *request.uri_mut() = http::Uri::from_parts(parts).map_err(io::Error::other)?;
                let stream = sender.send_request(request).await.map_err(io::Error::other)?;
                let (mut outgoing, incoming) = stream.split();
                if ends {
                    outgoing.finish().await.map_err(io::Error::other)?;
                }
                Ok((Outgoing::Http3(Box::new(outgoing)), Incoming::Http3(incoming)))
            }
        }
    }
}

/// A connection with a certificate that nobody verifies: it is the test's own.
async fn quic(
    server: SocketAddr,
) -> io::Result<(h3::client::Connection<h3_quinn::Connection, Bytes>, Http3Sender)> {
    let tls =
        client_settings(Trust::DangerousNoVerification, &[b"h3"]).map_err(io::Error::other)?;
    let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting =
        endpoint.connect_with(config, server, "localhost").map_err(io::Error::other)?;
    let connection = connecting.await.map_err(io::Error::other)?;
    h3::client::new(h3_quinn::Connection::new(connection)).await.map_err(io::Error::other)
}

impl Outgoing {
    /// Sends a piece of the body once the server takes it.
    pub(super) async fn data(&mut self, mut piece: Bytes) -> io::Result<()> {
        let stream = match self {
            Outgoing::Http3(stream) => {
                return stream.send_data(piece).await.map_err(io::Error::other);
            }
            Outgoing::Http2(stream) => stream,
        };
        while !piece.is_empty() {
            stream.reserve_capacity(piece.len());
            let capacity = match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(capacity) => capacity.map_err(io::Error::other)?,
                None => return Err(io::ErrorKind::BrokenPipe.into()),
            };
            let part = piece.split_to(capacity.min(piece.len()));
            stream.send_data(part, false).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Ends the request.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Outgoing::Http2(stream) => {
                stream.send_data(Bytes::new(), true).map_err(io::Error::other)
            }
            Outgoing::Http3(stream) => stream.finish().await.map_err(io::Error::other),
        }
    }

    /// Nothing more comes.
    pub(super) fn cancel(&mut self) {
        match self {
            Outgoing::Http2(stream) => stream.send_reset(h2::Reason::CANCEL),
            Outgoing::Http3(stream) => stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED),
        }
    }
}

impl Incoming {
    /// The next head, interim or final.
    pub(super) async fn head(&mut self) -> io::Result<Response<()>> {
        let (response, body) = match self {
            Incoming::Http3(stream) => {
                return stream.recv_response().await.map_err(io::Error::other);
            }
            Incoming::Http2 { response, body } => (response, body),
        };
        let head = poll_fn(|cx| {
            if let Poll::Ready(Some(interim)) = response.poll_informational(cx) {
                return Poll::Ready(interim.map(|head| (head, None)));
            }
            std::pin::Pin::new(&mut *response).poll(cx).map_ok(|response| {
                let (parts, body) = response.into_parts();
                (Response::from_parts(parts, ()), Some(body))
            })
        });
        let (head, found) = head.await.map_err(io::Error::other)?;
        *body = found;
        Ok(head)
    }

    /// The next piece of the body; `None` at its end.
    pub(super) async fn data(&mut self) -> io::Result<Option<Bytes>> {
        match self {
            Incoming::Http2 { body, .. } => {
                let Some(body) = body else { return pending().await };
                let Some(piece) = body.data().await else { return Ok(None) };
                let piece = piece.map_err(io::Error::other)?;
                let _ = body.flow_control().release_capacity(piece.len());
                Ok(Some(piece))
            }
            Incoming::Http3(stream) => {
                let piece = stream.recv_data().await.map_err(io::Error::other)?;
                Ok(piece.map(|mut piece| piece.copy_to_bytes(piece.remaining())))
            }
        }
    }

    /// The fields after the body.
    pub(super) async fn trailers(&mut self) -> io::Result<Option<HeaderMap>> {
        match self {
            Incoming::Http2 { body: Some(body), .. } => {
                body.trailers().await.map_err(io::Error::other)
            }
            Incoming::Http2 { body: None, .. } => Ok(None),
            Incoming::Http3(stream) => stream.recv_trailers().await.map_err(io::Error::other),
        }
    }

    /// Nobody reads the rest.
    pub(super) fn cancel(&mut self) {
        // HTTP/2 has one reset for both directions.
        if let Incoming::Http3(stream) = self {
            stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
        }
    }
}
