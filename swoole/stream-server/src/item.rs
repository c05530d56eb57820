//! [`Item`]: something that a worker is to handle and to acknowledge.

use outboard_buffer::Held;
use outboard_ring::stream::{EventKind, StreamEvent};

/// The memory of an item in addition to its bytes.
pub(crate) const ITEM_BYTES: usize = 128;
/// Bytes of one event; longer items are split.
const PIECE_BYTES: usize = 32 * 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) kind: EventKind,
    pub(crate) port: u16,
    pub(crate) session: u64,
    pub(crate) bytes: Vec<u8>,
    /// Workers that have died since they received it.
    pub(crate) deaths: u8,
    /// Whether its worker has begun with it, if it is under suspicion.
    pub(crate) is_started: bool,
    /// Whether a response to it has begun.
    pub(crate) is_acknowledged: bool,
    pub(crate) _held: Held,
}

impl Item {
    /// The number of events that it becomes.
    pub(crate) fn pieces(&self) -> usize {
        self.bytes.len().div_ceil(PIECE_BYTES).max(1)
    }

    /// One of these events.
    pub(crate) fn encode_piece(&self, index: usize, out: &mut Vec<u8>) {
        let end = self.bytes.len().min((index + 1) * PIECE_BYTES);
        let event = StreamEvent {
            kind: self.kind,
            is_last: index + 1 == self.pieces(),
            is_suspect: self.deaths > 0,
            port: self.port,
            item: self.id,
            session: self.session,
            bytes: &self.bytes[index * PIECE_BYTES..end],
        };
        event.encode(out);
    }
}
