//! [`Pipe`]: one of the two ends of a connection within the event loop.
//!
//! Compiled for tests: one end is served like any connection, the other is the client's. Invariants: bytes are read in the order in which they were written; a direction holds at most
//! its capacity, which is small until the reader widens it; bytes that were read use the capacity until
//! the reader releases them; an empty pipe holds no memory; dropping an end closes it.

use outboard_reactor::Event;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

/// The initial capacity of a direction: an ordinary head and a small page.
pub(crate) const INITIAL_BYTES: usize = 4 << 10;
/// See the module.
#[derive(Debug)]
pub struct Pipe {
    incoming: Rc<Direction>,
    outgoing: Rc<Direction>,
}

/// One direction.
#[derive(Debug)]
struct Direction {
    bytes: RefCell<Vec<u8>>,
    capacity_bytes: Cell<usize>,
    /// Bytes that were read and not released.
    unreleased_bytes: Cell<usize>,
    /// The writer has closed it.
    is_ended: Cell<bool>,
    /// The reader has closed it.
    is_unread: Cell<bool>,
    /// Set for the reader.
    written: Event,
    /// Set for the writer.
    freed: Event,
}

impl Direction {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            bytes: RefCell::default(),
            capacity_bytes: Cell::new(INITIAL_BYTES),
            unreleased_bytes: Cell::new(0),
            is_ended: Cell::new(false),
            is_unread: Cell::new(false),
            written: Event::default(),
            freed: Event::default(),
        })
    }

    fn free_bytes(&self) -> usize {
        let taken_bytes = self.bytes.borrow().len() + self.unreleased_bytes.get();
        self.capacity_bytes.get().saturating_sub(taken_bytes)
    }
}

impl Pipe {
    /// Both ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (one, other) = (Direction::new(), Direction::new());
        let first = Self { incoming: one.clone(), outgoing: other.clone() };
        (first, Self { incoming: other, outgoing: one })
    }

    /// Increases the capacity for this reader.
    pub(crate) fn widen(&self, by_bytes: usize) {
        self.incoming.capacity_bytes.set(self.incoming.capacity_bytes.get() + by_bytes);
        self.incoming.freed.set();
    }

    /// Bytes that a write would accept.
    pub(crate) fn free_bytes(&self) -> usize {
        self.outgoing.free_bytes()
    }

    /// Whether a read would not wait.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        let direction = &self.incoming;
        until(&direction.written, || {
            !direction.bytes.borrow().is_empty() || direction.is_ended.get()
        })
    }

    /// Whether a write would not wait.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        let direction = &self.outgoing;
        until(&direction.freed, || direction.free_bytes() > 0 || direction.is_unread.get())
    }

    /// Whether the other end has ended its direction.
    pub(crate) fn poll_hangup(&self) -> Poll<()> {
        until(&self.incoming.written, || self.incoming.is_ended.get())
    }

    /// Appends all bytes; `None` if there are none, 0 at the end. They use the capacity until
    /// [`Pipe::release`].
    pub(crate) fn try_read(&self, buffer: &mut Vec<u8>) -> Option<usize> {
        let mut bytes = self.incoming.bytes.borrow_mut();
        if bytes.is_empty() && !self.incoming.is_ended.get() {
            return None;
        }
        let count = bytes.len();
        if buffer.is_empty() && count > INITIAL_BYTES {
            *buffer = std::mem::take(&mut bytes);
        } else {
            buffer.extend_from_slice(&bytes);
            *bytes = Vec::new();
        }
        self.incoming.unreleased_bytes.set(self.incoming.unreleased_bytes.get() + count);
        Some(count)
    }

    /// Frees the capacity of all bytes that were read.
    pub(crate) fn release(&self) {
        if self.incoming.unreleased_bytes.replace(0) > 0 {
            self.incoming.freed.set();
        }
    }

    /// Writes as much as fits; `None` if nothing does.
    ///
    /// # Errors
    /// The other end is closed.
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let direction = &self.outgoing;
        if direction.is_unread.get() || direction.is_ended.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let len = slices.iter().map(|slice| slice.len()).sum();
        let count = direction.free_bytes().min(len);
        if count == 0 {
            return Ok(None);
        }
        let mut bytes = direction.bytes.borrow_mut();
        bytes.reserve_exact(count);
        let mut left = count;
        for slice in slices {
            let taken = slice.len().min(left);
            bytes.extend_from_slice(&slice[..taken]);
            left -= taken;
        }
        direction.written.set();
        Ok(Some(count))
    }

    /// Ends both directions.
    pub(crate) fn close(&self) {
        self.end();
        self.incoming.is_unread.set(true);
        self.incoming.freed.set();
    }

    /// Ends the outgoing direction.
    pub(crate) fn end(&self) {
        self.outgoing.is_ended.set(true);
        self.outgoing.written.set();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.close();
    }
}

/// Waits for a condition; the event may be an earlier one.
fn until(event: &Event, is_so: impl Fn() -> bool) -> Poll<()> {
    loop {
        if is_so() {
            return Poll::Ready(());
        }
        std::task::ready!(event.poll());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::{run, spawn};

    #[test]
    fn bytes_are_read_in_order_by_a_slow_reader() {
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let expected = sent.clone();
        let written = run(async move {
            let (near, far) = Pipe::pair();
            spawn(async move {
                let mut left = &sent[..];
                while !left.is_empty() {
                    std::future::poll_fn(|_| near.poll_writable()).await;
                    let written = near.try_write(&[IoSlice::new(left)]).unwrap();
                    left = &left[written.unwrap_or(0)..];
                }
            });
            let mut written = Vec::new();
            loop {
                std::future::poll_fn(|_| far.poll_readable()).await;
                let read = far.try_read(&mut written).unwrap();
                far.release();
                assert!(read <= INITIAL_BYTES);
                if read == 0 {
                    return written;
                }
            }
        });
        assert!(written.unwrap() == expected);
    }

    #[test]
    fn unreleased_bytes_use_the_capacity() {
        run(async {
            let (near, far) = Pipe::pair();
            let much = vec![0; 2 * INITIAL_BYTES];
            let fill = || near.try_write(&[IoSlice::new(&much)]).unwrap().unwrap_or(0);
            fill();
            assert_eq!(far.try_read(&mut Vec::new()), Some(INITIAL_BYTES));
            assert!(fill() == 0 && near.poll_writable().is_pending());
            far.release();
            assert!(near.poll_writable().is_ready());
            assert_eq!(fill(), INITIAL_BYTES);
        })
        .unwrap();
    }

    #[test]
    fn a_dropped_end_is_a_closed_end() {
        run(async {
            let (near, far) = Pipe::pair();
            near.try_write(&[IoSlice::new(b"last words")]).unwrap();
            drop(near);
            assert!(far.poll_hangup().is_ready() && far.poll_readable().is_ready());
            let mut written = Vec::new();
            assert_eq!(
                (far.try_read(&mut written), far.try_read(&mut Vec::new())),
                (Some(10), Some(0))
            );
            assert_eq!(written, b"last words");
            assert!(far.try_write(&[IoSlice::new(b"too late")]).is_err());
        })
        .unwrap();
    }
}
