//! [`Link`]: what the task of a connection shares with the tasks of its requests.
//!
//! Invariants: a stream is in the table until its task has ended and its response has arrived or was reset;
//! a request of which enough is stored is not read.

use super::open::Open;
use super::resets::Resets;
use super::windows::Windows;
use crate::multiplexed::FRAMES_WEIGHT;
use outboard_buffer::{Account, Held};
use outboard_http3::{
    Config, Connection as Engine, ErrorCode, Event as Http3Event, RequestHead, StreamError,
};
use outboard_quic::{Connection, Read};
use outboard_reactor::{now_ms, spend};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// What is stored of a request before it is read.
const INCOMING_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) quic: Rc<Connection>,
    pub(super) engine: RefCell<Engine>,
    streams: RefCell<HashMap<u64, Rc<Open>>>,
    /// Streams whose stored data was read.
    to_read: RefCell<Vec<u64>>,
    /// Requests whose head is not complete, and since when.
    heads: RefCell<HashMap<u64, u64>>,
    pub(super) has_output: Cell<bool>,
    pub(super) control_stream: Cell<Option<u64>>,
    resets: Resets,
    pub(super) windows: Windows,
    /// A body, and whether it is complete, that arrived together with the head.
    early: RefCell<Option<(u64, Vec<u8>, bool)>>,
}

/// What is left to do for an event.
pub(super) enum Next {
    /// A request, and whether it has no body.
    Head(u64, Box<RequestHead>, bool),
    Error(u64, StreamError),
}

impl Link {
    pub(super) fn new(quic: Rc<Connection>, head_bytes: usize, memory: Rc<Account>) -> Rc<Self> {
        let windows = Windows::new(quic.clone(), memory);
        let config = Config {
            field_section_bytes_max: head_bytes,
            enable_connect_protocol: true,
            ..Config::default()
        };
        Rc::new(Self {
            quic,
            engine: RefCell::new(Engine::new(config)),
            streams: RefCell::default(),
            to_read: RefCell::default(),
            heads: RefCell::default(),
            has_output: Cell::new(false),
            control_stream: Cell::new(None),
            resets: Resets::default(),
            windows,
            early: RefCell::default(),
        })
    }

    /// Has the task of the connection send what was written.
    pub(super) fn changed(&self) {
        self.has_output.set(true);
        self.quic.wake();
    }

    /// Sends what was written.
    pub(super) fn flush(&self) {
        if self.has_output.take() {
            self.quic.flush();
        }
    }

