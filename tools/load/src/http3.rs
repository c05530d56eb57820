//! HTTP/3 for one connection of a client (RFC 9114), with one request at a time in each lane.
//!
//! [`write`] writes the bytes of a request, which depend on no others; a [`Session`] sends them on a
//! stream of its own and parses the responses. No I/O: the connection passes on the datagrams that
//! arrive, and sends those of [`Session::take_datagrams`]. Invariant: a lane has at most one request,
//! which ends as complete, refused or failed, unless it is cancelled or the connection is lost.

use crate::failures::Failure;
use crate::message::Message;
use crate::quic::{Event, Quic, Read, Settings};
use crate::received::ReceivedLanes;
use crate::response::Response;
use outboard_http_semantics::is_connection_specific;
use outboard_http3::{
    ClientConfig, ClientConnection, ErrorCode, RequestLine, SectionWriter, write_request,
};
use quinn_proto::{ConnectionError, Dir};
use std::net::SocketAddr;
use std::time::Instant;

mod sink;
#[cfg(test)]
mod tests;

use sink::Sink;

/// Appends the bytes of `message`.
pub(crate) fn write(message: &Message, out: &mut Vec<u8>) {
    let line = RequestLine {
        method: message.method.as_bytes(),
        scheme: b"https",
        authority: &message.host,
        path: &message.path,
    };
    let length = message.body.len().to_string();
    let fields = message.fields().filter(|(name, _)| !is_connection_specific(name.as_bytes()));
    let write = |out: &mut SectionWriter<'_>| {
        fields.for_each(|(name, value)| out.field(name.as_bytes(), value));
        if message.has_body() {
            out.field(b"content-length", length.as_bytes());
        }
    };
    write_request(out, &line, write, &message.body);
}

/// The request in flight of one lane, if any.
#[derive(Debug, Default)]
struct Lane {
    /// `None` without a request, and until the server allows another stream.
    stream_id: Option<u64>,
    is_head: bool,
    /// Whether the end of the request is still to be sent.
    is_sending: bool,
    /// What the stream has not accepted yet.
    unsent: Vec<u8>,
}

/// The protocol state of one connection; empty until it is opened.
pub(crate) struct Session {
    quic: Option<Quic>,
    client: ClientConnection,
    lanes: Vec<Lane>,
    /// Whether the next request is HEAD.
    is_head: bool,
    is_connected: bool,
    /// The server accepts no more requests (GOAWAY, RFC 9114 5.2).
    is_leaving: bool,
    /// Why the connection is gone.
    lost: Option<Failure>,
}

impl Session {
    pub(crate) fn new(lanes: usize) -> Self {
        Self {
            quic: None,
            client: ClientConnection::new(ClientConfig::default()),
            lanes: std::iter::repeat_with(Lane::default).take(lanes).collect(),
            is_head: false,
            is_connected: false,
            is_leaving: false,
            lost: None,
        }
    }

    /// Forgets the last connection and begins a handshake.
    pub(crate) fn connect(&mut self, settings: &Settings, server: SocketAddr, name: &str) -> bool {
        *self = Self::new(self.lanes.len());
        self.quic = Quic::connect(settings, server, name);
        self.quic.is_some()
    }

    /// Whether requests can be sent.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Why the connection is gone, if it is.
    pub(crate) fn lost(&self) -> Option<Failure> {
        self.lost
    }

    /// Prepares for the response to a request of this method.
    pub(crate) fn begin(&mut self, method: &str) {
        self.is_head = method == "HEAD";
    }

    /// Sends the bytes of a request in a lane that has none; false if the server accepts no more.
    pub(crate) fn send(&mut self, lane: usize, bytes: &[u8]) -> bool {
        if self.is_leaving || self.lost.is_some() {
            return false;
        }
        let is_head = self.is_head;
        self.lanes[lane] =
            Lane { stream_id: None, is_head, is_sending: true, unsent: bytes.to_vec() };
        self.go_on(lane);
        true
    }

    /// Cancels the request of a lane (RFC 9114 4.1.1).
    pub(crate) fn cancel(&mut self, lane: usize) {
        let Lane { stream_id: Some(stream_id), .. } = std::mem::take(&mut self.lanes[lane]) else {
            return;
        };
        if let Some(quic) = &mut self.quic {
            quic.abandon(stream_id, ErrorCode::REQUEST_CANCELLED.0);
        }
        // A request stream is none that the connection depends on.
        let _ = self.client.close_stream(stream_id);
    }

    /// Parses a datagram for all lanes.
    pub(crate) fn feed(
        &mut self,
        datagram: &[u8],
        responses: &mut [Response],
        received: &mut ReceivedLanes,
    ) {
        if let Some(quic) = &mut self.quic {
            quic.receive(datagram);
            self.turn(responses, received);
        }
    }

    /// Handles the timers that have expired.
    pub(crate) fn expire(&mut self, responses: &mut [Response], received: &mut ReceivedLanes) {
        if let Some(quic) = &mut self.quic {
            quic.expire();
            self.turn(responses, received);
        }
    }

