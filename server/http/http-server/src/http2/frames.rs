//! What a connection has received: the frames of the engine, and the requests that begin with them.
//!
//! Called by the task of the connection. Invariant: no part of the engine is borrowed while a request begins.

use super::Task;
use super::stream::Stream;
use crate::service::Service;
use outboard_http1::Version;
use outboard_http2::{ConnectionError, ErrorCode, Event, StreamKey};
use outboard_reactor::now_ms;

/// What is left to do for an event.
enum Next {
    /// A request, and whether it has no body.
    Head(StreamKey, bool),
    HeadTooLarge(StreamKey),
    /// Data of a request that no task reads.
    Unread(StreamKey, usize),
    Nothing,
}

impl<S: Service> Task<S> {
    /// Processes the received frames.
    pub(super) fn process(&mut self) -> Result<(), ConnectionError> {
        let mut received = std::mem::take(&mut self.input);
        let mut consumed = 0;
        let processed = loop {
            match self.next_event(&received, &mut consumed) {
                Ok(Some(next)) => self.handle(next),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        received.drain(..consumed);
        self.input = received;
        processed
    }

    fn next_event(
        &mut self,
        received: &[u8],
        consumed: &mut usize,
    ) -> Result<Option<Next>, ConnectionError> {
        let mut engine = self.link.engine();
        let mut rest = &received[*consumed..];
        let event = engine.receive(&mut rest, now_ms());
        let next = match event {
            Ok(None) => Ok(None),
            Err(error) => Err(error),
            Ok(Some(event)) => Ok(Some(match event {
                Event::Head { stream, head, is_end } => {
                    std::mem::swap(head, &mut self.head);
                    Next::Head(stream, is_end)
                }
                Event::HeadTooLarge { stream } => Next::HeadTooLarge(stream),
                Event::Data { stream, data, is_end } => {
                    match self.link.received(stream, data, is_end) {
                        true => Next::Nothing,
                        false => Next::Unread(stream, data.len()),
                    }
                }
                Event::Trailers { stream, .. } => {
                    self.link.received(stream, &[], true);
                    Next::Nothing
                }
                Event::Reset { stream, .. } => {
                    self.link.close(stream);
                    Next::Nothing
                }
                _ => Next::Nothing,
            })),
        };
        *consumed = received.len() - rest.len();
        next
    }

    /// Handles an event while no part of the engine is borrowed.
    fn handle(&mut self, next: Next) {
        match next {
            Next::Head(stream, is_end) => self.begun(stream, is_end),
            Next::HeadTooLarge(stream) => self.begun_too_large(stream),
            Next::Unread(stream, bytes) => self.link.engine().release(stream, bytes),
            Next::Nothing => {}
        }
    }

    /// A request has begun; one that has no room is refused.
    fn begun(&mut self, key: StreamKey, is_end: bool) {
        let open = |held| Stream::open(&self.link, key, held, is_end);
        if !self.requests.begin((Version::Http2, &self.head, is_end), open) {
            self.link.engine().reset(key, ErrorCode::REFUSED_STREAM);
        }
    }

    /// A request has begun whose head exceeds the limits.
    fn begun_too_large(&mut self, key: StreamKey) {
        let open = |held| Stream::open(&self.link, key, held, true);
        if !self.requests.begin_too_large(open) {
            self.link.engine().reset(key, ErrorCode::REFUSED_STREAM);
        }
    }
}
