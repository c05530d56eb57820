//! [`Io`]: a session as the `h2` crate wants it, by tokio's traits.
//!
//! Polled by one task alone, that of the HTTP/2 connection.

use crate::session::Session;
use outboard_reactor::spend;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// See the module.
#[derive(Debug)]
pub struct Io {
    tls: Box<Session>,
    /// What came and was not asked for yet, from `at` on.
    plain: Vec<u8>,
    at: usize,
    /// Whether the last read, or write, has to wait. The socket wakes for one kind of news unless
    /// it is asked for both at once.
    reads: bool,
    writes: bool,
    progress: Rc<Writes>,
}

/// What is read here are frames, each of which may be a few bytes and has to be worked on: they take
/// so much longer than the same bytes of a body would.
const FRAMES_WEIGHT: usize = 8;

/// How the writes of an [`Io`] go.
#[derive(Debug, Default)]
pub struct Writes {
    /// What was taken of them since the start.
    pub bytes: Cell<u64>,
    /// Whether the last one waits for the socket.
    pub are_blocked: Cell<bool>,
}

impl Io {
    /// Reads from and writes to this session.
    pub fn new(tls: Box<Session>) -> Self {
        Self { tls, plain: Vec::new(), at: 0, reads: false, writes: false, progress: Rc::default() }
    }

    /// How the writes go, for who hands them over elsewhere.
    pub fn writes(&self) -> Rc<Writes> {
        self.progress.clone()
    }

    fn wait(&self) {
        if self.reads && self.writes {
            // Neither is ready, or one of them would not wait.
            let _ = self.tls.stream().source().poll_readable_or_writable();
        }
    }

    fn written<T>(&mut self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.writes = outcome.is_pending();
        self.progress.are_blocked.set(self.writes);
        self.wait();
        outcome
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
            let read = this.tls.poll_read(&mut this.plain);
            this.reads = read.is_pending();
            this.wait();
            std::task::ready!(read)?;
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
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.tls.poll_write(&[IoSlice::new(data)]);
        if let Poll::Ready(Ok(count)) = written {
            self.progress.bytes.set(self.progress.bytes.get() + count as u64);
        }
        self.written(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.tls.poll_flush();
        self.written(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.close();
        Poll::Ready(Ok(()))
    }
}
