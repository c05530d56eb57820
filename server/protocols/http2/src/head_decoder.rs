//! [`HeadDecoder`]: the blocks of HEADERS and CONTINUATION (RFC 9113 6.2, 6.10), and the fields in them.
//!
//! Owned by `connection`. Invariants: each block is decoded, whatever becomes of its stream, because the
//! state of the decoder depends on it; a block that is assembled is limited in bytes and frames.

use crate::error::ConnectionError;
use crate::frame::{FrameHead, MIN_MAX_FRAME_BYTES, flag, without_padding};
use crate::settings::Settings;
use outboard_header_compression::DecodeError;
use outboard_header_compression::hpack::{self, FieldSection};
use outboard_http_semantics::{HeadReader, RequestHead, SectionKind};
use std::ops::ControlFlow;

/// The most CONTINUATION frames of a block.
const CONTINUATIONS_MAX: u32 = 16;
/// The length of the deprecated priority in HEADERS (RFC 9113 6.2).
const PRIORITY_BYTES: usize = 5;

/// What becomes of the message of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockResult {
    Valid,
    /// RFC 9113 8.1.1.
    Malformed,
    /// There are too many fields or bytes.
    TooLarge,
}

/// A block whose last CONTINUATION was not received, or a complete one.
#[derive(Debug, Default)]
pub(crate) struct AssembledBlock {
    /// 0 if there is none.
    pub(crate) stream_id: u32,
    pub(crate) is_end: bool,
    pub(crate) bytes: Vec<u8>,
    continuations: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct HeadDecoder {
    decoder: hpack::Decoder,
    /// The head or the trailers of the last block.
    head: RequestHead,
    block: AssembledBlock,
    list_bytes_max: usize,
    fields_max: usize,
    allows_protocol: bool,
}

impl HeadDecoder {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            decoder: hpack::Decoder::new(hpack::DEFAULT_TABLE_BYTES),
            head: RequestHead::new(),
            block: AssembledBlock::default(),
            list_bytes_max: settings.max_header_list_bytes as usize,
            fields_max: settings.max_fields,
            allows_protocol: settings.enable_connect_protocol,
        }
    }

    /// What was decoded last.
    pub(crate) fn head(&self) -> &RequestHead {
        &self.head
    }

    /// What was decoded last, for a caller that may take it.
    pub(crate) fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.head
    }

    /// The stream of a block that is not complete.
    pub(crate) fn expects_continuation_of(&self) -> Option<u32> {
        (self.block.stream_id != 0).then_some(self.block.stream_id)
    }

    /// HEADERS: the block, if the frame has all of it.
    pub(crate) fn headers<'p>(
        &mut self,
        head: FrameHead,
        payload: &'p [u8],
    ) -> Result<Option<&'p [u8]>, ConnectionError> {
        // Streams of a client have odd numbers (RFC 9113 5.1.1).
        if head.stream_id.is_multiple_of(2) {
            return Err(ConnectionError::InvalidStreamId);
        }
        let block = without_padding(head, payload).ok_or(ConnectionError::InvalidPadding)?;
        let skipped = if head.has(flag::PRIORITY) { PRIORITY_BYTES } else { 0 };
        let block = block.get(skipped..).ok_or(ConnectionError::InvalidFrameLength)?;
        if head.has(flag::END_HEADERS) {
            return Ok(Some(block));
        }
        self.block.stream_id = head.stream_id;
        self.block.is_end = head.has(flag::END_STREAM);
        self.block.continuations = 0;
        self.block.bytes.clear();
        self.assemble(block).map(|()| None)
    }

    /// CONTINUATION: the block, if it is complete. The caller gives its memory back with [`Self::reuse`].
    pub(crate) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<AssembledBlock>, ConnectionError> {
        self.block.continuations += 1;
        if self.block.continuations > CONTINUATIONS_MAX {
            return Err(ConnectionError::FieldBlockTooLong);
        }
        self.assemble(payload)?;
        Ok(head.has(flag::END_HEADERS).then(|| std::mem::take(&mut self.block)))
    }

    fn assemble(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        // Compressed fields are shorter than their list, except for some that no client sends.
        let max = self.list_bytes_max.saturating_add(MIN_MAX_FRAME_BYTES as usize);
        if self.block.bytes.len() + bytes.len() > max {
            return Err(ConnectionError::FieldBlockTooLong);
        }
        self.block.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The memory of a block is used again.
    pub(crate) fn reuse(&mut self, block: AssembledBlock) {
        self.block.bytes = block.bytes;
    }

    /// Decodes the block of a request.
    pub(crate) fn request(&mut self, block: &[u8]) -> Result<BlockResult, ConnectionError> {
        self.decode(SectionKind::Request { allows_protocol: self.allows_protocol }, block)
    }

    /// Decodes the block of trailers.
    pub(crate) fn trailers(&mut self, block: &[u8]) -> Result<BlockResult, ConnectionError> {
        self.decode(SectionKind::Trailers, block)
    }

    /// Decodes a block into `head`, all of it even if the message is malformed.
    fn decode(&mut self, kind: SectionKind, block: &[u8]) -> Result<BlockResult, ConnectionError> {
        let fields_max = self.fields_max;
        let mut reader = HeadReader::new(&mut self.head, kind);
        let section = self.decoder.decode(block, self.list_bytes_max, |name, value| {
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
    pub(crate) fn skip(&mut self, block: &[u8]) -> Result<(), ConnectionError> {
        let skip = |_: &[u8], _: &[u8]| ControlFlow::Break(());
        self.decoder.decode(block, self.list_bytes_max, skip).map(drop).map_err(block_error)
    }

    /// Forgets a block that is not complete.
    pub(crate) fn abandon(&mut self) {
        self.block = AssembledBlock::default();
    }

    /// Gives back memory that an idle connection does not need.
    pub(crate) fn shrink(&mut self) {
        self.head = RequestHead::new();
        if self.block.stream_id == 0 {
            self.block.bytes = Vec::new();
        }
    }

    /// Without the table of the decoder.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.head.capacity_bytes() + self.block.bytes.capacity()
    }
}

fn block_error(error: DecodeError) -> ConnectionError {
    match error {
        DecodeError::ListFarTooLong => ConnectionError::FieldBlockTooLong,
        _ => ConnectionError::InvalidFieldBlock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::kind;

    /// GET, https and the path `/`, of the static table.
    const GET: &[u8] = b"\x82\x87\x84";
    /// `:method: PUT` as an entry of the dynamic table.
    const PUT_INDEXED: &[u8] = b"\x42\x03PUT";

    fn decoder() -> HeadDecoder {
        HeadDecoder::new(&Settings { max_fields: 2, ..Settings::default() })
    }

    fn frame(kind: u8, flags: u8, len: usize) -> FrameHead {
        FrameHead { len, kind, flags, stream_id: 1 }
    }

    #[test]
    fn a_block_of_one_frame_is_not_copied() {
        let mut decoder = decoder();
        let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
        let payload = [&b"\x02prior"[..], GET, b"\0\0"].concat();
        let block = decoder.headers(frame(kind::HEADERS, flags, payload.len()), &payload);
        assert_eq!(block.unwrap(), Some(GET));
        assert_eq!(decoder.expects_continuation_of(), None);
        assert_eq!(decoder.request(GET).unwrap(), BlockResult::Valid);
        assert_eq!(decoder.head().path(), b"/");
        assert_eq!(decoder.buffer_bytes(), decoder.head().capacity_bytes());
    }

    #[test]
    fn a_block_of_many_frames_is_assembled_in_memory_that_is_used_again() {
        let mut decoder = decoder();
        let begun = decoder.headers(frame(kind::HEADERS, flag::END_STREAM, 1), &GET[..1]);
        assert_eq!(begun.unwrap(), None);
        assert_eq!(decoder.expects_continuation_of(), Some(1));
        let part = decoder.continuation(frame(kind::CONTINUATION, 0, 1), &GET[1..2]).unwrap();
        assert!(part.is_none());
        let last = frame(kind::CONTINUATION, flag::END_HEADERS, 1);
        let block = decoder.continuation(last, &GET[2..]).unwrap().unwrap();
        assert_eq!((block.stream_id, block.is_end, &*block.bytes), (1, true, GET));
        assert_eq!(decoder.expects_continuation_of(), None);
        decoder.reuse(block);
        assert!(decoder.buffer_bytes() >= GET.len());
        decoder.shrink();
        assert_eq!(decoder.buffer_bytes(), decoder.head().capacity_bytes());
    }

    #[test]
    fn a_block_without_end_is_an_error() {
        let mut decoder = decoder();
        decoder.headers(frame(kind::HEADERS, 0, 0), &[]).unwrap();
        let one = frame(kind::CONTINUATION, 0, 0);
        for _ in 0..CONTINUATIONS_MAX {
            assert!(decoder.continuation(one, &[]).unwrap().is_none());
        }
        let error = decoder.continuation(one, &[]).unwrap_err();
        assert_eq!(error, ConnectionError::FieldBlockTooLong);
        let mut decoder = self::decoder();
        decoder.headers(frame(kind::HEADERS, 0, 0), &[]).unwrap();
        let much = vec![0; decoder.list_bytes_max + MIN_MAX_FRAME_BYTES as usize + 1];
        let error = decoder.continuation(one, &much).unwrap_err();
        assert_eq!(error, ConnectionError::FieldBlockTooLong);
    }

    #[test]
    fn the_tables_are_right_after_blocks_that_count_for_nothing() {
        let mut decoder = decoder();
        decoder.skip(PUT_INDEXED).unwrap();
        // 62 is the newest entry of the dynamic table: a second method is malformed.
        assert_eq!(decoder.request(b"\xbe\x82\x87\x84").unwrap(), BlockResult::Malformed);
        assert_eq!(decoder.request(b"\xbe\x87\x84").unwrap(), BlockResult::Valid);
        assert_eq!(decoder.head().method(), b"PUT");
        let fields = [GET, b"\0\x01a\x01b\0\x01c\x01d\0\x01e\x01f"].concat();
        assert_eq!(decoder.request(&fields).unwrap(), BlockResult::TooLarge);
        assert_eq!(decoder.trailers(GET).unwrap(), BlockResult::Malformed);
        assert_eq!(decoder.request(b"\xc6").unwrap_err(), ConnectionError::InvalidFieldBlock);
    }
}
