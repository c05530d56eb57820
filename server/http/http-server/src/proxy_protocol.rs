//! The PROXY protocol of HAProxy, versions 1 and 2: a header by which a proxy for TCP names the client.
//!
//! The listener reads it before TLS. Without I/O: the caller reads as many bytes as [`read`] needs, and so
//! none of what follows the header. Invariants: a header has at most [`MAX_BYTES`]; a header that is not
//! exactly one of the protocol is an error, and never a connection of the proxy itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The start of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const V2_HEAD_BYTES: usize = 16;
/// The longest header of version 1.
const V1_MAX_BYTES: usize = 107;
/// The longest header that is read. Additional fields, such as those of TLS, are passed over.
pub const MAX_BYTES: usize = V2_HEAD_BYTES + 4_096;

/// The ends of the client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The client.
    pub source: SocketAddr,
    /// Where it connected to.
    pub destination: SocketAddr,
}

/// The result of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The header has at least so many bytes.
    Need(usize),
    /// It is complete. Without addresses the connection is the proxy's own, such as a health check, or the
    /// proxy does not know them.
    Complete(Option<Addresses>),
}

/// What was received is not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads the start of a connection.
///
/// # Errors
/// It is not a header.
pub fn read(received: &[u8]) -> Result<Step, Malformed> {
    if received.len() < SIGNATURE.len() {
        return Ok(Step::Need(SIGNATURE.len()));
    }
    match received.starts_with(SIGNATURE) {
        true => read_v2(received),
        false => read_v1(received),
    }
}

fn read_v1(received: &[u8]) -> Result<Step, Malformed> {
    let rest = received.strip_prefix(b"PROXY ").ok_or(Malformed)?;
    let Some(line) = rest.strip_suffix(b"\r\n") else {
        return match received.len() < V1_MAX_BYTES && !rest.contains(&b'\n') {
            true => Ok(Step::Need(received.len() + 1)),
            false => Err(Malformed),
        };
    };
    let line = std::str::from_utf8(line).map_err(|_| Malformed)?;
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Ok(Step::Complete(None));
    }
    let parts: Vec<&str> = line.split(' ').collect();
    let [family, source, destination, source_port, destination_port] = parts[..] else {
        return Err(Malformed);
    };
    let end = |address: &str, port: &str| {
        let address: IpAddr = address.parse().map_err(|_| Malformed)?;
        let has_family = address.is_ipv4() == (family == "TCP4");
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| has_family && is_number);
        Ok(SocketAddr::new(address, port.ok_or(Malformed)?))
    };
    if !["TCP4", "TCP6"].contains(&family) {
        return Err(Malformed);
    }
    let (source, destination) = (end(source, source_port)?, end(destination, destination_port)?);
    Ok(Step::Complete(Some(Addresses { source, destination })))
}

fn read_v2(received: &[u8]) -> Result<Step, Malformed> {
    let Some(head) = received.get(..V2_HEAD_BYTES) else { return Ok(Step::Need(V2_HEAD_BYTES)) };
    let (command, family) = (head[12], head[13]);
    let length = V2_HEAD_BYTES + usize::from(u16::from_be_bytes([head[14], head[15]]));
    if length > MAX_BYTES || command >> 4 != 2 || command & 15 > 1 {
        return Err(Malformed);
    }
    if received.len() < length {
        return Ok(Step::Need(length));
    }
    if received.len() > length {
        return Err(Malformed);
    }
    let body = &received[V2_HEAD_BYTES..];
    const LOCAL: u8 = 0;
    if command & 15 == LOCAL {
        return Ok(Step::Complete(None));
    }
    // The transport is TCP; datagrams do not come on a connection.
    match family {
        0x11 => ends::<4>(body).map(Some),
        0x21 => ends::<16>(body).map(Some),
        // Unspecified, or a Unix socket.
        0x00 | 0x31 => Ok(None),
        _ => Err(Malformed),
    }
    .map(Step::Complete)
}

/// Addresses of so many bytes each, and ports.
fn ends<const BYTES: usize>(body: &[u8]) -> Result<Addresses, Malformed> {
    let (source, rest) = body.split_at_checked(BYTES).ok_or(Malformed)?;
    let (destination, rest) = rest.split_at_checked(BYTES).ok_or(Malformed)?;
    let ports = rest.get(..4).ok_or(Malformed)?;
    let end = |bytes, port| Ok(SocketAddr::new(address(bytes)?, u16::from_be_bytes(port)));
    Ok(Addresses {
        source: end(source, [ports[0], ports[1]])?,
        destination: end(destination, [ports[2], ports[3]])?,
    })
}

fn address(bytes: &[u8]) -> Result<IpAddr, Malformed> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
        _ => <[u8; 16]>::try_from(bytes).map(|octets| IpAddr::V6(Ipv6Addr::from(octets))),
    }
    .map_err(|_| Malformed)
}

/// Appends a header of version 1.
pub fn write_v1(out: &mut Vec<u8>, addresses: &Addresses) {
    let Addresses { source, destination } = addresses;
    let line = match (source.ip().to_canonical(), destination.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => format!("TCP4 {from} {to}"),
        (from, to) => format!("TCP6 {} {}", v6(from), v6(to)),
    };
    let (from, to) = (source.port(), destination.port());
    out.extend_from_slice(format!("PROXY {line} {from} {to}\r\n").as_bytes());
}

