//! [`Connection`]: one socket with its output buffer and its responses.
//!
//! Driven by the worker: it opens, sends one request at a time in each lane (HTTP/2 and HTTP/3 have a
//! lane per stream, all other protocols have one) and reports the outcome of each event. It is
//! registered once in the worker's epoll, edge-triggered (epoll(7)): everything is read and written
//! until the kernel has no more, so no system call is spent on changing interest. [`stream`] is for
//! TCP and Unix sockets, [`datagrams`] for UDP.

use crate::codec::Codec;
use crate::failures::Failure;
use crate::http2::Unsent;
use crate::message::Message;
use crate::received::ReceivedLanes;
use crate::response::Response;
use crate::socket::{ClosingSocket, connect, failure_of};
use crate::target::Address;
use crate::timers::Alarm;
use crate::tls::Tls;
use quinn_udp::UdpSocketState;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustls::{ClientConnection, HandshakeKind};
use std::time::Instant;

mod datagrams;
mod stream;

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
    /// How datagrams are received.
    receiver: Option<UdpSocketState>,
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
    /// The length of each datagram among them but the last.
    segment_bytes: usize,
    /// When it is looked at without an event.
    alarm: Alarm,
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
    pub(crate) fn new(
        codec: Codec,
        responses: Vec<Response>,
        times_first_byte: bool,
        alarm: Alarm,
    ) -> Self {
        Self {
            socket: None,
            receiver: None,
            phase: Phase::Closed,
            generation: 0,
            is_leaving: false,
            has_ended: false,
            codec,
            tls: None,
            out: Vec::new(),
            out_at: 0,
            segment_bytes: 0,
            alarm,
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
        matches!(self.codec, Codec::Http2(_) | Codec::Http3(_))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the handshake resumed a TLS session.
    pub(crate) fn is_resumed(&self) -> bool {
        let kind = self.tls.as_ref().and_then(|session| session.handshake_kind());
        kind == Some(HandshakeKind::Resumed)
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
        let data = EventData::new_u64(u64::from(self.generation) << 32 | u64::from(place));
        if matches!(self.codec, Codec::Http3(_)) {
            return self.open_datagrams(address, tls, epoll, data);
        }
        self.codec.reset();
        if let Some(tls) = tls {
            self.tls = Some(tls.session().ok_or(Failure::Connect)?);
        }
        let socket = connect(address).map_err(failure_of)?;
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(epoll, &socket, data, interest).map_err(failure_of)?;
        self.socket = Some(socket);
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// Closes the socket, which removes it from the epoll.
    pub(crate) fn close(&mut self) {
        drop(self.take_socket());
        self.alarm.clear();
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
    pub(crate) fn take_socket(&mut self) -> Option<ClosingSocket> {
        if matches!(self.codec, Codec::Http3(_)) {
            return self.take_datagram_socket();
        }
        self.socket.take().map(|socket| ClosingSocket::new(socket, Vec::new()))
    }

    /// Sends the bytes of one request as far as the socket accepts them; events send the rest.
    pub(crate) fn send(&mut self, lane: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.responses[lane].clear();
        self.first_byte_at = None;
        let Codec::Http3(session) = &mut self.codec else { return self.transmit(bytes) };
        if !session.send(lane, bytes) {
            self.is_leaving = true;
            return Err(Failure::Closed);
        }
        self.flush_datagrams()
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

    /// Cancels the request of one lane; false when the connection has only one lane, or is not open
    /// yet, and must be closed instead.
    pub(crate) fn cancel(&mut self, lane: usize) -> bool {
        if self.responses.len() == 1 || !self.is_ready() {
            return false;
        }
        // If the connection has ended, its next event shows it.
        let _ = match &mut self.codec {
            Codec::Http2(session) => {
                session.cancel(lane);
                self.send_protocol_frames()
            }
            Codec::Http3(session) => {
                session.cancel(lane);
                self.flush_datagrams()
            }
            _ => return false,
        };
        true
    }

    /// Sends the frames that the protocol produces by itself.
    fn send_protocol_frames(&mut self) -> Result<(), Failure> {
        let Codec::Http2(session) = &mut self.codec else { return Ok(()) };
        let mut bytes = Vec::new();
        session.take_output(&mut bytes);
        if bytes.is_empty() { Ok(()) } else { self.transmit(&bytes) }
    }

    /// Handles an event. `buffer` is a read buffer that all connections of a thread share.
    pub(crate) fn advance(&mut self, event: EventFlags, buffer: &mut [u8]) -> Outcome {
        match self.codec {
            Codec::Http3(_) => self.receive_datagrams(buffer),
            _ => self.advance_stream(event, buffer),
        }
    }

    /// Handles a timer that may have expired.
    pub(crate) fn expire(&mut self) -> Outcome {
        let Codec::Http3(session) = &mut self.codec else { return Outcome::Nothing };
        session.expire(&mut self.responses, &mut self.received);
        self.after_datagrams()
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
}
