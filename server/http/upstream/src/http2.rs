//! HTTP/2 (RFC 9113) over TLS: many exchanges on one connection.
//!
//! Started by the client when the peer chooses HTTP/2 in the handshake; shared by the requests of a host.
//! The protocol is the `h2` crate's; a separate task drives the connection. Invariant: received bytes are
//! released to the stream's window only when they are read, so a slow reader stops the peer and does not
//! fill memory.

use crate::error::{Error, Kind};
use crate::request::Request;
use crate::response_facts::ResponseFacts;
use crate::sockets::Socket;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::uri::{Authority, PathAndQuery, Scheme};
use outboard_reactor::{TaskId, current_task, now_ms, spawn, wake};
use outboard_tls::{Io, Session};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
const HEADER_LIST_BYTES: u32 = 256 << 10;

/// A connection shared by requests.
#[derive(Clone)]
pub(crate) struct Multiplexed {
    sender: SendRequest<Bytes>,
    state: Rc<State>,
}

#[derive(Debug, Default)]
struct State {
    used_ms: Cell<u64>,
}

impl std::fmt::Debug for Multiplexed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Multiplexed").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Why an exchange failed.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The connection accepts no more requests; this one was possibly not processed.
    Connection(Error),
    /// Another error.
    Failed(Error),
}

impl Multiplexed {
    /// Sends the preface; the connection then lives as long as its handles.
    pub(crate) async fn begin(tls: Box<Session>, socket: Socket) -> Result<Self, Error> {
        let io = Io::new(tls);
        let flusher = io.flusher();
        let handshake = h2::client::Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(HEADER_LIST_BYTES)
            .enable_push(false)
            .handshake(io);
        let (sender, connection) = flusher.while_waiting(handshake).await.map_err(broken)?;
        // The streams report the end of the connection.
        spawn(async move {
            drop(flusher.while_waiting(connection).await);
            drop(socket);
        });
        let state = Rc::new(State { used_ms: Cell::new(now_ms()) });
        Ok(Self { sender, state })
    }

    /// Whether both are the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }

    pub(crate) fn use_at(&self, now_ms: u64) {
        self.state.used_ms.set(now_ms);
    }

    /// The monotonic time of its last request.
    pub(crate) fn used_ms(&self) -> u64 {
        self.state.used_ms.get()
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn exchange(
        &self,
        request: &Request,
    ) -> Result<(ResponseFacts, Body), Broken> {
        let head = head(request).map_err(Broken::Failed)?;
        let sender = self.sender.clone().ready().await;
        let mut sender = sender.map_err(|error| Broken::Connection(broken(error)))?;
        let has_body = !request.body.is_empty();
        let (answer, mut stream) = sender.send_request(head, !has_body).map_err(sort)?;
        if has_body {
            let body = Bytes::copy_from_slice(&request.body);
            stream.send_data(body, true).map_err(sort)?;
        }
        let mut answer = answer;
        let answer = poll_fn(|context| {
            while let Some(interims) = &request.interims
                && let Poll::Ready(Some(Ok(head))) = answer.poll_informational(context)
            {
                let (fields, status) = (fields_of(head.headers()), head.status().as_u16());
                let facts = ResponseFacts::new(request, status, 2, fields.iter().copied());
                interims.add(status, facts.headers);
            }
            Pin::new(&mut answer).poll(context)
        });
        let (head, received) = answer.await.map_err(sort)?.into_parts();
        let fields = fields_of(&head.headers);
        let facts = ResponseFacts::new(request, head.status.as_u16(), 2, fields.iter().copied());
        let length = fields.iter().find(|(name, _)| *name == b"content-length");
        let length = length.and_then(|(_, value)| str::from_utf8(value).ok()?.parse().ok());
        let length = length.filter(|_| request.method != b"HEAD");
        let over = received.is_end_stream();
        Ok((facts, Body { received, length, over }))
    }
}

fn fields_of(headers: &http::HeaderMap) -> Vec<(&[u8], &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())).collect()
}

/// The request's head without the fields that HTTP/2 replaces (RFC 9113 8.2.2, 8.3.1).
fn head(request: &Request) -> Result<http::Request<()>, Error> {
    let bad = |error: &dyn std::fmt::Display| Error::new(Kind::BadCall, error.to_string());
    let host = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    let authority = host.map_or(request.url.authority().as_bytes(), |(_, value)| value);
    let authority = Authority::try_from(authority).map_err(|error| bad(&error))?;
    let target = PathAndQuery::try_from(request.url.target()).map_err(|error| bad(&error))?;
    let uri = http::Uri::builder().scheme(Scheme::HTTPS).authority(authority);
    let uri = uri.path_and_query(target).build().map_err(|error| bad(&error))?;
    let mut builder = http::Request::builder().method(&request.method[..]).uri(uri);
    let own = request.own_headers().map(|(name, value)| -> (&[u8], &[u8]) { (name, value) });
    for (name, value) in request.headers.iter().chain(own) {
        if !name.eq_ignore_ascii_case(b"host") {
            builder = builder.header(name, value);
        }
    }
    builder.body(()).map_err(|error| bad(&error))
}

fn broken(error: h2::Error) -> Error {
    Error::new(Kind::Protocol, format!("HTTP/2: {error}")).because(error)
}

/// Whether another connection could help (RFC 9113 8.7).
fn sort(error: h2::Error) -> Broken {
    let refused = error.reason() == Some(Reason::REFUSED_STREAM);
    if refused || error.is_go_away() || error.is_io() {
        return Broken::Connection(broken(error));
    }
    Broken::Failed(broken(error))
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct Body {
    received: RecvStream,
    length: Option<u64>,
    over: bool,
}

impl Body {
    /// The announced length.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether all of it has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Waits for more of it and appends it to `out`.
    pub(crate) async fn read(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.over {
            return Ok(());
        }
        match self.received.data().await {
            Some(Ok(data)) => {
                out.extend_from_slice(&data);
                let released = self.received.flow_control().release_capacity(data.len());
                released.map_err(broken)?;
                self.over = self.received.is_end_stream();
            }
            Some(Err(error)) => return Err(broken(error)),
            None => self.over = true,
        }
        Ok(())
    }
}

/// Serialises the opening of connections until the peer is known to speak HTTP/1.1, where each request
/// needs a connection of its own.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    busy: Cell<bool>,
    http1: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
}

/// The right to open a connection.
pub(crate) struct Turn<'a> {
    opening: &'a Opening,
}

impl Opening {
    /// Waits for the right to open one.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        poll_fn(|_| {
            if self.http1.get() || !self.busy.replace(true) {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(current_task());
            Poll::Pending
        })
        .await;
        Turn { opening: self }
    }
}

impl Turn<'_> {
    /// Ends the serialisation.
    pub(crate) fn is_http1(&self) {
        self.opening.http1.set(true);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.opening.busy.set(false);
        for task in self.opening.waiting.take() {
            wake(task);
        }
    }
}
