//! [`Connection`]: one socket with its output buffer and its responses.
//!
//! Driven by the worker: it opens, sends one request at a time in each lane (HTTP/2 has a lane per
//! stream, all other protocols have one) and reports the outcome of each event. It is registered
//! once in the worker's epoll, edge-triggered (epoll(7)): everything is read and written until the
//! kernel has no more, so no system call is spent on changing interest.

use crate::codec::Codec;
use crate::failures::Failure;
use crate::http2::Unsent;
use crate::message::Message;
use crate::received::ReceivedLanes;
use crate::response::Response;
use crate::socket::{connect, failure_of};
use crate::target::Address;
use crate::tls::Tls;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustls::ClientConnection;
use std::io::{BufRead, Write};
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Connecting,
    /// The TLS handshake is in progress.
    Handshaking,
    Ready,
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing has ended.
    Nothing,
    /// The connection accepts requests from now on.
    Ready,
    /// [`Connection::received`] has lanes to look at, almost always with complete responses.
    Received,
    /// The connection is unusable.
    Lost(Failure),
}

/// One connection; see the module.
pub(crate) struct Connection {
    socket: Option<OwnedFd>,
    phase: Phase,
    /// Distinguishes events of this socket from those of earlier sockets of the same place.
    generation: u32,
    /// The peer answers pending requests and accepts no more.
    pub(crate) is_leaving: bool,
    /// The peer sends nothing after the bytes that are in the receive buffer.
    has_ended: bool,
    pub(crate) codec: Codec,
    tls: Option<Box<ClientConnection>>,
    /// Bytes that the socket has not accepted yet.
    out: Vec<u8>,
    out_at: usize,
    /// One per lane.
    pub(crate) responses: Vec<Response>,
    /// Lanes that received something, until the worker handles them.
    pub(crate) received: ReceivedLanes,
    pub(crate) opening_ns: u64,
    pub(crate) received_bytes: u64,
    /// Whether the arrival of a response's first bytes is recorded.
    times_first_byte: bool,
    pub(crate) first_byte_at: Option<Instant>,
}

