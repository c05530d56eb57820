//! [`Pipe`]: two ends of a connection within the loop.
//!
//! Made for each stream of an HTTP/2 connection: one end is served as any connection is, the other
//! is the stream's. Invariants: what is written comes out in order, at most as much of it waiting as there is
//! room for, which is little until the reader wants more; what was read takes its room until the
//! reader has passed it on; an empty pipe holds no memory; a
//! dropped end is a closed one.

use outboard_reactor::Event;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

/// What may wait in one direction at first: as much as an ordinary head and a small page.
pub(crate) const FIRST_ROOM_BYTES: usize = 4 << 10;
/// The same when the reader takes it fast.
pub(crate) const ROOM_BYTES: usize = 64 << 10;
/// How much wider a pipe becomes at a time.
const WIDENING: usize = 4;

/// One end.
#[derive(Debug)]
pub(crate) struct Pipe {
    incoming: Rc<Way>,
    outgoing: Rc<Way>,
}

/// One direction.
#[derive(Debug)]
struct Way {
    bytes: RefCell<Vec<u8>>,
    room_bytes: Cell<usize>,
    /// Was read, and has not been passed on.
    lent_bytes: Cell<usize>,
    /// Nothing comes any more.
    is_ended: Cell<bool>,
    /// Nobody reads any more.
    is_deaf: Cell<bool>,
    /// For who reads, and for who writes.
    came: Event,
    went: Event,
}

impl Way {
    fn new() -> Rc<Self> {
        Rc::new(Self {
            bytes: RefCell::default(),
            room_bytes: Cell::new(FIRST_ROOM_BYTES),
            lent_bytes: Cell::new(0),
            is_ended: Cell::new(false),
            is_deaf: Cell::new(false),
            came: Event::default(),
            went: Event::default(),
        })
    }

    fn free_bytes(&self) -> usize {
        let taken_bytes = self.bytes.borrow().len() + self.lent_bytes.get();
        self.room_bytes.get().saturating_sub(taken_bytes)
    }
}

impl Pipe {
    /// Both ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (one, other) = (Way::new(), Way::new());
        let first = Self { incoming: one.clone(), outgoing: other.clone() };
        (first, Self { incoming: other, outgoing: one })
    }

    /// How much more may wait for who reads from here than may now; 0 when it is the most.
    pub(crate) fn widening_bytes(&self) -> usize {
        let room_bytes = self.incoming.room_bytes.get();
        (room_bytes * WIDENING).min(ROOM_BYTES) - room_bytes
    }

    /// Has so much more wait for who reads from here.
    pub(crate) fn widen(&self, by_bytes: usize) {
        self.incoming.room_bytes.set(self.incoming.room_bytes.get() + by_bytes);
        self.incoming.went.set();
    }

    /// How much a write from here would take.
    pub(crate) fn free_bytes(&self) -> usize {
        self.outgoing.free_bytes()
    }

    /// Whether a read would not wait.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        let way = &self.incoming;
        until(&way.came, || !way.bytes.borrow().is_empty() || way.is_ended.get())
    }

    /// Whether a write would not wait.
    pub(crate) fn poll_writable(&self) -> Poll<()> {
        let way = &self.outgoing;
        until(&way.went, || way.free_bytes() > 0 || way.is_deaf.get())
    }

    /// Whether the other end says nothing any more.
    pub(crate) fn poll_hangup(&self) -> Poll<()> {
        until(&self.incoming.came, || self.incoming.is_ended.get())
    }

    /// Appends what there is; `None` when a read would wait, 0 at the end. It takes its room until
    /// it is [released](Pipe::release).
    pub(crate) fn try_read(&self, buffer: &mut Vec<u8>) -> Option<usize> {
        let mut bytes = self.incoming.bytes.borrow_mut();
        if bytes.is_empty() && !self.incoming.is_ended.get() {
            return None;
        }
        let count = bytes.len();
        if buffer.is_empty() && count > FIRST_ROOM_BYTES {
            *buffer = std::mem::take(&mut bytes);
        } else {
            buffer.extend_from_slice(&bytes);
            *bytes = Vec::new();
        }
        self.incoming.lent_bytes.set(self.incoming.lent_bytes.get() + count);
        Some(count)
    }

    /// What was read has been passed on: as much may be written again.
    pub(crate) fn release(&self) {
        if self.incoming.lent_bytes.replace(0) > 0 {
            self.incoming.went.set();
        }
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
        let len = slices.iter().map(|slice| slice.len()).sum();
        let count = way.free_bytes().min(len);
        if count == 0 {
            return Ok(None);
        }
        let mut bytes = way.bytes.borrow_mut();
        bytes.reserve_exact(count);
        let mut left = count;
        for slice in slices {
            let taken = slice.len().min(left);
            bytes.extend_from_slice(&slice[..taken]);
            left -= taken;
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
                far.release();
                assert!(read <= ROOM_BYTES);
                if read == 0 {
                    return came;
                }
            }
        });
        assert!(came.unwrap() == expected);
    }

    #[test]
    fn a_pipe_is_narrow_until_its_reader_widens_it() {
        run(async {
            let (near, far) = Pipe::pair();
            let much = vec![0; 2 * ROOM_BYTES];
            let fill = || near.try_write(&[IoSlice::new(&much)]).unwrap().unwrap_or(0);
            assert_eq!((fill(), fill()), (FIRST_ROOM_BYTES, 0));
            far.widen(far.widening_bytes());
            assert_eq!(fill(), (WIDENING - 1) * FIRST_ROOM_BYTES);
            far.widen(far.widening_bytes());
            assert_eq!((fill(), far.widening_bytes()), (ROOM_BYTES - 4 * FIRST_ROOM_BYTES, 0));
        })
        .unwrap();
    }

    #[test]
    fn what_was_read_and_not_passed_on_takes_room() {
        run(async {
            let (near, far) = Pipe::pair();
            let much = vec![0; 2 * ROOM_BYTES];
            let fill = || near.try_write(&[IoSlice::new(&much)]).unwrap().unwrap_or(0);
            fill();
            assert_eq!(far.try_read(&mut Vec::new()), Some(FIRST_ROOM_BYTES));
            assert!(fill() == 0 && near.poll_writable().is_pending());
            far.release();
            assert!(near.poll_writable().is_ready());
            assert_eq!(fill(), FIRST_ROOM_BYTES);
        })
        .unwrap();
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
