//! Descriptors in epoll and what is known of their readiness.
//!
//! Called by streams, listeners and whoever else waits for a descriptor. Level-triggered, with
//! the interest masked lazily: news that nobody waits for (a pipelined request while the first
//! one runs) is masked when it comes and unmasked when somebody waits for it again, so the usual
//! request costs no `epoll_ctl(2)` at all. Invariant: one task waits on a source at a time.

use crate::budget;
use crate::executor::{TaskId, current_task};
use crate::reactor::with;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use slab::Slab;
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// What a source is watched for from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, and the peer closing.
    Read,
    /// Once per change (`EPOLLET`): for eventfds that nobody wants to read.
    ReadEdge,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN | EventFlags::RDHUP,
            Self::ReadEdge => EventFlags::IN | EventFlags::ET,
        }
    }
}

/// Index and generation of a source, packed into epoll's user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    index: u32,
    generation: u32,
}

impl Token {
    fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn unpack(data: u64) -> Self {
        Self { index: data as u32, generation: (data >> 32) as u32 }
    }
}

/// Readable, writable, closed by the peer on its side, or over on both; as epoll's own bits.
const READ: EventFlags = EventFlags::IN;
const WRITE: EventFlags = EventFlags::OUT;
const HANGUP: EventFlags = EventFlags::RDHUP;
const GONE: EventFlags = EventFlags::HUP;

/// Spells `EPOLLHUP` and `EPOLLERR` out: everything that waits may go on.
fn news(flags: EventFlags) -> EventFlags {
    let is_over = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    if is_over { READ | WRITE | HANGUP | GONE } else { flags }
}

#[derive(Debug)]
struct State {
    generation: u32,
    fd: Rc<OwnedFd>,
    known: EventFlags,
    /// What epoll watches for; `None` while the descriptor is out of epoll.
    watched: Option<EventFlags>,
    waiting: Option<(TaskId, EventFlags)>,
}

impl State {
    fn watch(&mut self, epoll: &OwnedFd, token: Token, flags: EventFlags) {
        let data = EventData::new_u64(token.pack());
        // The state owns the descriptor, so these fail only without memory in the kernel; then
        // the deadline of whoever waits ends the wait.
        let _ = match self.watched {
            None => epoll::add(epoll, &self.fd, data, flags),
            Some(watched) if watched != flags => epoll::modify(epoll, &self.fd, data, flags),
            Some(_) => return,
        };
        self.watched = Some(flags);
    }

    fn unwatch(&mut self, epoll: &OwnedFd) {
        if self.watched.take().is_some() {
            let _ = epoll::delete(epoll, &self.fd);
        }
    }
}

/// All sources of a loop.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    states: Slab<State>,
    next_generation: u32,
}

impl Sources {
    fn state(&mut self, token: Token) -> Option<&mut State> {
        self.states.get_mut(token.index as usize).filter(|s| s.generation == token.generation)
    }

    /// Records an event; returns the task to wake.
    pub(crate) fn notice(
        &mut self,
        epoll: &OwnedFd,
        token: Token,
        flags: EventFlags,
    ) -> Option<TaskId> {
        let state = self.state(token)?;
        let news = news(flags);
        state.known |= news;
        let woken = match state.waiting {
            Some((task, wanted)) if wanted.intersects(news) => {
                state.waiting = None;
                Some(task)
            }
            _ => None,
        };
        let watched = state.watched.unwrap_or(EventFlags::empty());
        if watched.contains(EventFlags::ET) {
            return woken;
        }
        if woken.is_none() && flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            // These cannot be masked and would come back at once, for ever.
            state.unwatch(epoll);
        } else if woken.is_none() || news.contains(WRITE) {
            // Nobody waits for this, or writability was reported once as asked.
            let keep = if woken.is_none() { watched - news } else { watched - WRITE };
            state.watch(epoll, token, keep);
        }
        woken
    }
}

/// A descriptor of the loop; closed and forgotten on drop.
#[derive(Debug)]
pub struct Source {
    fd: Rc<OwnedFd>,
    token: Token,
}

