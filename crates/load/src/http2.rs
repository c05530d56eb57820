//! HTTP/2 as a client of one connection (RFC 9113): as many requests at a time as it has lanes, one
//! after the other in each.
//!
//! The protocol is the `h2` crate's; here it has no socket: [`Wire`] is two buffers, which the
//! connection fills and empties, and everything is polled when bytes have come. Nothing ever wakes
//! a task, since there is none.

use crate::answer::Answer;
use crate::codec::{Came, Malformed};
use crate::message::Message;
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

/// Large, so that no answer waits for a window.
const WINDOW_BYTES: u32 = 16 << 20;

#[derive(Debug, Default)]
struct Buffers {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// Why a request was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It has no form in the protocol.
    Malformed,
    /// The server wants no more on this connection (GOAWAY, RFC 9113 6.8).
    Leaving,
}

/// One connection's protocol; empty until it is connected.
#[derive(Default)]
pub(crate) struct Session {
    buffers: Rc<RefCell<Buffers>>,
    ends: Option<(SendRequest<Bytes>, Connection<Wire, Bytes>)>,
    lanes: Vec<Lane>,
    is_tls: bool,
}

/// The request in flight of one lane, if there is one.
#[derive(Default)]
struct Lane {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
}

impl Session {
    pub(crate) fn new(is_tls: bool, lanes: usize) -> Self {
        let lanes = std::iter::repeat_with(Lane::default).take(lanes).collect();
        Self { is_tls, lanes, ..Self::default() }
    }

    /// A new connection: nothing of the last one counts.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.is_tls, self.lanes.len());
        let wire = Wire(self.buffers.clone());
        let mut builder = Builder::new();
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let handshake = builder.enable_push(false).handshake(wire);
        // It writes the preface and waits for nothing.
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(Ok(ends)) = pin!(handshake).poll(&mut context) {
            self.ends = Some(ends);
        }
    }

    /// Begins a request in a lane that has none.
    pub(crate) fn send(&mut self, lane: usize, message: &Message) -> Result<(), Unsent> {
        let request = self.request(message).map_err(|_| Unsent::Malformed)?;
        let (sender, _) = self.ends.as_mut().ok_or(Unsent::Leaving)?;
        let mut context = Context::from_waker(Waker::noop());
        if !matches!(sender.poll_ready(&mut context), Poll::Ready(Ok(()))) {
            return Err(Unsent::Leaving);
        }
        let is_over = message.body.is_empty();
        let (response, mut stream) =
            sender.send_request(request, is_over).map_err(|_| Unsent::Leaving)?;
        if !is_over {
            let body = Bytes::copy_from_slice(&message.body);
            stream.send_data(body, true).map_err(|_| Unsent::Leaving)?;
        }
        self.lanes[lane] = Lane { response: Some(response), body: None };
        // If it has ended meanwhile, so it says when bytes are next taken.
        let _ = self.turn();
        Ok(())
    }

    /// Gives up the request of a lane; the server is told (RST_STREAM).
    pub(crate) fn cancel(&mut self, lane: usize) {
        self.lanes[lane] = Lane::default();
        // What this writes goes out with the next bytes; an end shows there, too.
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

    /// Takes what came for all lanes, each of which has its own answer.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        answers: &mut [Answer],
        came: &mut Came,
    ) -> Result<(), Malformed> {
        self.buffers.borrow_mut().incoming.extend_from_slice(bytes);
        // One that ends may have brought answers before.
        came.is_over |= self.turn().is_err();
        for (index, (lane, answer)) in self.lanes.iter_mut().zip(answers).enumerate() {
            match lane.take(answer) {
                Ok(false) => {}
                Ok(true) => came.whole.push(index),
                Err(error) if is_refusal(&error) => came.refused.push(index),
                Err(_) => return Err(Malformed),
            }
        }
        // Windows that were given back are announced.
        came.is_over |= self.turn().is_err();
        if came.is_over && came.is_nothing() { Err(Malformed) } else { Ok(()) }
    }

    /// Takes what is to be sent.
    pub(crate) fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.buffers.borrow_mut().outgoing);
    }

    /// Lets the protocol act on what has come and write what it has to say.
    fn turn(&mut self) -> Result<(), Malformed> {
        let (_, connection) = self.ends.as_mut().ok_or(Malformed)?;
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(connection).poll(&mut context) {
            Poll::Pending => Ok(()),
            // It has ended; what of an answer has come is no use.
            Poll::Ready(_) => Err(Malformed),
        }
    }
}

/// Whether the server has not looked at a request at all (RFC 9113 8.7): it was sent after what the
/// server calls the last one, or is refused by name.
fn is_refusal(error: &h2::Error) -> bool {
    let is_left = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    error.is_remote() && (is_left || error.reason() == Some(Reason::REFUSED_STREAM))
}

impl Lane {
    /// Takes what has come of its answer; true when it is whole.
    fn take(&mut self, answer: &mut Answer) -> Result<bool, h2::Error> {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(response) = &mut self.response {
            let Poll::Ready(response) = Pin::new(response).poll(&mut context) else {
                return Ok(false);
            };
            self.response = None;
            let (parts, body) = response?.into_parts();
            answer.status = parts.status.as_u16();
            answer.keep_alive = true;
            if answer.wants_fields {
                let fields = parts.headers.iter();
                fields.for_each(|(name, value)| {
                    answer.take_field(name.as_str().as_bytes(), value.as_bytes());
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
                    answer.take_body(&data);
                    body.flow_control().release_capacity(data.len())?;
                }
            }
        }
    }
}

/// The two buffers, as h2 wants to see a socket.
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
