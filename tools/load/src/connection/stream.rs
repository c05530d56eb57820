//! A connection over TCP or a Unix socket, with TLS or without.
//!
//! Called by [`Connection`] for all protocols but HTTP/3. Invariant: bytes that the socket does not
//! accept are stored and sent before any others.

use super::{Connection, Outcome, Phase};
use crate::codec::Codec;
use crate::failures::Failure;
use crate::socket::failure_of;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::{BufRead, Write};
use std::time::Instant;

impl Connection {
    /// Handles an event of the socket.
    pub(super) fn advance_stream(&mut self, event: EventFlags, buffer: &mut [u8]) -> Outcome {
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

    /// Sends bytes of the protocol.
    pub(super) fn transmit(&mut self, bytes: &[u8]) -> Result<(), Failure> {
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
