//! Opens connections before the clock starts or on demand, and leaves them when the server accepts
//! no more requests on them.
//!
//! Called by the worker's loop. Invariant: a user that waits for a connection continues when it is
//! ready or lost.

use super::pace::Pace;
use super::{EVENTS_A_TURN, Worker};
use crate::connection::Outcome;
use crate::failures::Failure;
use std::io;
use std::ops::Range;

/// How long connections may take to open before the clock starts without them.
const OPENING_NS: u64 = 2_000_000_000;

impl Worker<'_> {
    /// Opens all connections before the clock starts, as for users with persistent connections.
    pub(super) fn open_all(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for index in 0..self.connections.len() {
            // A connection that fails is tried again, and counted, on demand.
            let _ = self.open(index, 0);
        }
        let mut open = self.connections.iter().filter(|one| !one.is_closed()).count();
        let mut events = Vec::with_capacity(EVENTS_A_TURN);
        while open > 0 && self.now_ns() < OPENING_NS {
            let until_ns = OPENING_NS.min(self.timer_ns());
            self.wait(&mut events, until_ns.saturating_sub(self.now_ns()))?;
            for event in events.drain(..) {
                let index = event.data.u64() as u32 as usize;
                let outcome = self.connections[index].advance(event.flags, buffer);
                open -= usize::from(self.has_opened(index, outcome));
            }
            while let Some((index, outcome)) = self.next_expired() {
                open -= usize::from(self.has_opened(index, outcome));
            }
        }
        Ok(())
    }

    /// Whether a connection is open, or closed for now.
    fn has_opened(&mut self, index: usize, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Nothing => return false,
            Outcome::Ready => self.count_opened(index, self.now_ns()),
            Outcome::Received | Outcome::Lost(_) => self.connections[index].close(),
        }
        true
    }

    /// Starts to connect.
    pub(super) fn open(&mut self, index: usize, now_ns: u64) -> Result<(), Failure> {
        let address = &self.plan.target.address;
        let connection = &mut self.connections[index];
        connection.opening_ns = now_ns;
        connection.open(address, self.tls.as_ref(), &self.epoll, index as u32)
    }

    /// Handles a connection that has become ready.
    pub(super) fn on_ready(&mut self, index: usize) {
        let now_ns = self.now_ns();
        self.count_opened(index, now_ns);
        for place in self.users_of(index) {
            // A user that could not send has lost the connection for all of its users.
            if self.connections[index].is_ready() && !self.users[place].is_paused {
                self.begin_on_ready(place, now_ns);
            }
        }
    }

    fn count_opened(&mut self, index: usize, now_ns: u64) {
        let (connection, totals) = (&self.connections[index], &mut self.recorder.totals);
        totals.connect.saturating_record(now_ns.saturating_sub(connection.opening_ns));
        totals.resumed += u64::from(connection.is_resumed());
    }

    fn begin_on_ready(&mut self, place: usize, now_ns: u64) {
        let user = &mut self.users[place];
        if !user.is_busy {
            return self.free(place, now_ns);
        }
        if self.plan.keep_alive && matches!(self.pace, Pace::Closed { .. }) {
            // Connecting is no part of a request on a persistent connection.
            user.intended_ns = now_ns;
            user.began_ns = now_ns;
        }
        if let Err(failure) = self.send(place) {
            self.lose(place / self.lanes, failure, now_ns);
        }
    }

    /// The server accepts no more requests on a connection: once all pending responses have
    /// arrived, a new one is opened for the users that wait.
    pub(super) fn leave(&mut self, index: usize, now_ns: u64) {
        if self.users_of(index).any(|one| self.users[one].is_busy && self.users[one].is_sent) {
            return;
        }
        self.users_of(index).for_each(|place| self.leave_queue(place));
        self.connections[index].close();
        if let Err(failure) = self.open(index, now_ns) {
            self.lose(index, failure, now_ns);
        }
    }

    /// Whether a user waits for its connection and not for the schedule.
    pub(super) fn leave_queue(&mut self, place: usize) {
        if let Some(at) = self.idle.iter().position(|&waiting| waiting as usize == place) {
            self.idle.remove(at);
        }
    }

    /// The users of a connection.
    pub(super) fn users_of(&self, index: usize) -> Range<usize> {
        index * self.lanes..(index + 1) * self.lanes
    }
}
