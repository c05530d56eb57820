//! HTTP/2 (RFC 9113): the task of a connection.
//!
//! Called by the listener if TLS negotiated it (RFC 7301), or if a client without TLS begins with its
//! preface (RFC 9113 3.3). `outboard-http2` implements the protocol; this task moves its bytes between it
//! and the socket, and starts a task for each request. Invariants: the number of streams and their memory
//! are bounded, and a stream for which `limits.memory` has no room is refused; a stream whose client reads
//! nothing for `limits.write_timeout` is reset; nothing more is read from a client that does not read.

mod link;
mod requests;
mod stream;

use crate::connections::Entry;
use crate::early_data::EarlyData;
use crate::listener_context::ListenerContext;
use crate::peer::PeerInfo;
use crate::server_context::ServerContext;
use crate::service::Service;
use crate::transport::Transport;
use link::Link;
use outboard_buffer::{Account, Held};
use outboard_http2::{ErrorCode, RequestHead, Settings};
use outboard_reactor::{now_ms, spend, with_deadline};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

/// Memory of a stream: its task, its buffers, and data that waits.
const STREAM_BYTES: usize = 12 << 10;
/// Memory of a connection without its streams: buffers of TLS and of the protocol.
const CONNECTION_BYTES: usize = 128 << 10;
/// The part of it for data of responses that waits; each stream has room for a little in addition.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// What is framed and encrypted at a time.
const OUTPUT_BYTES: usize = 64 << 10;
/// Room for one read.
const READ_BYTES: usize = 16 << 10;
/// Frames, each of which may have only a few bytes, take so much longer to process than the same bytes
/// of a body.
const FRAMES_WEIGHT: usize = 8;
/// The interval of checks whether the connection is idle or a stream has stalled.
const CHECK_MS: u64 = 1_000;
/// The time and the bytes for which a client that does not close is waited for: a socket that is closed
/// with unread data is reset, and the client loses what it has not read.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 1 << 20;

/// What a client sends first (RFC 9113 3.4), up to its first line end.
pub(crate) const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// A connection that is to be served by HTTP/2.
pub(crate) struct Accepted {
    pub(crate) server: Rc<ServerContext>,
    pub(crate) listener: Rc<ListenerContext>,
    pub(crate) transport: Transport,
    pub(crate) peer: PeerInfo,
    pub(crate) entry: Entry,
    /// What was read of it already.
    pub(crate) input: Vec<u8>,
}

/// Serves a connection until it closes, or is idle for `limits.idle_timeout`.
pub(crate) async fn serve<S: Service>(service: Rc<S>, accepted: Accepted) {
    let mut task = Task::new(service, accepted);
    let end = task.run().await;
    task.link.close_all();
    if end != End::Lost {
        task.write_rest().await;
    }
    if end == End::Announced {
        task.linger().await;
    }
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// After the last response, or after an error.
    Announced,
    /// To make room for others.
    Evicted,
    /// The client has closed it, or does not read.
    Lost,
}

/// The state of the task.
struct Task<S> {
    service: Rc<S>,
    server: Rc<ServerContext>,
    listener: Rc<ListenerContext>,
    transport: Transport,
    peer: PeerInfo,
    /// Released before the entry: what waits for a connection to close may be short of memory as well.
    _held: Held,
    entry: Entry,
    memory: Rc<Account>,
    link: Rc<Link>,
    /// Received bytes that are not processed.
    input: Vec<u8>,
    /// The head of the last request.
    head: RequestHead,
    early: EarlyData,
    last_used_ms: u64,
    began_ms: u64,
    is_leaving: bool,
}

impl<S: Service> Task<S> {
    fn new(service: Rc<S>, accepted: Accepted) -> Self {
        let Accepted { server, listener, transport, peer, entry, input } = accepted;
        let memory = server.memory.of_connection();
        let held = server.memory.connections().hold(CONNECTION_BYTES);
        let limits = server.head_limits();
        let head_bytes = limits.request_line_bytes.saturating_add(limits.header_bytes);
        let settings = Settings {
            max_header_list_bytes: u32::try_from(head_bytes).unwrap_or(u32::MAX),
            max_fields: limits.header_count,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            ..Settings::default()
        };
        let link = Link::new(settings, &transport);
        let early = EarlyData::new(transport.is_early());
        Self {
            service,
            server,
            listener,
            transport,
            peer,
            _held: held,
            entry,
            memory,
            link,
            input,
            head: RequestHead::new(),
            early,
            last_used_ms: now_ms(),
            began_ms: now_ms(),
            is_leaving: false,
        }
    }

    async fn run(&mut self) -> End {
        if !self.input.is_empty() && self.process().is_err() {
            return End::Announced;
        }
        loop {
            let turn = poll_fn(|_| self.poll_turn());
            match with_deadline(now_ms() + CHECK_MS, turn).await {
                Ok(end) => return end,
                Err(_) => {
                    if let Some(end) = self.check() {
                        return end;
                    }
                }
            }
        }
    }

