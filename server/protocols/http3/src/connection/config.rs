//! [`Config`]: the limits of a connection, and its SETTINGS.
//!
//! Chosen by the owner of the QUIC connection.

use crate::settings::Settings;

/// The limits of a connection, and what is announced to the client.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The largest field section, encoded and decoded (RFC 9114 4.2.2).
    pub field_section_bytes_max: usize,
    /// The largest dynamic table of the client's encoder; 0 for none.
    pub qpack_table_capacity: usize,
    /// How many streams may wait for entries of that table; each stores its field section.
    pub qpack_blocked_streams: usize,
    /// Whether extended CONNECT is accepted (RFC 9220 3).
    pub enable_connect_protocol: bool,
    /// How many bytes of unknown and control frames are accepted between two requests.
    pub skipped_bytes_max: u64,
    /// How many streams of unknown types are accepted between two requests.
    pub unknown_streams_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            field_section_bytes_max: 65_536,
            qpack_table_capacity: 0,
            qpack_blocked_streams: 0,
            enable_connect_protocol: false,
            skipped_bytes_max: 65_536,
            unknown_streams_max: 100,
        }
    }
}

impl Config {
    /// The settings to announce.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            qpack_max_table_capacity: self.qpack_table_capacity as u64,
            qpack_blocked_streams: self.qpack_blocked_streams as u64,
            max_field_section_size: Some(self.field_section_bytes_max as u64),
            enable_connect_protocol: self.enable_connect_protocol,
        }
    }
}
