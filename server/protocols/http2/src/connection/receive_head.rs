//! HEADERS and CONTINUATION (RFC 9113 6.2, 6.10): requests and trailers.
//!
//! Called by `receive`. Invariants: each block is decoded, whatever becomes of its stream, because the
//! state of the decoder depends on it; a block that is assembled is limited in bytes and frames.

use super::Connection;
use super::receive::Handled;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Received;
use crate::frame::{FrameHead, MIN_MAX_FRAME_BYTES, flag, without_padding};
use crate::meter::Metered;
use crate::stream::{Stream, StreamKey};
use crate::streams::Closed;
use outboard_header_compression::DecodeError;
use outboard_header_compression::hpack::FieldSection;
use outboard_http_semantics::{HeadReader, SectionKind};
use std::ops::ControlFlow;

/// The most CONTINUATION frames of a block.
const CONTINUATIONS_MAX: u32 = 16;
/// The length of the deprecated priority in HEADERS (RFC 9113 6.2).
const PRIORITY_BYTES: usize = 5;

/// What becomes of the message of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockResult {
    Valid,
    /// RFC 9113 8.1.1.
    Malformed,
    /// There are too many fields or bytes.
    TooLarge,
}

/// A block whose last CONTINUATION was not received.
#[derive(Debug, Default)]
pub(super) struct FieldBlock {
    /// 0 if there is none.
    stream_id: u32,
    is_end: bool,
    continuations: u32,
    bytes: Vec<u8>,
}

impl FieldBlock {
    /// The stream of a block that is not complete.
    pub(super) fn expects_continuation_of(&self) -> Option<u32> {
        (self.stream_id != 0).then_some(self.stream_id)
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives back memory if no block is being assembled.
    pub(super) fn shrink(&mut self) {
        if self.stream_id == 0 {
            self.bytes = Vec::new();
        }
    }
}

impl Connection {
    pub(super) fn receive_headers(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        // Streams of a client have odd numbers (RFC 9113 5.1.1).
        if head.stream_id.is_multiple_of(2) {
            return Err(ConnectionError::InvalidStreamId);
        }
        let block = without_padding(head, payload).ok_or(ConnectionError::InvalidPadding)?;
        let skipped = if head.has(flag::PRIORITY) { PRIORITY_BYTES } else { 0 };
        let block = block.get(skipped..).ok_or(ConnectionError::InvalidFrameLength)?;
        let is_end = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.receive_block(head.stream_id, is_end, block);
        }
        self.block.stream_id = head.stream_id;
        self.block.is_end = is_end;
        self.block.continuations = 0;
        self.block.bytes.clear();
        self.add_to_block(block)
    }

    pub(super) fn receive_continuation(&mut self, head: FrameHead, payload: &[u8]) -> Handled {
        self.block.continuations += 1;
        if self.block.continuations > CONTINUATIONS_MAX {
            return Err(ConnectionError::FieldBlockTooLong);
        }
        self.add_to_block(payload)?;
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let block = std::mem::take(&mut self.block);
        let handled = self.receive_block(block.stream_id, block.is_end, &block.bytes);
        // The memory is used again.
        self.block.bytes = block.bytes;
        handled
    }

    fn add_to_block(&mut self, bytes: &[u8]) -> Handled {
        // Compressed fields are shorter than their list, except for some that no client sends.
        let max = (self.settings.max_header_list_bytes as usize)
            .saturating_add(MIN_MAX_FRAME_BYTES as usize);
        if self.block.bytes.len() + bytes.len() > max {
            return Err(ConnectionError::FieldBlockTooLong);
        }
        self.block.bytes.extend_from_slice(bytes);
        Ok(None)
    }

    /// Handles a complete block.
    fn receive_block(&mut self, id: u32, is_end: bool, block: &[u8]) -> Handled {
        if id > self.last_id {
            return self.receive_request(id, is_end, block);
        }
        match self.streams.find(id) {
            Some(key) => self.receive_trailers(key, is_end, block),
            None => {
                self.skip_block(block)?;
                self.meters.count(Metered::Stray, self.now_ms)?;
                match self.streams.why_closed(id) {
                    Closed::ByReset => Ok(None),
                    Closed::ByPeer => Err(ConnectionError::ClosedStream),
                    // RFC 9113 5.1.1.
                    Closed::Unknown => Err(ConnectionError::InvalidStreamId),
                }
            }
        }
    }

