//! Connecting without blocking the loop.
//!
//! Called with the addresses of a host; they are tried in their order.

use outboard_reactor::{Elapsed, Stream, now_ms, with_deadline};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr};

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
