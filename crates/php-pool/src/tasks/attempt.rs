//! One attempt at a task: the request that stands for it, and what its answer says.
//!
//! Called by [`super::Tasks`] for each task that begins. Invariant: only an answer with status 200
//! that came to its end is a success.

use super::queue::{Attempt, Task};
use super::{DATA_MAX_BYTES, Tasks};
use crate::exchange::{End, Exchange};
use outboard_buffer::RequestBody;
use outboard_log::Reason;
use outboard_log::Wall;
use outboard_reactor::now_ms;
use outboard_ring::request::{FIELD_COUNT, Field, Fixed, RequestParts, encode};
use outboard_ring::response::ResponseHead;
use std::rc::Rc;
use std::task::Poll;

/// Untaken bytes of a result beyond which its worker waits.
const RESULT_BUFFER_BYTES: usize = 1 << 20;

/// Method of the requests that stand for tasks.
const METHOD: &[u8] = b"TASK";

/// What came of an attempt.
pub(super) struct Outcome {
    pub attempt: Attempt,
    /// The result; after a failure, why.
    pub text: Vec<u8>,
}

impl Tasks {
    pub(super) async fn attempt(&self, task: &Task) -> Outcome {
        let not_begun = |text: &str| Outcome { attempt: Attempt::NotBegun, text: text.into() };
        let frame = self.frame(task);
        let Some(held) = self.memory.try_hold(task.data.len()) else {
            return not_begun(Reason::MemoryFull.code());
        };
        let body = RequestBody::whole(task.data.to_vec()).counted_in(held);
        let exchange = Exchange::new(frame, body, task.id, now_ms(), RESULT_BUFFER_BYTES);
        let exchange = Rc::new(exchange.counted_in(&self.memory));
        if let Err(reason) = self.pool.submit(exchange.clone(), None) {
            return not_begun(reason.code());
        }
        let mut head = None;
        let mut text = Vec::new();
        // Counts it.
        let mut held = self.memory.hold(0);
        loop {
            let arrived = std::future::poll_fn(|_| match exchange.take() {
                Some(arrived) => Poll::Ready(arrived),
                None => Poll::Pending,
            })
            .await;
            head = head.or(arrived.head);
            text.extend_from_slice(&arrived.body);
            held.set(text.len());
            if text.len() > DATA_MAX_BYTES {
                self.pool.abandon(&exchange);
                let text = b"its result is larger than 16 MiB".to_vec();
                return Outcome { attempt: Attempt::Failed, text };
            }
            match arrived.end {
                None => {}
                Some(End::Complete) => {
                    let attempt = match head.as_deref().map(ResponseHead::decode) {
                        Some(Ok(head)) if head.status == 200 => Attempt::Done,
                        _ => Attempt::Failed,
                    };
                    return Outcome { attempt, text };
                }
                Some(End::Failed(reason)) => {
                    return Outcome { attempt: after(reason), text: reason.code().into() };
                }
            }
        }
    }

    /// A task as the request that stands for it.
    fn frame(&self, task: &Task) -> Vec<u8> {
        let id = format!("{:016x}", task.id);
        let attempt = task.attempts.to_string();
        let path = [b"/", &*task.name].concat();
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        let script = self.config.script.as_os_str().as_encoded_bytes();
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
        let fixed = Fixed { content_length, received_us, ..Fixed::default() };
        let params: [(&[u8], &[u8]); 3] = [
            (b"OUTBOARD_TASK", &task.name),
            (b"OUTBOARD_TASK_ID", id.as_bytes()),
            (b"OUTBOARD_TASK_ATTEMPT", attempt.as_bytes()),
        ];
        let mut frame = Vec::with_capacity(512);
        let (headers, params) = (std::iter::empty(), params.into_iter());
        encode(RequestParts { fixed, fields, headers, params }, &mut frame);
        frame
    }
}

/// What a failed exchange says about an attempt.
fn after(reason: Reason) -> Attempt {
    match reason {
        Reason::WorkerCrashed | Reason::WorkerProtocolError => Attempt::Lost,
        Reason::QueueFull | Reason::QueueTimeout | Reason::AppDown => Attempt::NotBegun,
        _ => Attempt::Failed,
    }
}
