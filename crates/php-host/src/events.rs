//! What a resident script's worker is to do next: a request, the end of a wait, a timer, the end.
//!
//! Made by [`crate::resident`], driven by `sapi/loop.c` through [`crate::callbacks`].
//! Invariants: a request's memory stays where it is until its `done`; events come in the order in
//! which they came about; the worker sleeps only when nothing is to be done and the gateway knows.

use crate::engine::{Request, Scratch, Verdict};
use crate::exchange::Exchange;
use crate::fetches::Fetches;
use crate::link::{Link, Notice};
use crate::offload::Offload;
use crate::poller::{Due, Poller};
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

/// So many events are handed out before the kernel is asked for more, while there are requests.
const EVENTS_BETWEEN_POLLS: u32 = 32;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing, and the caller did not want to wait.
    Nothing,
    /// A request sits here.
    Request(NonNull<Seat>),
    /// A wait is over.
    Wake(u64),
    /// A timer is due.
    Timer(u64),
    /// The time of the request that sits here is over.
    Cancel(NonNull<Seat>),
    /// The worker is to leave.
    Stop,
}

/// Where a request sits while it is answered. Never moved: C points into it.
#[derive(Debug)]
pub(crate) struct Seat {
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
    queue: VecDeque<Event>,
    due: Vec<Due>,
    /// Those in use, by slot.
    taken: Vec<Option<NonNull<Seat>>>,
    free: Vec<NonNull<Seat>>,
    since_poll: u32,
    said_stop: bool,
    /// Why it all ends, if not in order.
    pub(crate) failed: Option<Corrupt>,
}

impl Events {
    /// The events of a worker with this link.
    pub(crate) fn new(link: Rc<RefCell<Link>>) -> io::Result<Self> {
        let poller = Poller::new(link.borrow().bell().as_fd())?;
        Ok(Self {
            link,
            poller,
            fetches: Fetches::default(),
            offload: Offload::default(),
            queue: VecDeque::new(),
            due: Vec::new(),
            taken: Vec::new(),
            free: Vec::new(),
            since_poll: 0,
            said_stop: false,
            failed: None,
        })
    }

    /// The next event. Requests come only when `may_start`.
    pub(crate) fn next(&mut self, may_start: bool, may_block: bool) -> Event {
        match self.find(may_start, may_block) {
            Ok(event) => event,
            Err(corrupt) => {
                self.failed.get_or_insert(corrupt);
                Event::Stop
            }
        }
    }

    fn find(&mut self, may_start: bool, may_block: bool) -> Result<Event, Corrupt> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            self.since_poll += 1;
            if self.since_poll > EVENTS_BETWEEN_POLLS && self.is_watching() {
                self.poll(false)?;
                continue;
            }
            if may_start {
                if let Some(event) = self.start_request()? {
                    return Ok(event);
                }
            } else {
                self.link.borrow_mut().take_in()?;
            }
            self.take_notices()?;
            if self.queue.is_empty() && self.is_watching() && self.since_poll > 1 {
                self.poll(false)?;
            }
            if !self.queue.is_empty() {
                continue;
            }
            if self.link.borrow().is_stopped() && !self.said_stop {
                self.said_stop = true;
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
        self.queue.is_empty() && !self.is_watching()
    }

    fn is_watching(&self) -> bool {
        self.poller.is_busy() || self.offload.is_busy()
    }

    /// Sleeps until the gateway or anything watched has news.
    fn sleep(&mut self, may_start: bool) -> Result<(), Corrupt> {
        {
            let mut link = self.link.borrow_mut();
            link.publish();
            // With frames left in the ring on purpose this would return at once.
            if !link.prepare_sleep()? {
                if may_start {
                    return Ok(());
                }
                link.take_in()?;
                return Ok(());
            }
            if !self.poller.is_busy() {
                link.bell().wait();
                drop(link);
                self.take_finished();
                return Ok(());
            }
        }
        self.poll(true)
    }

    fn poll(&mut self, may_block: bool) -> Result<(), Corrupt> {
        self.since_poll = 0;
        let polled = self.poller.poll(may_block, &mut self.due);
        match polled {
            Ok(true) => self.link.borrow().bell().clear(),
            Ok(false) => {}
            Err(_) => return Err(Corrupt { what: "epoll_wait failed" }),
        }
        self.queue.extend(self.due.drain(..).map(|due| match due {
            Due::Wait(name) => Event::Wake(name),
            Due::Timer(id) => Event::Timer(id),
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
                    self.queue.extend(self.seat(tag).map(Event::Cancel));
                }
                Some(Notice::Resume(tag)) => {
                    // SAFETY: a seat that a tag leads to is in use; the reference ends here.
                    let waiter = self
                        .seat(tag)
                        .and_then(|mut seat| unsafe { seat.as_mut().exchange.take_waiter() });
                    self.queue.extend(waiter.map(Event::Wake));
                }
                Some(Notice::Completion(payload)) => {
                    let woken = self.fetches.take_in(payload)?;
                    self.queue.extend(woken.map(Event::Wake));
                }
            }
        }
    }

    fn start_request(&mut self) -> Result<Option<Event>, Corrupt> {
        let mut seat = self.free.pop().unwrap_or_else(|| self.new_seat());
        // SAFETY: a seat that is free is nobody else's.
        let place = unsafe { seat.as_mut() };
        let Some(tag) = self.link.borrow_mut().next_request(&mut place.frame)? else {
            self.free.push(seat);
            return Ok(None);
        };
        let view = RequestView::decode(&place.frame)?;
        place.exchange.begin(tag, view.fixed.content_length.unwrap_or(0));
        place.request = Request::describe(&view, &mut place.scratch);
        let slot = tag.slot as usize;
        if self.taken.len() <= slot {
            self.taken.resize(slot + 1, None);
        }
        if self.taken[slot].replace(seat).is_some() {
            return Err(Corrupt { what: "two requests with one lease" });
        }
        Ok(Some(Event::Request(seat)))
    }

    /// Where the request with this tag sits, unless it is over.
    fn seat(&self, tag: Tag) -> Option<NonNull<Seat>> {
        let seat = (*self.taken.get(tag.slot as usize)?)?;
        // SAFETY: it is in use, so it is there; the reference does not outlive the line.
        let present = unsafe { seat.as_ref() }.exchange.tag();
        (present == tag).then_some(seat)
    }

    fn new_seat(&self) -> NonNull<Seat> {
        let seat = Seat {
            exchange: Exchange::new(self.link.clone()),
            request: Request::default(),
            frame: Vec::new(),
            scratch: Scratch::default(),
        };
        NonNull::from(Box::leak(Box::new(seat)))
    }

    /// The request with this tag is over.
    pub(crate) fn done(&mut self, tag: Tag, verdict: Verdict) {
        let Some(mut seat) = self.seat(tag) else { return };
        self.taken[tag.slot as usize] = None;
        // SAFETY: C has just given it back, so it is nobody else's.
        let exchange = unsafe { &mut seat.as_mut().exchange };
        let panicked = exchange.take_panicked();
        let done = Done {
            outcome: if panicked {
                outboard_ring::response::Outcome::Failed
            } else {
                verdict.outcome
            },
            leaving: verdict.leaving || panicked,
            peak_memory_bytes: verdict.peak_memory_bytes,
        };
        if let Err(corrupt) = exchange.done(done) {
            self.failed.get_or_insert(corrupt);
        }
        self.free.push(seat);
    }
}
