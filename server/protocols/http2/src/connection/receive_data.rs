//! DATA (RFC 9113 6.1), delivered as it arrives.
//!
//! Called by `receive`. Invariants: a window is charged for a frame when its head arrives; what is not
//! delivered is released at once.

use super::Connection;
use super::receive::Step;
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Received;
use crate::frame::{FRAME_HEAD_BYTES, FrameHead, flag};
use crate::meter::{Metered, SMALL_DATA_BYTES};
use crate::stream::StreamKey;
use crate::streams::Closed;

/// The rest of a DATA frame that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataFrame {
    /// `None`: the data is ignored.
    stream: Option<StreamKey>,
    data_left: usize,
    padding_left: usize,
    is_end: bool,
}

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
        if head.stream_id == 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        // The length of the padding is a part of the head here.
        let (start, padding) = match head.has(flag::PADDED) {
            false => (0, 0),
            true if head.len == 0 => return Err(ConnectionError::InvalidFrameLength),
            true => match input.first() {
                None => return Ok(Step::Incomplete),
                Some(&padding) => (1, usize::from(padding)),
            },
        };
        let data_bytes = (head.len - start).checked_sub(padding);
        let data_bytes = data_bytes.ok_or(ConnectionError::InvalidPadding)?;
        let is_end = head.has(flag::END_STREAM);
        self.receive_window
            .receive(head.len as u32)
            .map_err(|_| ConnectionError::WindowExceeded)?;
        self.count_data(data_bytes, is_end)?;
        let consumed = FRAME_HEAD_BYTES + start;
        let mut frame =
            DataFrame { stream: None, data_left: data_bytes, padding_left: padding, is_end };
        let mut event = None;
        match self.accept_data(head, data_bytes, is_end)? {
            Ok(key) => {
                frame.stream = Some(key);
                self.release(key, start + padding);
                if head.len == start && is_end {
                    event = Some(self.data_event(key, consumed, consumed, true));
                }
            }
            Err(refused) => {
                self.release_of_connection(head.len as u32);
                if let Refused::Stream(code) = refused {
                    event = self.refuse_data(head.stream_id, code)?;
                }
            }
        }
        self.data = (head.len > start).then_some(frame);
        Ok(step(consumed, event))
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
        if id > self.last_id {
            return match self.ignores_new_streams() && id % 2 == 1 {
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
    pub(super) fn continue_data(&mut self, mut frame: DataFrame, input: &[u8]) -> Step {
        let data_bytes = frame.data_left.min(input.len());
        let padding_bytes = frame.padding_left.min(input.len() - data_bytes);
        let bytes = data_bytes + padding_bytes;
        if bytes == 0 {
            return Step::Incomplete;
        }
        frame.data_left -= data_bytes;
        frame.padding_left -= padding_bytes;
        let is_complete = frame.data_left == 0 && frame.padding_left == 0;
        self.data = (!is_complete).then_some(frame);
        let is_end = frame.is_end && is_complete;
        match frame.stream.filter(|key| self.is_open(*key)) {
            Some(key) if data_bytes > 0 || is_end => {
                step(bytes, Some(self.data_event(key, 0, data_bytes, is_end)))
            }
            // Data of a closed stream was released when the stream was closed.
            _ => Step::Consumed(bytes),
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

    /// END_STREAM was received.
    pub(super) fn finish_receiving(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.has_received_all = true;
        if stream.is_sent() {
            self.close(key, false);
        }
    }
}

fn step(bytes: usize, event: Option<Received>) -> Step {
    match event {
        Some(event) => Step::Event(bytes, event),
        None => Step::Consumed(bytes),
    }
}
