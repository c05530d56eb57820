//! [`Client`]: who has connected, and the way to it.
//!
//! Shared by the parts of a [`Connection`](crate::connection::Connection) for as long as it is open: the request reads from it, the
//! response is written to it, and an upgrade handler has it alone. Invariant: the connection counts as open
//! until the last of them is dropped.

use crate::connections::Entry;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::transport::Transport;
use outboard_log::Reason;
use outboard_reactor::{self as reactor};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// See the module.
pub struct Client {
    /// What all connections share.
    pub context: Rc<ServerContext>,
    /// The listener that accepted it.
    pub listener: Arc<ListenerContext>,
    /// Its addresses, and what TLS has negotiated.
    pub peer: PeerInfo,
    /// The socket, TLS session or stream.
    pub transport: Transport,
    /// Its place in the table of open connections.
    pub entry: Entry,
    /// Whether a part of the request's body is not read yet. Its end is unknown then, so no request can
    /// follow.
    pub(crate) has_unread_body: Cell<bool>,
}

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// At least one byte.
    Some,
    /// The client has closed its side, or is gone.
    Closed,
    /// The deadline has passed.
    TimedOut,
}

impl Client {
    /// A client that has connected.
    pub(crate) fn new(
        context: Rc<ServerContext>,
        listener: Arc<ListenerContext>,
        transport: Transport,
        peer: PeerInfo,
        entry: Entry,
    ) -> Rc<Self> {
        let has_unread_body = Cell::default();
        Rc::new(Self { context, listener, peer, transport, entry, has_unread_body })
    }

    /// Reads what has arrived into an empty buffer. The next [`Client::read`] meets an end or an error again.
    pub(crate) fn read_available(&self, input: &mut Vec<u8>) {
        if input.is_empty() && input.capacity() > 0 {
            let _ = self.transport.try_read(input);
        }
    }

    /// Reads once; the caller has set the deadline.
    pub(crate) async fn read(&self, input: &mut Vec<u8>) -> Read {
        if input.capacity() == input.len() {
            input.reserve(input.len().max(4096));
        }
        poll_fn(|_| {
            while self.transport.poll_readable().is_ready() {
                match self.transport.try_read(input) {
                    Ok(Some(0)) | Err(_) => return Poll::Ready(Read::Closed),
                    Ok(Some(_)) => return Poll::Ready(Read::Some),
                    Ok(None) => {}
                }
            }
            if self.entry.must_close() {
                return Poll::Ready(Read::Closed);
            }
            if reactor::deadline_passed() { Poll::Ready(Read::TimedOut) } else { Poll::Pending }
        })
        .await
    }

    /// Whether it is gone, or has closed its side and `limits.aborts_on_close` is set.
    pub fn poll_gone(&self) -> Poll<()> {
        match self.context.limits().aborts_on_close {
            true => self.transport.poll_hangup(),
            false => self.transport.poll_gone(),
        }
    }

    /// Completes `work`, unless the client goes away.
    ///
    /// # Errors
    /// [`Reason::ClientGone`].
    pub async fn unless_gone<T>(&self, work: impl Future<Output = T>) -> Result<T, Reason> {
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll_gone().map(|()| Err(Reason::ClientGone)),
        })
        .await
    }
}
