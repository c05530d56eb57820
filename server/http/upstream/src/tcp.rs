//! Connecting without blocking the loop.
//!
//! Called with the addresses of a host, which are tried in their order, or with a socket's path.

use outboard_reactor::{Elapsed, Stream, now_ms, with_deadline};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The time-out of one address while others remain: a dead IPv6 route must not consume all time.
const SHARE_MS: u64 = 2_000;

/// Connects to the first address that accepts, until `until_ms` (monotonic).
///
/// # Errors
/// The error of the last address; `TimedOut` if it did not respond.
pub(crate) async fn connect(addresses: &[IpAddr], port: u16, until_ms: u64) -> io::Result<Stream> {
    let mut outcome = Err(io::ErrorKind::TimedOut.into());
    for (at, &ip) in addresses.iter().enumerate() {
        let is_last = at + 1 == addresses.len();
        let until_ms = if is_last { until_ms } else { until_ms.min(now_ms() + SHARE_MS) };
        let attempt = connect_to(SocketAddr::new(ip, port));
        outcome = match with_deadline(until_ms, attempt).await {
            Ok(outcome) => outcome,
            Err(Elapsed) => Err(io::ErrorKind::TimedOut.into()),
        };
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Connects to a Unix socket.
///
/// # Errors
/// There is no server.
pub(crate) async fn connect_unix(path: &Path) -> io::Result<Stream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // With a full accept queue connect(2) returns EAGAIN, which is an error like a refusal.
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Stream::new(socket)
}

async fn connect_to(address: SocketAddr) -> io::Result<Stream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Requests are written at once; Nagle would only delay the last segment of a large one.
    sockopt::set_tcp_nodelay(&socket, true)?;
    let started = net::connect(&socket, &address);
    let stream = Stream::new(socket)?;
    match started {
        Ok(()) => return Ok(stream),
        Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    stream.source().writable().await;
    sockopt::socket_error(&stream)??;
    Ok(stream)
}
