//! [`DirectEvent`]: what has happened to a direct connection, and its way to the connection's task.
//!
//! Created by [`super::direct`], received by [`super::parked`]. Invariants: nothing follows the last event; a task is
//! not woken for each request that was answered, since it finds its memory cold, but before they are many.

use crate::exchange::{Exchange, ExchangeSettings};
use outboard_buffer::Held;
use outboard_reactor::{TaskId, wake};
use outboard_ring::direct::Answered;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The requests of a connection, and their bytes, that may wait for their accounts.
const UNACCOUNTED: usize = 32;
const UNACCOUNTED_BYTES: usize = 4096;

/// What has happened on a direct connection.
#[derive(Debug)]
pub enum DirectEvent {
    /// The worker has answered a request.
    Answered {
        /// What was received of it, and perhaps behind it.
        request: Vec<u8>,
        /// Its id.
        request_id: u64,
        /// Wall-clock time of its arrival, µs.
        received_us: u64,
        /// The answer.
        answered: Answered,
    },
    /// The gateway has the connection again, and a request that the worker runs.
    Adopted {
        /// What was received of it, and perhaps behind it.
        request: Vec<u8>,
        /// Wall-clock time of its arrival, µs.
        received_us: u64,
        /// Its exchange.
        exchange: Rc<Exchange>,
    },
    /// The gateway has the connection again.
    Returned {
        /// To be written first.
        unsent: Vec<u8>,
        /// What was read.
        unread: Vec<u8>,
        /// The memory of both.
        held: Option<Held>,
    },
    /// The worker has died while it read a request or wrote a response.
    Lost,
}

impl DirectEvent {
    /// Whether it is the last one.
    pub(super) fn is_last(&self) -> bool {
        !matches!(self, Self::Answered { .. })
    }
}

/// What the exchange of an adopted request is made of, and what waits for it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) task: TaskId,
    pub(super) settings: ExchangeSettings,
    pub(super) events: RefCell<VecDeque<DirectEvent>>,
}

impl Client {
    /// Adds an event. Returns whether its task was not woken, for the first request that waits for its accounts.
    pub(super) fn push(&self, event: DirectEvent) -> bool {
        let mut events = self.events.borrow_mut();
        debug_assert!(events.back().is_none_or(|last| !last.is_last()), "{event:?} is too late");
        events.push_back(event);
        let may_wait = events.len() < UNACCOUNTED && bytes(&events) < UNACCOUNTED_BYTES;
        if events.back().is_some_and(DirectEvent::is_last) || !may_wait {
            drop(events);
            wake(self.task);
            return false;
        }
        events.len() == 1
    }

    /// Wakes its task for requests that wait for their accounts.
    pub(super) fn account(&self) {
        if !self.events.borrow().is_empty() {
            wake(self.task);
        }
    }
}

fn bytes(events: &VecDeque<DirectEvent>) -> usize {
    let request = |event: &DirectEvent| match event {
        DirectEvent::Answered { request, .. } => request.len(),
        _ => 0,
    };
    events.iter().map(request).sum()
}
