//! [`Socket`]: the UDP socket of an endpoint.
//!
//! Called by the endpoint. `quinn-udp` has the kernel split and join datagrams (udp(7): `UDP_SEGMENT`,
//! `UDP_GRO`), and carries ECN and the address that a client has sent to. Invariant: datagrams that the
//! kernel does not take now are stored, and nothing is sent before them.

use outboard_reactor::{Interest, Source, spend};
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{self, sockopt};
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;

/// What the kernel joins at most.
const RECEIVED_BYTES: usize = 64 << 10;
/// Joined datagrams of one system call.
const RECEIVED: usize = 8;
/// Room in the kernel for a burst of all connections; the system may allow less.
const SOCKET_BUFFER_BYTES: usize = 2 << 20;
/// Datagrams that are encrypted and passed to the kernel at a time: at most 64 KiB, at 1452 bytes each.
const BATCH: usize = 44;
/// The work for a datagram in addition to its bytes, as bytes moved.
const DATAGRAM_WEIGHT: usize = 2 << 10;

/// Datagrams of one client that have arrived.
pub(crate) struct Received<'a> {
    pub(crate) from: SocketAddr,
    /// The address that the client has sent to.
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// One after the other.
    pub(crate) datagrams: &'a [u8],
    /// The length of each but the last, which may be shorter.
    pub(crate) segment_bytes: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Socket {
    source: Source,
    state: UdpSocketState,
    pub(crate) local: SocketAddr,
    received: RefCell<Vec<u8>>,
    /// What the kernel did not take.
    unsent: RefCell<Option<(Transmit, Vec<u8>)>>,
}

impl Socket {
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        let local = SocketAddr::try_from(net::getsockname(&socket)?)?;
        // Without them bursts are lost, and sent again.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES);
        let _ = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES);
        let state = UdpSocketState::new((&socket).into())?;
        let source = Source::new(socket, Interest::Read)?;
        let received = RefCell::new(vec![0; RECEIVED * RECEIVED_BYTES]);
        Ok(Self { source, state, local, received, unsent: RefCell::default() })
    }

    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        self.source.as_fd().try_clone_to_owned()
    }

    /// Whether datagrams that are too large for the network are cut into pieces.
    pub(crate) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// How many datagrams may be passed to [`Self::send`] together.
    pub(crate) fn batch(&self) -> usize {
        self.state.max_gso_segments().clamp(1, BATCH)
    }

    /// Passes on what has arrived; false if there is nothing now. The current task is woken then.
    pub(crate) fn receive(&self, mut on_received: impl FnMut(Received<'_>)) -> bool {
        if self.source.poll_readable().is_pending() {
            return false;
        }
        let mut buffer = self.received.borrow_mut();
        let mut metas = [RecvMeta::default(); RECEIVED];
        let mut chunks = buffer.chunks_mut(RECEIVED_BYTES);
        let mut slices: [IoSliceMut<'_>; RECEIVED] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let count = match self.state.recv((&self.source).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.source.clear_readable();
                return true;
            }
            // Of an earlier datagram, whose receiver was not there.
            Err(_) => {
                spend(DATAGRAM_WEIGHT);
                return true;
            }
        };
        for (meta, bytes) in metas.iter().zip(buffer.chunks(RECEIVED_BYTES)).take(count) {
            let segment_bytes = meta.stride.max(1);
            spend(meta.len + DATAGRAM_WEIGHT * meta.len.div_ceil(segment_bytes).max(1));
            on_received(Received {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
                datagrams: &bytes[..meta.len],
                segment_bytes,
            });
        }
        true
    }

    /// Sends what was stored; false if it has to wait longer.
    pub(crate) fn flush(&self) -> bool {
        let unsent = self.unsent.take();
        if let Some((transmit, datagrams)) = unsent {
            self.pass_on(&transmit, &datagrams);
        }
        !self.is_blocked()
    }

    /// Whether nothing can be sent now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.unsent.borrow().is_some()
    }

    /// Waits until something may be sent, or for the next turn if this one has done enough.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        self.source.poll_writable()
    }

    /// Sends datagrams, or stores them if the kernel takes no more now.
    pub(crate) fn send(&self, transmit: &Transmit, datagrams: &[u8]) {
        let datagrams = &datagrams[..transmit.size.min(datagrams.len())];
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size).max(1);
        spend(datagrams.len() + DATAGRAM_WEIGHT * datagrams.len().div_ceil(segment_bytes));
        self.pass_on(transmit, datagrams);
    }

    fn pass_on(&self, transmit: &Transmit, datagrams: &[u8]) {
        let outgoing = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: datagrams,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        // Any other error means that the network or the client is not reachable: QUIC treats it as a loss.
        if let Err(error) = self.state.send((&self.source).into(), &outgoing)
            && error.kind() == ErrorKind::WouldBlock
        {
            self.source.clear_writable();
            let transmit = Transmit { size: datagrams.len(), ..copy_of(transmit) };
            self.unsent.replace(Some((transmit, datagrams.to_vec())));
        }
    }
}

