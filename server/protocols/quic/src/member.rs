//! [`Member`]: the socket of one thread, on an address that all threads serve.
//!
//! Bound by the gateway for all threads, and owned by the endpoint of each. The kernel chooses a socket by
//! both addresses of a datagram (socket(7): `SO_REUSEPORT`), so that a client which changes its address
//! (RFC 9000 9), or a thread that joins or leaves, sends datagrams to another thread. A connection id
//! therefore begins with the number of the thread that has the connection, and the thread that receives
//! a datagram of another passes it on; that of another process in an upgrade goes through a [`Relay`](crate::relay). Invariant: so much waits for a thread at most; what exceeds it is lost, as
//! datagrams may be.

use crate::passed_on::PassedOn;
use crate::relay;
use crate::tokens::Tokens;
use aws_lc_rs::hkdf;
use outboard_reactor::{MailboxReceiver, MailboxSender, mailbox};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// The number of the process among those that have taken over from each other, then that of the thread, then
/// random bytes.
const EPOCH_BYTES: usize = 1;
const THREAD_BYTES: usize = 2;
const PREFIX_BYTES: usize = EPOCH_BYTES + THREAD_BYTES;
const RANDOM_BYTES: usize = 7;
pub(crate) const ID_BYTES: usize = PREFIX_BYTES + RANDOM_BYTES;
/// Datagrams that wait for a thread.
const WAITING_MAX: usize = 512;

/// See the module.
pub struct Member {
    pub(crate) socket: OwnedFd,
    pub(crate) mailboxes: Mailboxes,
    /// To the process that this one takes over from.
    pub(crate) predecessor: Option<OwnedFd>,
    /// The same for all threads and all settings: a token is for the address, and of any thread.
    pub(crate) tokens: Tokens,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The thread's mailbox, and those of the others.
pub(crate) struct Mailboxes {
    pub(crate) epoch: u8,
    pub(crate) thread: u16,
    inbox: MailboxReceiver<PassedOn>,
    all: Arc<[Inlet]>,
}

/// Whose a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This thread's, or nobody's.
    Ours,
    Thread(u16),
    /// Another process's, by its epoch.
    Process(u8),
}

/// Where datagrams for a thread are passed on to.
struct Inlet {
    sender: MailboxSender<PassedOn>,
    waiting: AtomicUsize,
}

/// Binds an address for [`members`]: a socket for each thread.
///
/// # Errors
/// The address cannot be bound.
pub fn bind(address: SocketAddr, threads: usize) -> io::Result<Vec<OwnedFd>> {
    // The first has no `SO_REUSEPORT` when it is bound: it fails if another server has the port.
    let first = bind_one(address, false)?;
    if threads <= 1 {
        return Ok(vec![first]);
    }
    sockopt::set_socket_reuseport(&first, true)?;
    let address = SocketAddr::try_from(net::getsockname(&first)?)?;
    let others = (1..threads).map(|_| bind_one(address, true));
    std::iter::once(Ok(first)).chain(others).collect()
}

fn bind_one(address: SocketAddr, joins: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::DGRAM, flags, None)?;
    if joins {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

/// A member for each socket, in the order of the threads. Of the sockets that were taken over, the relays are
/// used.
///
/// # Errors
/// The system has no random bytes.
pub fn members(sockets: Vec<OwnedFd>, inherited: &[OwnedFd]) -> io::Result<Vec<Member>> {
    let local = sockets.first().map(net::getsockname).transpose()?;
    let local = local.and_then(|name| SocketAddr::try_from(name).ok());
    let relays = inherited.iter().filter_map(|socket| Some((relay::description(socket)?, socket)));
    let relays: Vec<_> = relays.filter(|(relay, _)| Some(relay.local) == local).collect();
    let epoch = relays.first().map_or(0, |(relay, _)| relay.epoch.wrapping_add(1));
    let mut secret = [0; 32];
    aws_lc_rs::rand::fill(&mut secret).map_err(|_| io::Error::other("no random bytes"))?;
    let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&secret);
    let tokens = Tokens { key: Arc::new(token_key), used: Arc::default() };
    let (senders, inboxes): (Vec<_>, Vec<_>) = sockets.iter().map(|_| mailbox()).unzip();
    let inlet = |sender| Inlet { sender, waiting: AtomicUsize::new(0) };
    let all: Arc<[Inlet]> = senders.into_iter().map(inlet).collect();
    let numbered = sockets.into_iter().zip(inboxes).zip(0..);
    let member = |((socket, inbox), thread)| {
        let relay = relays.iter().find(|(relay, _)| relay.thread == thread);
        Ok(Member {
            socket,
            mailboxes: Mailboxes { epoch, thread, inbox, all: all.clone() },
            predecessor: relay.map(|(_, socket)| socket.try_clone()).transpose()?,
            tokens: tokens.clone(),
        })
    };
    numbered.map(member).collect()
}

