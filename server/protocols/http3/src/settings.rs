//! The SETTINGS frame (RFC 9114 7.2.4, RFC 9204 5, RFC 9220 3).
//!
//! Called by `connection` for both directions. Invariant: a setting occurs once.

use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{frame_type, write_frame_head};
use crate::varint::{read_varint, write_varint};

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Settings of HTTP/2 that are not allowed (RFC 9114 7.2.4.1).
const OF_HTTP2_ONLY: [u64; 4] = [0x2, 0x3, 0x4, 0x5];

/// How many settings are compared with each other.
const SETTINGS_MAX: usize = 64;

/// The settings of a side; the default is what applies before they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The size of the dynamic table that the peer's encoder may use.
    pub qpack_max_table_capacity: u64,
    /// The number of streams that may wait for entries.
    pub qpack_blocked_streams: u64,
    /// The largest field section that the sender of the settings accepts (RFC 9114 4.2.2).
    pub max_field_section_size: Option<u64>,
    /// Whether extended CONNECT is accepted (RFC 9220 3).
    pub enable_connect_protocol: bool,
}

impl Settings {
    /// The settings before the frame arrives.
    pub const DEFAULT: Self = Self {
        qpack_max_table_capacity: 0,
        qpack_blocked_streams: 0,
        max_field_section_size: None,
        enable_connect_protocol: false,
    };

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// A setting is incomplete, not allowed or occurs twice.
    pub fn read(mut payload: &[u8]) -> Result<Self, ConnectionError> {
        let error = |description| ConnectionError::new(ErrorCode::SETTINGS_ERROR, description);
        let (mut settings, mut identifiers) = (Self::DEFAULT, Vec::new());
        while !payload.is_empty() {
            let setting = (read_varint(&mut payload), read_varint(&mut payload));
            let (Some(identifier), Some(value)) = setting else {
                return Err(ConnectionError::new(ErrorCode::FRAME_ERROR, "setting is incomplete"));
            };
            if OF_HTTP2_ONLY.contains(&identifier) {
                return Err(error("setting of HTTP/2"));
            }
            if identifiers.contains(&identifier) {
                return Err(error("setting occurs twice"));
            }
            if identifiers.len() >= SETTINGS_MAX {
                return Err(ConnectionError::new(ErrorCode::EXCESSIVE_LOAD, "too many settings"));
            }
            identifiers.push(identifier);
            match (identifier, value) {
                (QPACK_MAX_TABLE_CAPACITY, _) => settings.qpack_max_table_capacity = value,
                (QPACK_BLOCKED_STREAMS, _) => settings.qpack_blocked_streams = value,
                (MAX_FIELD_SECTION_SIZE, _) => settings.max_field_section_size = Some(value),
                (ENABLE_CONNECT_PROTOCOL, 0 | 1) => settings.enable_connect_protocol = value == 1,
                (ENABLE_CONNECT_PROTOCOL, _) => return Err(error("setting is neither 0 nor 1")),
                _ => {}
            }
        }
        Ok(settings)
    }

    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        let mut write = |identifier, value: u64, default| {
            if value != default {
                write_varint(&mut payload, identifier);
                write_varint(&mut payload, value);
            }
        };
        write(QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity, 0);
        write(QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams, 0);
        write(MAX_FIELD_SECTION_SIZE, self.max_field_section_size.unwrap_or(u64::MAX), u64::MAX);
        write(ENABLE_CONNECT_PROTOCOL, self.enable_connect_protocol.into(), 0);
        write_frame_head(out, frame_type::SETTINGS, payload.len() as u64);
        out.extend_from_slice(&payload);
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive() {
        let all = Settings {
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 100,
            max_field_section_size: Some(65_536),
            enable_connect_protocol: true,
        };
        for settings in [all, Settings::DEFAULT] {
            let mut frame = Vec::new();
            settings.write(&mut frame);
            assert_eq!(frame[..2], [4, frame.len() as u8 - 2]);
            assert_eq!(Settings::read(&frame[2..]), Ok(settings));
        }
    }

    #[test]
    fn unknown_settings_are_ignored() {
        assert_eq!(Settings::read(&[0x21, 7, 0x40, 0x40, 1]), Ok(Settings::DEFAULT));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let many: Vec<u8> = (0..65).flat_map(|number| [0x40, 0x80 + number, 0]).collect();
        for (payload, code) in [
            (&[1][..], ErrorCode::FRAME_ERROR),
            (&[0x40], ErrorCode::FRAME_ERROR),
            (&[1, 0x40], ErrorCode::FRAME_ERROR),
            (&[2, 0], ErrorCode::SETTINGS_ERROR),
            (&[5, 0], ErrorCode::SETTINGS_ERROR),
            (&[1, 0, 7, 0, 1, 0], ErrorCode::SETTINGS_ERROR),
            (&[0x21, 0, 0x21, 0], ErrorCode::SETTINGS_ERROR),
            (&[8, 2], ErrorCode::SETTINGS_ERROR),
            (&many, ErrorCode::EXCESSIVE_LOAD),
        ] {
            let result = Settings::read(payload).map_err(|error| error.code());
            assert_eq!(result, Err(code), "{payload:x?}");
        }
    }
}
