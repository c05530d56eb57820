//! [`Stream`]: a stream of HTTP/3, as the task of its request sees it.

use super::link::Link;
use super::open::Open;
use crate::header_block;
use crate::message_stream::{Announced, MessageStream};
use crate::multiplexed::Left;
use outboard_buffer::Held;
use outboard_http_semantics::is_connection_specific;
use outboard_http3::{Connection as Engine, ErrorCode};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// The largest DATA frame of a body of unknown length.
const FRAME_BYTES: usize = 16 << 10;
/// What a write accepts at most, as far as is known.
const WRITE_BYTES: usize = 64 << 10;

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
    pub(super) fn open(link: &Rc<Link>, id: u64, held: Held, has_ended: bool) -> Self {
        let open = link.open(id, held, has_ended);
        Self { link: link.clone(), open, left: Cell::new(Left::Head) }
    }

    fn reset_with(&self, code: ErrorCode) {
        if self.left.replace(Left::Nothing) != Left::Nothing {
            self.link.reset(self.open.id, code);
        }
    }

    /// Sends a HEADERS frame.
    fn send_fields(&self, status: Option<u16>, lines: &[u8]) {
        let mut outgoing = self.open.outgoing.borrow_mut();
        self.link.engine.borrow_mut().write_fields(&mut outgoing, |fields| {
            if let Some(status) = status {
                fields.status(status);
            }
            for (name, value) in header_block::lines(lines) {
                if !is_connection_specific(name) {
                    fields.field(name, value);
                }
            }
        });
    }

    /// Ends the response after what waits.
    fn finish(&self) {
        self.left.set(Left::Nothing);
        self.open.is_ending.set(true);
        self.link.write_outgoing(&self.open);
    }

    /// Writes a part of the only DATA frame.
    fn write_counted(&self, slices: &[IoSlice<'_>], left: u64) -> Result<usize, ()> {
        let (mut written, mut left) = (0, left);
        for slice in slices {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(slice.len());
            let count = self.link.write(&self.open, &slice[..most])?;
            (written, left) = (written + count, left - count as u64);
            if count < slice.len() {
                break;
            }
        }
        self.left.set(Left::Bytes(left));
        if left == 0 {
            self.finish();
        }
        Ok(written)
    }

    /// Writes a DATA frame.
    fn write_frame(&self, slices: &[IoSlice<'_>]) -> usize {
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        let (len, mut left) = (total.min(FRAME_BYTES), total.min(FRAME_BYTES));
        if len > 0 {
            let mut outgoing = self.open.outgoing.borrow_mut();
            Engine::write_data_head(&mut outgoing, len as u64);
            for slice in slices {
                let count = slice.len().min(left);
                outgoing.extend_from_slice(&slice[..count]);
                left -= count;
            }
        }
        self.link.write_outgoing(&self.open);
        len
    }

    fn is_full(&self) -> bool {
        self.open.is_blocked.get() || !self.open.outgoing.borrow().is_empty()
    }
}

impl MessageStream for Stream {
    fn poll_readable(&self) -> Poll<()> {
        self.open.shared.poll_readable()
    }

    fn try_read(&self, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let read = self.open.shared.try_read(buffer)?;
        if matches!(read, Some(1..)) && self.open.is_paused.take() {
            self.link.resume(self.open.id);
        }
        Ok(read)
    }

    fn is_read(&self) -> bool {
        self.open.shared.is_read()
    }

    fn poll_writable(&self) -> Poll<()> {
        self.open.shared.poll_writable(|| !self.is_full())
    }

    fn free_bytes(&self) -> usize {
        if self.open.shared.is_closed() || self.is_full() { 0 } else { WRITE_BYTES }
    }

    fn send_interim(&self, status: u16, lines: &[u8]) {
        self.send_fields(Some(status), lines);
        self.link.write_outgoing(&self.open);
    }

    fn send_head(&self, status: u16, lines: &[u8], announced: Announced) {
        // RFC 9220 3: the response to an extended CONNECT is 200.
        let status = if status == 101 { 200 } else { status };
        self.send_fields(Some(status), lines);
        match announced {
            Announced::Nothing => self.finish(),
            Announced::Length(length) => {
                Engine::write_data_head(&mut self.open.outgoing.borrow_mut(), length);
                self.left.set(Left::Bytes(length));
                self.link.write_outgoing(&self.open);
            }
            Announced::Open => {
                self.left.set(Left::Open);
                self.link.write_outgoing(&self.open);
            }
        }
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        if self.open.shared.is_closed() {
            return Err(closed());
        }
        if self.is_full() {
            return Ok(None);
        }
        let written = match self.left.get() {
            Left::Bytes(left) => self.write_counted(slices, left).map_err(|()| closed())?,
            Left::Open => self.write_frame(slices),
            Left::Head | Left::Nothing => 0,
        };
        let is_empty = slices.iter().all(|slice| slice.is_empty());
        Ok(if written == 0 && !is_empty { None } else { Some(written) })
    }

    fn send_trailers(&self, lines: &[u8]) {
        if self.left.get() == Left::Open {
            self.send_fields(None, lines);
            self.finish();
        }
    }

    fn end(&self) {
        match self.left.get() {
            Left::Nothing => {}
            Left::Open => self.finish(),
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
        true
    }

    fn local_address(&self) -> Option<SocketAddr> {
        Some(self.link.quic.local_address())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reset_with(ErrorCode::REQUEST_CANCELLED);
        self.open.is_released.set(true);
        if !self.open.shared.has_ended() && !self.open.shared.is_closed() {
            // The rest of the request is not needed (RFC 9114 4.1).
            self.link.stop_reading(self.open.id);
        }
        self.link.forget_if_over(&self.open);
    }
}