    /// When [`Self::expire`] is due.
    pub(crate) fn wake_at(&mut self) -> Option<Instant> {
        self.quic.as_mut()?.wake_at()
    }

    /// Replaces `out` by the next datagrams to send, and returns the length of each but the last.
    pub(crate) fn take_datagrams(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        self.quic.as_mut()?.take_datagrams(out)
    }

    /// Ends the connection; the next datagram reports it to the server.
    pub(crate) fn close(&mut self) {
        if let Some(quic) = &mut self.quic {
            quic.close(ErrorCode::NO_ERROR.0);
        }
    }

    /// Handles the events of the connection.
    fn turn(&mut self, responses: &mut [Response], received: &mut ReceivedLanes) {
        while let Some(event) = self.quic.as_mut().and_then(Quic::next_event) {
            match event {
                Event::Connected => self.open_control_stream(),
                Event::Readable(stream_id) => self.read(stream_id, responses, received),
                Event::Writable(stream_id) => {
                    if let Some(lane) = lane_of(&self.lanes, stream_id) {
                        self.go_on(lane);
                    }
                }
                // The response follows, or came before (RFC 9114 4.1).
                Event::Stopped(stream_id) => {
                    if let Some(lane) = lane_of(&self.lanes, stream_id) {
                        self.stop_sending(lane, stream_id);
                    }
                }
                Event::Available => (0..self.lanes.len()).for_each(|lane| self.go_on(lane)),
                Event::Lost(reason) => {
                    let lost = match reason {
                        _ if !self.is_connected => Failure::Connect,
                        ConnectionError::TransportError(_) => Failure::Malformed,
                        _ => Failure::Closed,
                    };
                    self.lost = self.lost.or(Some(lost));
                }
            }
        }
        received.is_over |= self.lost.is_some();
    }

    /// Without it a server may not respond (RFC 9114 6.2.1).
    fn open_control_stream(&mut self) {
        let Some(quic) = &mut self.quic else { return };
        let mut start = Vec::new();
        self.client.write_control_stream_start(&mut start);
        let written = quic.open(Dir::Uni).map(|stream_id| quic.write(stream_id, &start));
        if written == Some(start.len()) {
            self.is_connected = true;
        } else {
            // A server has to allow it (RFC 9114 6.2).
            quic.close(ErrorCode::GENERAL_PROTOCOL_ERROR.0);
            self.lost = Some(Failure::Connect);
        }
    }

    /// Sends the request of a lane as far as the server allows.
    fn go_on(&mut self, lane: usize) {
        let Self { quic: Some(quic), client, lanes, .. } = self else { return };
        let lane = &mut lanes[lane];
        if !lane.is_sending {
            return;
        }
        let stream_id = match lane.stream_id {
            Some(stream_id) => stream_id,
            None => {
                let Some(stream_id) = quic.open(Dir::Bi) else { return };
                client.expect_response(stream_id, lane.is_head);
                *lane.stream_id.insert(stream_id)
            }
        };
        let accepted = quic.write(stream_id, &lane.unsent);
        lane.unsent.drain(..accepted);
        if lane.unsent.is_empty() {
            quic.finish(stream_id);
            lane.is_sending = false;
        }
    }

    fn stop_sending(&mut self, lane: usize, stream_id: u64) {
        let lane = &mut self.lanes[lane];
        lane.is_sending = false;
        lane.unsent.clear();
        if let Some(quic) = &mut self.quic {
            quic.reset(stream_id, ErrorCode::NO_ERROR.0);
        }
    }

    /// Reads what a stream has.
    fn read(&mut self, stream_id: u64, responses: &mut [Response], received: &mut ReceivedLanes) {
        let Self { quic: Some(quic), client, lanes, is_leaving, .. } = self else { return };
        let mut sink = Sink { lanes, responses, received, is_leaving, abandoned: Vec::new() };
        let mut outcome = Ok(());
        quic.read(stream_id, |read| {
            outcome = match read {
                Read::Bytes(bytes) => {
                    client.receive(stream_id, bytes, false, |event| sink.take(&event, bytes))
                }
                Read::End => client.receive(stream_id, &[], true, |event| sink.take(&event, &[])),
                Read::Reset(code) => {
                    sink.reset(stream_id, ErrorCode(code));
                    client.close_stream(stream_id)
                }
            };
            outcome.is_ok() && !sink.has_abandoned(stream_id)
        });
        for (stream_id, code) in std::mem::take(&mut sink.abandoned) {
            quic.abandon(stream_id, code.0);
            // A request, or a stream of an unknown type.
            let _ = client.close_stream(stream_id);
        }
        if let Err(error) = outcome {
            quic.close(error.code().0);
            self.lost = self.lost.or(Some(Failure::Malformed));
        }
    }
}

fn lane_of(lanes: &[Lane], stream_id: u64) -> Option<usize> {
    lanes.iter().position(|lane| lane.stream_id == Some(stream_id))
}
