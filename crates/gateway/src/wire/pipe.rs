//! [`Pipe`]: two ends of a connection within the loop.
//!
//! Made for each stream of an HTTP/2 connection: one end is served as any connection is, the other
//! is the stream's. Invariants: what is written comes out in order, at most [`ROOM_BYTES`] of it
//! waiting; a dropped end is a closed one.

use outboard_reactor::Event;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

/// What may wait in one direction.
pub(crate) const ROOM_BYTES: usize = 64 << 10;

/// One end.
#[derive(Debug)]
pub(crate) struct Pipe {
    incoming: Rc<Way>,
    outgoing: Rc<Way>,
}

/// One direction.
#[derive(Debug, Default)]
struct Way {
    bytes: RefCell<Vec<u8>>,
    /// Nothing comes any more.
    is_ended: Cell<bool>,
    /// Nobody reads any more.
    is_deaf: Cell<bool>,
    /// For who reads, and for who writes.
    came: Event,
    went: Event,
}

impl Pipe {
    /// Both ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (one, other) = (Rc::<Way>::default(), Rc::<Way>::default());
        let first = Self { incoming: one.clone(), outgoing: other.clone() };
        (first, Self { incoming: other, outgoing: one })
    }

    /// Whether a read would not wait.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        let way = &self.incoming;
        until(&way.came, || !way.bytes.borrow().is_empty() || way.is_ended.get())
    }

    /// Whether a write would not wait.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        let way = &self.outgoing;
        until(&way.went, || way.bytes.borrow().len() < ROOM_BYTES || way.is_deaf.get())
    }

    /// Whether the other end says nothing any more.
    pub(crate) fn poll_hangup(&self) -> Poll<()> {
        until(&self.incoming.came, || self.incoming.is_ended.get())
    }

    /// Appends what there is; `None` when a read would wait, 0 at the end.
    pub(crate) fn try_read(&self, buffer: &mut Vec<u8>) -> Option<usize> {
        let mut bytes = self.incoming.bytes.borrow_mut();
        if bytes.is_empty() && !self.incoming.is_ended.get() {
            return None;
        }
        let count = bytes.len();
        buffer.append(&mut bytes);
        self.incoming.went.set();
        Some(count)
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// The other end has gone.
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let way = &self.outgoing;
        if way.is_deaf.get() || way.is_ended.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut bytes = way.bytes.borrow_mut();
        let before = bytes.len();
        for slice in slices {
            let room = ROOM_BYTES.saturating_sub(bytes.len());
            bytes.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        let count = bytes.len() - before;
        if count == 0 {
            return Ok(None);
        }
        way.came.set();
        Ok(Some(count))
    }

    /// Whether the other end reads nothing any more.
    pub(crate) fn poll_deaf(&self) -> Poll<()> {
        until(&self.outgoing.went, || self.outgoing.is_deaf.get())
    }

    /// Reads and writes nothing any more.
    pub(crate) fn close(&self) {
        self.end();
        self.incoming.is_deaf.set(true);
        self.incoming.went.set();
    }

    /// Says that nothing more will be written.
    pub(crate) fn end(&self) {
        self.outgoing.is_ended.set(true);
        self.outgoing.came.set();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.close();
    }
}

/// The event may be of something that was seen already.
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
    fn what_is_written_comes_out_in_order_however_slowly_it_is_read() {
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let expected = sent.clone();
        let came = run(async move {
            let (near, far) = Pipe::pair();
            spawn(async move {
                let mut left = &sent[..];
                while !left.is_empty() {
                    std::future::poll_fn(|_| near.poll_writable()).await;
                    let written = near.try_write(&[IoSlice::new(left)]).unwrap();
                    left = &left[written.unwrap_or(0)..];
                }
            });
            let mut came = Vec::new();
            loop {
                std::future::poll_fn(|_| far.poll_readable()).await;
                let read = far.try_read(&mut came).unwrap();
                assert!(read <= ROOM_BYTES);
                if read == 0 {
                    return came;
                }
            }
        });
        assert!(came.unwrap() == expected);
    }

    #[test]
    fn an_end_that_is_dropped_is_noticed() {
        run(async {
            let (near, far) = Pipe::pair();
            near.try_write(&[IoSlice::new(b"last words")]).unwrap();
            drop(near);
            assert!(far.poll_hangup().is_ready() && far.poll_readable().is_ready());
            let mut came = Vec::new();
            assert_eq!(
                (far.try_read(&mut came), far.try_read(&mut Vec::new())),
                (Some(10), Some(0))
            );
            assert_eq!(came, b"last words");
            assert!(far.try_write(&[IoSlice::new(b"too late")]).is_err());
        })
        .unwrap();
    }
}