impl Connection {
    pub(crate) fn new(codec: Codec, responses: Vec<Response>, times_first_byte: bool) -> Self {
        Self {
            socket: None,
            phase: Phase::Closed,
            generation: 0,
            is_leaving: false,
            has_ended: false,
            codec,
            tls: None,
            out: Vec::new(),
            out_at: 0,
            responses,
            received: ReceivedLanes::default(),
            opening_ns: 0,
            received_bytes: 0,
            times_first_byte,
            first_byte_at: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Whether the peer sends nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended || self.received.is_over
    }

    /// Whether several responses arrive side by side.
    fn is_shared(&self) -> bool {
        matches!(self.codec, Codec::Http2(_))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Starts to connect; an event reports the outcome.
    pub(crate) fn open(
        &mut self,
        address: &Address,
        tls: Option<&Tls>,
        epoll: &OwnedFd,
        place: u32,
    ) -> Result<(), Failure> {
        self.close();
        self.codec.reset();
        if let Some(tls) = tls {
            self.tls = Some(tls.session().ok_or(Failure::Connect)?);
        }
        let socket = connect(address).map_err(failure_of)?;
        let data = EventData::new_u64(u64::from(self.generation) << 32 | u64::from(place));
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(epoll, &socket, data, interest).map_err(failure_of)?;
        self.socket = Some(socket);
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// Closes the socket, which removes it from the epoll.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.has_ended = false;
        self.is_leaving = false;
        self.phase = Phase::Closed;
        self.received.clear();
        self.generation = self.generation.wrapping_add(1);
        self.out.clear();
        self.out_at = 0;
    }

    /// The socket, if it is open.
    pub(crate) fn into_socket(self) -> Option<OwnedFd> {
        self.socket
    }

    /// Sends the bytes of one request as far as the socket accepts them; events send the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.responses[0].clear();
        self.first_byte_at = None;
        self.transmit(bytes)
    }

    /// Sends a request in one of several lanes, when its bytes depend on earlier ones.
    pub(crate) fn send_message(&mut self, lane: usize, message: &Message) -> Result<(), Failure> {
        self.responses[lane].clear();
        self.first_byte_at = None;
        if let Codec::Http2(session) = &mut self.codec {
            session.send(lane, message).map_err(|unsent| {
                self.is_leaving |= unsent == Unsent::Leaving;
                Failure::Closed
            })?;
        }
        self.send_protocol_frames()
    }

    /// Cancels the request of one lane; false when the connection has only one lane and must be
    /// closed instead.
    pub(crate) fn cancel(&mut self, lane: usize) -> bool {
        let Codec::Http2(session) = &mut self.codec else { return false };
        if self.responses.len() == 1 {
            return false;
        }
        session.cancel(lane);
        // If the connection has ended, its next event shows it.
        let _ = self.send_protocol_frames();
        true
    }

    /// Sends the frames that the protocol produces by itself.
    fn send_protocol_frames(&mut self) -> Result<(), Failure> {
        let Codec::Http2(session) = &mut self.codec else { return Ok(()) };
        let mut bytes = Vec::new();
        session.take_output(&mut bytes);
        if bytes.is_empty() { Ok(()) } else { self.transmit(&bytes) }
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(session) = &mut self.tls {
            session.writer().write_all(bytes).map_err(|_| Failure::Closed)?;
            return self.flush();
        }
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return self.flush();
        }
        let socket = self.socket.as_ref().ok_or(Failure::Closed)?;
        let written = match rustix::io::write(socket, bytes) {
            Ok(written) => written,
            Err(Errno::AGAIN) => 0,
            Err(_) => return Err(Failure::Closed),
        };
        if written < bytes.len() {
            self.out.extend_from_slice(&bytes[written..]);
        }
        Ok(())
    }

    /// Handles an event. `buffer` is a read buffer that all connections of a thread share.
    pub(crate) fn advance(&mut self, event: EventFlags, buffer: &mut [u8]) -> Outcome {
        self.has_ended |= event.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        match self.phase {
            Phase::Closed => Outcome::Nothing,
            Phase::Connecting => self.finish_connect(),
            Phase::Handshaking | Phase::Ready => match self.flush() {
                Ok(()) => self.receive(buffer),
                Err(failure) => Outcome::Lost(failure),
            },
        }
    }

    fn finish_connect(&mut self) -> Outcome {
        let Some(socket) = &self.socket else { return Outcome::Nothing };
        match sockopt::socket_error(socket) {
            Ok(Ok(())) if self.tls.is_some() => {
                self.phase = Phase::Handshaking;
                self.flush().map_or_else(Outcome::Lost, |()| Outcome::Nothing)
            }
            Ok(Ok(())) => {
                self.phase = Phase::Ready;
                Outcome::Ready
            }
            Ok(Err(error)) | Err(error) => Outcome::Lost(failure_of(error)),
        }
    }

    /// Writes the output buffer.
    fn flush(&mut self) -> Result<(), Failure> {
        if let Some(session) = &mut self.tls {
            while session.wants_write() {
                session.write_tls(&mut self.out).map_err(|_| Failure::Closed)?;
            }
        }
        let Some(socket) = &self.socket else { return Ok(()) };
        while self.out_at < self.out.len() {
            match rustix::io::write(socket, &self.out[self.out_at..]) {
                Ok(written) => self.out_at += written,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Failure::Closed),
            }
        }
        self.out.clear();
        self.out_at = 0;
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Outcome {
        loop {
            let Some(socket) = &self.socket else { return Outcome::Nothing };
            let count = match rustix::io::read(socket, &mut *buffer) {
                Ok(0) => return self.end(),
                Ok(count) => count,
                Err(Errno::AGAIN) => return self.outcome(),
                Err(Errno::INTR) => continue,
                Err(_) => return self.break_off(Failure::Closed),
            };
            self.received_bytes += count as u64;
            if self.times_first_byte && self.first_byte_at.is_none() {
                self.first_byte_at = Some(Instant::now());
            }
            match self.take(&buffer[..count]) {
                // A read that did not fill the buffer has emptied the socket (epoll(7)). Only an
                // end that was already reported is not reported again.
                Outcome::Nothing if count == buffer.len() || self.has_ended => {}
                // There may be more bytes for other lanes.
                Outcome::Received
                    if self.is_shared() && (count == buffer.len() || self.has_ended) => {}
                Outcome::Received => return self.outcome(),
                outcome => return outcome,
            }
        }
    }

