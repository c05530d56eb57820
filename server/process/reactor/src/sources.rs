//! The table of descriptors in epoll, and what is known of their readiness.
//!
//! Owned by [`crate::reactor`], used through [`crate::source`]. Level-triggered, with lazily masked
//! interest: an event that nothing waits for (a pipelined request while the first one runs) is masked
//! when it arrives and unmasked by the next wait, so the usual request needs no `epoll_ctl(2)`.
//! Invariants: no task waits for what is known already, nor for a source that rings a bell. Of several tasks that wait
//! on a source, the last one is woken.

use crate::executor::TaskId;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use slab::Slab;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// The events that a source is watched for from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, and the peer closing.
    Read,
    /// Data to read, once per change (`EPOLLET`): for eventfds that are never read.
    ReadEdge,
    /// Data to read, of which not every loop that watches the descriptor is woken (`EPOLLEXCLUSIVE`): for
    /// connections to a socket that several loops accept.
    ReadExclusive,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN | EventFlags::RDHUP,
            Self::ReadEdge => EventFlags::IN | EventFlags::ET,
            Self::ReadExclusive => EventFlags::IN | EventFlags::EXCLUSIVE,
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

/// Readable, writable, closed by the peer, or closed on both sides; the bits of epoll.
pub(crate) const READ: EventFlags = EventFlags::IN;
pub(crate) const WRITE: EventFlags = EventFlags::OUT;
pub(crate) const HANGUP: EventFlags = EventFlags::RDHUP;
pub(crate) const GONE: EventFlags = EventFlags::HUP;

/// Replaces `EPOLLHUP` and `EPOLLERR` by all conditions, so that every wait ends.
fn conditions(flags: EventFlags) -> EventFlags {
    let is_over = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    if is_over { READ | WRITE | HANGUP | GONE } else { flags }
}

/// Called when an event of its descriptor arrives, before tasks run. For memory that is polled once its
/// bell has rung: see [`crate::MemorySource`].
pub trait Bell: fmt::Debug {
    /// The descriptor has an event.
    fn ring(&self);
}

/// What an event is for.
#[derive(Debug)]
pub(crate) enum Noticed {
    /// Nothing waits for it.
    Nothing,
    /// This task waits for it.
    Task(TaskId),
    /// It rings a bell.
    Bell(Rc<dyn Bell>),
}

#[derive(Debug)]
struct State {
    generation: u32,
    fd: Rc<OwnedFd>,
    interest: Interest,
    known: EventFlags,
    /// The events that epoll watches for; `None` while the descriptor is not in epoll.
    watched: Option<EventFlags>,
    waiting: Option<(TaskId, EventFlags)>,
    bell: Option<Rc<dyn Bell>>,
}

impl State {
    fn watch(&mut self, epoll: &OwnedFd, token: Token, flags: EventFlags) {
        let data = EventData::new_u64(token.pack());
        if self.interest == Interest::ReadExclusive && self.watched != Some(flags) {
            // Such a descriptor can be added, but not modified (epoll_ctl(2), EPOLLEXCLUSIVE).
            self.unwatch(epoll);
        }
        // The state owns the descriptor, so these fail only if the kernel has no memory; the
        // deadline of the waiting task ends the wait then.
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

/// All sources of an event loop.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    states: Slab<State>,
    next_generation: u32,
}

impl Sources {
    fn state(&mut self, token: Token) -> Option<&mut State> {
        self.states.get_mut(token.index as usize).filter(|s| s.generation == token.generation)
    }

    pub(crate) fn add(
        &mut self,
        epoll: &OwnedFd,
        fd: Rc<OwnedFd>,
        interest: Interest,
        bell: Option<Rc<dyn Bell>>,
    ) -> io::Result<Token> {
        self.next_generation = self.next_generation.wrapping_add(1);
        let generation = self.next_generation;
        let entry = self.states.vacant_entry();
        let token = Token { index: entry.key() as u32, generation };
        let flags = interest.flags();
        epoll::add(epoll, &fd, EventData::new_u64(token.pack()), flags)?;
        let (known, watched) = (EventFlags::empty(), Some(flags));
        entry.insert(State { generation, fd, interest, known, watched, waiting: None, bell });
        Ok(token)
    }

    /// Removes the descriptor from epoll explicitly, since another process may have a duplicate of it.
    pub(crate) fn remove(&mut self, epoll: &OwnedFd, token: Token) {
        if let Some(state) = self.state(token) {
            state.unwatch(epoll);
            self.states.remove(token.index as usize);
        }
    }

    /// Takes the descriptor out of epoll until it is waited for again.
    pub(crate) fn rest(&mut self, epoll: &OwnedFd, token: Token) {
        if let Some(state) = self.state(token) {
            state.unwatch(epoll);
            state.known = EventFlags::empty();
            state.waiting = None;
        }
    }

    /// Whether one of the conditions holds; otherwise `task` is woken when one does.
    pub(crate) fn poll(
        &mut self,
        epoll: &OwnedFd,
        token: Token,
        wanted: EventFlags,
        task: impl FnOnce() -> TaskId,
    ) -> Poll<()> {
        let Some(state) = self.state(token) else { return Poll::Ready(()) };
        if state.known.intersects(wanted) {
            return Poll::Ready(());
        }
        debug_assert!(state.bell.is_none(), "its events ring a bell and wake no task");
        state.waiting = Some((task(), wanted));
        let watched = state.watched.unwrap_or(state.interest.flags() - READ);
        if state.watched.is_none() || !watched.contains(wanted) {
            state.watch(epoll, token, watched | wanted);
        }
        Poll::Pending
    }

    /// Notes that the conditions hold no longer.
    pub(crate) fn clear(&mut self, token: Token, flags: EventFlags) {
        let Some(state) = self.state(token) else { return };
        state.known -= match state.known {
            known if known.contains(GONE) => EventFlags::empty(),
            // The end of the stream stays readable, but a peer that has closed one side may still
            // delay writes.
            known if known.contains(HANGUP) => flags - READ,
            _ => flags,
        };
    }

    /// Records an event; returns what it is for.
    pub(crate) fn notice(&mut self, epoll: &OwnedFd, token: Token, flags: EventFlags) -> Noticed {
        let Some(state) = self.state(token) else { return Noticed::Nothing };
        if let Some(bell) = &state.bell {
            return Noticed::Bell(bell.clone());
        }
        let conditions = conditions(flags);
        state.known |= conditions;
        let woken = match state.waiting {
            Some((task, wanted)) if wanted.intersects(conditions) => {
                state.waiting = None;
                Some(task)
            }
            _ => None,
        };
        debug_assert!(
            state.waiting.is_none_or(|(_, wanted)| !wanted.intersects(state.known)),
            "a task waits for what has happened"
        );
        let watched = state.watched.unwrap_or(EventFlags::empty());
        if watched.contains(EventFlags::ET) {
            return woken.map_or(Noticed::Nothing, Noticed::Task);
        }
        if woken.is_none() && flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            // These cannot be masked and would be reported for ever.
            state.unwatch(epoll);
        } else if woken.is_none() || conditions.contains(WRITE) {
            // Nothing waits for this event, or writability was reported once, as requested.
            let keep = if woken.is_none() { watched - conditions } else { watched - WRITE };
            state.watch(epoll, token, keep);
        }
        woken.map_or(Noticed::Nothing, Noticed::Task)
    }
}

#[cfg(test)]
mod tests;
