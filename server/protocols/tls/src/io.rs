//! [`Io`]: a session with tokio's I/O traits, for the `h2` crate; and [`Flusher`], which sends what was
//! written to it.
//!
//! Both are used by one task, that of the HTTP/2 connection. The crate flushes after each frame; a flush
//! of [`Io`] therefore sends nothing, so that the frames of many streams share a system call. Invariant:
//! at most [`BATCH_BYTES`] and one write wait for the flusher.

use crate::session::Session;
use outboard_reactor::spend;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Records that are sent together.
const BATCH_BYTES: usize = 32 << 10;

/// Frames, each of which may have only a few bytes, take so much longer to process than the same bytes
/// of a body.
const FRAMES_WEIGHT: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Io {
    shared: Rc<Shared>,
    /// Received data; unread from `at` on.
    plain: Vec<u8>,
    at: usize,
}

#[derive(Debug)]
struct Shared {
    session: RefCell<Box<Session>>,
    /// Whether the last read is pending. A source wakes the task for one direction only, unless it is
    /// polled for both at once.
    is_reading: Cell<bool>,
    /// Whether the last write waits for the socket.
    is_blocked: Cell<bool>,
}

impl Shared {
    fn wait(&self) {
        if self.is_reading.get() && self.is_blocked.get() {
            // Both have just returned pending, so the result adds nothing.
            let _ = self.session.borrow().stream().source().poll_readable_or_writable();
        }
    }

    fn written<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_blocked.set(outcome.is_pending());
        self.wait();
        outcome
    }

    fn poll_write(&self, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = self.session.borrow_mut().poll_write_batched(slices, BATCH_BYTES);
        self.written(written)
    }
}

/// Sends what was written to an [`Io`].
#[derive(Debug, Clone)]
pub struct Flusher(Rc<Shared>);

impl Flusher {
    /// Sends what the socket accepts. The current task is woken when it accepts more; reads and writes
    /// report errors.
    pub fn send(&self) {
        let flushed = self.0.session.borrow_mut().poll_flush();
        let _ = self.0.written(flushed);
    }

    /// Completes `work`, and sends what it writes whenever it waits.
    pub async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let poll = work.as_mut().poll(context);
            self.send();
            poll
        })
        .await
    }
}

impl Io {
    /// Wraps a session.
    pub fn new(session: Box<Session>) -> Self {
        let (session, is_reading) = (RefCell::new(session), Cell::new(false));
        let shared = Rc::new(Shared { session, is_reading, is_blocked: Cell::new(false) });
        Self { shared, plain: Vec::new(), at: 0 }
    }

    /// Sends what is written, after each poll of the connection.
    pub fn flusher(&self) -> Flusher {
        Flusher(self.shared.clone())
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at == this.plain.len() {
            this.plain.clear();
            this.at = 0;
            let read = this.shared.session.borrow_mut().poll_read(&mut this.plain);
            this.shared.is_reading.set(read.is_pending());
            this.shared.wait();
            ready!(read)?;
            spend(this.plain.len() * FRAMES_WEIGHT);
        }
        let count = buffer.remaining().min(this.plain.len() - this.at);
        buffer.put_slice(&this.plain[this.at..this.at + count]);
        this.at += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.poll_write(&[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.shared.poll_write(slices)
    }

    /// A frame and its payload become one record.
    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The [`Flusher`] does this.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing follows that would send the rest.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.shared.session.borrow_mut().poll_flush();
        ready!(self.shared.written(flushed))?;
        self.shared.session.borrow_mut().close();
        Poll::Ready(Ok(()))
    }
}
