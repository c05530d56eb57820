//! A connection over UDP, of HTTP/3.
//!
//! Called by [`Connection`]. The socket is registered for reading alone, since each datagram that leaves
//! its buffer would be an event otherwise. Invariant: after each call everything was sent, and the
//! timer is set.

use super::{Connection, Outcome, Phase};
use crate::codec::Codec;
use crate::failures::Failure;
use crate::socket::{ClosingSocket, connect_datagrams, failure_of};
use crate::target::Address;
use crate::tls::Tls;
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::{ErrorKind, IoSliceMut};
use std::time::{Duration, Instant};

/// When sending is tried again after the kernel has accepted no more.
const RETRY: Duration = Duration::from_millis(1);

impl Connection {
    /// Starts the handshake.
    pub(super) fn open_datagrams(
        &mut self,
        address: &Address,
        tls: Option<&Tls>,
        epoll: &OwnedFd,
        data: EventData,
    ) -> Result<(), Failure> {
        let (Codec::Http3(session), Address::Tcp(server)) = (&mut self.codec, address) else {
            return Err(Failure::Connect);
        };
        let (settings, name) = tls.and_then(Tls::quic).ok_or(Failure::Connect)?;
        if !session.connect(settings, *server, &name) {
            return Err(Failure::Connect);
        }
        let socket = connect_datagrams(*server).map_err(failure_of)?;
        epoll::add(epoll, &socket, data, EventFlags::IN | EventFlags::ET).map_err(failure_of)?;
        // On loopback the server would pay for the segmentation that a receiver without GRO needs (udp(7)).
        let receiver = UdpSocketState::new((&socket).into()).map_err(|_| Failure::Connect)?;
        self.receiver = Some(receiver);
        self.socket = Some(socket);
        self.phase = Phase::Handshaking;
        self.flush_datagrams()
    }

    /// Sends what the session has to send, and sets the timer.
    pub(super) fn flush_datagrams(&mut self) -> Result<(), Failure> {
        let (Codec::Http3(session), Some(socket)) = (&mut self.codec, &self.socket) else {
            return Ok(());
        };
        loop {
            while self.out_at < self.out.len() {
                let end = (self.out_at + self.segment_bytes).min(self.out.len());
                match rustix::io::write(socket, &self.out[self.out_at..end]) {
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        self.alarm.hasten(Some(Instant::now() + RETRY));
                        return Ok(());
                    }
                    // A lost datagram for QUIC: the network is full, or a probe was too large.
                    Ok(_) | Err(Errno::NOBUFS | Errno::MSGSIZE) => self.out_at = end,
                    Err(_) => return Err(self.unreachable()),
                }
            }
            let Some(segment_bytes) = session.take_datagrams(&mut self.out) else { break };
            (self.out_at, self.segment_bytes) = (0, segment_bytes);
        }
        self.out.clear();
        self.out_at = 0;
        self.alarm.hasten(session.wake_at());
        Ok(())
    }

    /// Reads all datagrams that have arrived.
    pub(super) fn receive_datagrams(&mut self, buffer: &mut [u8]) -> Outcome {
        loop {
            let (Some(socket), Some(receiver)) = (&self.socket, &self.receiver) else {
                return Outcome::Nothing;
            };
            let mut meta = [RecvMeta::default()];
            match receiver.recv(socket.into(), &mut [IoSliceMut::new(buffer)], &mut meta) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.after_datagrams();
                }
                // Usually nothing listens there (udp(7)).
                Err(_) => {
                    let failure = self.unreachable();
                    return self.break_off(failure);
                }
            }
            let [RecvMeta { len, stride, .. }] = meta;
            self.received_bytes += len as u64;
            for datagram in buffer[..len].chunks(stride.max(1)) {
                // The session reports its end itself.
                let _ = self.codec.feed(datagram, &mut self.responses, &mut self.received);
            }
            if self.times_first_byte && self.responses[0].status != 0 {
                self.first_byte_at.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Sends what datagrams or a timer have caused; the outcome.
    pub(super) fn after_datagrams(&mut self) -> Outcome {
        let flushed = self.flush_datagrams();
        let Codec::Http3(session) = &self.codec else { return Outcome::Nothing };
        match (session.lost(), flushed) {
            (Some(failure), _) | (None, Err(failure)) => self.break_off(failure),
            (None, Ok(())) if self.phase == Phase::Handshaking && session.is_connected() => {
                self.phase = Phase::Ready;
                Outcome::Ready
            }
            (None, Ok(())) => self.outcome(),
        }
    }

    /// The socket, with the datagram that ends the connection.
    pub(super) fn take_datagram_socket(&mut self) -> Option<ClosingSocket> {
        let (Codec::Http3(session), Some(socket)) = (&mut self.codec, self.socket.take()) else {
            return None;
        };
        session.close();
        let mut last_datagram = Vec::new();
        let length = session.take_datagrams(&mut last_datagram).unwrap_or_default();
        last_datagram.truncate(length);
        Some(ClosingSocket::new(socket, last_datagram))
    }

    fn unreachable(&self) -> Failure {
        if self.phase == Phase::Ready { Failure::Closed } else { Failure::Connect }
    }
}
