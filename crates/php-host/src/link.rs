//! The worker's end of its ring: frames in, sorted by what they are for; frames out.
//!
//! Shared by the exchanges of a worker and, in worker mode, its events. Invariants: a request
//! leaves the ring in the order in which it came; body frames are kept for requests that are
//! waited for or being answered, and for no others. A broken ring is remembered and ends the
//! worker.

use outboard_ring::channel::{WaitCall, WorkerChannel};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FRAME_HEADER_BYTES, FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Operation};
use outboard_ring::spsc::{Corrupt, Sleep, Wake};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The frame could not be sent and never will be.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// The client has gone.
    Aborted,
    /// It is longer than the ring: waiting for room would have no end.
    TooLong,
    /// The gateway broke the protocol.
    Broken(Corrupt),
}

impl From<Corrupt> for Unsent {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt)
    }
}

/// Something that the gateway said between requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The time of this request is over.
    Cancel(Tag),
    /// The client of this request takes its answer again.
    Resume(Tag),
    /// Payload of a `Completion` frame.
    Completion(Vec<u8>),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    channel: WorkerChannel,
    bell: Awaited,
    gateway_bell: Doorbell,
    /// What the empty ring has room for.
    pub(crate) largest_frame_bytes: usize,
    /// Half of the ring, so that the gateway empties one half while the other fills.
    pub(crate) largest_piece_bytes: usize,
    /// Requests that were taken out of the ring on the way to something behind them.
    waiting: VecDeque<(Tag, Vec<u8>)>,
    bodies: HashMap<Tag, VecDeque<Vec<u8>>>,
    notices: VecDeque<Notice>,
    stop: bool,
    broken: Option<Corrupt>,
    /// How many operations the worker has waited for in [`Link::call`].
    calls: u32,
    /// Whether requests come one after the other, so that answers may be told of together.
    gathers: bool,
    /// Answers that the gateway was not rung for.
    unheard: u32,
    /// When the last answer was whole.
    answered: Instant,
}

/// So many answers the gateway hears of at once.
const UNHEARD: u32 = 16;
/// Answers that take longer than this are worth a wake-up each.
const QUICK: Duration = Duration::from_micros(50);

/// The slot that the ids of [`Link::call`] have; those of fetches count up from 0.
const CALLS_SLOT: u32 = u32::MAX;

