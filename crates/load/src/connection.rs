//! [`Connection`]: one socket, what is to be written to it, and the answers coming out of it.
//!
//! Driven by the worker: it opens, sends one request at a time in each lane (HTTP/2 has as many as
//! there are streams, all else has one), and says after each event what came of it. Registered once
//! in the worker's epoll, edge-triggered (epoll(7)): everything is read and written until the
//! kernel has no more, and no system call is spent on interest.

use crate::answer::Answer;
use crate::codec::{Came, Codec};
use crate::failures::Failure;
use crate::http2::Unsent;
use crate::message::Message;
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
    /// TLS is being agreed on.
    Handshaking,
    Ready,
}

/// What an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing that ends anything.
    Nothing,
    /// The connection takes requests now.
    Ready,
    /// Lanes of [`Connection::came`] have something: whole answers, all but always.
    Answered,
    /// The connection is of no use any more.
    Lost(Failure),
}

/// One connection; see the module.
pub(crate) struct Connection {
    socket: Option<OwnedFd>,
    phase: Phase,
    /// Tells events of this socket from those of its predecessors at the same place.
    generation: u32,
    /// The peer answers what it was asked and takes nothing more.
    pub(crate) is_leaving: bool,
    /// The peer sends nothing more than what waits to be read.
    has_ended: bool,
    pub(crate) codec: Codec,
    tls: Option<Box<ClientConnection>>,
    /// What the socket has not taken yet.
    out: Vec<u8>,
    out_at: usize,
    /// One for each lane.
    pub(crate) answers: Vec<Answer>,
    /// Lanes that have something, until somebody takes it.
    pub(crate) came: Came,
    pub(crate) opening_ns: u64,
    pub(crate) received_bytes: u64,
    /// Whether the arrival of an answer's first bytes is noted.
    times_first_byte: bool,
    pub(crate) first_byte_at: Option<Instant>,
}

impl Connection {
    pub(crate) fn new(codec: Codec, answers: Vec<Answer>, times_first_byte: bool) -> Self {
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
            answers,
            came: Came::default(),
            opening_ns: 0,
            received_bytes: 0,
            times_first_byte,
            first_byte_at: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// The peer has said its last.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended || self.came.is_over
    }

    /// Whether an answer that is whole says nothing of the others.
    fn is_shared(&self) -> bool {
        matches!(self.codec, Codec::Http2(_))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Begins to connect; an event tells how that ends.
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

    /// Gives the socket up; the kernel takes it out of the epoll.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.has_ended = false;
        self.is_leaving = false;
        self.phase = Phase::Closed;
        self.came.clear();
        self.generation = self.generation.wrapping_add(1);
        self.out.clear();
        self.out_at = 0;
    }

    /// The socket, if it is open.
    pub(crate) fn into_socket(self) -> Option<OwnedFd> {
        self.socket
    }

