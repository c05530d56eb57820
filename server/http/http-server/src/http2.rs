//! HTTP/2 (RFC 9113): the task of a connection.
//!
//! Called by the listener if TLS negotiated it (RFC 7301), or if a client without TLS begins with its
//! preface (RFC 9113 3.3). `outboard-http2` implements the protocol; this task moves its bytes between it
//! and the socket, and starts a task for each request. Invariants: the number of streams and their memory
//! are bounded, and a stream for which `limits.memory` has no room is refused; a stream whose client reads
//! nothing for `limits.write_timeout` is reset; nothing more is read from a client that does not read.

mod frames;
mod link;
mod stream;

use crate::early_data::EarlyData;
use crate::multiplexed::{self, Accepted, CHECK_MS, FRAMES_WEIGHT, Requests, Sizes, Turns};
use crate::service::Service;
use crate::transport::Transport;
use link::Link;
use outboard_http2::{ErrorCode, RequestHead, Settings};
use outboard_reactor::{now_ms, spend, with_deadline};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

/// What a connection has without its streams is buffers of TLS and of the protocol.
const SIZES: Sizes = Sizes { connection_bytes: 128 << 10, stream_bytes: 12 << 10 };
/// The part of it for data of responses that waits; each stream has room for a little in addition.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// What is framed and encrypted at a time.
const OUTPUT_BYTES: usize = 64 << 10;
/// Room for one read.
const READ_BYTES: usize = 16 << 10;
/// The time and the bytes for which a client that does not close is waited for: a socket that is closed
/// with unread data is reset, and the client loses what it has not read.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 1 << 20;

/// What a client sends first (RFC 9113 3.4), up to its first line end.
pub(crate) const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Serves a connection, of which `input` was read already, until it closes, or is idle for `limits.idle_timeout`.
pub(crate) async fn serve<S: Service>(
    service: Rc<S>,
    accepted: Accepted,
    transport: Transport,
    input: Vec<u8>,
) {
    let mut task = Task::new(service, accepted, transport, input);
    let end = match task.process() {
        Ok(()) => multiplexed::run(&mut task).await,
        Err(_) => End::Announced,
    };
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
    transport: Transport,
    requests: Requests<S>,
    link: Rc<Link>,
    /// Received bytes that are not processed.
    input: Vec<u8>,
    /// The head of the last request.
    head: RequestHead,
}

impl<S: Service> Task<S> {
    fn new(service: Rc<S>, accepted: Accepted, transport: Transport, input: Vec<u8>) -> Self {
        let early = EarlyData::new(transport.is_early());
        let requests = Requests::new(service, accepted, early, &SIZES);
        let settings = Settings {
            max_header_list_bytes: u32::try_from(requests.head_bytes()).unwrap_or(u32::MAX),
            max_fields: requests.server.head_limits().header_count,
            send_buffer_bytes: SEND_BUFFER_BYTES,
            ..Settings::default()
        };
        let link = Link::new(settings, &transport);
        Self { transport, requests, link, input, head: RequestHead::new() }
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

impl<S: Service> Turns for Task<S> {
    type End = End;

    fn poll_turn(&mut self) -> Poll<End> {
        loop {
            if self.requests.server.is_draining() && self.requests.leave() {
                self.link.engine().go_away_gracefully();
            }
            let Ok(is_blocked) = self.write() else { return Poll::Ready(End::Lost) };
            if self.link.engine().is_over() {
                return Poll::Ready(End::Announced);
            }
            if self.requests.entry.must_close() {
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
            if !self.requests.early.is_over() && !self.transport.is_early() {
                self.requests.end_handshake();
            }
            if self.link.engine().open_streams() == 0 {
                self.requests.entry.set_idle();
            }
            if self.poll_waiting(is_reading, is_blocked).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn check(&mut self) -> Option<End> {
        let (write_timeout_ms, header_timeout_ms, idle_timeout_ms) = {
            let limits = self.requests.server.limits();
            (limits.write_timeout_ms, limits.header_timeout_ms, limits.idle_timeout_ms)
        };
        self.link.reset_stalled(write_timeout_ms);
        let is_beginning = !self.link.engine().has_begun() || self.requests.early.has_waiting();
        if is_beginning && self.requests.is_older_than(header_timeout_ms) {
            return Some(End::Lost);
        }
        if self.link.engine().open_streams() > 0 {
            self.requests.used();
            return None;
        }
        self.link.engine().shrink();
        self.input.shrink_to_fit();
        let idle_ms = self.requests.idle_ms();
        if self.requests.is_leaving() && idle_ms >= idle_timeout_ms + write_timeout_ms {
            // It does not even read the GOAWAY.
            return Some(End::Lost);
        }
        if idle_ms >= idle_timeout_ms && self.requests.leave() {
            self.link.engine().go_away_gracefully();
            self.link.changed();
        }
        None
    }
}

#[cfg(test)]
mod tests;
