//! What the streams of a connection share.
//!
//! Called by every stream.

use super::config::Config;
use crate::skipped_input::SkippedInput;
use outboard_header_compression::qpack::Decoder;
use outboard_http_semantics::RequestHead;

/// The QPACK decoder, the buffers of decoded fields, and the account of skipped input.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) decoder: Decoder,
    /// The head or the trailers that were decoded last.
    pub(super) head: RequestHead,
    pub(super) skipped: SkippedInput,
}

impl Shared {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            decoder: Decoder::new(config.qpack_table_capacity, config.qpack_blocked_streams),
            head: RequestHead::default(),
            skipped: SkippedInput::new(config.skipped_bytes_max, config.unknown_streams_max),
        }
    }
}
