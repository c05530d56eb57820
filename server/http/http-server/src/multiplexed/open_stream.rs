//! [`OpenStream`]: what the task of a connection and that of a request share of a stream.
//!
//! The connection adds what has arrived of the request; the request's task reads it. Invariants: nothing that has
//! arrived is lost when the stream is closed; after that the request's task is woken and finds it closed.

use outboard_buffer::Held;
use outboard_reactor::Event;
use std::cell::{Cell, RefCell};
use std::io;
use std::task::{Poll, ready};

/// See the module.
#[derive(Debug)]
pub(crate) struct OpenStream {
    /// Received data that the request's task has not read.
    incoming: RefCell<Vec<u8>>,
    /// The request is complete.
    has_ended: Cell<bool>,
    /// The stream was reset, or the connection is gone.
    is_closed: Cell<bool>,
    /// Set for the reader of the body, and when the stream is closed.
    readable: Event,
    /// Set for the writer of the response, and when the stream is closed.
    writable: Event,
    _held: Held,
}

impl OpenStream {
    /// The stream of a request, of which this much has arrived; `held` is its memory.
    pub(crate) fn new(incoming: Vec<u8>, has_ended: bool, held: Held) -> Self {
        Self {
            incoming: RefCell::new(incoming),
            has_ended: Cell::new(has_ended),
            is_closed: Cell::new(false),
            readable: Event::default(),
            writable: Event::default(),
            _held: held,
        }
    }

    /// More of the request has arrived; its end is final.
    pub(crate) fn receive(&self, data: &[u8], is_end: bool) {
        self.incoming.borrow_mut().extend_from_slice(data);
        self.has_ended.set(self.has_ended.get() || is_end);
        self.readable.set();
    }

    /// The bytes that the request's task has not read.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.incoming.borrow().len()
    }

    /// Whether the request is complete.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Whether nothing is read or written any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Nothing is read or written any more.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        self.readable.set();
        self.writable.set();
    }

    /// The response can be continued.
    pub(crate) fn wake_writer(&self) {
        self.writable.set();
    }

    /// Appends what has arrived; `None` if nothing has, 0 at the end.
    ///
    /// # Errors
    /// The stream was closed before the end of the request.
    pub(crate) fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut incoming = self.incoming.borrow_mut();
        if incoming.is_empty() {
            return match (self.has_ended.get(), self.is_closed.get()) {
                (true, _) => Ok(Some(0)),
                (false, true) => Err(io::ErrorKind::ConnectionReset.into()),
                (false, false) => Ok(None),
            };
        }
        let count = incoming.len();
        match buffer.is_empty() {
            true => std::mem::swap(buffer, &mut incoming),
            false => buffer.append(&mut incoming),
        }
        if self.has_ended.get() {
            *incoming = Vec::new();
        }
        Ok(Some(count))
    }

    /// Whether all of the request was received and read.
    pub(crate) fn is_read(&self) -> bool {
        self.has_ended.get() && self.incoming.borrow().is_empty()
    }

    /// Whether [`Self::try_read`] returns something.
    pub(crate) fn poll_readable(&self) -> Poll<()> {
        until(&self.readable, || {
            !self.incoming.borrow().is_empty() || self.has_ended.get() || self.is_closed.get()
        })
    }

    /// Whether a write would not wait, as `has_room` finds.
    pub(crate) fn poll_writable(&self, has_room: impl Fn() -> bool) -> Poll<()> {
        until(&self.writable, || self.is_closed.get() || has_room())
    }

    /// Whether the stream is closed.
    pub(crate) fn poll_gone(&self) -> Poll<()> {
        until(&self.readable, || self.is_closed.get())
    }
}

/// Waits for a condition; the event may be an earlier one.
fn until(event: &Event, is_so: impl Fn() -> bool) -> Poll<()> {
    loop {
        if is_so() {
            return Poll::Ready(());
        }
        ready!(event.poll());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, limits};
    use outboard_reactor::testing::{in_loop, wait_for};
    use outboard_reactor::{sleep, spawn};
    use std::future::poll_fn;
    use std::rc::Rc;

    fn stream(incoming: &[u8], has_ended: bool) -> OpenStream {
        let held = context(limits()).memory.connections().hold(1);
        OpenStream::new(incoming.to_vec(), has_ended, held)
    }

    #[test]
    fn a_body_is_read_in_order_and_then_ends() {
        in_loop(async {
            let stream = stream(b"one ", false);
            let mut body = Vec::new();
            assert_eq!(stream.try_read(&mut body).unwrap(), Some(4));
            assert_eq!(stream.try_read(&mut body).unwrap(), None);
            assert!(!stream.is_read());
            stream.receive(b"two", false);
            stream.receive(b"", true);
            assert_eq!(stream.unread_bytes(), 3);
            assert!(!stream.is_read());
            assert_eq!(stream.try_read(&mut body).unwrap(), Some(3));
            assert_eq!(stream.try_read(&mut body).unwrap(), Some(0));
            assert!(stream.is_read());
            assert_eq!(body, b"one two");
        });
    }

    #[test]
    fn what_has_arrived_is_read_even_if_the_stream_is_closed() {
        in_loop(async {
            let cut = stream(b"part", false);
            cut.close();
            let mut body = Vec::new();
            assert_eq!(cut.try_read(&mut body).unwrap(), Some(4));
            let error = cut.try_read(&mut body).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            let whole = stream(b"whole", true);
            whole.close();
            assert_eq!(whole.try_read(&mut Vec::new()).unwrap(), Some(5));
            assert_eq!(whole.try_read(&mut Vec::new()).unwrap(), Some(0));
        });
    }

    #[test]
    fn a_late_frame_does_not_reopen_a_request_that_has_ended() {
        in_loop(async {
            let stream = stream(b"", true);
            stream.receive(b"", false);
            assert!(stream.has_ended());
        });
    }

    #[test]
    fn the_close_wakes_the_reader_and_the_writer() {
        in_loop(async {
            let stream = Rc::new(stream(b"", false));
            let woken = Rc::new(Cell::new(0));
            for is_reader in [true, false] {
                let (stream, woken) = (stream.clone(), woken.clone());
                spawn(async move {
                    poll_fn(|_| match is_reader {
                        true => stream.poll_gone(),
                        false => stream.poll_writable(|| false),
                    })
                    .await;
                    woken.set(woken.get() + 1);
                });
            }
            // Data is no reason to be gone, and a vain wake none to be writable.
            sleep(1).await;
            stream.receive(b"x", false);
            stream.wake_writer();
            sleep(1).await;
            assert_eq!(woken.get(), 0);
            stream.close();
            wait_for("both tasks", || (woken.get() == 2).then_some(())).await;
        });
    }
}