    /// Writes and reads as much as possible without waiting.
    fn poll_turn(&mut self) -> Poll<End> {
        loop {
            if self.server.is_draining() && !std::mem::replace(&mut self.is_leaving, true) {
                self.link.engine().go_away_gracefully();
            }
            let Ok(is_blocked) = self.write() else { return Poll::Ready(End::Lost) };
            if self.link.engine().is_over() {
                return Poll::Ready(End::Announced);
            }
            if self.entry.must_close() {
                // It was idle longest and makes room for others.
                self.link.engine().go_away(ErrorCode::NO_ERROR);
                return Poll::Ready(End::Evicted);
            }
            let is_reading = !self.link.engine().is_congested();
            if is_reading {
                self.input.reserve(READ_BYTES);
                match self.transport.try_read(&mut self.input) {
                    Ok(Some(0)) | Err(_) => return Poll::Ready(End::Lost),
                    Ok(Some(count)) => {
                        spend(count * FRAMES_WEIGHT);
                        if self.process().is_err() {
                            return Poll::Ready(End::Announced);
                        }
                        continue;
                    }
                    Ok(None) => {}
                }
            }
            if !self.early.is_over() && !self.transport.is_early() {
                self.early.end(&self.service);
            }
            if self.link.engine().open_streams() == 0 {
                self.entry.set_idle();
            }
            if self.poll_waiting(is_reading, is_blocked).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits for whatever makes another turn worthwhile.
    fn poll_waiting(&self, is_reading: bool, is_blocked: bool) -> Poll<()> {
        let socket = match (is_reading, is_blocked) {
            (true, true) => self.transport.poll_readable_or_writable(),
            (true, false) => self.transport.poll_readable(),
            (false, _) => self.transport.poll_writable(),
        };
        match socket {
            Poll::Pending => self.link.poll_changed(),
            ready => ready,
        }
    }

    /// Writes what the engine has. Returns whether the socket accepts no more.
    fn write(&self) -> Result<bool, ()> {
        let is_blocked = loop {
            let mut engine = self.link.engine();
            let output = engine.output(OUTPUT_BYTES);
            if output.is_empty() {
                break false;
            }
            match self.transport.try_write(&[IoSlice::new(output)]) {
                Ok(Some(count)) => engine.sent(count),
                Ok(None) => break true,
                Err(_) => return Err(()),
            }
        };
        self.link.wake_writable();
        Ok(is_blocked)
    }

    /// Checks, once a second, what no event reports.
    fn check(&mut self) -> Option<End> {
        let limits = self.server.limits();
        self.link.reset_stalled(limits.write_timeout_ms);
        let is_beginning = !self.link.engine().has_begun() || self.early.has_waiting();
        if is_beginning && now_ms() - self.began_ms >= limits.header_timeout_ms {
            return Some(End::Lost);
        }
        if self.link.engine().open_streams() > 0 {
            self.last_used_ms = now_ms();
            return None;
        }
        self.link.engine().shrink();
        self.input.shrink_to_fit();
        let idle_ms = now_ms() - self.last_used_ms;
        if self.is_leaving && idle_ms >= limits.idle_timeout_ms + limits.write_timeout_ms {
            // It does not even read the GOAWAY.
            return Some(End::Lost);
        }
        if idle_ms >= limits.idle_timeout_ms && !std::mem::replace(&mut self.is_leaving, true) {
            self.link.engine().go_away_gracefully();
            self.link.changed();
        }
        None
    }

    /// Writes the last frames.
    async fn write_rest(&mut self) {
        let written = poll_fn(|_| {
            loop {
                match self.write() {
                    Ok(true) => std::task::ready!(self.transport.poll_writable()),
                    _ => return Poll::Ready(()),
                }
            }
        });
        // A client that reads nothing is not waited for.
        let _ = with_deadline(now_ms() + CHECK_MS, written).await;
    }

    /// Ends the sending side, and discards what the client still sends, such as window updates.
    async fn linger(&mut self) {
        self.transport.shutdown_write();
        let mut left_bytes = LINGER_BYTES;
        while left_bytes > 0 {
            self.input.clear();
            self.input.reserve(READ_BYTES);
            let read = poll_fn(|_| {
                loop {
                    std::task::ready!(self.transport.poll_readable());
                    match self.transport.try_read(&mut self.input) {
                        Ok(None) => {}
                        Ok(Some(count)) => return Poll::Ready(count),
                        Err(_) => return Poll::Ready(0),
                    }
                }
            });
            match with_deadline(now_ms() + LINGER_MS, read).await {
                Ok(0) | Err(_) => return,
                Ok(count) => left_bytes = left_bytes.saturating_sub(count),
            }
        }
    }
}

#[cfg(test)]
mod tests;
