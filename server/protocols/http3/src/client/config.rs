//! [`ClientConfig`]: the limits of a connection with a server.
//!
//! Chosen by the owner of the QUIC connection.

/// The limits of a connection with a server.
#[derive(Debug, Clone, Copy)]
pub struct ClientConfig {
    /// The largest field section, encoded and decoded (RFC 9114 4.2.2).
    pub field_section_bytes_max: usize,
    /// How many bytes of interim responses, unknown and control frames are accepted between two
    /// responses.
    pub skipped_bytes_max: u64,
    /// How many streams of unknown types are accepted between two responses.
    pub unknown_streams_max: u64,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            field_section_bytes_max: 65_536,
            skipped_bytes_max: 65_536,
            unknown_streams_max: 100,
        }
    }
}