impl Source {
    /// Registers a non-blocking descriptor.
    ///
    /// # Errors
    /// What `epoll_ctl(2)` reports (`EPERM` for regular files).
    pub fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        with(|reactor| {
            let mut sources = reactor.sources.borrow_mut();
            sources.next_generation = sources.next_generation.wrapping_add(1);
            let generation = sources.next_generation;
            let entry = sources.states.vacant_entry();
            let token = Token { index: entry.key() as u32, generation };
            let fd = Rc::new(fd);
            let flags = interest.flags();
            epoll::add(&reactor.epoll, &fd, EventData::new_u64(token.pack()), flags)?;
            entry.insert(State {
                generation,
                fd: fd.clone(),
                known: EventFlags::empty(),
                watched: Some(flags),
                waiting: None,
            });
            Ok(Self { fd, token })
        })
    }

    /// Whether it may be readable; the current task is woken when that changes.
    pub fn poll_readable(&self) -> Poll<()> {
        self.poll(READ)
    }

    /// Whether it may be writable; the current task is woken when that changes.
    pub fn poll_writable(&self) -> Poll<()> {
        self.poll(WRITE)
    }

    /// Whether it may be readable or writable; the current task is woken when either changes.
    pub fn poll_readable_or_writable(&self) -> Poll<()> {
        self.poll(READ | WRITE)
    }

    /// Whether the peer has closed its side; the current task is woken when it does.
    pub fn poll_hangup(&self) -> Poll<()> {
        self.poll(HANGUP)
    }

    /// Whether nothing can be sent to the peer any more: the connection was reset, or both sides
    /// have closed. The current task is woken when that is so.
    pub fn poll_gone(&self) -> Poll<()> {
        self.poll(GONE)
    }

    /// Waits until it may be readable.
    pub async fn readable(&self) {
        std::future::poll_fn(|_| self.poll_readable()).await;
    }

    /// Waits until it may be writable.
    pub async fn writable(&self) {
        std::future::poll_fn(|_| self.poll_writable()).await;
    }

    /// Says that a read would have blocked, or returned less than asked for.
    pub fn clear_readable(&self) {
        self.clear(READ);
    }

    /// Says that a write would have blocked.
    pub fn clear_writable(&self) {
        self.clear(WRITE);
    }

    fn clear(&self, flags: EventFlags) {
        with(|reactor| {
            let mut sources = reactor.sources.borrow_mut();
            let Some(state) = sources.state(self.token) else { return };
            state.known -= match state.known {
                known if known.contains(GONE) => EventFlags::empty(),
                // The end of the stream can always be read, but who has closed the one side may
                // take its time on the other.
                known if known.contains(HANGUP) => flags - READ,
                _ => flags,
            };
        });
    }

    fn poll(&self, wanted: EventFlags) -> Poll<()> {
        with(|reactor| {
            let mut sources = reactor.sources.borrow_mut();
            let Some(state) = sources.state(self.token) else { return Poll::Ready(()) };
            if state.known.intersects(wanted) {
                // Whoever waits for the peer's end alone does not work through what it sends.
                if wanted.intersects(READ | WRITE) && budget::is_spent() {
                    reactor.executor.borrow_mut().wake_later(current_task());
                    return Poll::Pending;
                }
                return Poll::Ready(());
            }
            state.waiting = Some((current_task(), wanted));
            let watched = state.watched.unwrap_or(Interest::Read.flags() - READ);
            if state.watched.is_none() || !watched.contains(wanted) {
                state.watch(&reactor.epoll, self.token, watched | wanted);
            }
            Poll::Pending
        })
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        with(|reactor| {
            // Explicitly, since the descriptor may live on as a duplicate in another process.
            let mut sources = reactor.sources.borrow_mut();
            if let Some(state) = sources.state(self.token) {
                state.unwatch(&reactor.epoll);
                sources.states.remove(self.token.index as usize);
            }
        });
    }
}
