//! [`Relay`]: passes datagrams between a server and its successor, which share the UDP sockets in an upgrade.
//!
//! Made by the endpoint of the old server; the other end reaches the new one among the sockets that it takes
//! over, and describes itself by the name of its peer. A connection stays in the process that has accepted it;
//! whichever process receives a datagram of the other passes it on. Invariant: nothing here waits, and what
//! does not fit is lost, as datagrams may be.

use crate::passed_on::PassedOn;
use bytes::BytesMut;
use outboard_reactor::{Interest, Source};
use quinn_proto::EcnCodepoint;
use rustix::fd::OwnedFd;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, sockopt,
};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

/// The start of the name of a relay.
const NAME: &str = "outboard-quic";
/// A datagram, and the head before it.
const FRAME_BYTES: usize = (64 << 10) + HEAD_BYTES;
/// Address and port of the client, address that it has sent to, ECN.
const HEAD_BYTES: usize = 17 + 2 + 17 + 1;

/// What a relay is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Description {
    /// The address that both serve.
    pub(crate) local: SocketAddr,
    pub(crate) thread: u16,
    /// Of the old server.
    pub(crate) epoch: u8,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Relay {
    source: Source,
    buffer: Vec<u8>,
}

impl Relay {
    /// One for the old server, and the socket of the new one's.
    pub(crate) fn pair(description: Description) -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (own, other) =
            net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
        let Description { local, thread, epoch } = description;
        let name = format!("{NAME} {local} {thread} {epoch} {:x}", u64::from_ne_bytes(random));
        net::bind(&own, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok((Self::new(own)?, other))
    }

    /// The new server's end.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { source: Source::new(socket, Interest::Read)?, buffer: vec![0; FRAME_BYTES] })
    }

    pub(crate) fn send(&self, one: &PassedOn) {
        let head = head(one);
        let frame = [IoSlice::new(&head), IoSlice::new(&one.datagram)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = net::sendmsg(&self.source, &frame, &mut SendAncillaryBuffer::default(), flags);
    }

    /// The next datagram; `Err` when the other process has ended. The current task is woken by the next one.
    pub(crate) fn receive(&mut self) -> Result<Option<PassedOn>, Ended> {
        if self.source.poll_readable().is_pending() {
            return Ok(None);
        }
        match net::recv(&self.source, &mut self.buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(Ended),
            Ok((count, _)) => Ok(parse(&self.buffer[..count])),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                self.source.clear_readable();
                Ok(None)
            }
            Err(_) => Err(Ended),
        }
    }

    /// Whether more may have arrived.
    pub(crate) fn has_more(&self) -> bool {
        self.source.poll_readable().is_ready()
    }
}

/// The other process has ended.
#[derive(Debug)]
pub(crate) struct Ended;

/// What a socket that was taken over is a relay for.
pub(crate) fn description(socket: &OwnedFd) -> Option<Description> {
    if sockopt::socket_type(socket) != Ok(SocketType::SEQPACKET) {
        return None;
    }
    let peer = SocketAddrUnix::try_from(net::getpeername(socket).ok()??).ok()?;
    let name = std::str::from_utf8(peer.abstract_name()?).ok()?;
    let mut words = name.strip_prefix(NAME)?.split_whitespace();
    Some(Description {
        local: words.next()?.parse().ok()?,
        thread: words.next()?.parse().ok()?,
        epoch: words.next()?.parse().ok()?,
    })
}

fn head(one: &PassedOn) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    put_ip(&mut head[..17], Some(one.from.ip()));
    head[17..19].copy_from_slice(&one.from.port().to_be_bytes());
    put_ip(&mut head[19..36], one.to);
    head[36] = one.ecn.map_or(0, |ecn| ecn as u8);
    head
}

