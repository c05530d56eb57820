//! The events of a worker script: requests, ended waits, timers, the stop.
//!
//! Created by [`crate::worker_script`], used by `sapi/worker/loop.c` through [`crate::callbacks`].
//! Invariants: a request's memory does not move until its `done`; events come in the order of their
//! occurrence; the worker sleeps only when nothing is left to do and the gateway knows.

use crate::engine::request::{RequestResult, Scratch};
use crate::engine::structures::Request;
use crate::exchange::Exchange;
use crate::fetches::Fetches;
use crate::kept_memory::wipe;
use crate::link::{Link, Notice};
use crate::offload::Offload;
use crate::poller::{Due, Poller, now_us};
use crate::stalls;
use crate::streams::Streams;
use outboard_ring::frame::Tag;
use outboard_ring::request::RequestView;
use outboard_ring::response::Done;
use outboard_ring::spsc::Corrupt;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::rc::Rc;

/// While there are requests, the kernel is polled once per this number of events or this time, so
/// that coroutines whose descriptors are ready do not wait for many new requests.
const EVENTS_BETWEEN_POLLS: u32 = 32;
const TIME_BETWEEN_POLLS_US: u64 = 500;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// None; only if the caller does not wait.
    Nothing,
    /// A new request.
    Request(NonNull<RequestSlot>),
    /// The wait of this waiter has ended.
    Wake(u64),
    /// This timer is due.
    Timer(u64),
    /// The deadline of this request has passed.
    Cancel(NonNull<RequestSlot>),
    /// Something has come on a raw connection.
    Stream,
    /// The worker is to exit.
    Stop,
}

/// The memory of a request in progress. Never moved, because C points to it.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    pub(crate) exchange: Exchange,
    pub(crate) request: Request,
    frame: Vec<u8>,
    scratch: Scratch,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) link: Rc<RefCell<Link>>,
    pub(crate) poller: Poller,
    pub(crate) fetches: Fetches,
    pub(crate) offload: Offload,
    pub(crate) streams: Streams,
    queue: VecDeque<Event>,
    due: Vec<Due>,
    /// Slots in use, by the index of their tag.
    active: Vec<Option<NonNull<RequestSlot>>>,
    free: Vec<NonNull<RequestSlot>>,
    since_poll: u32,
    polled_us: u64,
    /// Whether clients may send requests to this process.
    has_direct: bool,
    is_stop_reported: bool,
    /// The error that ends the worker.
    pub(crate) failed: Option<Corrupt>,
}

impl Events {
    /// Creates the events of the worker with this link.
    pub(crate) fn new(link: Rc<RefCell<Link>>) -> io::Result<Self> {
        let poller = Poller::new(link.borrow().bell().as_fd())?;
        let has_direct = match link.borrow_mut().direct() {
            Some(direct) => direct.watch(poller.epoll()).map(|()| true)?,
            None => false,
        };
        Ok(Self {
            has_direct,
            link,
            poller,
            fetches: Fetches::default(),
            offload: Offload::default(),
            streams: Streams::default(),
            queue: VecDeque::new(),
            due: Vec::new(),
            active: Vec::new(),
            free: Vec::new(),
            since_poll: 0,
            polled_us: 0,
            is_stop_reported: false,
            failed: None,
        })
    }

    /// Returns the next event. Requests come only if `may_start`.
    pub(crate) fn next(&mut self, may_start: bool, may_block: bool) -> Event {
        match self.try_next(may_start, may_block) {
            Ok(event) => event,
            Err(corrupt) => {
                self.failed.get_or_insert(corrupt);
                Event::Stop
            }
        }
    }

