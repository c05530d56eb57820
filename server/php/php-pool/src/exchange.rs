//! A request to PHP and its response.
//!
//! Shared by the connection's task, which submits it and takes the response, and the pool, which
//! assigns it to a worker and fills it from the ring. Invariants: nothing is added after the end; an
//! abandoned exchange receives nothing more.

mod response_data;

pub use response_data::{End, ResponseData};

use crate::request_times::RequestTimes;
use crate::worker_id::WorkerId;
use outboard_buffer::{Account, RequestBody};
use outboard_reactor::{TaskId, current_task, now_ms, wake};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::Done;
use outboard_ring::spsc::Corrupt;
use outboard_trace::Scope;
use response_data::reuse;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

/// The most interim responses that are stored until the connection takes them.
const MAX_INTERIM_RESPONSES: usize = 16;
const WITHOUT_STATUS: Corrupt = Corrupt { what: "a response head without a status" };
/// The most that is stored of the lines that PHP has logged about a request.
const MAX_LOG_BYTES: usize = 32 * 1024;

/// The worker of a request, and the tag of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub worker: WorkerId,
    pub tag: Tag,
}

/// What the exchange of a request that a worker has already is made of.
#[derive(Debug)]
pub struct ExchangeSettings {
    /// The worker waits while the untaken response exceeds this.
    pub buffer_bytes: usize,
    /// The response is counted here.
    pub memory: Rc<Account>,
    /// How long the request may take.
    pub longest_ms: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Exchange {
    task: TaskId,
    /// Payload of the `Request` frame.
    pub frame: Vec<u8>,
    /// The body, for `RequestBody` frames.
    pub body: RefCell<RequestBody>,
    /// For logs.
    pub request_id: u64,
    /// Monotonic ms of submission.
    pub submitted_ms: u64,
    /// When it was submitted, started and ended.
    pub times: RequestTimes,
    /// The span of PHP, if the request is traced.
    pub trace: Option<Scope>,
    pub(crate) assignment: Cell<Option<Assignment>>,
    /// The client's address if it is on this machine: it may be one of our workers.
    pub(crate) local_peer: Cell<Option<SocketAddr>>,
    /// Its route in the pool's table.
    pub route: Cell<usize>,
    /// The worker's report at the end.
    pub done: Cell<Option<Done>>,
    arrived: RefCell<ResponseData>,
    /// Lines that PHP has logged about it.
    log_lines: RefCell<String>,
    ended: Cell<bool>,
    handled: Cell<bool>,
    /// Whether the client is gone.
    pub(crate) abandoned: Cell<bool>,
    buffer_bytes: usize,
    /// The part of the response that its client has not read and that is on disk.
    spooled_bytes: Cell<usize>,
    memory: Option<Rc<Account>>,
}

impl Exchange {
    /// A request of the current task. The worker waits while the untaken response exceeds `buffer_bytes`.
    pub fn new(
        frame: Vec<u8>,
        body: RequestBody,
        request_id: u64,
        now_ms: u64,
        buffer_bytes: usize,
    ) -> Self {
        Self::of_task(current_task(), frame, body, request_id, now_ms, buffer_bytes)
    }

    fn of_task(
        task: TaskId,
        frame: Vec<u8>,
        body: RequestBody,
        request_id: u64,
        now_ms: u64,
        buffer_bytes: usize,
    ) -> Self {
        Self {
            task,
            frame,
            body: RefCell::new(body),
            request_id,
            submitted_ms: now_ms,
            times: RequestTimes::begin(),
            trace: None,
            assignment: Cell::new(None),
            local_peer: Cell::new(None),
            route: Cell::new(0),
            done: Cell::new(None),
            arrived: RefCell::default(),
            log_lines: RefCell::default(),
            ended: Cell::new(false),
            handled: Cell::new(false),
            abandoned: Cell::new(false),
            buffer_bytes,
            spooled_bytes: Cell::new(0),
            memory: None,
        }
    }

    /// A request of that task which a worker has read, and runs: there is no frame, but what the worker has read.
    pub(crate) fn adopted(
        task: TaskId,
        request: Vec<u8>,
        request_id: u64,
        settings: &ExchangeSettings,
    ) -> Self {
        let (body, buffer_bytes) = (RequestBody::empty(), settings.buffer_bytes);
        let exchange = Self::of_task(task, request, body, request_id, now_ms(), buffer_bytes);
        exchange.counted_in(&settings.memory)
    }

    /// Counts the response in this account while it is in memory.
    pub fn counted_in(self, memory: &Rc<Account>) -> Self {
        Self { memory: Some(memory.clone()), ..self }
    }

    /// What the worker requests is part of this span.
    pub fn traced(self, trace: Option<Scope>) -> Self {
        Self { trace, ..self }
    }

    /// Receives the response in these empty buffers.
    pub fn received_in(self, buffers: ResponseData) -> Self {
        debug_assert!(buffers.is_empty());
        Self { arrived: RefCell::new(buffers), ..self }
    }

    /// Replaces an earlier exchange, in its memory if nothing else refers to it.
    pub fn replacing(self, earlier: Option<Rc<Self>>) -> Rc<Self> {
        let Some(mut earlier) = earlier else { return Rc::new(self) };
        match Rc::get_mut(&mut earlier) {
            Some(place) => {
                *place = self;
                earlier
            }
            None => Rc::new(self),
        }
    }

    /// Releases the request and its response. Returns the exchange, for [`Exchange::replacing`], and the
    /// memory of the frame; `None` while a worker refers to them.
    pub fn release(mut self: Rc<Self>) -> Option<(Rc<Self>, Vec<u8>)> {
        let place = Rc::get_mut(&mut self)?;
        place.body = RefCell::new(RequestBody::empty());
        place.arrived = RefCell::default();
        place.log_lines = RefCell::default();
        place.trace = None;
        place.memory = None;
        let mut frame = std::mem::take(&mut place.frame);
        reuse(&mut frame);
        Some((self, frame))
    }

