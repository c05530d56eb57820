//! One worker's conversation with the gateway: the request being answered, its head, its buffered
//! output and its unread body.
//!
//! Called by the worker's loop between requests and by [`crate::callbacks`] within one. Invariants:
//! the head is sent once and before any body; nothing of the answer is sent after its end; a small
//! answer is published once, together with its `Done`. A broken ring is remembered and ends the
//! worker after the request.

use outboard_ring::channel::WorkerChannel;
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FRAME_HEADER_BYTES, FrameKind, Tag};
use outboard_ring::response::{Done, ResponseHead};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use std::mem::MaybeUninit;

/// Output that is collected before it is sent.
const BUFFER_BYTES: usize = 32 * 1024;

/// What the worker's loop gets from the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A request; its payload is in the buffer.
    Request,
    /// The order to leave.
    Stop,
}

/// The frame could not be sent and never will be.
#[derive(Debug)]
enum Unsent {
    /// The client has gone.
    Aborted,
    /// The gateway broke the protocol.
    Broken(Corrupt),
}

impl From<Corrupt> for Unsent {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt)
    }
}

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
    channel: WorkerChannel,
    bell: Doorbell,
    gateway_bell: Doorbell,
    largest_piece_bytes: usize,
    tag: Tag,
    phase: Phase,
    head: Vec<u8>,
    output: Vec<u8>,
    body: Body,
    stop: bool,
    broken: Option<Corrupt>,
    panicked: bool,
}

/// The part of the request body that PHP has not read.
#[derive(Debug, Default)]
struct Body {
    frame: Vec<u8>,
    at: usize,
    unread_bytes: u64,
}

impl Exchange {
    /// A worker's end of a fresh channel.
    pub(crate) fn new(
        mut channel: WorkerChannel,
        bell: Doorbell,
        gateway_bell: Doorbell,
    ) -> Result<Self, Corrupt> {
        // Half of the ring, so that the gateway empties one half while the other fills.
        let largest_piece_bytes = channel.free_bytes()? / 2 - FRAME_HEADER_BYTES;
        Ok(Self {
            channel,
            bell,
            gateway_bell,
            largest_piece_bytes,
            tag: Tag::default(),
            phase: Phase::Collecting,
            head: Vec::with_capacity(1024),
            output: Vec::with_capacity(BUFFER_BYTES),
            body: Body::default(),
            stop: false,
            broken: None,
            panicked: false,
        })
    }

    /// Says that the worker has booted.
    pub(crate) fn ready(&mut self) -> Result<(), Corrupt> {
        self.send_always(FrameKind::Ready, &[])?;
        self.publish();
        Ok(())
    }

    /// Waits for a request or the order to stop. Frames of a body that nobody read are dropped.
    pub(crate) fn next(&mut self, frame: &mut Vec<u8>) -> Result<Next, Corrupt> {
        if let Some(corrupt) = self.broken {
            return Err(corrupt);
        }
        while !self.stop {
            match self.channel.receive(frame)? {
                Some(header) => {
                    self.release();
                    match header.kind {
                        FrameKind::Request if self.channel.start(header.tag) => {
                            self.begin(header.tag);
                            return Ok(Next::Request);
                        }
                        // Withdrawn: another worker answers it.
                        FrameKind::Request => {}
                        FrameKind::RequestBody => {}
                        FrameKind::Stop => self.stop = true,
                        _ => return Err(Corrupt { what: "a frame that only workers send" }),
                    }
                }
                None => {
                    if self.channel.prepare_sleep()? == Sleep::MayBlock {
                        self.bell.wait();
                    }
                }
            }
        }
        Ok(Next::Stop)
    }

    fn begin(&mut self, tag: Tag) {
        self.tag = tag;
        self.phase = Phase::Collecting;
        self.head.clear();
        self.output.clear();
        self.expect_body(0);
    }

    /// Tells how many bytes of body follow the request.
    pub(crate) fn expect_body(&mut self, bytes: u64) {
        self.body.unread_bytes = bytes;
        self.body.frame.clear();
        self.body.at = 0;
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
        self.send_always(FrameKind::Done, &[&done.encode()])?;
        self.publish();
        self.broken.map_or(Ok(()), Err)
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
        self.publish();
        self.is_sent(sent)
    }

