//! The worker's end of its ring: receives and sorts frames, sends frames.
//!
//! Shared by the exchanges of a worker and, in worker mode, its events. Invariants: requests leave
//! the ring in their order; body frames are stored only for requests that wait or are being
//! handled. A corrupt ring ends the worker.

use crate::direct::{Direct, Frames};
use crate::kept_memory::wipe;
use crate::open_span;
use outboard_ring::channel::{Capacities, GatewayChannel, WaitCall, WorkerChannel, is_direct};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FRAME_HEADER_BYTES, FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Operation, Part};
use outboard_ring::response::Done;
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Why a frame was not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    Aborted,
    /// It is longer than the ring.
    TooLong,
    Broken(Corrupt),
}

impl From<Corrupt> for Unsent {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt)
    }
}

/// A message of the gateway that concerns a request in progress.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The deadline of this request has passed.
    Cancel(Tag),
    /// The client of this request reads again.
    Resume(Tag),
    Completion(Vec<u8>),
    /// Something has happened on a raw connection.
    Stream(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Link {
    channel: WorkerChannel,
    bell: Awaited,
    gateway_bell: Doorbell,
    /// The capacity of the empty ring.
    pub(crate) largest_frame_bytes: usize,
    /// Half of that, so that the gateway can empty one half while the other fills.
    pub(crate) largest_piece_bytes: usize,
    /// Requests that were received while waiting for other frames.
    waiting: VecDeque<(Tag, Vec<u8>)>,
    bodies: HashMap<Tag, VecDeque<Vec<u8>>>,
    notices: VecDeque<Notice>,
    stopped: bool,
    broken: Option<Corrupt>,
    /// The number of calls of [`Link::call`].
    calls: u32,
    /// Whether requests come one after the other, so that doorbells may be batched.
    batches: bool,
    /// Responses for which the gateway's bell was not rung.
    unannounced: u32,
    /// When the last response was completed.
    completed: Instant,
    /// `None` if the app has no direct connections, and while one is used.
    direct: Option<Box<Direct>>,
    is_turn_of_direct: bool,
}

/// At most this number of responses share a doorbell.
const MAX_UNANNOUNCED: u32 = 16;
/// A response that takes longer is worth a doorbell of its own.
const QUICK: Duration = Duration::from_micros(50);

/// The slot in the ids of [`Link::call`]; those of fetches count up from 0.
const CALLS_SLOT: u32 = u32::MAX;

impl Link {
    pub(crate) fn new(
        mut channel: WorkerChannel,
        bell: Awaited,
        gateway_bell: Doorbell,
    ) -> Result<Self, Corrupt> {
        let largest_frame_bytes = channel.free_bytes()?;
        let largest_piece_bytes = largest_frame_bytes / 2 - FRAME_HEADER_BYTES;
        Ok(Self {
            channel,
            bell,
            gateway_bell,
            largest_frame_bytes,
            largest_piece_bytes,
            waiting: VecDeque::new(),
            bodies: HashMap::new(),
            notices: VecDeque::new(),
            stopped: false,
            broken: None,
            calls: 0,
            batches: false,
            unannounced: 0,
            completed: Instant::now(),
            direct: None,
            is_turn_of_direct: false,
        })
    }

    /// A worker's end of a ring whose other end is nobody's.
    pub(crate) fn private() -> io::Result<Rc<RefCell<Self>>> {
        let (gateway, memory) = GatewayChannel::create(Capacities::DEFAULT, 0)?;
        let channel = WorkerChannel::map(&memory)?;
        let (bell, gateway_bell) = (Doorbell::new()?, Doorbell::new()?);
        let awaited = Awaited::new(&bell)?;
        // Both are there for as long as the process.
        std::mem::forget((gateway, bell));
        let link = Self::new(channel, awaited, gateway_bell).map_err(io::Error::other)?;
        Ok(Rc::new(RefCell::new(link)))
    }

    /// Reports that the worker has booted.
    pub(crate) fn ready(&mut self) -> Result<(), Corrupt> {
        self.send_always(FrameKind::Ready, Tag::default(), &[])?;
        self.publish();
        Ok(())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn set_broken(&mut self, corrupt: Corrupt) {
        self.broken.get_or_insert(corrupt);
    }

    pub(crate) fn check(&self) -> Result<(), Corrupt> {
        self.broken.map_or(Ok(()), Err)
    }

    /// The next message, in order of arrival.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Begins the next request that was not withdrawn; its payload replaces `frame`.
    pub(crate) fn next_request(&mut self, frame: &mut Vec<u8>) -> Result<Option<Tag>, Corrupt> {
        self.check()?;
        while let Some((tag, waiting)) = self.waiting.pop_front() {
            if self.start(tag) {
                *frame = waiting;
                return Ok(Some(tag));
            }
        }
        while !self.stopped {
            match self.receive(frame)? {
                None => return Ok(None),
                Some(Sorted::Elsewhere) => {}
                Some(Sorted::Request(tag)) => {
                    if self.start(tag) {
                        return Ok(Some(tag));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Has connections come over this socket.
    pub(crate) fn set_direct(&mut self, direct: Direct) {
        self.direct = Some(Box::new(direct));
    }

    /// The direct connections.
    pub(crate) fn direct(&mut self) -> Option<&mut Direct> {
        self.direct.as_deref_mut()
    }

    /// Begins the next request, of the ring or of a direct connection, in turn if both have some.
    pub(crate) fn next_of_any(&mut self, frame: &mut Vec<u8>) -> Result<Option<Tag>, Corrupt> {
        self.is_turn_of_direct = !self.is_turn_of_direct;
        if self.is_turn_of_direct
            && let Some(tag) = self.next_direct(frame)?
        {
            return Ok(Some(tag));
        }
        match self.next_request(frame)? {
            None => self.next_direct(frame),
            next => Ok(next),
        }
    }

    /// Begins the next request of a direct connection; its frame replaces `frame`.
    fn next_direct(&mut self, frame: &mut Vec<u8>) -> Result<Option<Tag>, Corrupt> {
        match self.direct.take() {
            Some(mut direct) if !self.stopped => {
                let next = direct.next(self, frame);
                self.direct = Some(direct);
                next
            }
            direct => {
                self.direct = direct;
                Ok(None)
            }
        }
    }

    /// Answers a request on its direct connection; false if the gateway has to.
    pub(crate) fn answer_directly(
        &mut self,
        tag: Tag,
        done: &Done,
        response: (&[u8], &[u8]),
    ) -> Result<bool, Corrupt> {
        let Some(mut direct) = self.direct.take_if(|_| is_direct(tag)) else { return Ok(false) };
        let answered = direct.answer(self, tag, done, response);
        self.direct = Some(direct);
        answered
    }

    /// Leaves a request of a direct connection to the gateway, of which a frame is about to be sent.
    fn pass_on(&mut self, tag: Tag) {
        let Some(mut direct) = self.direct.take_if(|_| is_direct(tag)) else { return };
        let is_new = direct.pass_on(self, tag);
        self.direct = Some(direct);
        if is_new {
            self.gateway_bell.ring();
        }
    }

    /// Receives all frames; requests stay queued.
    pub(crate) fn receive_all(&mut self) -> Result<(), Corrupt> {
        self.check()?;
        loop {
            let mut frame = Vec::new();
            match self.receive(&mut frame)? {
                None => return Ok(()),
                Some(Sorted::Elsewhere) => {}
                Some(Sorted::Request(tag)) => self.waiting.push_back((tag, frame)),
            }
        }
    }

    /// The next piece of the body of this request; `None` if there are no more.
    pub(crate) fn next_body(&mut self, tag: Tag) -> Result<Option<Vec<u8>>, Corrupt> {
        loop {
            if let Some(piece) = self.bodies.get_mut(&tag).and_then(VecDeque::pop_front) {
                return Ok(Some(piece));
            }
            let mut frame = Vec::new();
            match self.receive(&mut frame)? {
                Some(Sorted::Elsewhere) => {}
                Some(Sorted::Request(other)) => self.waiting.push_back((other, frame)),
                None if self.is_aborted(tag) || self.stopped => return Ok(None),
                None => {
                    if self.prepare_sleep()? && !self.is_aborted(tag) {
                        self.bell.wait();
                    }
                }
            }
        }
    }

    /// Runs a fast operation and waits for its completion, blocking the worker. Its call fits into
    /// [`Link::largest_piece_bytes`]; the body follows in pieces.
    pub(crate) fn call(
        &mut self,
        request: Tag,
        call: Call<'_>,
        body: &[u8],
    ) -> Result<Vec<u8>, Corrupt> {
        self.check()?;
        self.calls = self.calls.wrapping_add(1);
        let id = Tag { slot: CALLS_SLOT, generation: self.calls };
        let mut payload = Vec::new();
        Operation { id, span: open_span::number(), call }.encode(&mut payload);
        self.send_always(FrameKind::Operation, request, &[&payload])?;
        for piece in body.chunks(self.largest_piece_bytes / 2) {
            payload.clear();
            Operation { id, span: 0, call: Call::FetchBody(piece) }.encode(&mut payload);
            self.send_always(FrameKind::Operation, request, &[&payload])?;
        }
        self.publish();
        loop {
            let mut frame = Vec::new();
            match self.receive(&mut frame)? {
                Some(Sorted::Request(other)) => self.waiting.push_back((other, frame)),
                Some(Sorted::Elsewhere) => {
                    if let Some(Notice::Completion(last)) = self.notices.back()
                        && Completion::decode(last)?.id == id
                        && let Some(Notice::Completion(payload)) = self.notices.pop_back()
                    {
                        return Ok(payload);
                    }
                }
                None => {
                    if self.prepare_sleep()? {
                        self.bell.wait();
                    }
                }
            }
        }
    }

    /// The same for a call that is completed by a number. `None` if it is not, or the ring is corrupt.
    pub(crate) fn number(&mut self, request: Tag, call: Call<'_>) -> Option<u64> {
        let completion = self.call(request, call, &[]);
        let part = completion.and_then(|completion| match Completion::decode(&completion)?.part {
            Part::Number(number) => Ok(Some(number)),
            _ => Ok(None),
        });
        part.unwrap_or_else(|corrupt| {
            self.set_broken(corrupt);
            None
        })
    }

    /// Waits for the next completion, blocking the worker. Other messages are dropped: the only
    /// request is the one that waits.
    pub(crate) fn next_completion(&mut self) -> Result<Vec<u8>, Corrupt> {
        self.check()?;
        loop {
            while let Some(notice) = self.notices.pop_front() {
                if let Notice::Completion(payload) = notice {
                    return Ok(payload);
                }
            }
            let mut frame = Vec::new();
            match self.receive(&mut frame)? {
                Some(Sorted::Request(other)) => self.waiting.push_back((other, frame)),
                Some(Sorted::Elsewhere) => {}
                None => {
                    if self.prepare_sleep()? {
                        self.bell.wait();
                    }
                }
            }
        }
    }

    pub(crate) fn discard_body(&mut self, tag: Tag) {
        if !self.bodies.is_empty() {
            self.bodies.remove(&tag);
        }
    }

    /// False if the gateway has withdrawn the request for another worker.
    fn start(&mut self, tag: Tag) -> bool {
        let started = self.channel.start(tag);
        if !started {
            self.discard_body(tag);
        }
        started
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<Sorted>, Corrupt> {
        // A request that was withdrawn.
        wipe(frame);
        let Some(header) = self.channel.receive(frame)? else { return Ok(None) };
        self.release();
        match header.kind {
            FrameKind::Request => {
                if is_template(frame)
                    && let Some(direct) = &mut self.direct
                {
                    direct.learn(frame);
                }
                if has_body(frame) {
                    self.bodies.insert(header.tag, VecDeque::new());
                }
                return Ok(Some(Sorted::Request(header.tag)));
            }
            FrameKind::RequestBody => {
                if let Some(pieces) = self.bodies.get_mut(&header.tag) {
                    pieces.push_back(std::mem::take(frame));
                }
            }
            FrameKind::Stop => self.stopped = true,
            FrameKind::Cancel => self.notices.push_back(Notice::Cancel(header.tag)),
            FrameKind::Resume => self.notices.push_back(Notice::Resume(header.tag)),
            FrameKind::Completion => {
                self.notices.push_back(Notice::Completion(std::mem::take(frame)));
            }
            FrameKind::Template => {
                if let Some(direct) = &mut self.direct {
                    direct.learn(frame);
                }
                wipe(frame);
            }
            FrameKind::Stream => self.notices.push_back(Notice::Stream(std::mem::take(frame))),
            _ => return Err(Corrupt { what: "a frame that only workers send" }),
        }
        Ok(Some(Sorted::Elsewhere))
    }

    pub(crate) fn is_aborted(&self, tag: Tag) -> bool {
        self.channel.is_aborted(tag)
    }

    /// Whether the client of this request is slow.
    pub(crate) fn is_paused(&self, tag: Tag) -> bool {
        self.channel.is_paused(tag)
    }

    /// Arms the doorbell; false if there are frames to receive.
    pub(crate) fn prepare_sleep(&mut self) -> Result<bool, Corrupt> {
        if self.unannounced > 0 {
            self.publish();
        }
        Ok(self.channel.prepare_sleep()? == Sleep::MayBlock)
    }

    pub(crate) fn bell(&self) -> &Awaited {
        &self.bell
    }

    /// Sends a frame of the request, waiting for space until the client disconnects.
    pub(crate) fn send(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        parts: &[&[u8]],
    ) -> Result<(), Unsent> {
        if self.is_too_long(parts) {
            return Err(Unsent::TooLong);
        }
        self.pass_on(tag);
        loop {
            if self.is_aborted(tag) {
                return Err(Unsent::Aborted);
            }
            if self.channel.push(kind, tag, parts)? {
                return Ok(());
            }
            self.wait_for_room(tag, parts)?;
        }
    }

    /// Sends a frame that the gateway accepts even without a client; it must fit into the ring.
    pub(crate) fn send_always(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        parts: &[&[u8]],
    ) -> Result<(), Corrupt> {
        self.pass_on(tag);
        self.push_frame(kind, tag, parts)
    }

    fn is_too_long(&self, parts: &[&[u8]]) -> bool {
        parts.iter().map(|part| part.len()).sum::<usize>() > self.largest_frame_bytes
    }

    fn wait_for_room(&mut self, tag: Tag, parts: &[&[u8]]) -> Result<(), Corrupt> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.publish();
        if self.channel.prepare_wait(len)? == Sleep::MayBlock && !self.is_aborted(tag) {
            self.bell.wait();
        }
        Ok(())
    }

    /// Lets [`Link::publish_response`] batch doorbells: the worker has one request at a time, and
    /// the gateway knows the queued ones.
    pub(crate) fn batch_responses(&mut self) {
        self.batches = true;
    }

    /// Publishes a complete response. While quick requests are queued, a sleeping gateway is woken
    /// once for several responses instead of for each; it polls after a millisecond in any case.
    pub(crate) fn publish_response(&mut self) -> Result<(), Corrupt> {
        let now = Instant::now();
        let is_quick = now - std::mem::replace(&mut self.completed, now) < QUICK;
        self.unannounced += 1;
        let is_early = self.batches && is_quick && self.unannounced < MAX_UNANNOUNCED;
        if is_early && self.has_more()? {
            self.channel.show();
        } else {
            self.publish();
        }
        Ok(())
    }

    fn has_more(&mut self) -> Result<bool, Corrupt> {
        Ok(!self.waiting.is_empty() || self.channel.has_more()?)
    }

    pub(crate) fn publish(&mut self) {
        self.unannounced = 0;
        if self.channel.publish() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }

    fn release(&mut self) {
        if self.channel.release() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }

    /// Counts a wait; `blocked_us` is the time for which it blocked the worker.
    pub(crate) fn count_wait(&self, call: WaitCall, blocked_us: Option<u64>) {
        match blocked_us {
            Some(us) => self.channel.count_blocked(call, us),
            None => self.channel.count_suspended(call),
        }
    }

    /// Counts a rewind that took so long and copied back so many pages.
    pub(crate) fn count_rewind(&self, us: u64, pages: u64) {
        self.channel.count_rewind(us, pages);
    }
}

impl Frames for Link {
    fn channel(&self) -> &WorkerChannel {
        &self.channel
    }

    fn push_frame(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<(), Corrupt> {
        if self.is_too_long(parts) {
            return Err(Corrupt { what: "the worker's frame is longer than its ring" });
        }
        while !self.channel.push(kind, tag, parts)? {
            self.wait_for_room(tag, parts)?;
        }
        Ok(())
    }

    fn publish_quietly(&mut self, is_urgent: bool) {
        if self.channel.publish() == Wake::Needed || is_urgent {
            self.gateway_bell.ring();
        }
    }

    fn add_body(&mut self, tag: Tag, body: Vec<u8>) {
        self.bodies.insert(tag, VecDeque::from([body]));
    }
}

/// Where a received frame went.
enum Sorted {
    /// A request, in the buffer.
    Request(Tag),
    /// Into one of the queues.
    Elsewhere,
}

/// Whether requests of direct connections may be like this one (`ring::request::Fixed`).
fn is_template(frame: &[u8]) -> bool {
    frame.get(2) == Some(&1)
}

/// Whether body frames follow this request (`ring::request::Fixed`).
fn has_body(frame: &[u8]) -> bool {
    frame.first() == Some(&1) && frame.get(8..16).is_some_and(|length| length != [0; 8])
}
