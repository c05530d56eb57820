//! Whether a target accepts connections and TLS.
//!
//! Called by a run before its threads start. Invariant: it takes a few seconds at most.

use crate::quic::{Event, Quic};
use crate::target::Address;
use crate::tls::Tls;
use quinn_proto::ConnectionError;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(3);
/// The error codes of TLS alerts (RFC 9001 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;

/// Connects once and waits for the outcome.
pub(crate) fn probe(address: &Address, tls: Option<&Tls>) -> io::Result<()> {
    let address = match address {
        Address::Tcp(address) => address,
        Address::Unix(path) => return std::os::unix::net::UnixStream::connect(path).map(drop),
    };
    if let Some((settings, name)) = tls.and_then(Tls::quic) {
        let quic = Quic::connect(settings, *address, &name);
        return probe_quic(quic.ok_or(ErrorKind::InvalidInput)?, *address);
    }
    let mut stream = std::net::TcpStream::connect_timeout(address, PATIENCE)?;
    let Some(mut session) = tls.and_then(Tls::session) else { return Ok(()) };
    stream.set_read_timeout(Some(PATIENCE))?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(())
}

/// Waits for the end of a handshake, and ends the connection.
fn probe_quic(mut quic: Quic, server: SocketAddr) -> io::Result<()> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    let until = Instant::now() + PATIENCE;
    let mut datagram = vec![0; 64 << 10];
    loop {
        send(&mut quic, &socket)?;
        let wake_at = quic.wake_at().map_or(until, |at| at.min(until));
        let wait = wake_at.saturating_duration_since(Instant::now());
        socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        match socket.recv(&mut datagram) {
            Ok(count) => quic.receive(&datagram[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                quic.expire();
            }
            Err(error) => return Err(error),
        }
        while let Some(event) = quic.next_event() {
            match event {
                Event::Connected => {
                    quic.close(outboard_http3::ErrorCode::NO_ERROR.0);
                    return send(&mut quic, &socket);
                }
                Event::Lost(reason) => {
                    // The server learns that its certificate is not trusted.
                    send(&mut quic, &socket)?;
                    return Err(failure(&reason));
                }
                _ => {}
            }
        }
        if Instant::now() >= until {
            return Err(io::Error::new(ErrorKind::TimedOut, "no response by QUIC (HTTP/3)"));
        }
    }
}

fn send(quic: &mut Quic, socket: &UdpSocket) -> io::Result<()> {
    let mut out = Vec::new();
    while let Some(segment_bytes) = quic.take_datagrams(&mut out) {
        for datagram in out.chunks(segment_bytes) {
            socket.send(datagram)?;
        }
    }
    Ok(())
}

/// A certificate that is not trusted has a kind of its own.
fn failure(reason: &ConnectionError) -> io::Error {
    let kind = match reason {
        ConnectionError::TransportError(error) if ALERTS.contains(&error.code.into()) => {
            ErrorKind::InvalidData
        }
        _ => ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, reason.to_string())
}
