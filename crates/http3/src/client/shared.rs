//! What the streams of a client's connection share.
//!
//! Called by every stream. Invariant: what is skipped between two responses is bounded.

use super::ClientConfig;
use crate::error::{ConnectionError, ErrorCode};
use crate::response::ResponseHead;
use outboard_header_compression::qpack::{Decoder, Encoder};

/// QPACK, the buffers of decoded fields, and the account of skipped input.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ClientConfig,
    pub(super) decoder: Decoder,
    /// Reads the server's decoder stream; requests are written without it.
    pub(super) encoder: Encoder,
    /// The head that was decoded last.
    pub(super) head: ResponseHead,
    skipped_bytes: u64,
    unknown_streams: u64,
}

impl Shared {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self {
            config,
            decoder: Decoder::new(0, 0),
            encoder: Encoder::new(),
            head: ResponseHead::default(),
            skipped_bytes: 0,
            unknown_streams: 0,
        }
    }

    /// Counts bytes that are not part of a final response.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), ConnectionError> {
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
        let is_excessive = self.skipped_bytes > self.config.skipped_bytes_max;
        let error = ConnectionError::new(ErrorCode::EXCESSIVE_LOAD, "too many unknown frames");
        if is_excessive { Err(error) } else { Ok(()) }
    }

    /// Counts a stream of an unknown type.
    pub(super) fn skip_stream(&mut self) -> Result<(), ConnectionError> {
        self.unknown_streams += 1;
        let is_excessive = self.unknown_streams > self.config.unknown_streams_max;
        let error = ConnectionError::new(ErrorCode::EXCESSIVE_LOAD, "too many unknown streams");
        if is_excessive { Err(error) } else { Ok(()) }
    }

    /// A response began: the account starts again.
    pub(super) fn count_response(&mut self) {
        (self.skipped_bytes, self.unknown_streams) = (0, 0);
    }
}