    /// The outcome of the bytes received so far.
    fn outcome(&mut self) -> Outcome {
        if self.received.is_empty() {
            return Outcome::Nothing;
        }
        if self.is_shared() {
            self.is_leaving |=
                self.has_ended || self.received.is_over || !self.received.refused.is_empty();
        } else {
            self.responses[0].keep_alive &= !self.has_ended;
        }
        Outcome::Received
    }

    /// The socket is unusable, but responses that were received count.
    fn break_off(&mut self, failure: Failure) -> Outcome {
        self.has_ended = true;
        match self.outcome() {
            Outcome::Nothing => Outcome::Lost(failure),
            outcome => outcome,
        }
    }

    /// Handles the end of the stream.
    fn end(&mut self) -> Outcome {
        self.has_ended = true;
        match (self.phase, self.codec.end()) {
            (Phase::Handshaking, _) => Outcome::Lost(Failure::Connect),
            (_, true) => {
                self.received.complete.push(0);
                self.outcome()
            }
            _ if !self.received.is_empty() => self.outcome(),
            (_, false) => Outcome::Lost(Failure::Closed),
        }
    }

    /// Handles bytes of the socket.
    fn take(&mut self, bytes: &[u8]) -> Outcome {
        if self.tls.is_some() {
            return self.take_records(bytes);
        }
        let fed = self.codec.feed(bytes, &mut self.responses, &mut self.received);
        match (fed, self.send_protocol_frames()) {
            (Err(_), _) => Outcome::Lost(Failure::Malformed),
            (Ok(()), Err(failure)) => self.break_off(failure),
            (Ok(()), Ok(())) => self.outcome(),
        }
    }

    /// Handles TLS records of the socket.
    fn take_records(&mut self, mut bytes: &[u8]) -> Outcome {
        while !bytes.is_empty() {
            let Some(session) = &mut self.tls else { return Outcome::Nothing };
            let read = session.read_tls(&mut bytes);
            if read.is_err() || session.process_new_packets().is_err() {
                let is_early = self.phase == Phase::Handshaking;
                return Outcome::Lost(if is_early { Failure::Connect } else { Failure::Malformed });
            }
            loop {
                let mut plain = session.reader();
                let data = match plain.fill_buf() {
                    // The peer sent close_notify.
                    Ok([]) => return self.end(),
                    Ok(data) => data,
                    Err(_) => break,
                };
                let count = data.len();
                if self.codec.feed(data, &mut self.responses, &mut self.received).is_err() {
                    return Outcome::Lost(Failure::Malformed);
                }
                plain.consume(count);
            }
        }
        if let Err(failure) = self.send_protocol_frames().and_then(|()| self.flush()) {
            return self.break_off(failure);
        }
        if self.phase == Phase::Handshaking {
            return self.finish_handshake();
        }
        self.outcome()
    }

    fn finish_handshake(&mut self) -> Outcome {
        let Some(session) = &self.tls else { return Outcome::Nothing };
        if session.is_handshaking() {
            return Outcome::Nothing;
        }
        let is_refused =
            matches!(self.codec, Codec::Http2(_)) && session.alpn_protocol() != Some(b"h2");
        if is_refused {
            return Outcome::Lost(Failure::Connect);
        }
        self.phase = Phase::Ready;
        Outcome::Ready
    }
}
