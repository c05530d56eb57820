//! One request on its way through PHP: what the connection gave, what the worker answered.
//!
//! Shared by the connection's task (which submits it and takes the answer) and the pool (which
//! moves it to a worker and fills it from the ring). Invariants: once `end` is set nothing is
//! added; an abandoned exchange takes nothing more, and the worker is told.

use crate::worker_id::WorkerId;
use outboard_buffer::RequestBody;
use outboard_buffer::{Account, Held};
use outboard_log::Reason;
use outboard_reactor::{TaskId, current_task, wake};
use outboard_ring::frame::Tag;
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::Done;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Interim answers that are kept for a connection that does not take them.
const MOST_INTERIM: usize = 16;
/// What is kept of PHP's words about one request.
const MOST_WORDS_BYTES: usize = 32 * 1024;

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it has come.
    Complete,
    /// It will never be complete.
    Failed(Reason),
}

/// What the connection takes out at once.
#[derive(Debug, Default)]
pub struct Arrived {
    /// Payloads of `Interim` frames since the last look.
    pub interim: Vec<Vec<u8>>,
    /// Payload of the `Head` frame, when it has come since the last look.
    pub head: Option<Vec<u8>>,
    /// Body bytes since the last look.
    pub body: Vec<u8>,
    /// PHP asked for what came so far to be sent.
    pub flush: bool,
    /// Whether and how the answer has ended.
    pub end: Option<End>,
    /// Counts all of it.
    pub held: Option<Held>,
}

impl Arrived {
    fn is_empty(&self) -> bool {
        self.interim.is_empty()
            && self.head.is_none()
            && self.body.is_empty()
            && !self.flush
            && self.end.is_none()
    }

    /// Adds what has come of the body since, and how it ended.
    pub fn append(&mut self, more: Self) {
        self.body.extend_from_slice(&more.body);
        self.flush |= more.flush;
        self.end = more.end;
        match (&mut self.held, more.held) {
            (Some(held), Some(more)) => held.grow(more.bytes()),
            (held, more) => *held = held.take().or(more),
        }
    }
}

/// Where a request is that was given to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub worker: WorkerId,
    pub tag: Tag,
}

/// A request between a connection and a worker.
#[derive(Debug)]
pub struct Exchange {
    task: TaskId,
    /// Payload of the `Request` frame.
    pub frame: Vec<u8>,
    /// What follows it, in `RequestBody` frames.
    pub body: RefCell<RequestBody>,
    /// For logs.
    pub request_id: u64,
    /// Monotonic ms of submission.
    pub submitted_ms: u64,
    /// The worker that has it.
    pub(crate) place: Cell<Option<Place>>,
    /// What it counts as, for the pool.
    pub route: Cell<usize>,
    /// What the worker reported at its end.
    pub done: Cell<Option<Done>>,
    arrived: RefCell<Arrived>,
    /// What PHP said of it beside the answer.
    words: RefCell<String>,
    ended: Cell<bool>,
    abandoned: Cell<bool>,
    buffer_bytes: usize,
    /// What its client has not taken and is on disk.
    spooled_bytes: Cell<usize>,
    memory: Option<Rc<Account>>,
}

impl Exchange {
    /// A request of the current task. Beyond `buffer_bytes` of untaken answer, the worker waits.
    pub fn new(
        frame: Vec<u8>,
        body: RequestBody,
        request_id: u64,
        now_ms: u64,
        buffer_bytes: usize,
    ) -> Self {
        Self {
            task: current_task(),
            frame,
            body: RefCell::new(body),
            request_id,
            submitted_ms: now_ms,
            place: Cell::new(None),
            route: Cell::new(0),
            done: Cell::new(None),
            arrived: RefCell::default(),
            words: RefCell::default(),
            ended: Cell::new(false),
            abandoned: Cell::new(false),
            buffer_bytes,
            spooled_bytes: Cell::new(0),
            memory: None,
        }
    }

    /// Has the answer counted here as long as it is in memory.
    pub fn counted_in(self, memory: &Rc<Account>) -> Self {
        Self { memory: Some(memory.clone()), ..self }
    }

    /// Says how much of the answer waits on disk for the client.
    pub fn set_spooled(&self, bytes: usize) {
        self.spooled_bytes.set(bytes);
    }

    /// Method and target, for logs and the status page.
    pub(crate) fn label(&self) -> String {
        let Ok(view) = RequestView::decode(&self.frame) else { return String::new() };
        let text = |field| String::from_utf8_lossy(view.field(field));
        format!("{} {}", text(Field::Method), text(Field::Uri))
    }

    /// What has come since the last look; `None` when nothing has. The task is woken by more.
    pub fn take(&self) -> Option<Arrived> {
        let mut arrived = self.arrived.borrow_mut();
        if arrived.is_empty() { None } else { Some(std::mem::take(&mut *arrived)) }
    }

    /// Whether the worker's frames should stay in the ring for now: `patience` times the buffer
    /// has not been taken.
    pub(crate) fn is_full(&self, patience: usize) -> bool {
        let most = self.buffer_bytes.saturating_mul(patience);
        let untaken_bytes = self.arrived.borrow().body.len() + self.spooled_bytes.get();
        !self.abandoned.get() && untaken_bytes >= most
    }

    /// The connection has no more use for the answer.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
        *self.arrived.borrow_mut() = Arrived::default();
    }

    /// Keeps a line that PHP logged about it.
    pub(crate) fn keep_words(&self, line: &str) {
        let mut words = self.words.borrow_mut();
        if words.len() + line.len() < MOST_WORDS_BYTES {
            words.push_str(line);
            words.push('\n');
        }
    }

    /// What PHP logged about it.
    pub fn words(&self) -> String {
        self.words.borrow().clone()
    }

    /// Whether nobody waits for the answer.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }

    /// Whether the answer is over, well or not.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// The worker's response head. A second one is a fault of the host and is dropped.
    pub(crate) fn add_head(&self, payload: &[u8]) {
        self.add(payload.len(), |arrived| {
            arrived.head.get_or_insert_with(|| payload.to_vec());
        });
    }

    /// An answer before the answer. One behind the head is a fault of the host and is dropped.
    pub(crate) fn add_interim(&self, payload: &[u8]) {
        self.add(payload.len(), |arrived| {
            if arrived.head.is_none() && arrived.interim.len() < MOST_INTERIM {
                arrived.interim.push(payload.to_vec());
            }
        });
    }

    pub(crate) fn add_body(&self, payload: &[u8]) {
        self.add(payload.len(), |arrived| arrived.body.extend_from_slice(payload));
    }

    pub(crate) fn add_flush(&self) {
        self.add(0, |arrived| arrived.flush = true);
    }

    /// Ends the answer; the first end counts.
    pub(crate) fn finish(&self, end: End) {
        self.add(0, |arrived| arrived.end = Some(end));
        self.ended.set(true);
    }

    fn add(&self, bytes: usize, change: impl FnOnce(&mut Arrived)) {
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
