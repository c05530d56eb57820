//! A worker's exchange with the gateway: the current request, its response head, its buffered
//! output and its unread body.
//!
//! Called by the worker's loop between requests and by [`crate::callbacks`] during one. Invariants:
//! the head is sent once and before the body; nothing is sent after the response's end; a response whose
//! announced length was flushed has ended, whatever the script does then; a small response is published once,
//! together with its `Done`; afterwards nothing of the request is left here. A corrupt ring ends the worker after
//! the request.

use crate::blocking_ops::BlockingOps;
use crate::fetches::FetchResult;
use crate::kept_memory::wipe;
use crate::link::{Link, Unsent};
use outboard_ring::channel::WaitCall;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Operation};
use outboard_ring::response::{Done, ResponseHead, WHOLE_PREFIX_BYTES, Whole};
use outboard_ring::span::SpanCall;
use outboard_ring::spsc::Corrupt;
use outboard_ring::task::TaskCall;
use std::cell::{RefCell, RefMut};
use std::mem::MaybeUninit;
use std::rc::Rc;

/// Output is collected up to this size.
const BUFFER_BYTES: usize = 32 * 1024;

/// Of syslog(3).
const SEVERITY_ERROR: u8 = 3;

/// The progress of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No head yet, or one that waits for the first output.
    Collecting,
    /// The head is in the ring.
    Streaming,
    /// The script has completed the response and still runs.
    Finished,
}

#[derive(Debug)]
pub(crate) struct Exchange {
    link: Rc<RefCell<Link>>,
    tag: Tag,
    phase: Phase,
    head: Vec<u8>,
    output: Vec<u8>,
    /// The length that the head announces.
    announced_bytes: Option<u64>,
    /// The length of the output so far.
    written_bytes: u64,
    /// Payload of the `Trailers` frame; empty without any.
    trailers: Vec<u8>,
    body: Body,
    /// The coroutine that waits for the client to read.
    waiter: Option<u64>,
    /// The completion of the last dispatched task.
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
    /// Creates one for the requests of `link`, one after the other.
    pub(crate) fn new(link: Rc<RefCell<Link>>) -> Self {
        Self {
            link,
            tag: Tag::default(),
            phase: Phase::Collecting,
            head: Vec::new(),
            output: Vec::new(),
            announced_bytes: None,
            written_bytes: 0,
            trailers: Vec::new(),
            body: Body::default(),
            waiter: None,
            completion: Vec::new(),
            panicked: false,
            blocking_ops: BlockingOps::default(),
        }
    }

    /// Begins a request with a body of this size.
    pub(crate) fn begin(&mut self, tag: Tag, body_bytes: u64) {
        self.tag = tag;
        self.phase = Phase::Collecting;
        self.announced_bytes = None;
        self.written_bytes = 0;
        self.body.unread_bytes = body_bytes;
        self.waiter = None;
        let buffers = self.buffers();
        debug_assert!(buffers.iter().all(|buffer| buffer.is_empty()), "of an earlier request");
        buffers.into_iter().for_each(wipe);
    }

