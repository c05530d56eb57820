//! One worker's conversation with the gateway: the request being answered, its head, its buffered
//! output and its unread body.
//!
//! Called by the worker's loop between requests and by [`crate::callbacks`] within one. Invariants:
//! the head is sent once and before any body; nothing of the answer is sent after its end; a small
//! answer is published once, together with its `Done`. A broken ring is remembered and ends the
//! worker after the request.

use crate::blocking_ops::BlockingOps;
use crate::fetches::FetchResult;
use crate::link::{Link, Unsent};
use crate::purge;
use outboard_ring::channel::WaitCall;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::Call;
use outboard_ring::purge::PurgeCall;
use outboard_ring::response::{Done, ResponseHead};
use outboard_ring::spsc::Corrupt;
use outboard_ring::task::TaskCall;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Output that is collected before it is sent.
const BUFFER_BYTES: usize = 32 * 1024;

/// Of syslog(3).
const SEVERITY_ERROR: u8 = 3;

/// How far the answer has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No head yet, or one that waits for the first output.
    Collecting,
    /// The head is in the ring.
    Streaming,
    /// The script has completed the answer and goes on without one.
    Finished,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Exchange {
    link: Rc<RefCell<Link>>,
    tag: Tag,
    phase: Phase,
    head: Vec<u8>,
    output: Vec<u8>,
    body: Body,
    /// The coroutine that waits for the client to take what there is.
    waiter: Option<u64>,
    /// What the gateway said last to a script that waited for it.
    completion: Vec<u8>,
    panicked: bool,
    blocking_ops: BlockingOps,
}

/// The part of the request body that PHP has not read.
#[derive(Debug, Default)]
struct Body {
    piece: Vec<u8>,
    at: usize,
    unread_bytes: u64,
}

impl Exchange {
    /// One for the requests of `link`, one after the other.
    pub(crate) fn new(link: Rc<RefCell<Link>>) -> Self {
        Self {
            link,
            tag: Tag::default(),
            phase: Phase::Collecting,
            head: Vec::new(),
            output: Vec::new(),
            body: Body::default(),
            waiter: None,
            completion: Vec::new(),
            panicked: false,
            blocking_ops: BlockingOps::default(),
        }
    }

    /// Takes up a request with a body of so many bytes.
    pub(crate) fn begin(&mut self, tag: Tag, body_bytes: u64) {
        self.tag = tag;
        self.phase = Phase::Collecting;
        self.head.clear();
        self.output.clear();
        self.body.unread_bytes = body_bytes;
        self.body.piece.clear();
        self.body.at = 0;
        self.waiter = None;
    }

    /// The request being answered.
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    /// Sends what is left of the answer, and that the request is over.
    pub(crate) fn done(&mut self, done: Done) -> Result<(), Corrupt> {
        if let Err(Unsent::Broken(corrupt)) = self.send_output() {
            return Err(corrupt);
        }
        let mut link = self.link.borrow_mut();
        link.discard_body(self.tag);
        link.send_always(FrameKind::Done, self.tag, &[&done.encode()])?;
        link.publish_answer()?;
        link.check()
    }

    /// Begins the response head.
    pub(crate) fn start_head(&mut self, status: u16, reason: &[u8]) {
        self.head.clear();
        ResponseHead::encode_status(&mut self.head, status, reason);
    }

    /// Adds a line to it.
    pub(crate) fn add_head_line(&mut self, line: &[u8]) {
        ResponseHead::encode_line(&mut self.head, line);
    }

    /// Sends the head that was begun as an interim one, now; the answer's own is still to come.
    /// False when it is too late for that, or the client has gone.
    pub(crate) fn send_interim(&mut self) -> bool {
        if self.phase != Phase::Collecting {
            return false;
        }
        let head = std::mem::take(&mut self.head);
        let sent = self.send(FrameKind::Interim, &[&head]);
        self.link.borrow_mut().publish();
        if matches!(sent, Err(Unsent::TooLong)) {
            self.log_too_long("An interim response head", head.len(), "it is not sent");
        }
        self.is_sent(sent)
    }

