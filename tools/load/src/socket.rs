//! Sockets before they carry data, and after.
//!
//! Called by connections. Invariant: sockets are non-blocking and close-on-exec.

use crate::failures::Failure;
use crate::target::Address;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, ipproto, socket_with};
use std::net::SocketAddr;

/// Room for a burst of datagrams.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// The socket of a connection after its last request. Dropped, it reports the end of the connection.
#[derive(Debug)]
pub(crate) struct ClosingSocket {
    socket: OwnedFd,
    /// What the kernel does not send by itself.
    last_datagram: Vec<u8>,
}

impl ClosingSocket {
    pub(crate) fn new(socket: OwnedFd, last_datagram: Vec<u8>) -> Self {
        Self { socket, last_datagram }
    }
}

impl Drop for ClosingSocket {
    fn drop(&mut self) {
        if !self.last_datagram.is_empty() {
            // The server gives up without it as well, if later.
            let _ = rustix::io::write(&self.socket, &self.last_datagram);
        }
    }
}

/// A socket that is connecting or already connected.
pub(crate) fn connect(address: &Address) -> Result<OwnedFd, Errno> {
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

/// A UDP socket that exchanges datagrams with one server only.
pub(crate) fn connect_datagrams(server: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    if server.is_ipv4() {
        // Datagrams are not fragmented (RFC 9000 14); routers of IPv6 never do it.
        sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
    }
    // A burst larger than the buffer would count as lost in the network. The system may allow less.
    let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES);
    match rustix::net::connect(&socket, &server) {
        // No port is left (ip(7)).
        Err(Errno::AGAIN) => Err(Errno::ADDRNOTAVAIL),
        connected => connected.map(|()| socket),
    }
}

/// The class of an error of connect(2).
pub(crate) fn failure_of(error: Errno) -> Failure {
    if error == Errno::ADDRNOTAVAIL { Failure::Ports } else { Failure::Connect }
}