/// Appends a header of a connection that is the proxy's own.
pub fn write_without_client(out: &mut Vec<u8>, is_v2: bool) {
    match is_v2 {
        true => {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0x20, 0, 0, 0]);
        }
        false => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Appends a header of version 2.
pub fn write_v2(out: &mut Vec<u8>, addresses: &Addresses) {
    out.extend_from_slice(SIGNATURE);
    let Addresses { source, destination } = addresses;
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[0x21, 0x11, 0, 12]);
            out.extend_from_slice(&[from.octets(), to.octets()].concat());
        }
        (from, to) => {
            let v6 = |address| v6(address).octets();
            out.extend_from_slice(&[0x21, 0x21, 0, 36]);
            out.extend_from_slice(&[v6(from), v6(to)].concat());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not start with a header of the PROXY protocol")
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addresses(source: &str, destination: &str) -> Step {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Step::Complete(Some(Addresses { source, destination }))
    }

    /// As the listener does: no byte beyond the header is read.
    fn read_all(bytes: &[u8]) -> Result<(Step, usize), Malformed> {
        let mut length = 0;
        loop {
            match read(&bytes[..length])? {
                Step::Need(more) if more <= bytes.len() => {
                    assert!(more > length && more <= MAX_BYTES);
                    length = more;
                }
                step => return Ok((step, length)),
            }
        }
    }

    #[test]
    fn version_1_names_the_client() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";
        let expected = addresses("192.0.2.1:56324", "198.51.100.2:443");
        assert_eq!(read_all(&[line, &b"GET / HTTP/1.1"[..]].concat()), Ok((expected, line.len())));
        let six = b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
        assert_eq!(read(six), Ok(addresses("[2001:db8::1]:1", "[::1]:65535")));
        assert_eq!(read(b"PROXY UNKNOWN\r\n"), Ok(Step::Complete(None)));
        assert_eq!(read(b"PROXY UNKNOWN any thing\r\n"), Ok(Step::Complete(None)));
    }

    #[test]
    fn a_written_header_is_read_back() {
        for (source, destination) in [
            ("192.0.2.1:56324", "198.51.100.2:443"),
            ("[2001:db8::1]:1", "[::1]:65535"),
            ("192.0.2.1:0", "[::1]:80"),
        ] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let ends = Addresses { source, destination };
            for write in [write_v1, write_v2] {
                let mut header = Vec::new();
                write(&mut header, &ends);
                let Ok((Step::Complete(Some(read)), length)) = read_all(&header) else {
                    panic!("{}", header.escape_ascii());
                };
                assert_eq!(length, header.len());
                assert_eq!(
                    (read.source.port(), read.destination),
                    (ends.source.port(), destination)
                );
                assert_eq!(read.source.ip().to_canonical(), ends.source.ip());
            }
        }
        for is_v2 in [false, true] {
            let mut header = Vec::new();
            write_without_client(&mut header, is_v2);
            assert_eq!(read_all(&header), Ok((Step::Complete(None), header.len())));
        }
    }

    #[test]
    fn what_is_not_version_1_is_malformed() {
        for text in [
            "GET / HTTP/1.1\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 65536 1\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 +1 1\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.2 1 1\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.2 1 1\r\n",
            "PROXY UNKNOWNX\r\n",
            "proxy tcp4 192.0.2.1 198.51.100.2 1 1\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 1 1\n\r\n",
        ] {
            assert_eq!(read_all(text.as_bytes()), Err(Malformed), "{text}");
        }
        assert_eq!(read_all(&[b"PROXY ", &[b'a'; 200][..]].concat()), Err(Malformed));
    }

    #[test]
    fn version_2_names_the_client() {
        for (source, destination) in
            [("192.0.2.1:56324", "198.51.100.2:443"), ("[2001:db8::1]:1", "[::1]:2")]
        {
            let Step::Complete(Some(ends)) = addresses(source, destination) else { unreachable!() };
            let mut header = Vec::new();
            write_v2(&mut header, &ends);
            let length = header.len();
            header.extend_from_slice(b"GET");
            assert_eq!(read_all(&header), Ok((Step::Complete(Some(ends)), length)));
        }
    }

    #[test]
    fn fields_of_version_2_are_passed_over_and_bounded() {
        let header = |command: u8, family: u8, body: &[u8]| {
            let length = u16::try_from(body.len()).unwrap().to_be_bytes();
            [&SIGNATURE[..], &[command, family], &length, body].concat()
        };
        let body =
            [&[192, 0, 2, 1, 198, 51, 100, 2, 0, 80, 1, 187][..], &[3, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(
            read(&header(0x21, 0x11, &body)),
            Ok(addresses("192.0.2.1:80", "198.51.100.2:443"))
        );
        for own in [header(0x20, 0x00, &[]), header(0x20, 0x11, &body), header(0x21, 0x00, &[])] {
            assert_eq!(read(&own), Ok(Step::Complete(None)));
        }
        for bad in [
            header(0x21, 0x11, &body[..11]),
            header(0x21, 0x12, &body),
            header(0x31, 0x11, &body),
            header(0x22, 0x11, &body),
            header(0x21, 0x21, &body),
            header(0x21, 0x11, &[0; 4_097]),
        ] {
            assert_eq!(read(&bad), Err(Malformed));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_within_the_bound(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            start in prop::sample::select(vec![&b""[..], b"PROXY ", b"PROXY TCP4 1", SIGNATURE, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0"]),
        ) {
            let bytes = [start, &bytes].concat();
            if let Ok((Step::Complete(_), length)) = read_all(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