    fn try_next(&mut self, may_start: bool, may_block: bool) -> Result<Event, Corrupt> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            self.since_poll += 1;
            if self.is_watching() && self.is_poll_due() {
                self.poll(false)?;
                continue;
            }
            if may_start {
                if let Some(event) = self.start_request()? {
                    return Ok(event);
                }
            } else {
                self.link.borrow_mut().receive_all()?;
            }
            self.take_notices()?;
            // A sleep polls as well, and a worker with direct connections sleeps after most requests.
            let is_slept = may_block && self.has_direct;
            if self.queue.is_empty() && self.is_watching() && self.since_poll > 1 && !is_slept {
                self.poll(false)?;
            }
            if !self.queue.is_empty() {
                continue;
            }
            if self.link.borrow().is_stopped() && !self.is_stop_reported {
                self.is_stop_reported = true;
                self.streams.leave(&mut self.link.borrow_mut())?;
                return Ok(Event::Stop);
            }
            if !may_block {
                return Ok(Event::Nothing);
            }
            self.sleep(may_start)?;
        }
    }

    /// Whether nothing has come and nothing is waited for but the gateway.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_waiting()
    }

    fn is_waiting(&self) -> bool {
        self.poller.is_busy() || self.offload.is_busy()
    }

    fn is_watching(&self) -> bool {
        self.has_direct || self.is_waiting()
    }

    /// Sleeps until the gateway, a descriptor or a timer has an event.
    fn sleep(&mut self, may_start: bool) -> Result<(), Corrupt> {
        {
            let mut link = self.link.borrow_mut();
            link.publish();
            // Frames that stay in the ring would end the sleep at once.
            if !link.prepare_sleep()? {
                if may_start {
                    return Ok(());
                }
                link.receive_all()?;
                return Ok(());
            }
            if !self.poller.is_busy() && !self.has_direct {
                stalls::idle(|| link.bell().wait());
                drop(link);
                self.take_finished();
                return Ok(());
            }
        }
        stalls::idle(|| self.poll(true))
    }

    fn is_poll_due(&self) -> bool {
        self.since_poll > EVENTS_BETWEEN_POLLS
            || (self.since_poll > 1 && now_us() >= self.polled_us + TIME_BETWEEN_POLLS_US)
    }

    fn poll(&mut self, may_block: bool) -> Result<(), Corrupt> {
        self.since_poll = 0;
        let polled = self.poller.poll(may_block, &mut self.due);
        self.polled_us = now_us();
        match polled {
            Ok(true) => self.link.borrow().bell().clear(),
            Ok(false) => {}
            Err(_) => return Err(Corrupt { what: "epoll_wait failed" }),
        }
        let link = &self.link;
        self.queue.extend(self.due.drain(..).filter_map(|due| match due {
            Due::Wait(name) => Some(Event::Wake(name)),
            Due::Timer(id) => Some(Event::Timer(id)),
            Due::Direct(number, has_ended) => {
                if let Some(direct) = link.borrow_mut().direct() {
                    direct.event(number, has_ended);
                }
                None
            }
        }));
        self.take_finished();
        Ok(())
    }

    fn take_finished(&mut self) {
        let finished = self.offload.take_finished();
        self.queue.extend(finished.into_iter().map(Event::Wake));
    }

    fn take_notices(&mut self) -> Result<(), Corrupt> {
        loop {
            let notice = self.link.borrow_mut().take_notice();
            match notice {
                None => return Ok(()),
                Some(Notice::Cancel(tag)) => {
                    self.queue.extend(self.slot(tag).map(Event::Cancel));
                }
                Some(Notice::Resume(tag)) => {
                    // SAFETY: the slot of a tag is in use; the reference ends here.
                    let waiter = self
                        .slot(tag)
                        .and_then(|mut slot| unsafe { slot.as_mut().exchange.take_waiter() });
                    self.queue.extend(waiter.map(Event::Wake));
                }
                Some(Notice::Stream(payload)) => {
                    if self.streams.receive(&payload)? {
                        self.queue.push_back(Event::Stream);
                    }
                }
                Some(Notice::Completion(payload)) => {
                    let woken = self.fetches.receive(payload)?;
                    self.queue.extend(woken.map(Event::Wake));
                }
            }
        }
    }

    fn start_request(&mut self) -> Result<Option<Event>, Corrupt> {
        let mut slot = self.free.pop().unwrap_or_else(|| self.new_slot());
        // SAFETY: a free slot has no other user.
        let request = unsafe { slot.as_mut() };
        let Some(tag) = self.link.borrow_mut().next_of_any(&mut request.frame)? else {
            self.free.push(slot);
            return Ok(None);
        };
        let view = RequestView::decode(&request.frame)?;
        request.exchange.begin(tag, view.fixed.content_length.unwrap_or(0));
        request.request = Request::describe(&view, &mut request.scratch);
        let index = tag.slot as usize;
        if self.active.len() <= index {
            self.active.resize(index + 1, None);
        }
        if self.active[index].replace(slot).is_some() {
            return Err(Corrupt { what: "two requests with one lease" });
        }
        Ok(Some(Event::Request(slot)))
    }

    /// The slot of the request with this tag, unless it has ended.
    fn slot(&self, tag: Tag) -> Option<NonNull<RequestSlot>> {
        let slot = (*self.active.get(tag.slot as usize)?)?;
        // SAFETY: a slot in use is allocated; the reference does not outlive the line.
        let current = unsafe { slot.as_ref() }.exchange.tag();
        (current == tag).then_some(slot)
    }

    fn new_slot(&self) -> NonNull<RequestSlot> {
        let slot = RequestSlot {
            exchange: Exchange::new(self.link.clone()),
            request: Request::default(),
            frame: Vec::new(),
            scratch: Scratch::default(),
        };
        NonNull::from(Box::leak(Box::new(slot)))
    }

    /// Forgets all that a request has begun and not awaited.
    pub(crate) fn forget_request(&mut self) {
        self.poller.forget();
        self.queue.clear();
        // The script before the rewind knew of it.
        self.is_stop_reported = false;
        self.offload = Offload::default();
        if let Err(corrupt) = self.fetches.free_all(&mut self.link.borrow_mut()) {
            self.failed.get_or_insert(corrupt);
        }
    }

    /// Completes the response of the request with this tag, which has not ended yet.
    pub(crate) fn finish(&mut self, tag: Tag, handled: bool) {
        if let Some(mut slot) = self.slot(tag) {
            // SAFETY: a slot in use; C uses it no more, since its request has no result but this one.
            unsafe { slot.as_mut() }.exchange.finish(handled);
        }
    }

    /// Ends the request with this tag.
    pub(crate) fn done(&mut self, tag: Tag, result: RequestResult) {
        let Some(mut slot) = self.slot(tag) else { return };
        self.active[tag.slot as usize] = None;
        // SAFETY: C has returned the slot, so it has no other user.
        let RequestSlot { exchange, frame, .. } = unsafe { slot.as_mut() };
        wipe(frame);
        let panicked = exchange.take_panicked();
        let done = Done {
            outcome: if panicked {
                outboard_ring::response::Outcome::Failed
            } else {
                result.outcome
            },
            leaving: result.leaving || panicked,
            takes_snapshot: result.takes_snapshot,
            handled: result.handled && !panicked,
            peak_memory_bytes: result.peak_memory_bytes,
        };
        if let Err(corrupt) = exchange.done(done) {
            self.failed.get_or_insert(corrupt);
        }
        self.free.push(slot);
    }
}
