//! [`Settings`]: what this side announces, and [`PeerSettings`]: what the peer has (RFC 9113 6.5).
//!
//! Used by `connection`. Invariant: a setting outside of its range is an error of the connection
//! before any setting of its frame has an effect on streams.

use crate::error::ConnectionError;
use crate::flow_control::{DEFAULT_WINDOW, MAX_WINDOW};
use crate::frame::{MAX_MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES, kind, write_frame};

/// The identifiers of settings (RFC 9113 6.5.2, RFC 8441 3, RFC 9218 2.1).
mod id {
    pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
    pub(super) const ENABLE_PUSH: u16 = 0x2;
    pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub(super) const MAX_FRAME_SIZE: u16 = 0x5;
    pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    pub(super) const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

/// The size of the peer's decoding table, without SETTINGS (RFC 7541 4.2).
const DEFAULT_TABLE_BYTES: u32 = 4096;
const SETTING_BYTES: usize = 6;

/// The settings of a server's connection, and the bounds of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Open streams; more are refused.
    pub max_concurrent_streams: u32,
    /// What a client may send on a stream before the server releases it.
    pub stream_window_bytes: u32,
    /// What a client may send on all streams before the server releases it.
    pub connection_window_bytes: u32,
    /// The list of fields of a request, with 32 bytes for each (RFC 9113 6.5.2).
    pub max_header_list_bytes: u32,
    /// The number of fields of a request.
    pub max_fields: usize,
    /// Whether extended CONNECT is accepted (RFC 8441).
    pub enable_connect_protocol: bool,
    /// Data of a response that waits for a window or for its turn.
    pub stream_send_buffer_bytes: usize,
    /// That of all streams; each may have [`Settings::MIN_SEND_BUFFER_BYTES`] nevertheless.
    pub send_buffer_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_streams: 128,
            stream_window_bytes: 256 << 10,
            connection_window_bytes: 1 << 20,
            max_header_list_bytes: 40 << 10,
            max_fields: 100,
            enable_connect_protocol: true,
            stream_send_buffer_bytes: 64 << 10,
            send_buffer_bytes: 256 << 10,
        }
    }
}

impl Settings {
    /// What a stream may buffer even if the others have used up the common limit.
    pub const MIN_SEND_BUFFER_BYTES: usize = 4 << 10;

    /// Writes the SETTINGS frame.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let settings = [
            (id::MAX_CONCURRENT_STREAMS, self.max_concurrent_streams),
            (id::INITIAL_WINDOW_SIZE, self.stream_window_bytes.min(MAX_WINDOW)),
            (id::MAX_HEADER_LIST_SIZE, self.max_header_list_bytes),
            (id::ENABLE_CONNECT_PROTOCOL, self.enable_connect_protocol.into()),
            (id::NO_RFC7540_PRIORITIES, 1),
        ];
        let mut payload = [0; 5 * SETTING_BYTES];
        for (bytes, (id, value)) in payload.chunks_exact_mut(SETTING_BYTES).zip(settings) {
            let (id_bytes, value_bytes) = bytes.split_at_mut(2);
            id_bytes.copy_from_slice(&id.to_be_bytes());
            value_bytes.copy_from_slice(&value.to_be_bytes());
        }
        write_frame(out, kind::SETTINGS, 0, 0, &payload);
    }
}

/// The settings of the peer that this side uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) header_table_bytes: u32,
    pub(crate) stream_window_bytes: u32,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { header_table_bytes: DEFAULT_TABLE_BYTES, stream_window_bytes: DEFAULT_WINDOW }
    }
}

impl PeerSettings {
    /// These settings changed by the payload of a SETTINGS frame.
    pub(crate) fn changed(mut self, payload: &[u8]) -> Result<Self, ConnectionError> {
        let (settings, rest) = payload.as_chunks::<SETTING_BYTES>();
        if !rest.is_empty() {
            return Err(ConnectionError::InvalidFrameLength);
        }
        for [a, b, value @ ..] in settings {
            self.change(u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value))?;
        }
        Ok(self)
    }

    fn change(&mut self, id: u16, value: u32) -> Result<(), ConnectionError> {
        match id {
            id::HEADER_TABLE_SIZE => self.header_table_bytes = value,
            id::INITIAL_WINDOW_SIZE if value > MAX_WINDOW => {
                return Err(ConnectionError::InvalidInitialWindow);
            }
            id::INITIAL_WINDOW_SIZE => self.stream_window_bytes = value,
            id::MAX_FRAME_SIZE if !(MIN_MAX_FRAME_BYTES..=MAX_MAX_FRAME_BYTES).contains(&value) => {
                return Err(ConnectionError::InvalidSetting);
            }
            id::ENABLE_PUSH | id::ENABLE_CONNECT_PROTOCOL | id::NO_RFC7540_PRIORITIES
                if value > 1 =>
            {
                return Err(ConnectionError::InvalidSetting);
            }
            // Unknown ones are ignored (RFC 9113 6.5.2), and those without use for this side.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(settings: &[(u16, u32)]) -> Result<PeerSettings, ConnectionError> {
        let bytes = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat());
        PeerSettings::default().changed(&bytes.collect::<Vec<_>>())
    }

    #[test]
    fn settings_in_range_are_applied_and_unknown_ones_ignored() {
        let peer = changed(&[(1, 0), (4, MAX_WINDOW), (5, 1 << 20), (0xff, 7), (4, 5)]).unwrap();
        let expected = PeerSettings { header_table_bytes: 0, stream_window_bytes: 5 };
        assert_eq!(peer, expected);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (id, value) in [(2, 2), (5, 16_383), (5, 1 << 24), (8, 2), (9, 2)] {
            assert_eq!(changed(&[(id, value)]), Err(ConnectionError::InvalidSetting), "{id}");
        }
        assert_eq!(changed(&[(4, 1 << 31)]), Err(ConnectionError::InvalidInitialWindow));
        let incomplete = PeerSettings::default().changed(&[0, 4, 0]);
        assert_eq!(incomplete, Err(ConnectionError::InvalidFrameLength));
    }
}
