//! The bytes of a WebSocket between a client and an upstream.
//!
//! Called by [`super`] once both sides have switched. Invariants: a slow side delays the other instead of
//! filling memory; bytes are passed on unchanged; when the server ends, the client gets a close frame with
//! the status 1001 (RFC 6455 7.4.1) behind the last whole frame, and what it sends until it has responded is
//! passed on.

use super::frames::Frames;
use outboard_http_server::Upgraded;
use outboard_reactor::{current_task, deadline_passed, now_ms, set_deadline, wake};
use outboard_upstream::Channel;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// Bytes that are read before they are written.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that are relayed in each direction before other tasks run.
const PIECES_PER_TURN: u32 = 16;
/// How long the client has to respond to a close frame.
const CLOSE_MS: u64 = 2_000;
/// A close frame with the status 1001: the server goes away. One of a server is not masked.
const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];
/// The same of a client, with a mask of zeros.
const GOING_AWAY_MASKED: [u8; 8] = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9];

/// Relays bytes in both directions until both sides have finished, one of them is gone, no byte was
/// sent for `idle_ms`, or the server ends its tunnels.
pub(super) async fn relay(mut client: Upgraded, mut upstream: Channel, idle_ms: u64) {
    let _counted = client.client().context.clone().begin_tunnel();
    client.keep_alive();
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let mut farewell = Farewell::default();
    let mut relayed_bytes = 0;
    set_deadline(now_ms() + idle_ms);
    poll_fn(|_| {
        if deadline_passed() || farewell.is_over(&up) {
            return Poll::Ready(());
        }
        if client.is_draining() && !std::mem::replace(&mut farewell.has_begun, true) {
            down.end_after_frame();
            set_deadline(now_ms() + CLOSE_MS);
        }
        let outcome = up.relay(
            |bytes| client.poll_read(bytes),
            &mut upstream,
            |upstream, bytes| upstream.poll_write(bytes),
            Channel::end,
        );
        let outcome = outcome.and_then(|()| {
            let _ = upstream.poll_flush()?;
            down.relay(
                |bytes| upstream.poll_read(bytes),
                &mut client,
                |client, bytes| client.poll_write(bytes),
                Upgraded::end,
            )
        });
        let outcome = outcome.and_then(|()| match down.is_cut {
            true => farewell.send(&mut client),
            false => Ok(()),
        });
        let now_relayed_bytes = up.relayed_bytes + down.relayed_bytes;
        let before_bytes = std::mem::replace(&mut relayed_bytes, now_relayed_bytes);
        if before_bytes != now_relayed_bytes && !farewell.has_begun {
            set_deadline(now_ms() + idle_ms);
        }
        if up.has_more || down.has_more {
            wake(current_task());
        }
        match outcome {
            Ok(()) if up.is_over && down.is_over => Poll::Ready(()),
            Ok(()) if farewell.is_over(&up) => Poll::Ready(()),
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        }
    })
    .await;
    if farewell.has_begun && !up.frames.has_close() && up.frames.is_between() {
        // The connection ends after it.
        let _ = upstream.poll_write(&GOING_AWAY_MASKED);
    }
    let _ = upstream.poll_flush();
}

/// The end of a WebSocket by the server.
#[derive(Debug, Default)]
struct Farewell {
    has_begun: bool,
    sent_bytes: usize,
}