impl Link {
    /// A worker's end of a fresh channel.
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
            stop: false,
            broken: None,
            calls: 0,
            gathers: false,
            unheard: 0,
            answered: Instant::now(),
        })
    }

    /// Says that the worker has booted.
    pub(crate) fn ready(&mut self) -> Result<(), Corrupt> {
        self.send_always(FrameKind::Ready, Tag::default(), &[])?;
        self.publish();
        Ok(())
    }

    /// Whether the worker is to leave.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop
    }

    /// Remembers that the ring cannot be used any more.
    pub(crate) fn set_broken(&mut self, corrupt: Corrupt) {
        self.broken.get_or_insert(corrupt);
    }

    /// Whether that was so.
    pub(crate) fn check(&self) -> Result<(), Corrupt> {
        self.broken.map_or(Ok(()), Err)
    }

    /// What was said meanwhile, in order.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Begins the next request that is still to be had, its payload over `frame`.
    pub(crate) fn next_request(&mut self, frame: &mut Vec<u8>) -> Result<Option<Tag>, Corrupt> {
        self.check()?;
        while let Some((tag, waiting)) = self.waiting.pop_front() {
            if self.start(tag) {
                *frame = waiting;
                return Ok(Some(tag));
            }
        }
        while !self.stop {
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

    /// Takes everything out of the ring that is not a request to be begun.
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

    /// The next piece of the body of this request; `None` when it will not come.
    pub(crate) fn next_body(&mut self, tag: Tag) -> Result<Option<Vec<u8>>, Corrupt> {
        loop {
            if let Some(piece) = self.bodies.get_mut(&tag).and_then(VecDeque::pop_front) {
                return Ok(Some(piece));
            }
            let mut frame = Vec::new();
            match self.receive(&mut frame)? {
                Some(Sorted::Elsewhere) => {}
                Some(Sorted::Request(other)) => self.waiting.push_back((other, frame)),
                None if self.is_aborted(tag) || self.stop => return Ok(None),
                None => {
                    if self.prepare_sleep()? && !self.is_aborted(tag) {
                        self.bell.wait();
                    }
                }
            }
        }
    }

    /// Has an operation carried out and waits for its completion, holding the worker meanwhile: for
    /// what takes the gateway no time. Its call fits into [`Link::largest_piece_bytes`]; the body
    /// follows in pieces.
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
        Operation { id, call }.encode(&mut payload);
        self.send_always(FrameKind::Operation, request, &[&payload])?;
        for piece in body.chunks(self.largest_piece_bytes / 2) {
            payload.clear();
            Operation { id, call: Call::FetchBody(piece) }.encode(&mut payload);
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

    /// Waits for the next completion, holding the worker meanwhile. What else was said to a request
    /// is of no use to one that does nothing but wait.
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

    /// The request is over: what is left of its body is of no use.
    pub(crate) fn discard_body(&mut self, tag: Tag) {
        if !self.bodies.is_empty() {
            self.bodies.remove(&tag);
        }
    }

    /// False when the gateway has withdrawn it: another worker answers it.
    fn start(&mut self, tag: Tag) -> bool {
        let started = self.channel.start(tag);
        if !started {
            self.discard_body(tag);
        }
        started
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<Sorted>, Corrupt> {
        let Some(header) = self.channel.receive(frame)? else { return Ok(None) };
        self.release();
        match header.kind {
            FrameKind::Request => {
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
            FrameKind::Stop => self.stop = true,
            FrameKind::Cancel => self.notices.push_back(Notice::Cancel(header.tag)),
            FrameKind::Resume => self.notices.push_back(Notice::Resume(header.tag)),
            FrameKind::Completion => {
                self.notices.push_back(Notice::Completion(std::mem::take(frame)));
            }
            _ => return Err(Corrupt { what: "a frame that only workers send" }),
        }
        Ok(Some(Sorted::Elsewhere))
    }

    /// Whether the client of this request has gone.
    pub(crate) fn is_aborted(&self, tag: Tag) -> bool {
        self.channel.is_aborted(tag)
    }

    /// Whether the client of this request takes nothing for now.
    pub(crate) fn is_paused(&self, tag: Tag) -> bool {
        self.channel.is_paused(tag)
    }

    /// Has the gateway ring the bell from now on; false when there is something to take in.
    pub(crate) fn prepare_sleep(&mut self) -> Result<bool, Corrupt> {
        if self.unheard > 0 {
            self.publish();
        }
        Ok(self.channel.prepare_sleep()? == Sleep::MayBlock)
    }

    /// Where this worker waits for the gateway.
    pub(crate) fn bell(&self) -> &Awaited {
        &self.bell
    }

    /// Puts a frame of the request's into the ring, waiting for room while there is a client.
    pub(crate) fn send(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        parts: &[&[u8]],
    ) -> Result<(), Unsent> {
        if self.is_too_long(parts) {
            return Err(Unsent::TooLong);
        }
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

    /// Puts a frame into the ring that the gateway takes whether or not there is a client. Its length is
    /// the caller's concern.
    pub(crate) fn send_always(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        parts: &[&[u8]],
    ) -> Result<(), Corrupt> {
        if self.is_too_long(parts) {
            return Err(Corrupt { what: "a frame of the worker's that is longer than its ring" });
        }
        while !self.channel.push(kind, tag, parts)? {
            self.wait_for_room(tag, parts)?;
        }
        Ok(())
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

    /// Has [`Link::publish_answer`] tell of several answers together: the worker has one request at a
    /// time, and the gateway knows of those that lie ahead.
    pub(crate) fn batch_responses(&mut self) {
        self.gathers = true;
    }

    /// Shows an answer that is whole. While quick requests lie ahead, a gateway that sleeps is rung
    /// for several together: it would be woken for each, on a free processor even between two of
    /// them. It looks by itself after a millisecond, lest the next request takes long.
    pub(crate) fn publish_answer(&mut self) -> Result<(), Corrupt> {
        let now = Instant::now();
        let is_quick = now - std::mem::replace(&mut self.answered, now) < QUICK;
        self.unheard += 1;
        let is_early = self.gathers && is_quick && self.unheard < UNHEARD;
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

    /// Shows what was sent to the gateway.
    pub(crate) fn publish(&mut self) {
        self.unheard = 0;
        if self.channel.publish() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }

    fn release(&mut self) {
        if self.channel.release() == Wake::Needed {
            self.gateway_bell.ring();
        }
    }

    /// Counts a wait; with the time for which it held the worker, if it did.
    pub(crate) fn count_wait(&self, call: WaitCall, blocked_us: Option<u64>) {
        match blocked_us {
            Some(us) => self.channel.count_blocked(call, us),
            None => self.channel.count_suspended(call),
        }
    }
}

/// Where a frame went.
enum Sorted {
    /// It is a request, in the buffer.
    Request(Tag),
    /// To the place where it is asked for.
    Elsewhere,
}

/// Whether body frames follow this request (`ring::request::Fixed`).
fn has_body(frame: &[u8]) -> bool {
    frame.first() == Some(&1) && frame.get(8..16).is_some_and(|length| length != [0; 8])
}
