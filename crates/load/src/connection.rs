//! [`Connection`]: one socket, what is to be written to it, and the answer coming out of it.
//!
//! Driven by the worker: it opens, sends one request at a time, and says after each event what
//! came of it. Registered once in the worker's epoll, edge-triggered (epoll(7)): everything is
//! read and written until the kernel has no more, and no system call is spent on interest.

use crate::answer::Answer;
use crate::codec::Codec;
use crate::failures::Failure;
use crate::target::{Address, Protocol, Target};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, ipproto, socket_with, sockopt,
};
use std::io;
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Connecting,
    Ready,
}

/// What an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing that ends anything.
    Nothing,
    /// The connection takes requests now.
    Ready,
    /// The answer is whole.
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
    pub(crate) codec: Codec,
    /// What the socket has not taken yet.
    out: Vec<u8>,
    out_at: usize,
    pub(crate) answer: Answer,
    pub(crate) received_bytes: u64,
    /// Whether the arrival of an answer's first bytes is noted.
    times_first_byte: bool,
    pub(crate) first_byte_at: Option<Instant>,
}

impl Connection {
    pub(crate) fn new(protocol: Protocol, answer: Answer, times_first_byte: bool) -> Self {
        Self {
            socket: None,
            phase: Phase::Closed,
            generation: 0,
            codec: Codec::new(protocol),
            out: Vec::new(),
            out_at: 0,
            answer,
            received_bytes: 0,
            times_first_byte,
            first_byte_at: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
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
        target: &Target,
        epoll: &OwnedFd,
        place: u32,
    ) -> Result<(), Failure> {
        self.close();
        self.codec.reset();
        let socket = connect(&target.address).map_err(failure_of)?;
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
        self.phase = Phase::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.out.clear();
        self.out_at = 0;
    }

    /// Sends the bytes of one request, as far as the socket takes them; events send the rest.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.answer.clear();
        self.first_byte_at = None;
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
    pub(crate) fn advance(&mut self, buffer: &mut [u8]) -> News {
        match self.phase {
            Phase::Closed => News::Nothing,
            Phase::Connecting => self.finish_connect(),
            Phase::Ready => match self.flush() {
                Ok(()) => self.receive(buffer),
                Err(failure) => News::Lost(failure),
            },
        }
    }

    fn finish_connect(&mut self) -> News {
        let Some(socket) = &self.socket else { return News::Nothing };
        match sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                self.phase = Phase::Ready;
                News::Ready
            }
            Ok(Err(error)) | Err(error) => News::Lost(failure_of(error)),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
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
        let Some(socket) = &self.socket else { return News::Nothing };
        loop {
            let count = match rustix::io::read(socket, &mut *buffer) {
                Ok(0) if self.codec.end() => return News::Answered,
                Ok(0) => return News::Lost(Failure::Closed),
                Ok(count) => count,
                Err(Errno::AGAIN) => return News::Nothing,
                Err(Errno::INTR) => continue,
                Err(_) => return News::Lost(Failure::Closed),
            };
            self.received_bytes += count as u64;
            if self.times_first_byte && self.first_byte_at.is_none() {
                self.first_byte_at = Some(Instant::now());
            }
            match self.codec.feed(&buffer[..count], &mut self.answer) {
                Ok(true) => return News::Answered,
                // A read that did not fill the buffer has emptied the socket (epoll(7)).
                Ok(false) if count < buffer.len() => return News::Nothing,
                Ok(false) => {}
                Err(_) => return News::Lost(Failure::Malformed),
            }
        }
    }
}

/// A socket that is connecting, or connected at once.
fn connect(address: &Address) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, connected) = match address {
        Address::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let connected = rustix::net::connect(&socket, address);
            (socket, connected)
        }
        Address::Unix(path) => {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let connected = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
            (socket, connected)
        }
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn failure_of(error: Errno) -> Failure {
    if error == Errno::ADDRNOTAVAIL { Failure::Ports } else { Failure::Connect }
}

/// Connects once and waits for it, to learn whether anybody is there.
pub(crate) fn probe(address: &Address) -> io::Result<()> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);
    match address {
        Address::Tcp(address) => std::net::TcpStream::connect_timeout(address, PATIENCE).map(drop),
        Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
    }
}
