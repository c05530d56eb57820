//! [`Stream`]: the state of one stream (RFC 9113 5.1), and [`StreamKey`], the server's name for it.
//!
//! Owned by `streams`. Invariant: the state of the receiving side and that of the sending side are
//! independent; a stream is closed when both have ended.

use crate::flow_control::{ReceiveWindow, SendWindow};
use outboard_http_semantics::{Fields, Priority};
use std::collections::VecDeque;

/// A stream of a connection. Calls for one that is closed have no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamKey {
    pub(crate) id: u32,
    pub(crate) slot: u32,
}

impl StreamKey {
    /// The stream identifier.
    pub fn id(self) -> u32 {
        self.id
    }

    /// A number below the most streams that were open at a time; it is used again after the stream is
    /// closed.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The sending side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The final head was not sent.
    Head,
    Body,
    /// The server has handed over everything; the buffer may hold the end.
    Ended,
}

/// The state of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// 0 for a free slot.
    pub(crate) id: u32,
    pub(crate) sending: Sending,
    /// END_STREAM was received.
    pub(crate) has_received_all: bool,
    /// For CONNECT, the two directions end independently.
    pub(crate) is_tunnel: bool,
    /// In the scheduler: has buffered data and an open window.
    pub(crate) is_scheduled: bool,
    /// The server waits until it can send more.
    pub(crate) is_waiting: bool,
    /// The client has declared a priority.
    pub(crate) has_priority: bool,
    pub(crate) priority: Priority,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// What is missing of the declared length.
    pub(crate) body_left: Option<u64>,
    /// Data without a frame yet.
    pub(crate) buffer: VecDeque<u8>,
    /// Sent after the buffer.
    pub(crate) trailers: Option<Box<Fields>>,
    /// Sent in the current turn.
    pub(crate) turn_bytes: usize,
    /// Since when no buffered data was sent.
    pub(crate) stalled_since_ms: Option<u64>,
}

impl Stream {
    pub(crate) fn new(id: u32, send_window_bytes: u32, receive_window_bytes: u32) -> Self {
        Self {
            id,
            sending: Sending::Head,
            has_received_all: false,
            is_tunnel: false,
            is_scheduled: false,
            is_waiting: false,
            has_priority: false,
            priority: Priority::default(),
            send_window: SendWindow::new(send_window_bytes),
            receive_window: ReceiveWindow::new(receive_window_bytes),
            body_left: None,
            buffer: VecDeque::new(),
            trailers: None,
            turn_bytes: 0,
            stalled_since_ms: None,
        }
    }

    /// Whether the buffer has something that the stream's window allows.
    pub(crate) fn is_ready(&self) -> bool {
        !self.buffer.is_empty() && self.send_window.bytes() > 0
    }

    /// Whether END_STREAM was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sending == Sending::Ended && self.buffer.is_empty() && self.trailers.is_none()
    }
}