impl Mailboxes {
    /// The next datagram that another thread has received.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<PassedOn> {
        let next = self.inbox.poll_next(context);
        if next.is_ready() {
            self.all[usize::from(self.thread)].waiting.fetch_sub(1, Ordering::Relaxed);
        }
        next
    }

    /// Whose a datagram is.
    pub(crate) fn owner(&self, datagram: &[u8]) -> Owner {
        let Some(id) = connection_id(datagram) else { return Owner::Ours };
        let (epoch, thread) = (id[0], u16::from_be_bytes([id[1], id[2]]));
        if epoch != self.epoch {
            return Owner::Process(epoch);
        }
        match thread != self.thread && usize::from(thread) < self.all.len() {
            true => Owner::Thread(thread),
            false => Owner::Ours,
        }
    }

    /// Passes a datagram on to another thread.
    pub(crate) fn pass_on(&self, thread: u16, passed_on: PassedOn) {
        let inlet = &self.all[usize::from(thread)];
        if inlet.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX
            || inlet.sender.send(passed_on).is_err()
        {
            inlet.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The connection id of a datagram, if this side has chosen it: in a packet with a short header or of a
/// handshake (RFC 9000 17). In others the client may have chosen it.
fn connection_id(datagram: &[u8]) -> Option<&[u8]> {
    const LONG: u8 = 0x80;
    const KIND: u8 = 0x30;
    const HANDSHAKE: u8 = 0x20;
    let first = *datagram.first()?;
    if first & LONG == 0 {
        return datagram.get(1..1 + ID_BYTES);
    }
    let is_own = first & KIND == HANDSHAKE && usize::from(*datagram.get(5)?) == ID_BYTES;
    if is_own { datagram.get(6..6 + ID_BYTES) } else { None }
}

/// Chooses the connection ids of a thread.
pub(crate) struct ThreadIds {
    pub(crate) epoch: u8,
    pub(crate) thread: u16,
}

impl ThreadIds {
    fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let [high, low] = self.thread.to_be_bytes();
        [self.epoch, high, low]
    }
}

impl ConnectionIdGenerator for ThreadIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_BYTES];
        id[..PREFIX_BYTES].copy_from_slice(&self.prefix());
        // The same bytes twice are two connections with one id, of which the later is not reachable; the
        // system has been asked for some before.
        let _ = aws_lc_rs::rand::fill(&mut id[PREFIX_BYTES..]);
        ConnectionId::new(&id)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        if id.starts_with(&self.prefix()) { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn sockets(count: usize) -> Vec<OwnedFd> {
        bind("127.0.0.1:0".parse().unwrap(), count).unwrap()
    }

    fn datagram(first: u8, id: &ConnectionId) -> Vec<u8> {
        let head: &[u8] = if first & 0x80 == 0 { &[first] } else { &[first, 0, 0, 0, 1, 10] };
        [head, &id[..], &[0; 40]].concat()
    }

    #[test]
    fn a_datagram_belongs_to_the_thread_that_chose_its_connection_id() {
        let members = members(sockets(3), &[]).unwrap();
        let ids = |epoch, thread| ThreadIds { epoch, thread };
        let id = ids(0, 2).generate_cid();
        assert_ne!(id, ids(0, 2).generate_cid());
        assert!(ids(0, 2).validate(&id).is_ok() && ids(0, 1).validate(&id).is_err());
        let (there, ours) = (Owner::Thread(2), Owner::Ours);
        for (first, owner) in [(0x40, there), (0xe0, there), (0xc0, ours), (0xd0, ours)] {
            let datagram = datagram(first, &id);
            assert_eq!(members[0].mailboxes.owner(&datagram), owner);
            assert_eq!(members[2].mailboxes.owner(&datagram), ours);
        }
        // No such thread, and too short.
        let id = ids(0, 3).generate_cid();
        assert_eq!(members[0].mailboxes.owner(&datagram(0x40, &id)), ours);
        assert_eq!(members[0].mailboxes.owner(&[0x40, 0, 0, 2, 0]), ours);
        assert_eq!(members[0].mailboxes.owner(&[]), ours);
        // Of a process that has taken over, or was taken over from.
        let id = ids(1, 2).generate_cid();
        assert_eq!(members[2].mailboxes.owner(&datagram(0x40, &id)), Owner::Process(1));
    }

    #[test]
    fn what_waits_for_a_thread_is_bounded() {
        let members = members(sockets(2), &[]).unwrap();
        let from = "127.0.0.1:9".parse().unwrap();
        for at in 0..2 * WAITING_MAX {
            let datagram = BytesMut::from(&[at as u8][..]);
            let passed_on = PassedOn { from, to: None, ecn: None, datagram };
            members[0].mailboxes.pass_on(1, passed_on);
        }
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut count = 0;
        while members[1].mailboxes.poll_next(&mut context).is_ready() {
            count += 1;
        }
        assert_eq!(count, WAITING_MAX);
    }

    #[test]
    fn an_address_of_another_server_is_not_bound() {
        let first = sockets(2);
        let address = SocketAddr::try_from(net::getsockname(&first[0]).unwrap()).unwrap();
        for threads in [1, 2] {
            let error = bind(address, threads).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        }
    }

    #[test]
    fn a_successor_has_the_relays_of_its_address_and_the_next_epoch() {
        outboard_reactor::run(async {
            for (epoch, next) in [(0, 1), (255, 0)] {
                let sockets = sockets(3);
                let local = SocketAddr::try_from(net::getsockname(&sockets[0]).unwrap()).unwrap();
                let other = "192.0.2.1:443".parse().unwrap();
                let relays = [(local, 2), (other, 0), (local, 7), (local, 1)];
                let (_old, inherited): (Vec<_>, Vec<_>) = relays
                    .map(|(local, thread)| relay::Description { local, thread, epoch })
                    .map(|description| relay::Relay::pair(description).unwrap())
                    .into_iter()
                    .unzip();
                let members = members(sockets, &inherited).unwrap();
                let epochs: Vec<u8> = members.iter().map(|one| one.mailboxes.epoch).collect();
                assert_eq!(epochs, [next; 3]);
                let threads = members.iter().map(|one| {
                    let description = relay::description(one.predecessor.as_ref()?)?;
                    Some((description.local, description.thread))
                });
                let expected = [None, Some((local, 1)), Some((local, 2))];
                assert_eq!(threads.collect::<Vec<_>>(), expected);
            }
        })
        .unwrap();
    }

    #[test]
    fn an_id_that_a_client_has_chosen_names_no_thread() {
        let members = members(sockets(3), &[]).unwrap();
        let id = ThreadIds { epoch: 0, thread: 2 }.generate_cid();
        // The first packets of a client, and one with a shorter or a longer id.
        for length in [0, 9, 11, 20, 255] {
            let mut datagram = datagram(0xe0, &id);
            datagram[5] = length;
            assert_eq!(members[0].mailboxes.owner(&datagram), Owner::Ours, "{length}");
        }
        let whole = datagram(0xe0, &id);
        for length in 0..6 + ID_BYTES {
            assert_eq!(members[0].mailboxes.owner(&whole[..length]), Owner::Ours, "{length}");
        }
        assert_eq!(members[0].mailboxes.owner(&whole[..6 + ID_BYTES]), Owner::Thread(2));
    }
}
