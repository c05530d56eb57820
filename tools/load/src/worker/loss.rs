//! Failed requests: connections that end, and responses that do not arrive in time.
//!
//! Called by the worker's loop. Invariant: each request in flight is counted once, as a failure of
//! one class, and its user continues.

use super::pace::Pace;
use super::{PAUSE_NS, SWEEP_NS, Worker};
use crate::failures::Failure;
use crate::times::Kind;

impl Worker<'_> {
    /// Handles the loss of a connection with its requests in flight.
    pub(super) fn lose(&mut self, index: usize, failure: Failure, now_ns: u64) {
        let was_leaving = self.connections[index].is_leaving;
        self.connections[index].close();
        let (mut is_idle, mut is_awaited) = (true, false);
        for place in self.users_of(index) {
            let user = &self.users[place];
            is_awaited |= was_leaving && user.is_busy && !user.is_sent;
            if user.is_busy {
                is_idle = false;
                if user.is_sent || !was_leaving {
                    self.lose_request(place, failure, now_ns);
                }
            }
        }
        let is_refused = matches!(failure, Failure::Connect | Failure::Ports);
        if is_idle && is_refused {
            self.recorder.failed(failure);
        } else if is_idle {
            // A server may close an idle connection; users in the queue connect again.
            self.recorder.totals.closed_by_server += 1;
        }
        // A server that accepts and closes at once is not tried again at once.
        let is_new = now_ns.saturating_sub(self.connections[index].opening_ns) < PAUSE_NS;
        let pauses = is_refused || (is_idle && is_new);
        for place in self.users_of(index) {
            if !self.users[place].is_busy {
                self.start_again(place, pauses, is_idle && !is_refused, now_ns);
            }
        }
        if is_awaited
            && self.connections[index].is_closed()
            && let Err(failure) = self.open(index, now_ns)
        {
            self.lose(index, failure, now_ns);
        }
    }

    /// Lets a user without a connection and without a request continue.
    fn start_again(&mut self, place: usize, pauses: bool, was_idle: bool, now_ns: u64) {
        if was_idle && matches!(self.pace, Pace::Closed { .. }) {
            // The user is thinking or done; its next request connects again.
            return;
        }
        self.leave_queue(place);
        if pauses {
            self.pause(place, now_ns + PAUSE_NS);
        } else if !self.users[place].is_paused {
            self.free(place, now_ns);
        }
    }

    /// Handles a request that failed without its connection.
    pub(super) fn fail(&mut self, place: usize, failure: Failure) {
        let now_ns = self.now_ns();
        if self.users[place].is_busy {
            self.lose_request(place, failure, now_ns);
            self.free(place, now_ns);
        }
    }

    /// Counts the request in flight of a user as failed.
    fn lose_request(&mut self, place: usize, failure: Failure, now_ns: u64) {
        let user = &mut self.users[place];
        user.is_busy = false;
        self.generator.start_over(user);
        self.in_flight -= 1;
        if failure == Failure::Timeout {
            // It took at least this long; leaving it out would make the server look faster.
            let (latency_ns, service_ns) = (now_ns - user.intended_ns, now_ns - user.began_ns);
            self.recorder.ended(Kind::Failed, latency_ns, service_ns);
        } else {
            self.recorder.totals.in_flight_ns += u128::from(now_ns - user.began_ns);
        }
        self.recorder.failed(failure);
    }

    /// The connection was closed after the response to one user, so the other requests on it are
    /// lost.
    pub(super) fn lose_others(&mut self, place: usize, now_ns: u64) {
        for other in self.users_of(place / self.lanes) {
            if other == place {
                continue;
            }
            let was_busy = self.users[other].is_busy;
            if was_busy {
                self.lose_request(other, Failure::Closed, now_ns);
            }
            self.start_again(other, false, !was_busy, now_ns);
        }
    }

    /// Checks what no event reports: timeouts, and connections that the server needs for others.
    pub(super) fn sweep(&mut self, now_ns: u64) {
        self.next_sweep_ns = now_ns + SWEEP_NS;
        self.give_up_late(now_ns);
        if !std::mem::take(&mut self.is_moving) && self.plan.drains && self.has_sent_all(now_ns) {
            self.close_unneeded();
        }
    }

    fn give_up_late(&mut self, now_ns: u64) {
        let timeout_ns = self.plan.timeout.as_nanos() as u64;
        for place in 0..self.users.len() {
            let user = &self.users[place];
            if !user.is_busy || now_ns.saturating_sub(user.began_ns) < timeout_ns {
                continue;
            }
            let (index, lane) = (place / self.lanes, place % self.lanes);
            match self.connections[index].cancel(lane) {
                true => {
                    self.lose_request(place, Failure::Timeout, now_ns);
                    self.free(place, now_ns);
                }
                false => self.lose(index, Failure::Timeout, now_ns),
            }
        }
    }

    /// A server with a process per connection serves waiting connections only when others are
    /// closed.
    fn close_unneeded(&mut self) {
        for index in 0..self.connections.len() {
            if self.users_of(index).all(|place| !self.users[place].is_busy) {
                self.connections[index].close();
            }
        }
    }
}
