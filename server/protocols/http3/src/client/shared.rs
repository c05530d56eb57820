//! What the streams of a client's connection share.
//!
//! Called by every stream.

use super::config::ClientConfig;
use crate::response::ResponseHead;
use crate::skipped_input::SkippedInput;
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
    pub(super) skipped: SkippedInput,
}

impl Shared {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self {
            config,
            decoder: Decoder::new(0, 0),
            encoder: Encoder::new(),
            head: ResponseHead::default(),
            skipped: SkippedInput::new(config.skipped_bytes_max, config.unknown_streams_max),
        }
    }
}
