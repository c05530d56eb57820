//! Pools without processes: a test takes the requests from the queue and responds as PHP, or plays a
//! worker at the other end of its ring.
//!
//! Compiled for tests, and with the feature `testing` for those of other crates.

use super::lifecycle::Phase;
use super::worker::{NewWorker, Worker};
use super::{Pool, PoolSettings, Shard};
use crate::budget::Budget;
use crate::exchange::{End, Exchange};
use crate::rings::PolledRings;
use crate::worker_id::WorkerId;
use outboard_log::{ErrorLog, Reason};
use outboard_reactor::{Source, now_ms};
use outboard_ring::channel::{Capacities, WorkerChannel};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Operation};
use outboard_ring::request::RequestView;
use outboard_ring::response::{Done, Outcome, ResponseHead};
use outboard_supervisor::worker::WorkerProcess;
use rustix::fd::OwnedFd;
use std::rc::Rc;

/// A pool that accepts requests and has no workers.
pub fn pool_without_workers(settings: PoolSettings, log: Rc<ErrorLog>) -> Rc<Pool> {
    let pool = Pool::new(settings, Shard::only(), log.clone(), log, Rc::default());
    pool.core.lifecycle.enter(Phase::Serving);
    pool
}

/// The next request of the queue.
pub fn next_request(pool: &Pool) -> Option<PhpRequest> {
    pool.core.members.borrow_mut().queue.next().map(PhpRequest)
}

/// A request to PHP. The test that has it is its worker.
#[derive(Debug)]
pub struct PhpRequest(Rc<Exchange>);

impl PhpRequest {
    /// The request frame.
    ///
    /// # Panics
    /// The gateway encoded an invalid frame.
    pub fn view(&self) -> RequestView<'_> {
        RequestView::decode(&self.0.frame).expect("the gateway encodes valid frames")
    }

    /// The body.
    ///
    /// # Panics
    /// The body is not in memory.
    pub fn body(&self) -> Vec<u8> {
        let body = self.0.body.borrow();
        assert_eq!(body.memory().len() as u64, body.length(), "the body is in memory");
        body.memory().to_vec()
    }

    /// Whether the client is gone.
    pub fn is_abandoned(&self) -> bool {
        self.0.abandoned.get()
    }

    /// Sends an interim response.
    pub fn send_interim(&self, status: u16, lines: &[&str]) {
        self.add(FrameKind::Interim, &response_head(status, lines));
    }

    /// Sends the head.
    pub fn send_head(&self, status: u16, lines: &[&str]) {
        self.add(FrameKind::Head, &response_head(status, lines));
    }

    /// Sends a part of the body.
    pub fn send_body(&self, bytes: impl AsRef<[u8]>) {
        self.add(FrameKind::Body, bytes.as_ref());
    }

    /// Sends what was sent so far to the client, as `flush()` does.
    pub fn flush(&self) {
        self.add(FrameKind::Flush, &[]);
    }

    fn add(&self, kind: FrameKind, payload: &[u8]) {
        self.0.add_frame(kind, payload).expect("frames of a response");
    }

    /// Completes the response.
    pub fn finish(&self) {
        self.0.complete(true);
    }

    /// Ends the request without a complete response.
    pub fn fail(&self, reason: Reason) {
        self.0.finish(End::Failed(reason));
    }

    /// Sends a complete response.
    pub fn respond(&self, status: u16, lines: &[&str], body: impl AsRef<[u8]>) {
        self.send_head(status, lines);
        self.send_body(body);
        self.finish();
    }
}

/// The payload of a `Head` frame.
pub fn response_head(status: u16, lines: &[&str]) -> Vec<u8> {
    let mut payload = Vec::new();
    ResponseHead::encode_status(&mut payload, status, b"");
    lines.iter().for_each(|line| ResponseHead::encode_line(&mut payload, line.as_bytes()));
    payload
}

/// A worker that is played by the test: the other end of its ring.
#[derive(Debug)]
pub struct StandIn {
    pub(crate) number: u64,
    pub(crate) channel: WorkerChannel,
    /// The payload of the last frame.
    pub(crate) frame: Vec<u8>,
}