/// `Transmit` is not `Clone`.
fn copy_of(transmit: &Transmit) -> Transmit {
    Transmit {
        destination: transmit.destination,
        ecn: transmit.ecn,
        size: transmit.size,
        segment_size: transmit.segment_size,
        src_ip: transmit.src_ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::{run, without_budget};
    use std::future::poll_fn;
    use std::net::UdpSocket;

    fn socket() -> Socket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        Socket::new(socket.into()).unwrap()
    }

    fn transmit(to: &Socket, size: usize, segment_size: Option<usize>) -> Transmit {
        let ecn = EcnCodepoint::from_bits(2);
        Transmit { destination: to.local, ecn, size, segment_size, src_ip: None }
    }

    /// The datagrams that arrive, up to so many bytes.
    async fn received(socket: &Socket, from: &Socket, bytes: usize) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        poll_fn(|_| {
            while all.iter().map(Vec::len).sum::<usize>() < bytes {
                let is_there = socket.receive(|received| {
                    assert_eq!(received.from, from.local);
                    assert_eq!(received.to, Some(socket.local.ip()));
                    assert_eq!(received.ecn.map(|ecn| ecn as u8), Some(2));
                    let datagrams = received.datagrams.chunks(received.segment_bytes);
                    all.extend(datagrams.map(<[u8]>::to_vec));
                });
                if !is_there {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        all
    }

    #[test]
    fn datagrams_of_one_call_arrive_as_they_were_cut() {
        run(async {
            let (one, other) = (socket(), socket());
            assert!((1..=BATCH).contains(&one.batch()));
            let bytes: Vec<u8> = (0..=255).cycle().take(2_500).collect();
            let segments = if one.batch() > 2 { Some(1_000) } else { None };
            one.send(&transmit(&other, bytes.len(), segments), &[&bytes[..], b"unsent"].concat());
            let expected: Vec<Vec<u8>> =
                bytes.chunks(segments.unwrap_or(bytes.len())).map(<[u8]>::to_vec).collect();
            assert_eq!(received(&other, &one, bytes.len()).await, expected);
            assert!(!one.is_blocked() && one.flush());
        })
        .unwrap();
    }

    #[test]
    fn a_datagram_that_can_never_be_sent_is_lost_and_not_stored() {
        run(async {
            let (one, other) = (socket(), socket());
            one.send(&transmit(&other, 70_000, None), &[7; 70_000]);
            assert!(!one.is_blocked(), "the next ones do not wait for it");
            one.send(&transmit(&other, 4, None), b"next");
            assert_eq!(received(&other, &one, 4).await, [b"next"]);
            assert!(!without_budget(|| other.receive(|_| ())) || !other.receive(|_| ()));
        })
        .unwrap();
    }

    #[test]
    fn what_the_kernel_did_not_take_goes_before_the_next() {
        run(async {
            let (one, other) = (socket(), socket());
            let stored = (transmit(&other, 5, None), b"first".to_vec());
            one.unsent.replace(Some(stored));
            assert!(one.is_blocked());
            assert!(one.flush() && !one.is_blocked());
            one.send(&transmit(&other, 6, None), b"second");
            assert_eq!(received(&other, &one, 11).await, [&b"first"[..], b"second"]);
        })
        .unwrap();
    }
}