fn put_ip(bytes: &mut [u8], ip: Option<IpAddr>) {
    match ip {
        None => {}
        Some(IpAddr::V4(ip)) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes[0] {
        4 => <[u8; 4]>::try_from(&bytes[1..5]).ok().map(IpAddr::from),
        6 => <[u8; 16]>::try_from(&bytes[1..17]).ok().map(IpAddr::from),
        _ => None,
    }
}

fn parse(frame: &[u8]) -> Option<PassedOn> {
    let (head, datagram) = frame.split_at_checked(HEAD_BYTES)?;
    let port = u16::from_be_bytes([head[17], head[18]]);
    Some(PassedOn {
        from: SocketAddr::new(ip(&head[..17])?, port),
        to: ip(&head[19..36]),
        ecn: EcnCodepoint::from_bits(head[36]),
        datagram: BytesMut::from(datagram),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor as reactor;

    #[test]
    fn a_relay_describes_itself_and_passes_datagrams_both_ways() {
        reactor::run(async {
            let local = "[::1]:443".parse().unwrap();
            let description = Description { local, thread: 3, epoch: 255 };
            let (mut old, socket) = Relay::pair(description).unwrap();
            assert_eq!(super::description(&socket), Some(description));
            let mut new = Relay::new(socket).unwrap();
            let one = PassedOn {
                from: "192.0.2.1:50000".parse().unwrap(),
                to: Some("2001:db8::1".parse().unwrap()),
                ecn: EcnCodepoint::from_bits(2),
                datagram: BytesMut::from(&b"a datagram"[..]),
            };
            old.send(&one);
            new.send(&PassedOn { to: None, ecn: None, ..copy(&one) });
            new.source.readable().await;
            let received = new.receive().unwrap().unwrap();
            assert_eq!((received.from, received.to, received.ecn), (one.from, one.to, one.ecn));
            assert_eq!(received.datagram, one.datagram);
            old.source.readable().await;
            let received = old.receive().unwrap().unwrap();
            assert_eq!((received.to, received.ecn), (None, None));
            drop(new);
            old.source.readable().await;
            assert!(old.receive().is_err());
        })
        .unwrap();
    }

    fn copy(one: &PassedOn) -> PassedOn {
        PassedOn { from: one.from, to: one.to, ecn: one.ecn, datagram: one.datagram.clone() }
    }

    #[test]
    fn a_frame_that_is_too_short_is_dropped() {
        assert!(parse(&[4; HEAD_BYTES - 1]).is_none());
        assert!(parse(&[0; HEAD_BYTES + 1]).is_none());
    }

    fn passed_on(from: &str, to: Option<&str>, ecn: u8) -> PassedOn {
        PassedOn {
            from: from.parse().unwrap(),
            to: to.map(|ip| ip.parse().unwrap()),
            ecn: EcnCodepoint::from_bits(ecn),
            datagram: BytesMut::from(&b"datagram"[..]),
        }
    }

    #[test]
    fn every_kind_of_address_is_read_as_it_was_written() {
        for (from, to, ecn) in [
            ("192.0.2.1:0", None, 0),
            ("0.0.0.0:65535", Some("127.0.0.1"), 1),
            ("[::]:1", Some("::ffff:192.0.2.1"), 2),
            ("[2001:db8::1]:443", Some("255.255.255.255"), 3),
        ] {
            let one = passed_on(from, to, ecn);
            let frame = [&head(&one)[..], &one.datagram].concat();
            let read = parse(&frame).unwrap();
            assert_eq!((read.from, read.to, read.ecn), (one.from, one.to, one.ecn), "{from}");
            assert_eq!(read.datagram, one.datagram);
            assert!(parse(&frame[..HEAD_BYTES]).unwrap().datagram.is_empty());
        }
        let mut frame = head(&passed_on("192.0.2.1:1", Some("::1"), 1));
        (frame[19], frame[36]) = (5, 0xff);
        let read = parse(&frame).unwrap();
        assert_eq!(
            (read.to, read.ecn.map(|ecn| ecn as u8)),
            (None, Some(3)),
            "nothing else is one"
        );
        frame[0] = 5;
        assert!(parse(&frame).is_none(), "a datagram without a sender has no use");
    }

    #[test]
    fn a_socket_with_another_name_is_not_a_relay() {
        let flags = SocketFlags::CLOEXEC;
        let pair = |kind| net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let named = |name: &str| {
            let (one, other) = pair(SocketType::SEQPACKET);
            let id = std::process::id();
            let name = name.replace("ID", &format!("{id:x}"));
            net::bind(&one, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
            (one, description(&other))
        };
        let expected =
            Description { local: "192.0.2.1:443".parse().unwrap(), thread: 65535, epoch: 0 };
        assert_eq!(named("outboard-quic 192.0.2.1:443 65535 0 ID").1, Some(expected));
        for name in [
            "other-quic 192.0.2.1:443 1 0 ID",
            "outboard-quic 192.0.2.1 1 0 ID",
            "outboard-quic 192.0.2.1:443 65536 0 ID",
            "outboard-quic 192.0.2.1:443 1 256 ID",
            "outboard-quic 192.0.2.1:443 ID!",
        ] {
            assert_eq!(named(name).1, None, "{name}");
        }
        for kind in [SocketType::SEQPACKET, SocketType::STREAM, SocketType::DGRAM] {
            assert_eq!(description(&pair(kind).0), None, "{kind:?}");
        }
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(description(&udp.into()), None);
    }

    #[test]
    fn what_does_not_fit_is_lost_and_nothing_waits() {
        reactor::run(async {
            let local = "[::1]:443".parse().unwrap();
            let (old, socket) = Relay::pair(Description { local, thread: 0, epoch: 0 }).unwrap();
            let mut new = Relay::new(socket).unwrap();
            const SENT: usize = 20_000;
            for _ in 0..SENT {
                old.send(&passed_on("192.0.2.1:1", None, 0));
            }
            new.source.readable().await;
            let mut received = 0;
            while let Some(one) = reactor::without_budget(|| new.receive()).unwrap() {
                assert_eq!(&one.datagram[..], b"datagram");
                received += 1;
            }
            assert!((1..SENT).contains(&received), "{received}");
        })
        .unwrap();
    }
}
