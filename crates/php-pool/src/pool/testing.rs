//! Pools without processes: a test takes the requests from the queue and responds as PHP.
//!
//! Compiled with the feature `testing` only.

use super::{Phase, Pool, PoolSettings};
use crate::exchange::{End, Exchange};
use outboard_log::{ErrorLog, Reason};
use outboard_ring::frame::FrameKind;
use outboard_ring::request::RequestView;
use outboard_ring::response::ResponseHead;
use std::rc::Rc;

/// A pool that accepts requests and has no workers.
pub fn pool_without_workers(settings: PoolSettings, log: Rc<ErrorLog>) -> Rc<Pool> {
    let pool = Pool::new(settings, log.clone(), log);
    pool.phase.set(Phase::Serving);
    pool
}

/// The next request of the queue.
pub fn next_request(pool: &Pool) -> Option<PhpRequest> {
    pool.members.borrow_mut().next_queued().map(PhpRequest)
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
        self.add(FrameKind::Interim, &head(status, lines));
    }

    /// Sends the head.
    pub fn send_head(&self, status: u16, lines: &[&str]) {
        self.add(FrameKind::Head, &head(status, lines));
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
        self.0.finish(End::Complete);
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

fn head(status: u16, lines: &[&str]) -> Vec<u8> {
    let mut payload = Vec::new();
    ResponseHead::encode_status(&mut payload, status, b"");
    lines.iter().for_each(|line| ResponseHead::encode_line(&mut payload, line.as_bytes()));
    payload
}
