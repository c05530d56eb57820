//! Sockets before they carry data: connecting, and probing a target.
//!
//! Called by connections, and by a run before its threads start. Invariant: sockets are
//! non-blocking and close-on-exec.

use crate::failures::Failure;
use crate::target::Address;
use crate::tls::Tls;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, ipproto, socket_with, sockopt,
};
use std::io;

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

/// The class of an error of connect(2).
pub(crate) fn failure_of(error: Errno) -> Failure {
    if error == Errno::ADDRNOTAVAIL { Failure::Ports } else { Failure::Connect }
}

/// Connects once and waits for the outcome, to learn whether the target accepts connections and
/// TLS.
pub(crate) fn probe(address: &Address, tls: Option<&Tls>) -> io::Result<()> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);
    let address = match address {
        Address::Tcp(address) => address,
        Address::Unix(path) => return std::os::unix::net::UnixStream::connect(path).map(drop),
    };
    let mut stream = std::net::TcpStream::connect_timeout(address, PATIENCE)?;
    let Some(mut session) = tls.and_then(Tls::session) else { return Ok(()) };
    stream.set_read_timeout(Some(PATIENCE))?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(())
}
