//! DATA (RFC 9113 6.1), delivered as it arrives.
//!
//! Called by `receive`. Invariants: the windows are charged for a frame when its head arrives; what is not
//! delivered is released at once.

use super::Connection;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::{Received, Step};
use crate::frame::FrameHead;
use crate::meter::{Metered, SMALL_DATA_BYTES};
use crate::stream::StreamKey;
use crate::streams::Closed;

/// A frame that is not delivered.
enum Refused {
    /// A stream that is closed.
    Ignored,
    /// The stream is reset.
    Stream(ErrorCode),
}

impl Connection {
    /// Begins a frame; `input` is what follows its head.
    pub(super) fn begin_data(
        &mut self,
        head: FrameHead,
        input: &[u8],
    ) -> Result<Step, ConnectionError> {
        let Some(begun) = self.data.begin(head, input)? else { return Ok(Step::Incomplete) };
        self.count_data(begun.data_bytes, begun.is_end)?;
        let mut event = None;
        match self.accept_data(head, begun.data_bytes, begun.is_end)? {
            Ok(key) => {
                self.data.expect(begun, Some(key));
                self.release(key, begun.padding_bytes);
                if !begun.has_more && begun.is_end {
                    event = Some(self.data_event(key, begun.head_bytes, begun.head_bytes, true));
                }
            }
            Err(refused) => {
                self.data.expect(begun, None);
                self.release_of_connection(head.len as u32);
                if let Refused::Stream(code) = refused {
                    event = self.refuse_data(head.stream_id, code)?;
                }
            }
        }
        Ok(Step::of(begun.head_bytes, event))
    }

    /// Charges the stream for a frame.
    fn accept_data(
        &mut self,
        head: FrameHead,
        data_bytes: usize,
        is_end: bool,
    ) -> Result<Result<StreamKey, Refused>, ConnectionError> {
        let Some(key) = self.streams.find(head.stream_id) else {
            return self.why_no_data(head.stream_id).map(Err);
        };
        let Some(stream) = self.streams.get_mut(key) else { return Ok(Err(Refused::Ignored)) };
        if stream.has_received_all {
            return Ok(Err(Refused::Stream(ErrorCode::STREAM_CLOSED)));
        }
        if let Some(left) = &mut stream.body_left {
            // RFC 9113 8.1.1.
            match left.checked_sub(data_bytes as u64) {
                Some(rest) if rest == 0 || !is_end => *left = rest,
                _ => return Ok(Err(Refused::Stream(ErrorCode::PROTOCOL_ERROR))),
            }
        }
        // A frame that is refused does not count: what counts is released when the stream is closed.
        if stream.receive_window.receive(head.len as u32).is_err() {
            return Ok(Err(Refused::Stream(ErrorCode::FLOW_CONTROL_ERROR)));
        }
        Ok(Ok(key))
    }

    /// DATA for a stream that is not open (RFC 9113 5.1).
    fn why_no_data(&mut self, id: u32) -> Result<Refused, ConnectionError> {
        if self.lifecycle.is_new(id) {
            return match self.lifecycle.ignores_new_streams() && id % 2 == 1 {
                true => Ok(Refused::Ignored),
                false => Err(ConnectionError::IdleStream),
            };
        }
        self.meters.count(Metered::Stray, self.now_ms)?;
        match self.streams.why_closed(id) {
            Closed::ByReset => Ok(Refused::Ignored),
            Closed::ByPeer | Closed::Unknown => Ok(Refused::Stream(ErrorCode::STREAM_CLOSED)),
        }
    }

    fn refuse_data(
        &mut self,
        id: u32,
        code: ErrorCode,
    ) -> Result<Option<Received>, ConnectionError> {
        let open = self.streams.find(id);
        self.reset_provoked(id, code)?;
        Ok(open.map(|stream| Received::Reset { stream, code, is_by_client: false }))
    }

    fn count_data(&mut self, data_bytes: usize, is_end: bool) -> Result<(), ConnectionError> {
        if is_end || data_bytes >= SMALL_DATA_BYTES {
            return Ok(());
        }
        let what = if data_bytes == 0 { Metered::EmptyData } else { Metered::SmallData };
        self.meters.count(what, self.now_ms)
    }

    /// Delivers more of a frame.
    pub(super) fn continue_data(&mut self, input: &[u8]) -> Step {
        let Some(piece) = self.data.take(input) else { return Step::Incomplete };
        match piece.stream.filter(|key| self.is_open(*key)) {
            Some(key) if piece.data_bytes > 0 || piece.is_end => {
                let event = self.data_event(key, 0, piece.data_bytes, piece.is_end);
                Step::Event(piece.bytes, event)
            }
            // Data of a closed stream was released when the stream was closed.
            _ => Step::Consumed(piece.bytes),
        }
    }

    fn data_event(
        &mut self,
        stream: StreamKey,
        start: usize,
        end: usize,
        is_end: bool,
    ) -> Received {
        if is_end {
            self.finish_receiving(stream);
        }
        Received::Data { stream, start, end, is_end }
    }
}