    /// What has data of the request.
    fn buffers(&mut self) -> [&mut Vec<u8>; 5] {
        let Self { head, output, trailers, completion, body, .. } = self;
        [head, output, trailers, completion, &mut body.piece]
    }

    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    pub(crate) fn link(&self) -> RefMut<'_, Link> {
        self.link.borrow_mut()
    }

    /// Sends the rest of the response, and that the request has ended.
    pub(crate) fn done(&mut self, done: Done) -> Result<(), Corrupt> {
        let is_whole = self.is_whole();
        if !is_whole && let Err(Unsent::Broken(corrupt)) = self.send_rest() {
            return Err(corrupt);
        }
        let mut link = self.link.borrow_mut();
        link.discard_body(self.tag);
        self.blocking_ops.free(&mut link)?;
        let response = (&self.head[..], &self.output[..]);
        match is_whole && !link.is_aborted(self.tag) {
            true if link.answer_directly(self.tag, &done, response)? => {}
            true => {
                let prefix = Whole::prefix(&done, self.head.len() as u32);
                let parts: [&[u8]; 3] = [&prefix, &self.head, &self.output];
                link.send_always(FrameKind::Whole, self.tag, &parts)?;
            }
            false => link.send_always(FrameKind::Done, self.tag, &[&done.encode()])?,
        }
        link.publish_response()?;
        link.check()?;
        drop(link);
        self.body.at = 0;
        self.buffers().into_iter().for_each(wipe);
        Ok(())
    }

    /// Whether nothing of the response was sent, and all of it fits into one frame.
    fn is_whole(&self) -> bool {
        let bytes = WHOLE_PREFIX_BYTES + self.head.len() + self.output.len();
        self.phase == Phase::Collecting
            && !self.head.is_empty()
            && self.trailers.is_empty()
            && bytes <= self.link.borrow().largest_piece_bytes
    }

    pub(crate) fn start_head(&mut self, status: u16, reason: &[u8]) {
        wipe(&mut self.head);
        self.announced_bytes = None;
        ResponseHead::encode_status(&mut self.head, status, reason);
    }

    pub(crate) fn add_head_line(&mut self, line: &[u8]) {
        const LENGTH: &[u8] = b"content-length:";
        if line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH)) {
            let value = str::from_utf8(line[LENGTH.len()..].trim_ascii());
            self.announced_bytes = value.ok().and_then(|value| value.parse().ok());
        }
        ResponseHead::encode_line(&mut self.head, line);
    }

    /// Adds a line that is sent behind the body.
    pub(crate) fn add_trailer(&mut self, line: &[u8]) {
        ResponseHead::encode_line(&mut self.trailers, line);
    }

    /// Sends the started head as an interim one. False if the final head was sent already, or the
    /// client has disconnected.
    pub(crate) fn send_interim(&mut self) -> bool {
        if self.phase != Phase::Collecting {
            return false;
        }
        let head = std::mem::take(&mut self.head);
        let sent = self.send(FrameKind::Interim, &[&head]);
        self.link.borrow_mut().publish();
        if matches!(sent, Err(Unsent::TooLong)) {
            self.log_too_long("An interim response head", head.len(), "it was not sent");
        }
        self.is_sent(sent)
    }

    /// Takes output and returns how much: less than all if the client has disconnected. Output
    /// after the response's end is dropped and counts as taken.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        if self.phase == Phase::Finished {
            return bytes.len();
        }
        self.written_bytes += bytes.len() as u64;
        if self.output.len() + bytes.len() <= BUFFER_BYTES {
            self.output.extend_from_slice(bytes);
            return bytes.len();
        }
        let sent = self.send_output().and_then(|()| self.send_pieces(bytes));
        if self.is_sent(sent) { bytes.len() } else { 0 }
    }

    /// Sends the collected output, and ends the response if that is all of it. False if the client has
    /// disconnected.
    pub(crate) fn flush(&mut self, handled: bool) -> bool {
        let has_all = self.announced_bytes.is_some_and(|bytes| self.written_bytes >= bytes);
        if self.phase == Phase::Finished || (has_all && self.trailers.is_empty()) {
            return self.finish(handled);
        }
        let sent = self.send_output().and_then(|()| self.send(FrameKind::Flush, &[]));
        self.link.borrow_mut().publish();
        self.is_sent(sent)
    }

    /// Whether the client is slow, so that the script should wait.
    pub(crate) fn is_paused(&self) -> bool {
        self.phase != Phase::Finished && self.link.borrow().is_paused(self.tag)
    }

    /// Wakes this coroutine when the client reads again.
    pub(crate) fn await_client(&mut self, waiter: u64) {
        self.link.borrow().count_wait(WaitCall::Client, None);
        self.waiter = Some(waiter);
    }

    pub(crate) fn take_waiter(&mut self) -> Option<u64> {
        self.waiter.take()
    }

    /// Completes the response while the script runs on. False if the client has disconnected.
    pub(crate) fn finish(&mut self, handled: bool) -> bool {
        if self.phase == Phase::Finished {
            return true;
        }
        let sent =
            self.send_rest().and_then(|()| self.send(FrameKind::End, &[&[u8::from(handled)]]));
        self.link.borrow_mut().publish();
        self.phase = Phase::Finished;
        self.is_sent(sent)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Sends lines for the error log at once, because the process may crash later.
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

    /// Sends a span that has ended.
    pub(crate) fn span(&mut self, call: SpanCall<'_>) {
        let mut payload = Vec::new();
        Operation { id: Tag::default(), span: 0, call: Call::Span(call) }.encode(&mut payload);
        let mut link = self.link.borrow_mut();
        if let Err(corrupt) = link.send_always(FrameKind::Operation, self.tag, &[&payload]) {
            link.set_broken(corrupt);
        }
    }

    /// Sends a task to the gateway and waits for its acceptance; `None` if the ring is corrupt.
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

    /// Runs an operation in the gateway and waits for its result, blocking the worker.
    pub(crate) fn call(&mut self, call: Call<'_>, body: &[u8]) -> Option<FetchResult<'_>> {
        let is_complete = self.blocking_ops.call(&mut self.link.borrow_mut(), self.tag, call, body);
        self.blocking_ops.result().filter(|_| is_complete)
    }

    /// Fills `target` with unread body; fewer bytes mean that the body has ended.
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

    pub(crate) fn record_panic(&mut self) {
        self.panicked = true;
    }

    pub(crate) fn take_panicked(&mut self) -> bool {
        std::mem::take(&mut self.panicked)
    }

    fn is_sent(&mut self, sent: Result<(), Unsent>) -> bool {
        if let Err(Unsent::Broken(corrupt)) = sent {
            self.link.borrow_mut().set_broken(corrupt);
        }
        sent.is_ok()
    }

    /// Sends the head, if it was not sent, and the collected output.
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
        wipe(&mut output);
        self.output = output;
        sent
    }

    /// Sends the head and the output as far as they were not sent, and the trailers.
    fn send_rest(&mut self) -> Result<(), Unsent> {
        self.send_output()?;
        if self.trailers.is_empty() || self.phase != Phase::Streaming {
            return Ok(());
        }
        let trailers = std::mem::take(&mut self.trailers);
        match self.send(FrameKind::Trailers, &[&trailers]) {
            Err(Unsent::TooLong) => {
                self.log_too_long("The trailers", trailers.len(), "they were not sent");
                Ok(())
            }
            sent => sent,
        }
    }

    /// Ends the response without a head, to which the gateway responds with 502; further output is
    /// dropped.
    fn refuse_head(&mut self) {
        let head_bytes = std::mem::take(&mut self.head).len();
        self.log_too_long("The response head", head_bytes, "the response is 502");
        wipe(&mut self.output);
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
