//! What the tasks of streams wait for.
//!
//! Called before they wait. Invariant: a stream that is reported to have no room is returned by
//! [`Connection::next_writable`] once it has.

use super::{Connection, Phase};
use crate::stream::{Sending, StreamKey};

impl Connection {
    /// Whether [`Self::send_data`] accepts anything now. If not, the stream waits for it.
    pub fn is_writable(&mut self, stream: StreamKey) -> bool {
        if self.accepts_bytes(stream) > 0 {
            return true;
        }
        if let Some(state) = self.streams.get_mut(stream)
            && state.sending == Sending::Body
            && !std::mem::replace(&mut state.is_waiting, true)
        {
            self.send_buffers.waiting += 1;
        }
        false
    }

    /// Whether the client has sent its preface and its SETTINGS.
    pub fn has_begun(&self) -> bool {
        self.phase == Phase::Frames
    }
}
