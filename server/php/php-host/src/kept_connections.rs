//! [`KeptConnections`]: connections to databases that a rewound worker keeps from one request to the next.
//!
//! A rewind puts the client library's memory back, so what is kept is only the descriptor of a logged-in
//! connection, under a number that the rewind leaves alone, and what a client must hear to adopt it. Called
//! by `sapi/connections/kept.c`. Invariants: at the end of a request the server is asked to reset the session;
//! before the next use all its answers have arrived and none is an error, or the connection is closed; a
//! connection is used by one client at a time.

mod replies;

use replies::{Replies, Settled};
use rustix::io::{DupFlags, dup3, fcntl_dupfd_cloexec};
use rustix::net::{SendFlags, send};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How many connections a worker keeps.
const SLOTS: usize = 16;

/// A server that takes longer to reset a session, e.g. to roll back, gets a new connection instead.
const PATIENCE: Duration = Duration::from_millis(250);

/// Servers and users whose connections cannot be kept; with more of them, none is kept.
const REFUSED_MAX: usize = 64;

/// See the module. Empty, and keeps nothing, in a process that is not rewound.
#[derive(Debug, Default)]
pub(crate) struct KeptConnections {
    slots: Vec<Slot>,
    /// In a slot without a connection, so that nothing else gets its number.
    filler: Option<File>,
    refused: Vec<Vec<u8>>,
    /// Of the connection that was taken last.
    greeting: Vec<u8>,
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    place: OwnedFd,
    kept: Option<Kept>,
}

/// A connection, in the order of its use.
#[derive(Debug)]
struct Kept {
    key: Vec<u8>,
    session: u64,
    greeting: Vec<u8>,
    replies: Replies,
    since: u64,
}

/// What a client gives away.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    /// The server, the user and all that makes two connections interchangeable.
    pub(crate) key: &'a [u8],
    /// The server's number of the session.
    pub(crate) session: u64,
    /// What a client hears that adopts it.
    pub(crate) greeting: &'a [u8],
    /// Commands that reset the session.
    pub(crate) reset: &'a [u8],
    /// How many answers they have.
    pub(crate) replies: u32,
}

impl KeptConnections {
    /// Reserves the numbers. Called before the worker's descriptors are recorded.
    pub(crate) fn reserve(&mut self) -> io::Result<()> {
        let filler = File::open("/dev/null")?;
        for _ in 0..SLOTS {
            self.slots.push(Slot { place: File::open("/dev/null")?.into(), kept: None });
        }
        self.filler = Some(filler);
        Ok(())
    }

    /// Keeps a connection, of which the client may close its own descriptor. False: it is not kept.
    pub(crate) fn keep(&mut self, connection: RawFd, offer: &Offer<'_>) -> bool {
        if self.slots.is_empty() || self.is_refused(offer.key) {
            return false;
        }
        // SAFETY: the kernel refuses a closed descriptor; the process has one thread.
        let connection = unsafe { BorrowedFd::borrow_raw(connection) };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if send(connection, offer.reset, flags) != Ok(offer.reset.len()) {
            return false;
        }
        let at = self.free_slot();
        self.clock += 1;
        let slot = &mut self.slots[at];
        if dup3(connection, &mut slot.place, DupFlags::CLOEXEC).is_err() {
            return false;
        }
        slot.kept = Some(Kept {
            key: offer.key.to_vec(),
            session: offer.session,
            greeting: offer.greeting.to_vec(),
            replies: Replies::new(offer.replies),
            since: self.clock,
        });
        true
    }

