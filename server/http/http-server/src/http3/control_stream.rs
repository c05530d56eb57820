//! The control stream of this side (RFC 9114 6.2.1).
//!
//! Called by the task of the connection. Invariant: it is never closed; a client that does not read it loses
//! the connection.

use super::link::Link;
use outboard_http3::ErrorCode;

impl Link {
    /// Opens the control stream of this side.
    pub(super) fn open_control_stream(&self) -> Result<(), ErrorCode> {
        let id = self.quic.open_unidirectional().ok_or(ErrorCode::GENERAL_PROTOCOL_ERROR)?;
        self.control_stream.set(Some(id));
        let mut out = Vec::new();
        self.engine.borrow().write_control_stream_start(&mut out);
        self.write_control(id, &out)
    }

    fn write_control(&self, id: u64, bytes: &[u8]) -> Result<(), ErrorCode> {
        self.has_output.set(true);
        match self.quic.write(id, bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            // It allows no 100 bytes on the stream that it has to read first (RFC 9114 6.2).
            _ => Err(ErrorCode::CLOSED_CRITICAL_STREAM),
        }
    }

    /// Refuses requests that have not begun.
    pub(super) fn send_goaway(&self) {
        let mut out = Vec::new();
        self.engine.borrow_mut().write_goaway(&mut out);
        if let Some(id) = self.control_stream.get() {
            // A client that does not read it has its requests refused.
            let _ = self.write_control(id, &out);
        }
    }
}
