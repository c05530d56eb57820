//! [`Attempts`] at tasks: the request to a task worker, and the outcome.
//!
//! Called by [`Tasks`](super::Tasks) for each task that is started. Invariants: only a complete response with
//! status 200 is a success; the host can read every request.

use super::queue::{Attempt, MAX_DATA_BYTES, Task};
use super::tracing::Traced;
use crate::exchange::{End, Exchange};
use crate::pool::Pool;
use outboard_buffer::{Account, RequestBody};
use outboard_log::{Reason, Wall};
use outboard_reactor::now_ms;
use outboard_ring::request::{
    FIELD_COUNT, Field, Fixed, RequestParts, RequestView, TraceDetail, encode,
};
use outboard_ring::response::ResponseHead;
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;

/// The worker waits while the untaken result exceeds this.
const RESULT_BUFFER_BYTES: usize = 1 << 20;

/// The method of requests for tasks.
const METHOD: &[u8] = b"TASK";

/// The outcome of an attempt.
pub(super) struct Outcome {
    pub attempt: Attempt,
    /// The result, or the reason of the failure.
    pub text: Vec<u8>,
}

/// What attempts need.
#[derive(Debug)]
pub(super) struct Attempts<'a> {
    /// The task workers.
    pub pool: &'a Pool,
    /// Counts the memory of running tasks, in addition to that of the queue.
    pub memory: &'a Rc<Account>,
    pub script: &'a Path,
}

impl Attempts<'_> {
    pub(super) async fn attempt(&self, task: &Task, traced: Option<&Traced>) -> Outcome {
        let not_begun = |text: &str| Outcome { attempt: Attempt::NotBegun, text: text.into() };
        let frame = self.frame(task, traced);
        let Some(held) = self.memory.try_hold(task.data.len()) else {
            return not_begun(Reason::MemoryFull.code());
        };
        let body = RequestBody::whole(task.data.to_vec()).counted_in(held);
        let exchange = Exchange::new(frame, body, task.id, now_ms(), RESULT_BUFFER_BYTES);
        let exchange = Rc::new(
            exchange.counted_in(self.memory).traced(traced.map(|traced| traced.scope().clone())),
        );
        if let Err(reason) = self.pool.submit(exchange.clone(), None) {
            return not_begun(reason.code());
        }
        self.receive(&exchange).await
    }

    /// Receives the response.
    async fn receive(&self, exchange: &Rc<Exchange>) -> Outcome {
        let mut head = Vec::new();
        let mut text = Vec::new();
        let mut held = self.memory.hold(0);
        loop {
            let arrived = std::future::poll_fn(|_| match exchange.take() {
                Some(arrived) => Poll::Ready(arrived),
                None => Poll::Pending,
            })
            .await;
            if head.is_empty() {
                head = arrived.head;
            }
            text.extend_from_slice(&arrived.body);
            held.set(text.len());
            if text.len() > MAX_DATA_BYTES {
                self.pool.abandon(exchange);
                let text = b"its result is larger than 16 MiB".to_vec();
                return Outcome { attempt: Attempt::Failed, text };
            }
            match arrived.end {
                None => {}
                Some(End::Complete) => {
                    let attempt = match ResponseHead::decode(&head) {
                        Ok(head) if head.status == 200 => Attempt::Done,
                        _ => Attempt::Failed,
                    };
                    return Outcome { attempt, text };
                }
                Some(End::Failed(reason)) => {
                    return Outcome { attempt: failed_attempt(reason), text: reason.code().into() };
                }
            }
        }
    }

    /// The request frame of a task.
    fn frame(&self, task: &Task, traced: Option<&Traced>) -> Vec<u8> {
        let id = format!("{:016x}", task.id);
        let attempt = task.attempts.to_string();
        let path = [b"/", &*task.name].concat();
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        let script = self.script.as_os_str().as_encoded_bytes();
        for (field, value) in [
            (Field::Method, METHOD),
            (Field::Uri, &path),
            (Field::ScriptFilename, script),
            (Field::ScriptName, b"/index.php"),
            (Field::Protocol, b"HTTP/1.1"),
            (Field::Scheme, b"http"),
            (Field::ServerName, b"localhost"),
            (Field::RequestId, id.as_bytes()),
        ] {
            fields[field as usize] = value;
        }
        let content_length = Some(task.data.len() as u64);
        let received_us = Wall::now().unix_us;
        let trace_detail = traced.map_or(TraceDetail::None, Traced::detail);
        let fixed = Fixed { content_length, received_us, trace_detail, ..Fixed::default() };
        let params: [(&[u8], &[u8]); 3] = [
            (b"OUTBOARD_TASK", &task.name),
            (b"OUTBOARD_TASK_ID", id.as_bytes()),
            (b"OUTBOARD_TASK_ATTEMPT", attempt.as_bytes()),
        ];
        let mut frame = Vec::with_capacity(512);
        let parent = traced.map(|traced| traced.scope().context().write());
        let headers = parent.iter().map(|parent| (&b"traceparent"[..], &parent[..]));
        let params = params.into_iter();
        encode(RequestParts { fixed, fields, headers, params }, &mut frame);
        debug_assert!(task.attempts > 0, "an attempt is counted before it is made");
        debug_assert!(RequestView::decode(&frame).is_ok(), "the worker would exit");
        frame
    }
}

/// The outcome of an attempt whose exchange has failed.
fn failed_attempt(reason: Reason) -> Attempt {
    match reason {
        Reason::WorkerCrashed | Reason::WorkerProtocolError => Attempt::Lost,
        Reason::QueueFull | Reason::QueueTimeout | Reason::AppDown => Attempt::NotBegun,
        _ => Attempt::Failed,
    }
}