    /// Sends the bytes of one request, as far as the socket takes them; events send the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.answers[0].clear();
        self.first_byte_at = None;
        self.transmit(bytes)
    }

    /// The same in one of several lanes, for a request whose bytes depend on those before it.
    pub(crate) fn send_message(&mut self, lane: usize, message: &Message) -> Result<(), Failure> {
        self.answers[lane].clear();
        self.first_byte_at = None;
        if let Codec::Http2(session) = &mut self.codec {
            session.send(lane, message).map_err(|unsent| {
                self.is_leaving |= unsent == Unsent::Leaving;
                Failure::Closed
            })?;
        }
        self.answer_peer()
    }

    /// Gives up the request of one lane of several; false when there is but one, and nothing less
    /// than the connection to give up.
    pub(crate) fn cancel(&mut self, lane: usize) -> bool {
        let Codec::Http2(session) = &mut self.codec else { return false };
        if self.answers.len() == 1 {
            return false;
        }
        session.cancel(lane);
        // An end of the connection shows at its next event.
        let _ = self.answer_peer();
        true
    }

    /// Sends what the protocol itself has to say.
    fn answer_peer(&mut self) -> Result<(), Failure> {
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

    /// Acts on an event. `buffer` is room to read into, shared by all connections of a thread.
    pub(crate) fn advance(&mut self, event: EventFlags, buffer: &mut [u8]) -> News {
        self.has_ended |= event.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        match self.phase {
            Phase::Closed => News::Nothing,
            Phase::Connecting => self.finish_connect(),
            Phase::Handshaking | Phase::Ready => match self.flush() {
                Ok(()) => self.receive(buffer),
                Err(failure) => News::Lost(failure),
            },
        }
    }

    fn finish_connect(&mut self) -> News {
        let Some(socket) = &self.socket else { return News::Nothing };
        match sockopt::socket_error(socket) {
            Ok(Ok(())) if self.tls.is_some() => {
                self.phase = Phase::Handshaking;
                self.flush().map_or_else(News::Lost, |()| News::Nothing)
            }
            Ok(Ok(())) => {
                self.phase = Phase::Ready;
                News::Ready
            }
            Ok(Err(error)) | Err(error) => News::Lost(failure_of(error)),
        }
    }

    /// Writes what waits to be written.
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

    fn receive(&mut self, buffer: &mut [u8]) -> News {
        loop {
            let Some(socket) = &self.socket else { return News::Nothing };
            let count = match rustix::io::read(socket, &mut *buffer) {
                Ok(0) => return self.end(),
                Ok(count) => count,
                Err(Errno::AGAIN) => return self.news(),
                Err(Errno::INTR) => continue,
                Err(_) => return self.break_off(Failure::Closed),
            };
            self.received_bytes += count as u64;
            if self.times_first_byte && self.first_byte_at.is_none() {
                self.first_byte_at = Some(Instant::now());
            }
            match self.take(&buffer[..count]) {
                // A read that did not fill the buffer has emptied the socket (epoll(7)). Only an
                // end that was announced already will not be announced again.
                News::Nothing if count == buffer.len() || self.has_ended => {}
                // More may be there for other lanes.
                News::Answered if self.is_shared() && (count == buffer.len() || self.has_ended) => {
                }
                News::Answered => return self.news(),
                news => return news,
            }
        }
    }

    /// What has come so far.
    fn news(&mut self) -> News {
        if self.came.is_nothing() {
            return News::Nothing;
        }
        if self.is_shared() {
            self.is_leaving |= self.has_ended || self.came.is_over || !self.came.refused.is_empty();
        } else {
            self.answers[0].keep_alive &= !self.has_ended;
        }
        News::Answered
    }

    /// The socket is of no use any more; what has come is.
    fn break_off(&mut self, failure: Failure) -> News {
        self.has_ended = true;
        match self.news() {
            News::Nothing => News::Lost(failure),
            news => news,
        }
    }

    /// Nothing more comes.
    fn end(&mut self) -> News {
        self.has_ended = true;
        match (self.phase, self.codec.end()) {
            (Phase::Handshaking, _) => News::Lost(Failure::Connect),
            (_, true) => {
                self.came.whole.push(0);
                self.news()
            }
            _ if !self.came.is_nothing() => self.news(),
            (_, false) => News::Lost(Failure::Closed),
        }
    }

    /// Takes bytes of the socket.
    fn take(&mut self, bytes: &[u8]) -> News {
        if self.tls.is_some() {
            return self.take_records(bytes);
        }
        let fed = self.codec.feed(bytes, &mut self.answers, &mut self.came);
        match (fed, self.answer_peer()) {
            (Err(_), _) => News::Lost(Failure::Malformed),
            (Ok(()), Err(failure)) => self.break_off(failure),
            (Ok(()), Ok(())) => self.news(),
        }
    }

    /// Takes bytes of the socket that are TLS records.
    fn take_records(&mut self, mut bytes: &[u8]) -> News {
        while !bytes.is_empty() {
            let Some(session) = &mut self.tls else { return News::Nothing };
            let read = session.read_tls(&mut bytes);
            if read.is_err() || session.process_new_packets().is_err() {
                let is_early = self.phase == Phase::Handshaking;
                return News::Lost(if is_early { Failure::Connect } else { Failure::Malformed });
            }
            loop {
                let mut plain = session.reader();
                let data = match plain.fill_buf() {
                    // The end that the peer has announced.
                    Ok([]) => return self.end(),
                    Ok(data) => data,
                    Err(_) => break,
                };
                let count = data.len();
                if self.codec.feed(data, &mut self.answers, &mut self.came).is_err() {
                    return News::Lost(Failure::Malformed);
                }
                plain.consume(count);
            }
        }
        if let Err(failure) = self.answer_peer().and_then(|()| self.flush()) {
            return self.break_off(failure);
        }
        if self.phase == Phase::Handshaking {
            return self.finish_handshake();
        }
        self.news()
    }

    fn finish_handshake(&mut self) -> News {
        let Some(session) = &self.tls else { return News::Nothing };
        if session.is_handshaking() {
            return News::Nothing;
        }
        let is_refused =
            matches!(self.codec, Codec::Http2(_)) && session.alpn_protocol() != Some(b"h2");
        if is_refused {
            return News::Lost(Failure::Connect);
        }
        self.phase = Phase::Ready;
        News::Ready
    }
}