impl Farewell {
    /// Sends the close frame, as far as the client accepts it.
    fn send(&mut self, client: &mut Upgraded) -> io::Result<()> {
        while self.sent_bytes < GOING_AWAY.len() {
            match client.poll_write(&GOING_AWAY[self.sent_bytes..])? {
                Poll::Ready(count) => self.sent_bytes += count,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Whether the client has the close frame and has responded to it.
    fn is_over(&self, up: &Direction) -> bool {
        self.sent_bytes == GOING_AWAY.len() && (up.frames.has_close() || up.is_read)
    }
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    bytes: Vec<u8>,
    written: usize,
    /// Bytes written since the start.
    relayed_bytes: u64,
    /// Whether the turn ended before all available bytes were relayed.
    has_more: bool,
    is_read: bool,
    is_over: bool,
    frames: Frames,
    /// It ends after so many bytes, and the frame that is in progress then.
    ends_after: Option<usize>,
    /// It has ended so.
    is_cut: bool,
}

impl Direction {
    /// What was read is passed on, and then the rest of the frame in progress.
    fn end_after_frame(&mut self) {
        self.ends_after = Some(self.bytes.len() - self.written);
    }

    /// The bytes that may be written next, of those that were read.
    fn next_bytes(&self) -> usize {
        let waiting = &self.bytes[self.written..];
        match self.ends_after {
            None => waiting.len(),
            Some(0) if self.frames.is_between() => 0,
            Some(0) => self.frames.rest_of_frame(waiting),
            Some(before) => before.min(waiting.len()),
        }
    }

    /// Relays available bytes, as far as the receiver accepts them.
    fn relay<T>(
        &mut self,
        mut read: impl FnMut(&mut Vec<u8>) -> Poll<io::Result<usize>>,
        to: &mut T,
        write: impl Fn(&mut T, &[u8]) -> Poll<io::Result<usize>>,
        end: impl Fn(&mut T),
    ) -> io::Result<()> {
        self.has_more = false;
        for _ in 0..PIECES_PER_TURN {
            loop {
                let until = self.written + self.next_bytes();
                if until == self.written {
                    break;
                }
                match write(to, &self.bytes[self.written..until])? {
                    Poll::Ready(count) => {
                        self.frames.pass(&self.bytes[self.written..self.written + count]);
                        self.ends_after = self.ends_after.map(|left| left.saturating_sub(count));
                        self.written += count;
                        self.relayed_bytes += count as u64;
                    }
                    Poll::Pending => return Ok(()),
                }
            }
            if self.ends_after == Some(0) && self.frames.is_between() {
                self.is_cut = !self.is_over;
                return Ok(());
            }
            self.bytes.clear();
            self.bytes.shrink_to(PIECE_BYTES);
            self.written = 0;
            if self.is_read {
                if !std::mem::replace(&mut self.is_over, true) {
                    end(to);
                }
                return Ok(());
            }
            match read(&mut self.bytes)? {
                Poll::Ready(count) => self.is_read = count == 0,
                Poll::Pending => return Ok(()),
            }
        }
        self.has_more = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A receiver that takes so many bytes at each turn.
    #[derive(Default)]
    struct Receiver {
        received: Vec<u8>,
        room: usize,
        ends: usize,
    }

    /// Relays pieces, the empty one as the end of the stream, to the receiver.
    fn relay(
        direction: &mut Direction,
        pieces: &mut VecDeque<&[u8]>,
        receiver: &mut Receiver,
    ) -> io::Result<()> {
        let ends = std::cell::Cell::new(0);
        let outcome = direction.relay(
            |bytes| match pieces.pop_front() {
                Some(piece) => {
                    bytes.extend_from_slice(piece);
                    Poll::Ready(Ok(piece.len()))
                }
                None => Poll::Pending,
            },
            receiver,
            |receiver, bytes| {
                let count = bytes.len().min(receiver.room);
                if count == 0 {
                    return Poll::Pending;
                }
                receiver.room -= count;
                receiver.received.extend_from_slice(&bytes[..count]);
                Poll::Ready(Ok(count))
            },
            |_| ends.set(ends.get() + 1),
        );
        receiver.ends += ends.get();
        outcome
    }

    #[test]
    fn nothing_is_read_while_the_receiver_is_full() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from([&b"first"[..], b"second"]);
        receiver.room = 3;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((&receiver.received[..], pieces.len()), (&b"fir"[..], 1));
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((receiver.received.len(), pieces.len()), (3, 1));
        receiver.room = 100;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!(receiver.received, b"firstsecond");
        assert_eq!((direction.relayed_bytes, direction.is_over), (11, false));
    }

    #[test]
    fn the_end_is_passed_on_once_after_all_bytes() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from([&b"last"[..], b""]);
        receiver.room = 2;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((receiver.ends, direction.is_over), (0, false));
        receiver.room = 2;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!((&receiver.received[..], receiver.ends), (&b"last"[..], 1));
        assert!(direction.is_over);
    }

    #[test]
    fn a_sender_without_end_gives_way_to_other_tasks() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from(vec![&b"x"[..]; 100]);
        receiver.room = 1_000;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert!(direction.has_more);
        assert!(receiver.received.len() <= PIECES_PER_TURN as usize, "{}", receiver.received.len());
        while direction.has_more {
            relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        }
        assert_eq!(receiver.received.len(), 100);
    }

    #[test]
    fn a_server_that_ends_passes_on_the_frame_in_progress() {
        let (mut direction, mut receiver) = (Direction::default(), Receiver::default());
        let mut pieces = VecDeque::from([&b"\x81\x01a\x81\x03b"[..], b"c", b"d\x81\x01e"]);
        receiver.room = 1;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        direction.end_after_frame();
        receiver.room = 100;
        relay(&mut direction, &mut pieces, &mut receiver).unwrap();
        assert_eq!(receiver.received, b"\x81\x01a\x81\x03bcd");
        assert!(direction.is_cut);
    }

    #[test]
    fn a_broken_side_ends_the_relay() {
        let mut direction = Direction::default();
        let broken = || Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
        let write = |_: &mut (), _: &[u8]| Poll::Pending;
        assert!(direction.relay(|_| broken(), &mut (), write, |()| {}).is_err());
        let mut direction = Direction::default();
        let read = |bytes: &mut Vec<u8>| {
            bytes.push(1);
            Poll::Ready(Ok(1))
        };
        assert!(direction.relay(read, &mut (), |(), _| broken(), |()| {}).is_err());
    }
}
