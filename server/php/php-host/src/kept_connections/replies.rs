//! [`Replies`]: a server's answers to the commands that reset a session, in the protocol of MySQL: an OK packet for
//! each, and for the last one, which asks for what would have to be empty, one row.
//!
//! Used by [`super::KeptConnections`]. Invariant: a session counts as reset only if exactly the expected answers
//! have arrived and nothing beyond them.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Answers are short: more is not an answer to these commands.
const BYTES_MAX: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Replies {
    expected: u32,
    received: Vec<u8>,
}

/// Whether a session was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Yes,
    /// The connection is lost, or the server takes too long.
    No,
    /// The server refuses.
    Never,
}

/// What the bytes so far say.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Incomplete,
    Complete(usize),
    Refused,
}

impl Replies {
    pub(super) fn new(expected: u32) -> Self {
        Self { expected, received: Vec::new() }
    }

    /// Reads the answers.
    pub(super) fn settle(&mut self, connection: BorrowedFd<'_>, deadline: Instant) -> Settled {
        loop {
            match proved(&self.received, self.expected) {
                Parsed::Complete(bytes) if bytes == self.received.len() && is_quiet(connection) => {
                    return Settled::Yes;
                }
                Parsed::Complete(_) => return Settled::No,
                Parsed::Refused => return Settled::Never,
                Parsed::Incomplete => {}
            }
            if self.received.len() > BYTES_MAX || !self.receive(connection, deadline) {
                return Settled::No;
            }
        }
    }

    /// False at the connection's end, or after the deadline.
    fn receive(&mut self, connection: BorrowedFd<'_>, deadline: Instant) -> bool {
        let mut piece = [0; 1024];
        loop {
            match recv(connection, &mut piece[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return false,
                Ok((bytes, _)) => {
                    self.received.extend_from_slice(&piece[..bytes]);
                    return true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                        return false;
                    };
                    let Ok(left) = Timespec::try_from(left) else { return false };
                    let mut one = [PollFd::new(&connection, PollFlags::IN)];
                    if !matches!(poll(&mut one, Some(&left)), Ok(1) | Err(Errno::INTR)) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }
}

/// Whether the server has neither said more, such as why it closes the connection, nor closed it.
fn is_quiet(connection: BorrowedFd<'_>) -> bool {
    let mut byte = [0; 1];
    recv(connection, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK) == Err(Errno::AGAIN)
}

/// A packet's content, and the bytes behind it.
fn packet(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(4)?;
    let len = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
    rest.split_at_checked(len)
}

fn acknowledged(bytes: &[u8], expected: u32) -> Parsed {
    let mut rest = bytes;
    for _ in 0..expected {
        let Some((content, behind)) = packet(rest) else { return Parsed::Incomplete };
        if content.first() != Some(&0) {
            return Parsed::Refused;
        }
        rest = behind;
    }
    Parsed::Complete(bytes.len() - rest.len())
}

/// The last answer is a result of one row: the count of columns, the column, an end, the row, an end.
fn proved(bytes: &[u8], expected: u32) -> Parsed {
    let at = match acknowledged(bytes, expected.saturating_sub(1)) {
        Parsed::Complete(at) => at,
        other => return other,
    };
    let mut rest = &bytes[at..];
    for expected in [Some(1), None, Some(0xfe), Some(0), Some(0xfe)] {
        let Some((content, behind)) = packet(rest) else { return Parsed::Incomplete };
        // A row with an empty text is one zero: its length.
        let is_expected = match (expected, content.first()) {
            (Some(wanted), Some(first)) => *first == wanted,
            (None, first) => first.is_some(),
            (Some(_), None) => false,
        };
        if !is_expected {
            return Parsed::Refused;
        }
        rest = behind;
    }
    Parsed::Complete(bytes.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";

    #[test]
    fn answers_are_counted() {
        assert_eq!(acknowledged(b"", 1), Parsed::Incomplete);
        assert_eq!(acknowledged(&OK[..8], 1), Parsed::Incomplete);
        assert_eq!(acknowledged(OK, 1), Parsed::Complete(11));
        assert_eq!(acknowledged(OK, 2), Parsed::Incomplete);
        assert_eq!(acknowledged(&[OK, OK].concat(), 2), Parsed::Complete(22));
        assert_eq!(acknowledged(&[OK, b"\x03\0\0\x01\xff\x17\x04"].concat(), 2), Parsed::Refused);
    }

    #[test]
    fn what_a_reset_leaves_is_asked_for() {
        let result = |row: &[u8]| {
            let end: &[u8] = b"\x05\0\0\x03\xfe\0\0\x02\0";
            [OK, b"\x01\0\0\x01\x01", b"\x03\0\0\x02def", end, row, end].concat()
        };
        let none = result(b"\x01\0\0\x04\0");
        for end in 0..none.len() {
            assert_eq!(proved(&none[..end], 2), Parsed::Incomplete, "{end}");
        }
        assert_eq!(proved(&none, 2), Parsed::Complete(none.len()));
        assert_eq!(proved(&result(b"\x04\0\0\x04\x03SET"), 2), Parsed::Refused);
    }
}
