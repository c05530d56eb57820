//! HTTP/2 for one connection of a client (RFC 9113), with one request at a time in each lane.
//!
//! The `h2` crate implements the protocol without a socket: [`Wire`] is two buffers, which the
//! connection fills and empties, and everything is polled when bytes arrive. Nothing wakes a task,
//! since there is none.

use crate::message::Message;
use crate::received::{Malformed, ReceivedLanes};
use crate::response::Response;
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Large, so that no head waits for a window update.
const WINDOW_BYTES: u32 = 16 << 20;

#[derive(Debug, Default)]
struct Buffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It is not valid in the protocol.
    Malformed,
    /// The server accepts no more requests on this connection (GOAWAY, RFC 9113 6.8).
    Leaving,
}

/// The protocol state of one connection; empty until it is connected.
#[derive(Default)]
pub(crate) struct Session {
    buffers: Rc<RefCell<Buffers>>,
    ends: Option<(SendRequest<Bytes>, Connection<Wire, Bytes>)>,
    lanes: Vec<Lane>,
    is_tls: bool,
}

/// The request in flight of one lane, if any.
#[derive(Default)]
struct Lane {
    head: Option<ResponseFuture>,
    body: Option<RecvStream>,
}

impl Session {
    pub(crate) fn new(is_tls: bool, lanes: usize) -> Self {
        let lanes = std::iter::repeat_with(Lane::default).take(lanes).collect();
        Self { is_tls, lanes, ..Self::default() }
    }

    /// Prepares for a new connection and forgets the last one.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.is_tls, self.lanes.len());
        let wire = Wire(self.buffers.clone());
        let mut builder = Builder::new();
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let handshake = builder.enable_push(false).handshake(wire);
        // This writes the preface and waits for nothing.
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(Ok(ends)) = pin!(handshake).poll(&mut context) {
            self.ends = Some(ends);
        }
    }

    /// Sends a request in a lane that has none.
    pub(crate) fn send(&mut self, lane: usize, message: &Message) -> Result<(), Unsent> {
        let request = self.request(message).map_err(|_| Unsent::Malformed)?;
        let (sender, _) = self.ends.as_mut().ok_or(Unsent::Leaving)?;
        let mut context = Context::from_waker(Waker::noop());
        if !matches!(sender.poll_ready(&mut context), Poll::Ready(Ok(()))) {
            return Err(Unsent::Leaving);
        }
        let is_over = message.body.is_empty();
        let (head, mut stream) =
            sender.send_request(request, is_over).map_err(|_| Unsent::Leaving)?;
        if !is_over {
            let body = Bytes::copy_from_slice(&message.body);
            stream.send_data(body, true).map_err(|_| Unsent::Leaving)?;
        }
        self.lanes[lane] = Lane { head: Some(head), body: None };
        // If the connection has ended meanwhile, the next call reports it.
        let _ = self.turn();
        Ok(())
    }

    /// Cancels the request of a lane with RST_STREAM.
    pub(crate) fn cancel(&mut self, lane: usize) {
        self.lanes[lane] = Lane::default();
        // The next bytes carry what this writes, and report an end of the connection.
        let _ = self.turn();
    }

    fn request(&self, message: &Message) -> Result<http::Request<()>, http::Error> {
        let scheme = if self.is_tls { "https" } else { "http" };
        let uri = http::Uri::builder()
            .scheme(scheme)
            .authority(message.host.as_slice())
            .path_and_query(message.path.as_slice())
            .build()?;
        let mut request = http::Request::builder().method(message.method.as_str()).uri(uri);
        for (name, value) in message.fields() {
            request = request.header(name, value);
        }
        if message.has_body() {
            request = request.header("content-length", message.body.len());
        }
        request.body(())
    }

    /// Parses received bytes for all lanes, each of which has its own head.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        responses: &mut [Response],
        received: &mut ReceivedLanes,
    ) -> Result<(), Malformed> {
        self.buffers.borrow_mut().incoming.extend_from_slice(bytes);
        // A connection that ends may have delivered responses before.
        received.is_over |= self.turn().is_err();
        for (index, (lane, response)) in self.lanes.iter_mut().zip(responses).enumerate() {
            match lane.take(response) {
                Ok(false) => {}
                Ok(true) => received.complete.push(index),
                Err(error) if is_refusal(&error) => received.refused.push(index),
                Err(_) => return Err(Malformed),
            }
        }
        // Window updates are sent.
        received.is_over |= self.turn().is_err();
        if received.is_over && received.is_empty() { Err(Malformed) } else { Ok(()) }
    }

    /// Takes the bytes that are to be sent.
    pub(crate) fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.buffers.borrow_mut().outgoing);
    }

    /// Drives the protocol with the received bytes.
    fn turn(&mut self) -> Result<(), Malformed> {
        let (_, connection) = self.ends.as_mut().ok_or(Malformed)?;
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(connection).poll(&mut context) {
            Poll::Pending => Ok(()),
            // The connection has ended; a partial head is useless.
            Poll::Ready(_) => Err(Malformed),
        }
    }
}

/// Whether the server has not processed a request at all (RFC 9113 8.7): the request received after the
/// server's last stream id or was refused with REFUSED_STREAM.
fn is_refusal(error: &h2::Error) -> bool {
    let is_left = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    error.is_remote() && (is_left || error.reason() == Some(Reason::REFUSED_STREAM))
}

impl Lane {
    /// Polls the response; true when it is complete.
    fn take(&mut self, response: &mut Response) -> Result<bool, h2::Error> {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(head) = &mut self.head {
            let Poll::Ready(head) = Pin::new(head).poll(&mut context) else {
                return Ok(false);
            };
            self.head = None;
            let (parts, body) = head?.into_parts();
            response.status = parts.status.as_u16();
            response.keep_alive = true;
            if response.wants_fields {
                let fields = parts.headers.iter();
                fields.for_each(|(name, value)| {
                    response.take_field(name.as_str().as_bytes(), value.as_bytes());
                });
            }
            self.body = Some(body);
        }
        let Some(body) = &mut self.body else { return Ok(false) };
        loop {
            match body.poll_data(&mut context) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => {
                    self.body = None;
                    return Ok(true);
                }
                Poll::Ready(Some(data)) => {
                    let data = data?;
                    response.take_body(&data);
                    body.flow_control().release_capacity(data.len())?;
                }
            }
        }
    }
}

/// The two buffers as the socket that h2 expects.
struct Wire(Rc<RefCell<Buffers>>);

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let incoming = &mut self.0.borrow_mut().incoming;
        if incoming.is_empty() {
            return Poll::Pending;
        }
        let count = incoming.len().min(into.remaining());
        into.put_slice(&incoming[..count]);
        incoming.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
