//! [`Stream`]: a stream of HTTP/2, as the task of its request sees it.

use super::link::{Link, Open};
use crate::header_block;
use crate::message_stream::{Announced, MessageStream};
use crate::multiplexed::Left;
use outboard_buffer::Held;
use outboard_http2::{ErrorCode, StreamKey};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// See the module.
#[derive(Debug)]
pub(super) struct Stream {
    link: Rc<Link>,
    open: Rc<Open>,
    /// What is missing of the response.
    left: Cell<Left>,
}

impl Stream {
    /// The stream of a request whose head was received.
    pub(super) fn open(link: &Rc<Link>, key: StreamKey, held: Held, has_ended: bool) -> Self {
        let open = link.open(key, held, has_ended);
        Self { link: link.clone(), open, left: Cell::new(Left::Head) }
    }

    fn key(&self) -> StreamKey {
        self.open.key
    }

    /// Closes the stream with an error.
    fn reset_with(&self, code: ErrorCode) {
        if self.left.replace(Left::Nothing) != Left::Nothing {
            self.link.engine().reset(self.key(), code);
            self.link.changed();
        }
    }
}

impl MessageStream for Stream {
    fn poll_readable(&self) -> Poll<()> {
        self.open.shared.poll_readable()
    }

    fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let read = self.open.shared.try_read(buffer)?;
        if let Some(count @ 1..) = read {
            self.link.engine().release(self.key(), count);
            self.link.changed();
        }
        Ok(read)
    }

    fn is_read(&self) -> bool {
        self.open.shared.is_read()
    }

    fn poll_writable(&self) -> Poll<()> {
        self.open.shared.poll_writable(|| self.link.engine().is_writable(self.key()))
    }

    fn free_bytes(&self) -> usize {
        self.link.engine().accepts_bytes(self.key())
    }

    fn send_interim(&self, status: u16, lines: &[u8]) {
        // A stream that is closed needs none.
        let _ = self.link.engine().send_interim(self.key(), status, header_block::lines(lines));
        self.link.changed();
    }

    fn send_head(&self, status: u16, lines: &[u8], announced: Announced) {
        // RFC 8441 5: the response to an extended CONNECT is 200.
        let status = if status == 101 { 200 } else { status };
        let is_end = announced == Announced::Nothing;
        self.left.set(match announced {
            Announced::Nothing => Left::Nothing,
            Announced::Length(length) => Left::Bytes(length),
            Announced::Open => Left::Open,
        });
        // The first write reports that the stream is closed.
        let _ =
            self.link.engine().send_head(self.key(), status, header_block::lines(lines), is_end);
        self.link.changed();
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        if self.open.shared.is_closed() {
            return Err(closed());
        }
        let mut engine = self.link.engine();
        let mut written = 0;
        for slice in slices {
            let left = self.left.get();
            let is_end = left == Left::Bytes(slice.len() as u64);
            let sent = engine.send_data(self.key(), slice, is_end);
            let count = sent.map_err(|_| closed())?;
            written += count;
            if let Left::Bytes(bytes) = left {
                let bytes = bytes.saturating_sub(count as u64);
                self.left.set(if bytes == 0 { Left::Nothing } else { Left::Bytes(bytes) });
            }
            if count < slice.len() {
                break;
            }
        }
        if written == 0 {
            let is_open = engine.is_open(self.key());
            return if is_open { Ok(None) } else { Err(closed()) };
        }
        self.link.changed();
        Ok(Some(written))
    }

    fn send_trailers(&self, lines: &[u8]) {
        if self.left.replace(Left::Nothing) == Left::Open {
            let _ = self.link.engine().send_trailers(self.key(), header_block::lines(lines));
            self.link.changed();
        }
    }

    fn end(&self) {
        match self.left.get() {
            Left::Nothing => {}
            Left::Open => {
                self.left.set(Left::Nothing);
                let _ = self.link.engine().send_end(self.key());
                self.link.changed();
            }
            Left::Head | Left::Bytes(_) => self.reset(),
        }
    }

    fn reset(&self) {
        self.reset_with(ErrorCode::INTERNAL_ERROR);
    }

    fn poll_gone(&self) -> Poll<()> {
        self.open.shared.poll_gone()
    }

    fn is_encrypted(&self) -> bool {
        self.link.is_encrypted
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.link.local
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reset_with(ErrorCode::CANCEL);
        self.link.forget(&self.open);
    }
}