    /// Takes a connection with this key whose session was reset: its descriptor and session.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<(OwnedFd, u64)> {
        while let Some(at) = self.newest(key) {
            let mut kept = self.slots[at].kept.take()?;
            let place = self.slots[at].place.as_fd();
            let settled = kept.replies.settle(place, Instant::now() + PATIENCE);
            let connection = fcntl_dupfd_cloexec(place, 3).ok();
            self.empty(at);
            match settled {
                Settled::Yes => {
                    self.greeting = kept.greeting;
                    return Some((connection?, kept.session));
                }
                Settled::Never => self.refuse(key),
                Settled::No => {}
            }
        }
        None
    }

    /// Of the connection that was taken last.
    pub(crate) fn greeting(&self) -> &[u8] {
        &self.greeting
    }

    fn newest(&self, key: &[u8]) -> Option<usize> {
        let of_key =
            |slot: &Slot| slot.kept.as_ref().filter(|kept| kept.key == key).map(|kept| kept.since);
        let candidates = self.slots.iter().enumerate();
        candidates.filter_map(|(at, slot)| Some((of_key(slot)?, at))).max().map(|(_, at)| at)
    }

    /// An empty one, else that of the connection that was not used for the longest time.
    fn free_slot(&mut self) -> usize {
        let age = |slot: &Slot| slot.kept.as_ref().map(|kept| kept.since);
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, slot)| age(slot));
        oldest.map_or(0, |(at, _)| at)
    }

    fn empty(&mut self, at: usize) {
        if let Some(filler) = &self.filler {
            // If it fails, the connection stays open until the slot is used again.
            let _ = dup3(filler, &mut self.slots[at].place, DupFlags::CLOEXEC);
        }
    }

    fn is_refused(&self, key: &[u8]) -> bool {
        self.refused.len() >= REFUSED_MAX || self.refused.iter().any(|refused| refused == key)
    }

    fn refuse(&mut self, key: &[u8]) {
        self.refused.push(key.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    const RESET: &[u8] = b"\x01\0\0\0\x1f";
    /// A row whose text is empty.
    const OK: &[u8] =
        b"\x01\0\0\x01\x01\x03\0\0\x02def\x05\0\0\x03\xfe\0\0\x02\0\x01\0\0\x04\0\x05\0\0\x05\xfe\0\0\x02\0";

    fn pool() -> KeptConnections {
        let mut pool = KeptConnections::default();
        pool.reserve().unwrap();
        pool
    }

    /// Those that a rewind leaves alone.
    fn numbers(pool: &KeptConnections) -> Vec<RawFd> {
        pool.slots.iter().map(|slot| slot.place.as_raw_fd()).collect()
    }

    fn keep(pool: &mut KeptConnections, key: &[u8], session: u64) -> UnixStream {
        let (client, server) = UnixStream::pair().unwrap();
        assert!(pool.keep(client.as_raw_fd(), &offer(key, session)));
        server
    }

    fn offer(key: &[u8], session: u64) -> Offer<'_> {
        Offer { key, session, greeting: b"hello", reset: RESET, replies: 1 }
    }

    #[test]
    fn a_connection_is_taken_once_its_session_was_reset() {
        let mut pool = pool();
        let mut server = keep(&mut pool, b"a", 7);
        let mut asked = [0; 5];
        server.read_exact(&mut asked).unwrap();
        assert_eq!(asked, RESET);
        server.write_all(OK).unwrap();
        assert!(pool.take(b"b").is_none());
        let (taken, session) = pool.take(b"a").unwrap();
        assert_eq!((session, pool.greeting()), (7, &b"hello"[..]));
        assert!(pool.take(b"a").is_none());
        UnixStream::from(taken).write_all(b"x").unwrap();
        server.read_exact(&mut asked[..1]).unwrap();
    }

    #[test]
    fn a_connection_of_a_server_that_is_gone_or_slow_is_dropped() {
        for (said, is_closed) in [(&b""[..], true), (b"", false), (&[OK, b"?"].concat(), false)] {
            let mut pool = pool();
            let mut server = keep(&mut pool, b"a", 1);
            server.write_all(said).unwrap();
            let server = (!is_closed).then_some(server);
            assert!(pool.take(b"a").is_none(), "{said:?}");
            drop(server);
        }
    }

    #[test]
    fn a_server_that_cannot_reset_is_not_asked_again() {
        let mut pool = pool();
        let mut server = keep(&mut pool, b"a", 1);
        server.write_all(b"\x09\0\0\x01\xff\x17\x04#08S01").unwrap();
        assert!(pool.take(b"a").is_none());
        let (client, _server) = UnixStream::pair().unwrap();
        assert!(!pool.keep(client.as_raw_fd(), &offer(b"a", 1)));
    }

    #[test]
    fn the_connection_that_was_not_used_for_the_longest_time_makes_room() {
        let mut pool = pool();
        let before = numbers(&pool);
        let servers: Vec<_> = (0..=SLOTS as u64)
            .map(|session| {
                let mut server = keep(&mut pool, &session.to_le_bytes(), session);
                server.write_all(OK).unwrap();
                server
            })
            .collect();
        assert!(pool.take(&0_u64.to_le_bytes()).is_none());
        assert!(pool.take(&1_u64.to_le_bytes()).is_some());
        assert_eq!(numbers(&pool), before);
        drop(servers);
    }

    #[test]
    fn a_process_that_is_not_rewound_keeps_nothing() {
        let mut pool = KeptConnections::default();
        let (client, _server) = UnixStream::pair().unwrap();
        assert!(!pool.keep(client.as_raw_fd(), &offer(b"a", 1)));
        assert!(pool.take(b"a").is_none());
    }
}
