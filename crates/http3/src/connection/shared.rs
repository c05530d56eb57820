//! What the streams of a connection share.
//!
//! Called by every stream. Invariant: what is skipped between two requests is bounded.

use super::Config;
use crate::error::{ConnectionError, ErrorCode};
use outboard_header_compression::qpack::Decoder;
use outboard_http_semantics::RequestHead;

/// The QPACK decoder, the buffers of decoded fields, and the account of skipped input.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) decoder: Decoder,
    /// The head or the trailers that were decoded last.
    pub(super) head: RequestHead,
    skipped_bytes: u64,
    unknown_streams: u64,
}

impl Shared {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            decoder: Decoder::new(config.qpack_table_capacity, config.qpack_blocked_streams),
            head: RequestHead::default(),
            skipped_bytes: 0,
            unknown_streams: 0,
        }
    }

    /// Counts bytes that are not part of a request.
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

    /// A request began: the account starts again.
    pub(super) fn count_request(&mut self) {
        (self.skipped_bytes, self.unknown_streams) = (0, 0);
    }
}