impl StandIn {
    /// Adds a worker that starts.
    pub(crate) fn starting(pool: &Rc<Pool>, number: u64) -> Self {
        Self::add(pool, number, None)
    }

    /// Adds a worker that starts, and rings this doorbell.
    pub(super) fn add(pool: &Rc<Pool>, number: u64, doorbell: Option<OwnedFd>) -> Self {
        let (process, memory) =
            WorkerProcess::prepare(number, Capacities::DEFAULT, now_ms()).unwrap();
        let core = &pool.core;
        let mut members = core.members.borrow_mut();
        let slot = members.roster.free_slot();
        let source = doorbell.map(|fd| Source::with_bell(fd, core.bell(slot)).unwrap());
        let new = NewWorker {
            id: WorkerId { pool: core.id, slot, number },
            is_own: core.shard.is_owner_of(number),
            process,
            output: None,
            allowance: core.log.allowance().clone(),
            doorbell_source: source,
        };
        let account = pool.dispatcher.operations.memory();
        let worker = Worker::new(new, &core.settings, core.active.clone(), &account);
        members.roster.insert(slot, worker);
        let channel = WorkerChannel::map(&memory).unwrap();
        Self { number, channel, frame: Vec::new() }
    }

    /// Adds a worker that is ready.
    ///
    /// # Panics
    /// The pool has the number already.
    pub fn join(pool: &Rc<Pool>, number: u64) -> Self {
        let mut worker = Self::starting(pool, number);
        worker.send(FrameKind::Ready, Tag::default(), &[]);
        poll(pool);
        worker
    }

    pub(crate) fn send(&mut self, kind: FrameKind, tag: Tag, payload: &[u8]) {
        assert!(self.channel.push(kind, tag, &[payload]).unwrap(), "the ring is full");
        let _ = self.channel.publish();
    }

    /// Requests an operation, or passes more of its body.
    ///
    /// # Panics
    /// The ring is full.
    pub fn request(&mut self, pool: &Pool, id: Tag, call: Call<'_>) {
        let mut payload = Vec::new();
        Operation { id, span: 0, call }.encode(&mut payload);
        self.request_with(pool, &payload);
    }

    /// The same with any payload.
    ///
    /// # Panics
    /// The ring is full.
    pub fn request_with(&mut self, pool: &Pool, payload: &[u8]) {
        self.send(FrameKind::Operation, Tag::default(), payload);
        poll(pool);
    }

    /// Responds to the next request with a head from [`response_head`]; false if there is none.
    ///
    /// # Panics
    /// The gateway sent another frame.
    pub fn respond_to_next(&mut self, pool: &Pool, head: &[u8], body: &[u8]) -> bool {
        poll(pool);
        let Some((kind, tag)) = self.receive() else { return false };
        assert!(kind == FrameKind::Request && self.channel.start(tag));
        self.send(FrameKind::Head, tag, head);
        self.send(FrameKind::Body, tag, body);
        let done = Done {
            outcome: Outcome::Finished,
            leaving: false,
            takes_snapshot: false,
            handled: true,
            peak_memory_bytes: 1,
        };
        self.send(FrameKind::Done, tag, &done.encode());
        poll(pool);
        true
    }

    /// The next completion of an operation.
    ///
    /// # Panics
    /// The gateway sent another frame, or an invalid one.
    pub fn completion(&mut self, pool: &Pool) -> Option<Completion<'_>> {
        poll(pool);
        let (kind, _) = self.receive()?;
        assert_eq!(kind, FrameKind::Completion);
        Some(Completion::decode(&self.frame).expect("the gateway encodes valid completions"))
    }

    /// Its process is killed.
    pub fn die(self, pool: &Pool) {
        pool.reap(self.number, None, "was killed by signal 9");
        poll(pool);
    }

    /// The next frame from the gateway.
    pub(crate) fn receive(&mut self) -> Option<(FrameKind, Tag)> {
        let header = self.channel.receive(&mut self.frame).unwrap()?;
        let _ = self.channel.release();
        Some((header.kind, header.tag))
    }
}

/// Reads the rings of all workers.
pub(crate) fn poll(pool: &Pool) {
    pool.poll_rings(&mut Budget::default());
}
