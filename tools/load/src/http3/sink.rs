//! [`Sink`]: what the events of a connection mean for its lanes.
//!
//! Used by the session while it reads a stream. Invariant: a lane is free after its request has ended.

use super::{Lane, lane_of};
use crate::failures::Failure;
use crate::received::ReceivedLanes;
use crate::response::Response;
use outboard_http3::{ClientEvent, ErrorCode};

/// See the module.
pub(super) struct Sink<'a> {
    pub(super) lanes: &'a mut [Lane],
    pub(super) responses: &'a mut [Response],
    pub(super) received: &'a mut ReceivedLanes,
    /// Whether the server accepts no more requests.
    pub(super) is_leaving: &'a mut bool,
    /// Streams that are of no more use, with the reason.
    pub(super) abandoned: Vec<(u64, ErrorCode)>,
}

impl Sink<'_> {
    pub(super) fn has_abandoned(&self, stream_id: u64) -> bool {
        self.abandoned.iter().any(|(abandoned, _)| *abandoned == stream_id)
    }

    /// Handles an event of the bytes.
    pub(super) fn take(&mut self, event: &ClientEvent<'_>, bytes: &[u8]) {
        match event {
            ClientEvent::Head { stream_id, head } => {
                let Some(response) = self.response(*stream_id) else { return };
                response.status = head.status();
                response.keep_alive = true;
                if response.wants_fields {
                    head.fields().iter().for_each(|(name, value)| response.take_field(name, value));
                }
            }
            ClientEvent::Data { stream_id, range } => {
                if let Some(response) = self.response(*stream_id) {
                    response.take_body(&bytes[range.clone()]);
                }
            }
            ClientEvent::End { stream_id } => self.complete(*stream_id),
            ClientEvent::StreamError { stream_id, error } => {
                self.abandoned.push((*stream_id, error.code()));
                self.fail(*stream_id, Failure::Malformed);
            }
            ClientEvent::GoAway { stream_id } => self.leave(*stream_id),
            ClientEvent::UnknownStream { stream_id } => {
                self.abandoned.push((*stream_id, ErrorCode::STREAM_CREATION_ERROR));
            }
            ClientEvent::Settings(_) => {}
        }
    }

    /// The server has reset a stream.
    pub(super) fn reset(&mut self, stream_id: u64, code: ErrorCode) {
        self.abandoned.push((stream_id, ErrorCode::REQUEST_CANCELLED));
        if code != ErrorCode::REQUEST_REJECTED {
            return self.fail(stream_id, Failure::Closed);
        }
        if let Some(lane) = lane_of(self.lanes, stream_id) {
            self.lanes[lane] = Lane::default();
            self.received.refused.push(lane);
        }
    }

    fn response(&mut self, stream_id: u64) -> Option<&mut Response> {
        lane_of(self.lanes, stream_id).map(|lane| &mut self.responses[lane])
    }

    fn complete(&mut self, stream_id: u64) {
        let Some(lane) = lane_of(self.lanes, stream_id) else { return };
        if std::mem::take(&mut self.lanes[lane]).is_sending {
            // The rest of the request is of no use.
            self.abandoned.push((stream_id, ErrorCode::REQUEST_CANCELLED));
        }
        self.received.complete.push(lane);
    }

    fn fail(&mut self, stream_id: u64, failure: Failure) {
        if let Some(lane) = lane_of(self.lanes, stream_id) {
            self.lanes[lane] = Lane::default();
            self.received.failed.push((lane, failure));
        }
    }

    /// The server does not process the requests from stream `first` on (RFC 9114 5.2).
    fn leave(&mut self, first: u64) {
        *self.is_leaving = true;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let is_refused = lane.stream_id.map_or(lane.is_sending, |id| id >= first);
            if is_refused {
                let refused = std::mem::take(lane).stream_id;
                self.abandoned.extend(refused.map(|id| (id, ErrorCode::REQUEST_CANCELLED)));
                self.received.refused.push(index);
            }
        }
    }
}