    /// Takes output of the script; returns how much was taken: less than all when the client has
    /// gone. After the end of the answer output goes nowhere and counts as taken.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        if self.phase == Phase::Finished {
            return bytes.len();
        }
        if self.output.len() + bytes.len() <= BUFFER_BYTES {
            self.output.extend_from_slice(bytes);
            return bytes.len();
        }
        let sent = self.send_output().and_then(|()| self.send_pieces(bytes));
        if self.is_sent(sent) { bytes.len() } else { 0 }
    }

    /// Sends what was collected, now. False when the client has gone.
    pub(crate) fn flush(&mut self) -> bool {
        if self.phase == Phase::Finished {
            return true;
        }
        let sent = self.send_output().and_then(|()| self.send(FrameKind::Flush, &[]));
        self.link.borrow_mut().publish();
        self.is_sent(sent)
    }

    /// Whether the client has not taken what there is, so that more should wait.
    pub(crate) fn is_paused(&self) -> bool {
        self.phase != Phase::Finished && self.link.borrow().is_paused(self.tag)
    }

    /// Has this coroutine woken when the client takes more.
    pub(crate) fn await_client(&mut self, waiter: u64) {
        self.link.borrow().count_wait(WaitCall::Client, None);
        self.waiter = Some(waiter);
    }

    /// Who waits for that.
    pub(crate) fn take_waiter(&mut self) -> Option<u64> {
        self.waiter.take()
    }

    /// Completes the answer while the script goes on. False when the client has gone.
    pub(crate) fn finish(&mut self) -> bool {
        if self.phase == Phase::Finished {
            return true;
        }
        let sent = self.send_output().and_then(|()| self.send(FrameKind::End, &[]));
        self.link.borrow_mut().publish();
        self.phase = Phase::Finished;
        self.is_sent(sent)
    }

    /// Whether [`Exchange::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// A line for the error log, at once: the process may not live to send it later.
    pub(crate) fn log(&mut self, severity: u8, text: &[u8]) {
        let mut link = self.link.borrow_mut();
        let most = link.largest_piece_bytes - 1;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = &line[..line.len().min(most)];
            if let Err(corrupt) = link.send_always(FrameKind::Log, self.tag, &[&[severity], line]) {
                link.set_broken(corrupt);
                return;
            }
        }
        link.publish();
    }

    /// Purges pages of the app's cache; how many, or `None` when that could not be said.
    pub(crate) fn purge(&mut self, call: &PurgeCall<'_>) -> Option<u64> {
        purge::through(&mut self.link.borrow_mut(), self.tag, call)
    }

    /// Hands a task to the gateway and waits until it is accepted, or refused; `None` when the ring
    /// is broken.
    pub(crate) fn dispatch(&mut self, call: TaskCall<'_>, data: &[u8]) -> Option<FetchResult<'_>> {
        let mut link = self.link.borrow_mut();
        match link.call(self.tag, Call::Task(call), data) {
            Ok(completion) => self.completion = completion,
            Err(corrupt) => {
                link.set_broken(corrupt);
                return None;
            }
        }
        FetchResult::read(&self.completion)
    }

    /// Has the gateway carry out an operation and waits for its answer, with the worker.
    pub(crate) fn call(&mut self, call: Call<'_>, body: &[u8]) -> Option<FetchResult<'_>> {
        let is_complete = self.blocking_ops.call(&mut self.link.borrow_mut(), self.tag, call, body);
        self.blocking_ops.result().filter(|_| is_complete)
    }

    /// Copies unread body over `target`; fewer bytes than it holds mean that the body ended.
    pub(crate) fn read_body(&mut self, target: &mut [MaybeUninit<u8>]) -> usize {
        let mut filled = 0;
        while filled < target.len() && self.body.unread_bytes > 0 {
            let rest = &self.body.piece[self.body.at..];
            if rest.is_empty() {
                let mut link = self.link.borrow_mut();
                match link.next_body(self.tag) {
                    Ok(Some(piece)) => {
                        self.body.piece = piece;
                        self.body.at = 0;
                        continue;
                    }
                    Ok(None) => break,
                    Err(corrupt) => {
                        link.set_broken(corrupt);
                        break;
                    }
                }
            }
            let len = rest.len().min(target.len() - filled);
            target[filled..filled + len].write_copy_of_slice(&rest[..len]);
            filled += len;
            self.body.at += len;
            self.body.unread_bytes = self.body.unread_bytes.saturating_sub(len as u64);
        }
        filled
    }

    /// Notes that a callback panicked: the worker leaves after this request.
    pub(crate) fn record_panic(&mut self) {
        self.panicked = true;
    }

    /// Whether one did; forgets it.
    pub(crate) fn take_panicked(&mut self) -> bool {
        std::mem::take(&mut self.panicked)
    }

    fn is_sent(&mut self, sent: Result<(), Unsent>) -> bool {
        if let Err(Unsent::Broken(corrupt)) = sent {
            self.link.borrow_mut().set_broken(corrupt);
        }
        sent.is_ok()
    }

    /// Sends the head, if it waits, and the collected output.
    fn send_output(&mut self) -> Result<(), Unsent> {
        if self.phase == Phase::Collecting && !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            let sent = self.send(FrameKind::Head, &[&head]);
            self.head = head;
            if matches!(sent, Err(Unsent::TooLong)) {
                self.refuse_head();
            }
            sent?;
            self.phase = Phase::Streaming;
        }
        if self.output.is_empty() {
            return Ok(());
        }
        let mut output = std::mem::take(&mut self.output);
        let sent = self.send_pieces(&output);
        output.clear();
        self.output = output;
        sent
    }

    /// The answer ends without a head, which the gateway answers with 502, and what the script still
    /// says goes nowhere.
    fn refuse_head(&mut self) {
        let head_bytes = std::mem::take(&mut self.head).len();
        self.log_too_long("The response head", head_bytes, "the answer is 502");
        self.output.clear();
        let sent = self.send(FrameKind::End, &[]);
        self.link.borrow_mut().publish();
        self.phase = Phase::Finished;
        self.is_sent(sent);
    }

    fn log_too_long(&mut self, what: &str, head_bytes: usize, consequence: &str) {
        let most = self.link.borrow().largest_frame_bytes;
        let text = format!(
            "{what} of the script has {head_bytes} bytes, and there is room for {most}: {consequence}. \
             Most likely a header or a cookie grows without end"
        );
        self.log(SEVERITY_ERROR, text.as_bytes());
    }

    fn send_pieces(&mut self, bytes: &[u8]) -> Result<(), Unsent> {
        let largest = self.link.borrow().largest_piece_bytes;
        for piece in bytes.chunks(largest) {
            self.send(FrameKind::Body, &[piece])?;
        }
        Ok(())
    }

    fn send(&mut self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), Unsent> {
        self.link.borrow_mut().send(kind, self.tag, parts)
    }
}