    /// Whether there is no request.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.borrow().is_empty()
    }

    pub(super) fn is_open(&self, id: u64) -> bool {
        self.streams.borrow().contains_key(&id)
    }

    /// Adds a stream.
    pub(super) fn open(&self, id: u64, held: Held, has_ended: bool) -> Rc<Open> {
        let early = self.early.take().filter(|(stream_id, ..)| *stream_id == id);
        let (incoming, is_whole) =
            early.map_or_else(Default::default, |(_, data, end)| (data, end));
        let has_ended = has_ended || is_whole;
        if !has_ended {
            self.windows.widen();
        }
        let open = Rc::new(Open::new(id, incoming, has_ended, held));
        self.streams.borrow_mut().insert(id, open.clone());
        open
    }

    fn find(&self, id: u64) -> Option<Rc<Open>> {
        self.streams.borrow().get(&id).cloned()
    }

    /// Removes a stream that needs nothing more.
    pub(super) fn forget_if_over(&self, open: &Open) {
        if open.is_released.get() && (open.is_sent.get() || open.shared.is_closed()) {
            self.streams.borrow_mut().remove(&open.id);
            self.quic.wake();
        }
    }

    /// Continues to read a stream.
    pub(super) fn resume(&self, id: u64) {
        self.to_read.borrow_mut().push(id);
        self.changed();
    }

    pub(super) fn next_to_read(&self) -> Option<u64> {
        self.to_read.borrow_mut().pop()
    }

    /// Reads a part of a stream; `None` if there is nothing more to read now.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub(super) fn read(&self, id: u64) -> Result<Option<Vec<Next>>, ErrorCode> {
        let open = self.find(id);
        if let Some(open) =
            open.as_ref().filter(|open| open.shared.unread_bytes() >= INCOMING_BYTES)
        {
            open.is_paused.set(true);
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let is_end = match self.quic.read(id, &mut bytes) {
            Read::Open if bytes.is_empty() => return Ok(None),
            Read::Open => false,
            Read::End => true,
            Read::Reset(_) => return self.reset_by_client(id).map(|()| None),
            Read::Closed => return Ok(None),
        };
        spend(bytes.len() * FRAMES_WEIGHT);
        // Reading permits the client to send more.
        self.has_output.set(true);
        let is_first = id & 3 == 0 && open.is_none() && !is_end;
        if is_first {
            self.heads.borrow_mut().entry(id).or_insert_with(now_ms);
        }
        self.process(id, &bytes, is_end, open.as_deref()).map(Some)
    }

    fn process(
        &self,
        id: u64,
        bytes: &[u8],
        is_end: bool,
        open: Option<&Open>,
    ) -> Result<Vec<Next>, ErrorCode> {
        let mut events = Vec::new();
        // Data that arrives with the head.
        let mut early = Vec::new();
        let mut has_ended = false;
        let received = self.engine.borrow_mut().receive(id, bytes, is_end, |event| match event {
            Http3Event::Head { stream_id, head, is_end } => {
                events.push(Next::Head(stream_id, Box::new(head.clone()), is_end));
            }
            Http3Event::Data { range, .. } => match open {
                Some(open) => open.shared.receive(&bytes[range], false),
                None => early.extend_from_slice(&bytes[range]),
            },
            Http3Event::End { .. } => has_ended = true,
            Http3Event::StreamError { stream_id, error } => {
                events.push(Next::Error(stream_id, error));
            }
            Http3Event::UnknownStream { stream_id } => {
                self.quic.stop(stream_id, ErrorCode::STREAM_CREATION_ERROR.0);
            }
            _ => {}
        });
        let _ = received.map_err(|error| error.code())?;
        if let Some(open) = open {
            open.shared.receive(&[], has_ended);
        }
        if !events.is_empty() || is_end {
            self.heads.borrow_mut().remove(&id);
        }
        if !early.is_empty() || (has_ended && open.is_none()) {
            self.early.replace(Some((id, early, has_ended)));
        }
        Ok(events)
    }

    /// The stream can be written to.
    pub(super) fn writable(&self, id: u64) {
        if let Some(open) = self.find(id) {
            open.is_blocked.set(false);
            self.write_outgoing(&open);
            open.shared.wake_writer();
        }
    }

    /// Everything has arrived.
    pub(super) fn finished(&self, id: u64) {
        if let Some(open) = self.find(id) {
            // A response makes up for a reset.
            self.resets.relieve(1);
            open.is_sent.set(true);
            self.forget_if_over(&open);
        }
    }

    /// Writes to a stream; how many bytes were accepted.
    ///
    /// # Errors
    /// The stream is closed.
    pub(super) fn write(&self, open: &Open, bytes: &[u8]) -> Result<usize, ()> {
        let mut count = 0;
        while count < bytes.len() {
            // Only a write of which nothing is accepted has the stream reported as writable later.
            match self.quic.write(open.id, &bytes[count..]).map_err(|_| ())? {
                0 if !self.windows.widen() => break,
                accepted => count += accepted,
            }
        }
        if count > 0 {
            open.written_ms.set(now_ms());
            self.changed();
        }
        open.is_blocked.set(count < bytes.len());
        Ok(count)
    }

    /// Writes the frames that wait, and the end.
    pub(super) fn write_outgoing(&self, open: &Open) {
        let mut outgoing = open.outgoing.borrow_mut();
        if !outgoing.is_empty() && !open.shared.is_closed() {
            match self.write(open, &outgoing) {
                Ok(count) => drop(outgoing.drain(..count)),
                Err(()) => open.shared.close(),
            }
        }
        if outgoing.is_empty() && open.is_ending.take() {
            if self.quic.finish(open.id).is_err() {
                open.is_sent.set(true);
            }
            self.changed();
        }
    }

    /// Resets a stream, and reads no more of it.
    pub(super) fn reset(&self, id: u64, code: ErrorCode) {
        self.quic.reset(id, code.0);
        self.quic.stop(id, code.0);
        self.closed(id);
        self.changed();
    }

    /// Resets a stream because of what the client has sent on it.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub(super) fn reset_provoked(&self, id: u64, code: ErrorCode) -> Result<(), ErrorCode> {
        self.resets.count()?;
        self.reset(id, code);
        Ok(())
    }

    /// The client has reset a stream or does not read the response.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub(super) fn reset_by_client(&self, id: u64) -> Result<(), ErrorCode> {
        const SERVER_SIDE: u64 = 1;
        const UNIDIRECTIONAL: u64 = 2;
        if id & SERVER_SIDE != 0 {
            // The control stream: there is no other.
            return Err(ErrorCode::CLOSED_CRITICAL_STREAM);
        }
        self.resets.count()?;
        if id & UNIDIRECTIONAL != 0 {
            let closed = self.engine.borrow_mut().close_stream(id);
            return closed.map_err(|error| error.code());
        }
        self.reset(id, ErrorCode::REQUEST_CANCELLED);
        Ok(())
    }

    /// The client does not read the response. With the reset of the request it counts once.
    ///
    /// # Errors
    /// The code to close the connection with.
    pub(super) fn stopped_by_client(&self, id: u64) -> Result<(), ErrorCode> {
        if self.control_stream.get() == Some(id) || self.is_open(id) {
            return self.reset_by_client(id);
        }
        Ok(())
    }

    /// Reads no more of a request, whose response is complete.
    pub(super) fn stop_reading(&self, id: u64) {
        self.quic.stop(id, ErrorCode::NO_ERROR.0);
        // A request is not a stream that the connection depends on.
        let _ = self.engine.borrow_mut().close_stream(id);
        self.changed();
    }

    fn closed(&self, id: u64) {
        self.heads.borrow_mut().remove(&id);
        // A request is not a stream that the connection depends on.
        let _ = self.engine.borrow_mut().close_stream(id);
        if let Some(open) = self.find(id) {
            open.shared.close();
            self.forget_if_over(&open);
        }
    }

    /// Closes all streams: the connection is gone.
    pub(super) fn close_all(&self) {
        let streams = std::mem::take(&mut *self.streams.borrow_mut());
        streams.values().for_each(|open| open.shared.close());
    }

    /// Resets the streams whose client reads nothing, or whose head takes too long.
    pub(super) fn check(&self, write_timeout_ms: u64, header_timeout_ms: u64) {
        self.resets.relieve(Resets::PER_SECOND);
        let now = now_ms();
        let stalled = |open: &&Rc<Open>| {
            open.is_blocked.get() && now - open.written_ms.get() >= write_timeout_ms
        };
        let stalled: Vec<u64> =
            self.streams.borrow().values().filter(stalled).map(|open| open.id).collect();
        stalled.into_iter().for_each(|id| self.reset(id, ErrorCode::REQUEST_CANCELLED));
        let late = |(_, began_ms): &(&u64, &u64)| now - **began_ms >= header_timeout_ms;
        let late: Vec<u64> = self.heads.borrow().iter().filter(late).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.reset(id, ErrorCode::REQUEST_CANCELLED));
    }
}