    /// Completes the answer while the script goes on. False when the client has gone.
    pub(crate) fn finish(&mut self) -> bool {
        let sent = self.send_output().and_then(|()| self.send(FrameKind::End, &[]));
        self.publish();
        self.phase = Phase::Finished;
        self.is_sent(sent)
    }

    /// Whether [`Exchange::finish`] was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// A line for the error log, at once: the process may not live to send it later.
    pub(crate) fn log(&mut self, severity: u8, text: &[u8]) {
        let most = self.largest_piece_bytes - 1;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line = &line[..line.len().min(most)];
            if let Err(corrupt) = self.send_always(FrameKind::Log, &[&[severity], line]) {
                self.broken = Some(corrupt);
                return;
            }
        }
        self.publish();
    }

    /// Copies unread body over `target`; fewer bytes than it holds mean that the body ended.
    pub(crate) fn read_body(&mut self, target: &mut [MaybeUninit<u8>]) -> usize {
        let mut filled = 0;
        while filled < target.len() && self.body.unread_bytes > 0 {
            let rest = &self.body.frame[self.body.at..];
            if rest.is_empty() {
                match self.receive_body() {
                    Ok(true) => continue,
                    Ok(false) => break,
                    Err(corrupt) => {
                        self.broken = Some(corrupt);
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

    /// Waits for the next frame of the body; false when it will not come.
    fn receive_body(&mut self) -> Result<bool, Corrupt> {
        loop {
            match self.channel.receive(&mut self.body.frame)? {
                Some(header) => {
                    self.release();
                    match header.kind {
                        FrameKind::RequestBody if header.tag == self.tag => {
                            self.body.at = 0;
                            return Ok(true);
                        }
                        FrameKind::RequestBody => {}
                        FrameKind::Stop => self.stop = true,
                        _ => return Err(Corrupt { what: "a request inside of another's body" }),
                    }
                    self.body.frame.clear();
                    self.body.at = 0;
                }
                None if self.channel.is_aborted(self.tag) => return Ok(false),
                None => {
                    if self.channel.prepare_sleep()? == Sleep::MayBlock
                        && !self.channel.is_aborted(self.tag)
                    {
                        self.bell.wait();
                    }
                }
            }
        }
    }

    /// Notes that a callback panicked: the worker leaves after this request.
    pub(crate) fn note_panic(&mut self) {
        self.panicked = true;
    }

    /// Whether one did; forgets it.
    pub(crate) fn take_panicked(&mut self) -> bool {
        std::mem::take(&mut self.panicked)
    }

    fn is_sent(&mut self, sent: Result<(), Unsent>) -> bool {
        if let Err(Unsent::Broken(corrupt)) = sent {
            self.broken = Some(corrupt);
        }
        sent.is_ok()
    }

    /// Sends the head, if it waits, and the collected output.
    fn send_output(&mut self) -> Result<(), Unsent> {
        if self.phase == Phase::Collecting && !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            let sent = self.send(FrameKind::Head, &[&head]);
            self.head = head;
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

    fn send_pieces(&mut self, bytes: &[u8]) -> Result<(), Unsent> {
        for piece in bytes.chunks(self.largest_piece_bytes) {
            self.send(FrameKind::Body, &[piece])?;
        }
        Ok(())
    }

    /// Puts a frame into the ring, waiting for room while there is a client.
    fn send(&mut self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), Unsent> {
        loop {
            if self.channel.is_aborted(self.tag) {
                return Err(Unsent::Aborted);
            }
            if self.channel.push(kind, self.tag, parts)? {
                return Ok(());
            }
            self.wait_for_room(parts)?;
        }
    }

    /// Puts a frame into the ring that the gateway takes whether or not there is a client.
    fn send_always(&mut self, kind: FrameKind, parts: &[&[u8]]) -> Result<(), Corrupt> {
        while !self.channel.push(kind, self.tag, parts)? {
            self.wait_for_room(parts)?;
        }
        Ok(())
    }

    fn wait_for_room(&mut self, parts: &[&[u8]]) -> Result<(), Corrupt> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.publish();
        if self.channel.prepare_wait(len)? == Sleep::MayBlock && !self.channel.is_aborted(self.tag)
        {
            self.bell.wait();
        }
        Ok(())
    }

    fn publish(&mut self) {
        if self.channel.publish() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }

    fn release(&mut self) {
        if self.channel.release() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }
}
