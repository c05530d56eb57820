//! [`DataReader`]: the DATA frame that is being received (RFC 9113 6.1), and the window of the connection.
//!
//! Owned by `connection`. Invariant: the window is charged for a frame when its head arrives, with its padding.

use crate::error::ConnectionError;
use crate::flow_control::ReceiveWindow;
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, flag};
use crate::stream::StreamKey;

/// A frame whose head was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    /// With the length of the padding.
    pub(crate) head_bytes: usize,
    pub(crate) data_bytes: usize,
    /// What the window was charged for beside the data: the padding, and its length.
    pub(crate) padding_bytes: usize,
    /// The frame has the end of its stream.
    pub(crate) is_end: bool,
    /// Whether anything follows the head.
    pub(crate) has_more: bool,
}

/// The rest of a frame.
#[derive(Debug, Clone, Copy)]
struct Rest {
    /// `None`: the data is ignored.
    stream: Option<StreamKey>,
    data_bytes: usize,
    padding_bytes: usize,
    is_end: bool,
}

/// A part of a frame; padding may follow the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: Option<StreamKey>,
    pub(crate) data_bytes: usize,
    pub(crate) bytes: usize,
    /// The stream ends with this part.
    pub(crate) is_end: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DataReader {
    window: ReceiveWindow,
    rest: Option<Rest>,
}

impl DataReader {
    pub(crate) fn new(window_bytes: u32) -> Self {
        Self { window: ReceiveWindow::new(window_bytes), rest: None }
    }

    /// Begins a frame; `input` is what follows its head. `None` if that does not suffice.
    pub(crate) fn begin(
        &mut self,
        head: FrameHead,
        input: &[u8],
    ) -> Result<Option<Begun>, ConnectionError> {
        if head.stream_id == 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        // The length of the padding is a part of the head here.
        let (start, padding) = match head.has(flag::PADDED) {
            false => (0, 0),
            true if head.len == 0 => return Err(ConnectionError::InvalidFrameLength),
            true => match input.first() {
                None => return Ok(None),
                Some(&padding) => (1, usize::from(padding)),
            },
        };
        let data_bytes = (head.len - start).checked_sub(padding);
        let data_bytes = data_bytes.ok_or(ConnectionError::InvalidPadding)?;
        self.window.receive(head.len as u32).map_err(|_| ConnectionError::WindowExceeded)?;
        Ok(Some(Begun {
            head_bytes: FRAME_HEAD_BYTES + start,
            data_bytes,
            padding_bytes: start + padding,
            is_end: head.has(flag::END_STREAM),
            has_more: head.len > start,
        }))
    }

    /// What follows the head belongs to this stream, or is ignored.
    pub(crate) fn expect(&mut self, begun: Begun, stream: Option<StreamKey>) {
        let Begun { head_bytes, data_bytes, padding_bytes, is_end, has_more } = begun;
        let padding_bytes = padding_bytes - (head_bytes - FRAME_HEAD_BYTES);
        self.rest = has_more.then_some(Rest { stream, data_bytes, padding_bytes, is_end });
    }

    /// Whether a frame has begun that is not complete.
    pub(crate) fn is_within_frame(&self) -> bool {
        self.rest.is_some()
    }

    /// More of the frame; `None` without input.
    pub(crate) fn take(&mut self, input: &[u8]) -> Option<Piece> {
        let mut rest = self.rest?;
        let data_bytes = rest.data_bytes.min(input.len());
        let padding_bytes = rest.padding_bytes.min(input.len() - data_bytes);
        let bytes = data_bytes + padding_bytes;
        if bytes == 0 {
            return None;
        }
        rest.data_bytes -= data_bytes;
        rest.padding_bytes -= padding_bytes;
        let is_complete = rest.data_bytes == 0 && rest.padding_bytes == 0;
        self.rest = (!is_complete).then_some(rest);
        let is_end = rest.is_end && is_complete;
        Some(Piece { stream: rest.stream, data_bytes, bytes, is_end })
    }

    /// Received bytes were processed; the increment of a WINDOW_UPDATE that is due.
    pub(crate) fn release(&mut self, bytes: u32) -> Option<u32> {
        self.window.release(bytes)
    }

    /// Forgets a frame that is not complete.
    pub(crate) fn abandon(&mut self) {
        self.rest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::kind;

    const KEY: StreamKey = StreamKey { id: 1, slot: 0 };

    fn frame(len: usize, flags: u8) -> FrameHead {
        FrameHead { len, kind: kind::DATA, flags, stream_id: 1 }
    }

    #[test]
    fn a_frame_is_delivered_in_whatever_pieces_it_arrives() {
        let mut reader = DataReader::new(100);
        let flags = flag::PADDED | flag::END_STREAM;
        assert_eq!(reader.begin(frame(6, flags), &[]).unwrap(), None);
        let begun = reader.begin(frame(6, flags), b"\x02").unwrap().unwrap();
        assert_eq!((begun.head_bytes, begun.data_bytes, begun.padding_bytes), (10, 3, 3));
        reader.expect(begun, Some(KEY));
        let piece =
            |data_bytes, bytes, is_end| Piece { stream: Some(KEY), data_bytes, bytes, is_end };
        assert_eq!(reader.take(b""), None);
        assert_eq!(reader.take(b"a"), Some(piece(1, 1, false)));
        assert_eq!(reader.take(b"bc\0"), Some(piece(2, 3, false)));
        assert!(reader.is_within_frame());
        assert_eq!(reader.take(b"\0next"), Some(piece(0, 1, true)));
        assert!(!reader.is_within_frame());
    }

    #[test]
    fn an_empty_frame_has_no_rest() {
        let mut reader = DataReader::new(100);
        let begun = reader.begin(frame(1, flag::PADDED), b"\0").unwrap().unwrap();
        reader.expect(begun, Some(KEY));
        assert!(!begun.has_more && !reader.is_within_frame());
        assert_eq!(begun.padding_bytes, 1, "the window was charged for the length of the padding");
    }

    #[test]
    fn padding_counts_for_the_window_and_may_not_exceed_its_frame() {
        let mut reader = DataReader::new(10);
        let error = reader.begin(frame(3, flag::PADDED), b"\x03").unwrap_err();
        assert_eq!(error, ConnectionError::InvalidPadding);
        let error = reader.begin(frame(0, flag::PADDED), b"").unwrap_err();
        assert_eq!(error, ConnectionError::InvalidFrameLength);
        assert!(reader.begin(frame(10, flag::PADDED), b"\x09").is_ok());
        assert_eq!(reader.begin(frame(1, 0), b"").unwrap_err(), ConnectionError::WindowExceeded);
        assert_eq!(reader.release(10), Some(10));
        assert!(reader.begin(frame(1, 0), b"").is_ok());
    }

    #[test]
    fn frames_of_the_connection_have_no_data() {
        let head = FrameHead { stream_id: 0, ..frame(1, 0) };
        let error = DataReader::new(10).begin(head, b"x").unwrap_err();
        assert_eq!(error, ConnectionError::InvalidStreamId);
    }
}
