//! The side of a bridge that speaks HTTP/2 or HTTP/3 with the server.
//!
//! Invariant: both behave alike, as far as their libraries let them.

use super::tunnel::{self, TunnelIn, TunnelOut};
use crate::Protocol;
use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, Request, Response};
use outboard_tls::{Trust, client_settings};
use quinn_proto::crypto::rustls::QuicClientConfig;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::sync::watch;

type Http3Sender = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
type Http3Out = h3::client::RequestStream<h3_quinn::SendStream<Bytes>, Bytes>;
type Http3In = h3::client::RequestStream<h3_quinn::RecvStream, Bytes>;

/// How a connection reaches the server: from the address of the test's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) from: IpAddr,
    pub(super) to: SocketAddr,
    pub(super) protocol: Protocol,
}

/// A connection to the server.
pub(super) struct Peer {
    sender: Sender,
    /// Changes or fails when the connection has ended.
    end: watch::Receiver<()>,
}

enum Sender {
    Http2(h2::client::SendRequest<Bytes>),
    Http3(Http3Sender, quinn::Connection),
}

/// A request that is being sent.
pub(super) enum Outgoing {
    Http2(h2::SendStream<Bytes>),
    Http3(Box<Http3Out>),
    Tunnel(TunnelOut),
}

/// A response that is being received.
pub(super) enum Incoming {
    Http2 { response: h2::client::ResponseFuture, body: Option<h2::RecvStream> },
    Http3(Http3In),
    Tunnel(Box<TunnelIn>),
}

impl Peer {
    pub(super) async fn connect(route: Route) -> io::Result<Peer> {
        let (ended, end) = watch::channel(());
        if route.protocol == Protocol::Http3 {
            let quic = quic(route).await?;
            let connection = h3_quinn::Connection::new(quic.clone());
            let (mut driver, sender) =
                h3::client::new(connection).await.map_err(io::Error::other)?;
            tokio::spawn(async move {
                poll_fn(|cx| driver.poll_close(cx)).await;
                drop(ended);
            });
            return Ok(Peer { sender: Sender::Http3(sender, quic), end });
        }
        let socket = TcpSocket::new_v4()?;
        socket.bind((route.from, 0).into())?;
        let socket = socket.connect(route.to).await?;
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
                if request.method() == Method::CONNECT {
                    permitted(sender).await;
                    request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
                }
                let (response, body) =
                    sender.send_request(request, ends).map_err(io::Error::other)?;
                Ok((Outgoing::Http2(body), Incoming::Http2 { response, body: None }))
            }
            Sender::Http3(_, quic) if request.method() == Method::CONNECT => {
                let (outgoing, incoming) = tunnel::open(quic, &request).await?;
                Ok((Outgoing::Tunnel(outgoing), Incoming::Tunnel(Box::new(incoming))))
            }
            Sender::Http3(sender, _) => {
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

/// Waits until the server has permitted extended CONNECT (RFC 8441, section 3), which no event reports.
async fn permitted(sender: &h2::client::SendRequest<Bytes>) {
    for _ in 0..1_000 {
        if sender.is_extended_connect_protocol_enabled() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A connection with a certificate that nobody verifies: it is the test's own.
async fn quic(Route { from, to, .. }: Route) -> io::Result<quinn::Connection> {
    let tls =
        client_settings(Trust::DangerousNoVerification, &[b"h3"]).map_err(io::Error::other)?;
    let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
    let endpoint = quinn::Endpoint::client((from, 0).into())?;
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, to, "localhost").map_err(io::Error::other)?;
    connecting.await.map_err(io::Error::other)
}

impl Outgoing {
    /// Sends a piece of the body once the server takes it.
    pub(super) async fn data(&mut self, mut piece: Bytes) -> io::Result<()> {
        let stream = match self {
            Outgoing::Http3(stream) => {
                return stream.send_data(piece).await.map_err(io::Error::other);
            }
            Outgoing::Tunnel(stream) => return stream.data(&piece).await,
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
    pub(super) async fn finish(&mut self, trailers: Option<HeaderMap>) -> io::Result<()> {
        match (self, trailers) {
            (Outgoing::Http2(stream), None) => {
                stream.send_data(Bytes::new(), true).map_err(io::Error::other)
            }
            (Outgoing::Http2(stream), Some(trailers)) => {
                stream.send_trailers(trailers).map_err(io::Error::other)
            }
            (Outgoing::Tunnel(stream), _) => stream.finish(),
            (Outgoing::Http3(stream), trailers) => {
                if let Some(trailers) = trailers {
                    stream.send_trailers(trailers).await.map_err(io::Error::other)?;
                }
                stream.finish().await.map_err(io::Error::other)
            }
        }
    }

    /// Waits until the server has reset the stream because of an error. HTTP/3's library reports that
    /// to a reader of the response alone.
    pub(super) async fn broken(&mut self) -> io::Error {
        let Outgoing::Http2(stream) = self else { return pending().await };
        match poll_fn(|cx| stream.poll_reset(cx)).await {
            Ok(h2::Reason::NO_ERROR) => pending().await,
            Ok(reason) => io::Error::other(reason.description()),
            Err(error) => io::Error::other(error),
        }
    }

    /// Nothing more comes.
    pub(super) fn cancel(&mut self) {
        match self {
            Outgoing::Http2(stream) => stream.send_reset(h2::Reason::CANCEL),
            Outgoing::Http3(stream) => stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED),
            Outgoing::Tunnel(stream) => stream.cancel(),
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
            Incoming::Tunnel(stream) => return stream.head().await,
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
            Incoming::Tunnel(stream) => stream.data().await,
        }
    }

    /// The fields after the body.
    pub(super) async fn trailers(&mut self) -> io::Result<Option<HeaderMap>> {
        match self {
            Incoming::Http2 { body: Some(body), .. } => {
                body.trailers().await.map_err(io::Error::other)
            }
            Incoming::Http2 { body: None, .. } | Incoming::Tunnel(_) => Ok(None),
            Incoming::Http3(stream) => stream.recv_trailers().await.map_err(io::Error::other),
        }
    }

    /// Nobody reads the rest.
    pub(super) fn cancel(&mut self) {
        // HTTP/2 has one reset for both directions.
        match self {
            Incoming::Http2 { .. } => {}
            Incoming::Http3(stream) => {
                stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
            }
            Incoming::Tunnel(stream) => stream.cancel(),
        }
    }
}