    /// Whether requests of direct connections are like this one.
    pub fn is_template(&self) -> bool {
        RequestView::decode(&self.frame).is_ok_and(|view| view.fixed.is_template)
    }

    /// Sets how much of the response waits on disk for the client.
    pub fn set_spooled(&self, bytes: usize) {
        self.spooled_bytes.set(bytes);
    }

    /// Method and target, for logs and the status page.
    pub(crate) fn label(&self) -> String {
        let Ok(view) = RequestView::decode(&self.frame) else {
            let line = self.frame.split(|&byte| byte == b'\r').next().unwrap_or_default();
            let text = String::from_utf8_lossy(line);
            return text.trim_end_matches(" HTTP/1.1").to_owned();
        };
        let text = |field| String::from_utf8_lossy(view.field(field));
        format!("{} {}", text(Field::Method), text(Field::Uri))
    }

    /// Takes what has arrived; `None` if that is nothing. The task is woken when more arrives.
    pub fn take(&self) -> Option<ResponseData> {
        let mut arrived = self.arrived.borrow_mut();
        if arrived.is_empty() { None } else { Some(std::mem::take(&mut *arrived)) }
    }

    /// Whether the worker's frames should stay in the ring because so many times the buffer was not
    /// taken.
    pub(crate) fn is_full(&self, buffers: usize) -> bool {
        let max_bytes = self.buffer_bytes.saturating_mul(buffers);
        let untaken_bytes = self.arrived.borrow().body.len() + self.spooled_bytes.get();
        !self.abandoned.get() && untaken_bytes >= max_bytes
    }

    /// The client is gone: the response is dropped.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
        *self.arrived.borrow_mut() = ResponseData::default();
    }

    /// Stores a line that PHP has logged about it, as far as there is room.
    pub(crate) fn record_log_line(&self, line: &str) {
        let mut lines = self.log_lines.borrow_mut();
        if lines.len() + line.len() < MAX_LOG_BYTES {
            lines.push_str(line);
            lines.push('\n');
        }
    }

    /// Lines that PHP has logged about it.
    pub fn log_lines(&self) -> String {
        self.log_lines.borrow().clone()
    }

    /// Whether the response is complete or has failed.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Whether a frame of this kind is stored. Others are not counted either: a worker may send any number
    /// of them.
    fn has_place(&self, kind: FrameKind) -> bool {
        let arrived = self.arrived.borrow();
        match kind {
            FrameKind::Head => arrived.head.is_empty(),
            FrameKind::Interim => {
                arrived.head.is_empty() && arrived.interim.len() < MAX_INTERIM_RESPONSES
            }
            FrameKind::Trailers => arrived.trailers.is_empty(),
            _ => true,
        }
    }

    /// Adds a frame of the response. Second heads and trailers, and interim responses after the head, are
    /// errors of the host and are dropped.
    ///
    /// # Errors
    /// [`Corrupt`]: workers must not send such a frame.
    pub(crate) fn add_frame(&self, kind: FrameKind, payload: &[u8]) -> Result<(), Corrupt> {
        let len = payload.len();
        match kind {
            FrameKind::Head if payload.is_empty() => return Err(WITHOUT_STATUS),
            _ if !self.has_place(kind) => {}
            FrameKind::Head => self.add(len, |arrived| arrived.head.extend_from_slice(payload)),
            FrameKind::Interim => self.add(len, |arrived| arrived.interim.push(payload.to_vec())),
            FrameKind::Body => self.add(len, |arrived| arrived.body.extend_from_slice(payload)),
            FrameKind::Trailers => self.add(len, |arrived| arrived.trailers = payload.to_vec()),
            FrameKind::Flush => self.add(0, |arrived| arrived.flush = true),
            FrameKind::End => self.complete(payload == [1]),
            _ => return Err(Corrupt { what: "a frame that only the gateway sends" }),
        }
        Ok(())
    }

    /// Adds a whole response, as its frames would be added.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub(crate) fn add_whole(&self, head: &[u8], body: &[u8]) -> Result<(), Corrupt> {
        if head.is_empty() {
            return Err(WITHOUT_STATUS);
        }
        let has_place = self.has_place(FrameKind::Head);
        self.add(head.len() + body.len(), |arrived| {
            if has_place {
                arrived.head.extend_from_slice(head);
            }
            arrived.body.extend_from_slice(body);
        });
        Ok(())
    }

    /// Ends a complete response.
    pub(crate) fn complete(&self, handled: bool) {
        if !self.ended.get() {
            self.handled.set(handled);
        }
        self.finish(End::Complete);
    }

    /// Whether the response is complete and is what the script meant.
    pub fn is_handled(&self) -> bool {
        self.handled.get()
    }

    /// Ends the response; further ends are ignored.
    pub(crate) fn finish(&self, end: End) {
        self.add(0, |arrived| arrived.end = Some(end));
        self.ended.set(true);
        self.times.ended();
    }

    fn add(&self, bytes: usize, change: impl FnOnce(&mut ResponseData)) {
        if self.ended.get() || self.abandoned.get() {
            return;
        }
        let mut arrived = self.arrived.borrow_mut();
        change(&mut arrived);
        match (&mut arrived.held, &self.memory) {
            (Some(held), _) => held.grow(bytes),
            (none, Some(memory)) => *none = Some(memory.hold(bytes)),
            (None, None) => {}
        }
        drop(arrived);
        wake(self.task);
    }
}

#[cfg(test)]
mod tests;