    fn receive_request(&mut self, id: u32, is_end: bool, block: &[u8]) -> Handled {
        if self.ignores_new_streams() {
            self.skip_block(block)?;
            return Ok(None);
        }
        self.last_id = id;
        if self.streams.len() >= self.settings.max_concurrent_streams as usize {
            self.skip_block(block)?;
            self.reset_provoked(id, ErrorCode::REFUSED_STREAM)?;
            return Ok(None);
        }
        let allows_protocol = self.settings.enable_connect_protocol;
        match self.decode(SectionKind::Request { allows_protocol }, block)? {
            BlockResult::Valid => self.open(id, is_end),
            BlockResult::TooLarge => {
                let stream = self.open_stream(id, is_end);
                Ok(Some(Received::HeadTooLarge { stream }))
            }
            BlockResult::Malformed => {
                self.reset_provoked(id, ErrorCode::PROTOCOL_ERROR)?;
                Ok(None)
            }
        }
    }

    /// Opens the stream of a valid request.
    fn open(&mut self, id: u32, is_end: bool) -> Handled {
        // RFC 9113 8.1.1.
        if is_end && self.head.content_length().is_some_and(|length| length > 0) {
            self.reset_provoked(id, ErrorCode::PROTOCOL_ERROR)?;
            return Ok(None);
        }
        let key = self.open_stream(id, is_end);
        let early = self.take_early_priority(id);
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        stream.body_left = self.head.content_length();
        stream.is_tunnel = self.head.is_connect();
        // An update is newer than the request that it precedes (RFC 9218 7.1).
        if let Some(priority) = early.or(self.head.priority()) {
            stream.priority = priority;
            stream.has_priority = true;
        }
        Ok(Some(Received::Head { stream: key, is_end }))
    }

    fn open_stream(&mut self, id: u32, is_end: bool) -> StreamKey {
        let (send, receive) = (self.peer.stream_window_bytes, self.settings.stream_window_bytes);
        let mut stream = Stream::new(id, send, receive);
        stream.has_received_all = is_end;
        self.streams.open(stream)
    }

    fn receive_trailers(&mut self, key: StreamKey, is_end: bool, block: &[u8]) -> Handled {
        let result = self.decode(SectionKind::Trailers, block)?;
        let Some(stream) = self.streams.get_mut(key) else { return Ok(None) };
        let code = if stream.has_received_all {
            ErrorCode::STREAM_CLOSED
        } else if !is_end || result != BlockResult::Valid || stream.body_left.is_some_and(|b| b > 0)
        {
            // RFC 9113 8.1, 8.1.1.
            ErrorCode::PROTOCOL_ERROR
        } else {
            self.finish_receiving(key);
            return Ok(Some(Received::Trailers { stream: key }));
        };
        self.reset_provoked(key.id, code)?;
        Ok(Some(Received::Reset { stream: key, code, is_by_client: false }))
    }

    /// Decodes a block into `head`, all of it even if the message is malformed.
    fn decode(&mut self, kind: SectionKind, block: &[u8]) -> Result<BlockResult, ConnectionError> {
        let fields_max = self.settings.max_fields;
        let list_bytes_max = self.settings.max_header_list_bytes as usize;
        let mut reader = HeadReader::new(&mut self.head, kind);
        let section = self.decoder.decode(block, list_bytes_max, |name, value| {
            if reader.field_count() >= fields_max {
                return ControlFlow::Break(BlockResult::TooLarge);
            }
            match reader.add(name, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(BlockResult::Malformed),
            }
        });
        match section {
            Ok(FieldSection::Complete) if reader.finish().is_ok() => Ok(BlockResult::Valid),
            Ok(FieldSection::Complete) => Ok(BlockResult::Malformed),
            Ok(FieldSection::Stopped(result)) => Ok(result),
            Ok(FieldSection::TooLong) => Ok(BlockResult::TooLarge),
            Err(error) => Err(block_error(error)),
        }
    }

    /// Decodes a block of a stream that is closed; only the decoder needs it.
    fn skip_block(&mut self, block: &[u8]) -> Result<(), ConnectionError> {
        let list_bytes_max = self.settings.max_header_list_bytes as usize;
        let skip = |_: &[u8], _: &[u8]| ControlFlow::Break(());
        self.decoder.decode(block, list_bytes_max, skip).map(drop).map_err(block_error)
    }
}

fn block_error(error: DecodeError) -> ConnectionError {
    match error {
        DecodeError::ListFarTooLong => ConnectionError::FieldBlockTooLong,
        _ => ConnectionError::InvalidFieldBlock,
    }
}
