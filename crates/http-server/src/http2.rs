//! HTTP/2 (RFC 9113): each stream is served like a connection of HTTP/1.1.
//!
//! Called by the listener if TLS negotiated it (RFC 7301). The `h2` crate implements the protocol. A
//! stream is one end of a pipe whose other end is a [`crate::Connection`], so that everything true of
//! HTTP/1.1 is true of HTTP/2 (decision 0015). Invariants: the number of streams and their memory are
//! bounded, and a stream for which `limits.memory` has no room is refused; a stream that is reset ends its
//! request; a stream whose client reads nothing for `limits.write_timeout` is reset.

mod request;
mod response;
mod send_queue;
mod stream;

use crate::connections::{Entry, Kind};
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use bytes::Bytes;
use h2::Reason;
use h2::server::Connection as Streams;
use outboard_buffer::{Account, Held};
use outboard_reactor::{now_ms, spawn, with_deadline};
use outboard_tls::{Flusher, Io, Session};
use send_queue::SendQueue;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use stream::Stream;

/// Concurrent requests of a connection.
const STREAMS: u32 = 128;
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Unsent data per stream; [`SendQueue`] limits that of all.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Memory of a stream without its data: tasks, pipe, head.
const STREAM_BYTES: usize = 18 << 10;
/// Memory of a connection without its streams: buffers of TLS and of the protocol.
const CONNECTION_BYTES: usize = 128 << 10;
/// The time without data after which a client that does not close is not waited for.
const LINGER_MS: u64 = 2_000;
/// The interval of checks whether a connection is idle.
const CHECK_MS: u64 = 1_000;

/// State that the streams of a connection share.
#[derive(Debug)]
struct Common {
    server: Rc<ServerContext>,
    listener: Rc<ListenerContext>,
    peer: PeerInfo,
    local: Option<SocketAddr>,
    memory: Rc<Account>,
    send_queue: SendQueue,
    flusher: Flusher,
    _held: Held,
}

impl Common {
    /// Counts a new stream.
    fn open(&self) -> Result<(Held, Entry), outboard_log::Reason> {
        let held = self.memory.try_hold(STREAM_BYTES).ok_or(outboard_log::Reason::MemoryFull)?;
        let address = self.listener.limited_address(self.peer.address);
        let connections = &self.server.connections;
        let entry = connections.open(Kind::Stream, address, &self.server.limits());
        Ok((held, entry.ok_or(outboard_log::Reason::TooManyConnections)?))
    }
}

/// Serves a connection until it closes, or is idle for `limits.idle_timeout`.
pub(crate) async fn serve<S: Service>(
    service: Rc<S>,
    listener: Rc<ListenerContext>,
    session: Box<Session>,
    peer: PeerInfo,
    entry: Entry,
) {
    let local = session.stream().local_address();
    let io = Io::new(session);
    let (send_queue, flusher) = (SendQueue::new(io.writes()), io.flusher());
    let server = service.context().clone();
    let memory = server.memory.of_connection();
    let held = memory.hold(CONNECTION_BYTES);
    let limits = server.head_limits();
    let head_bytes = limits.request_line_bytes.saturating_add(limits.header_bytes);
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .handshake::<_, Bytes>(io);
    let until_ms = now_ms() + server.limits().header_timeout_ms;
    let handshake = flusher.while_waiting(with_deadline(until_ms, handshake));
    let begun = entry.while_idle(handshake).await;
    let common = Common { server, listener, peer, local, memory, send_queue, flusher, _held: held };
    let common = Rc::new(common);
    if let Some(Ok(Ok(mut streams))) = begun {
        let is_complete = take_streams(&service, &common, &mut streams, &entry).await;
        drop(streams);
        if is_complete {
            // A client that reads the last responses sends window updates.
            common.flusher.linger(LINGER_MS).await;
        }
    }
}

/// Returns whether the server has ended the connection after the last response.
async fn take_streams<S: Service>(
    service: &Rc<S>,
    common: &Rc<Common>,
    streams: &mut Streams<Io, Bytes>,
    entry: &Entry,
) -> bool {
    let server = &common.server;
    let mut last_used_ms = now_ms();
    let mut is_leaving = false;
    loop {
        let next = poll_fn(|context| {
            if server.is_draining() && !std::mem::replace(&mut is_leaving, true) {
                streams.graceful_shutdown();
            }
            let accepted = streams.poll_accept(context);
            common.flusher.send();
            common.send_queue.update();
            if let Poll::Ready(next) = accepted {
                return Poll::Ready(Some(next));
            }
            if entry.must_close() { Poll::Ready(None) } else { Poll::Pending }
        });
        match with_deadline(now_ms() + CHECK_MS, next).await {
            Ok(Some(Some(Ok((request, mut respond))))) => {
                entry.set_busy();
                match common.open() {
                    Ok((held, entry)) => {
                        let stream = Stream::new(common.clone(), request, respond, held);
                        spawn(stream.serve(service.clone(), entry));
                    }
                    Err(reason) => {
                        // RFC 9113 8.7: it was not processed and may be sent again.
                        respond.send_reset(Reason::REFUSED_STREAM);
                        server.reject(&common.peer.text, reason);
                    }
                }
                last_used_ms = now_ms();
            }
            // It was idle longest and makes room for others.
            Ok(None) => {
                streams.abrupt_shutdown(Reason::NO_ERROR);
                let farewell = poll_fn(|context| streams.poll_closed(context));
                let farewell = common.flusher.while_waiting(farewell);
                drop(with_deadline(now_ms() + CHECK_MS, farewell).await);
                return false;
            }
            // The client has left, or has violated the protocol and received GOAWAY.
            Ok(Some(Some(Err(_)))) => return false,
            Ok(Some(None)) => return is_leaving,
            Err(_) if streams.has_streams() => last_used_ms = now_ms(),
            Err(_) => {
                entry.set_idle();
                let (idle_ms, limits) = (now_ms() - last_used_ms, server.limits());
                if is_leaving && idle_ms >= limits.idle_timeout_ms + limits.write_timeout_ms {
                    // It does not even read the GOAWAY.
                    return false;
                }
                if idle_ms >= limits.idle_timeout_ms && !std::mem::replace(&mut is_leaving, true) {
                    streams.graceful_shutdown();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
