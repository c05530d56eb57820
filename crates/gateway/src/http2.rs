//! HTTP/2 (RFC 9113): each stream is served as a connection of HTTP/1.1 is.
//!
//! Called by the listener once a client has chosen it (RFC 7301). The protocol is the `h2` crate's;
//! a stream is one end of a pipe whose other end is a [`Connection`], so that all that is
//! true of HTTP/1.1 is of HTTP/2 too. Invariants: the streams of a connection are bounded in number, and
//! in memory: what waits in each, what waits for the socket in all, and a stream for which
//! `limits.memory` has no room is refused; a stream that is reset ends its request, and one whose client takes
//! nothing for `limits.write_timeout` is reset.

mod bridge;
mod sending;

use crate::client::Ends;
use crate::connections::{Entry, Kind};
use crate::gateway::Gateway;
use crate::listener::ListenerFacts;
use bridge::Bridge;
use bytes::Bytes;
use h2::Reason;
use h2::server::Connection as Streams;
use outboard_buffer::{Account, Held};
use outboard_reactor::{now_ms, spawn, with_deadline};
use outboard_tls::{Io, Session};
use sending::Sending;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// Requests of one client at a time.
const STREAMS: u32 = 128;
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// What is written and not yet sent, for each stream; [`Sending`] bounds it for all.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// What a stream takes beside what is sent: its tasks, its ends of the pipe, its head.
const STREAM_BYTES: usize = 18 << 10;
/// What a connection takes beside its streams: the session's buffers and the protocol's.
const CONNECTION_BYTES: usize = 128 << 10;
/// How often it is looked whether a connection is of any use still.
const LOOK_MS: u64 = 1_000;

/// What the streams of a connection share.
#[derive(Debug)]
struct Common {
    gateway: Rc<Gateway>,
    facts: Rc<ListenerFacts>,
    ends: Ends,
    local: Option<SocketAddr>,
    /// What is held for it.
    memory: Rc<Account>,
    sending: Sending,
    _held: Held,
}

impl Common {
    /// Counts a new stream.
    fn open(&self) -> Result<(Held, Entry), outboard_log::Reason> {
        let held = self.memory.try_hold(STREAM_BYTES).ok_or(outboard_log::Reason::MemoryFull)?;
        let address = self.facts.limited_address(self.ends.peer);
        let connections = &self.gateway.connections;
        let entry = connections.open(Kind::Stream, address, &self.gateway.limits());
        Ok((held, entry.ok_or(outboard_log::Reason::TooManyConnections)?))
    }
}

/// Serves a client until it leaves, or has asked for nothing for `limits.idle_timeout`.
pub(crate) async fn serve(
    gateway: Rc<Gateway>,
    facts: Rc<ListenerFacts>,
    session: Box<Session>,
    ends: Ends,
    entry: Entry,
) {
    let local = session.stream().local_address();
    let io = Io::new(session);
    let sending = Sending::new(io.writes());
    let memory = gateway.memory.of_connection();
    let held = memory.hold(CONNECTION_BYTES);
    let limits = gateway.head_limits();
    let head_bytes = limits.request_line_bytes.saturating_add(limits.header_bytes);
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(STREAMS)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .handshake::<_, Bytes>(io);
    let until_ms = now_ms() + gateway.limits().header_timeout_ms;
    let common = Rc::new(Common { gateway, facts, ends, local, memory, sending, _held: held });
    let begun = entry.while_waiting(with_deadline(until_ms, handshake)).await;
    if let Some(Ok(Ok(mut streams))) = begun {
        take_streams(&common, &mut streams, &entry).await;
    }
}

async fn take_streams(common: &Rc<Common>, streams: &mut Streams<Io, Bytes>, entry: &Entry) {
    let gateway = &common.gateway;
    let mut last_used_ms = now_ms();
    let mut is_leaving = false;
    loop {
        let next = poll_fn(|context| {
            if gateway.is_draining() && !std::mem::replace(&mut is_leaving, true) {
                streams.graceful_shutdown();
            }
            let accepted = streams.poll_accept(context);
            common.sending.look();
            if let Poll::Ready(next) = accepted {
                return Poll::Ready(Some(next));
            }
            if entry.is_unwanted() { Poll::Ready(None) } else { Poll::Pending }
        });
        match with_deadline(now_ms() + LOOK_MS, next).await {
            Ok(Some(Some(Ok((request, mut respond))))) => {
                entry.go_on();
                match common.open() {
                    Ok((held, entry)) => {
                        spawn(Bridge::new(common.clone(), request, respond, held).serve(entry));
                    }
                    Err(reason) => {
                        // RFC 9113 8.7: it was not acted on, and may be sent again.
                        respond.send_reset(Reason::REFUSED_STREAM);
                        gateway.turn_away(&common.ends.peer_text, reason);
                    }
                }
                last_used_ms = now_ms();
            }
            // It has waited longer than others.
            Ok(None) => {
                streams.abrupt_shutdown(Reason::NO_ERROR);
                let farewell = poll_fn(|context| streams.poll_closed(context));
                return drop(with_deadline(now_ms() + LOOK_MS, farewell).await);
            }
            // The client has left, or does not speak the protocol, which it has been told.
            Ok(Some(Some(Err(_)) | None)) => return,
            Err(_) if streams.has_streams() => last_used_ms = now_ms(),
            Err(_) => {
                entry.wait();
                let (idle_ms, limits) = (now_ms() - last_used_ms, gateway.limits());
                if is_leaving && idle_ms >= limits.idle_timeout_ms + limits.write_timeout_ms {
                    // It does not even take the farewell.
                    return;
                }
                if idle_ms >= limits.idle_timeout_ms && !std::mem::replace(&mut is_leaving, true) {
                    streams.graceful_shutdown();
                }
            }
        }
    }
}
