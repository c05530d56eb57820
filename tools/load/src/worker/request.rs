//! One request of one user, from the free user to the complete response.
//!
//! Called by the worker's loop. Invariant: a user has at most one request in flight, and a latency
//! counts from when the request was due, whatever delayed it.

use super::pace::Pace;
use super::{PAUSE_NS, Worker};
use crate::failures::Failure;
use crate::times::Kind;
use std::cmp::Reverse;

impl Worker<'_> {
    /// Gives a free user a connection or the next request.
    pub(super) fn free(&mut self, place: usize, now_ns: u64) {
        let index = place / self.lanes;
        self.users[place].free_since_ns = now_ns;
        match &mut self.pace {
            Pace::Closed { left } => {
                if *left > 0 && now_ns < self.end_ns {
                    *left -= 1;
                    self.begin(place, now_ns, now_ns);
                }
            }
            Pace::Open { .. } if now_ns >= self.end_ns => {}
            Pace::Open { .. } if self.plan.keep_alive && !self.connections[index].is_ready() => {
                // The user becomes free again when the connection is ready.
                if self.connections[index].is_closed()
                    && let Err(failure) = self.open(index, now_ns)
                {
                    self.recorder.failed(failure);
                    self.pause(place, now_ns + PAUSE_NS);
                }
            }
            Pace::Open { .. } => {
                self.idle.push_back(place as u32);
                self.send_to_idle(now_ns);
            }
        }
    }

    /// Starts a request: sends it, or waits for its connection.
    pub(super) fn begin(&mut self, place: usize, intended_ns: u64, now_ns: u64) {
        let user = &mut self.users[place];
        user.is_busy = true;
        user.is_sent = false;
        user.intended_ns = intended_ns;
        user.began_ns = now_ns;
        self.in_flight += 1;
        if matches!(self.pace, Pace::Open { .. }) {
            // Waiting for a connection is the server's delay, the rest is this program's own.
            let could_ns = intended_ns.max(user.free_since_ns);
            self.recorder.totals.lag.saturating_record(now_ns - could_ns.min(now_ns));
            self.recorder.totals.delayed += u64::from(user.free_since_ns > intended_ns);
        }
        self.recorder.sent();
        let index = place / self.lanes;
        let outcome = match &self.connections[index] {
            connection if connection.is_leaving => Ok(()),
            connection if connection.is_ready() => self.send(place),
            connection if connection.is_closed() => self.open(index, now_ns),
            // Another user of the connection has opened it.
            _ => Ok(()),
        };
        match outcome {
            _ if self.connections[index].is_leaving => self.leave(index, now_ns),
            Ok(()) => {}
            Err(failure) => self.lose(index, failure, now_ns),
        }
    }

    /// Sends the user's request over its connection, which is ready.
    pub(super) fn send(&mut self, place: usize) -> Result<(), Failure> {
        let (index, lane) = (place / self.lanes, place % self.lanes);
        let user = &mut self.users[place];
        self.generator.send(user, &mut self.connections[index], lane)?;
        user.is_sent = true;
        Ok(())
    }

    /// Handles a complete response.
    pub(super) fn finish(&mut self, place: usize) {
        let now_ns = self.now_ns();
        let (index, lane) = (place / self.lanes, place % self.lanes);
        let (user, connection) = (&mut self.users[place], &mut self.connections[index]);
        let response = &mut connection.responses[lane];
        user.is_busy = false;
        self.is_moving = true;
        self.in_flight -= 1;
        let (latency_ns, service_ns) = (now_ns - user.intended_ns, now_ns - user.began_ns);
        if let Some(at) = connection.first_byte_at.take() {
            let at_ns = at.saturating_duration_since(self.origin).as_nanos() as u64;
            let times = &mut self.recorder.totals.first_byte;
            times.saturating_record(at_ns.saturating_sub(user.began_ns));
        }
        // The first response of a connection describes the server.
        if response.wants_fields {
            response.wants_fields = self.plan.uses_responses();
            self.recorder.totals.first.get_or_insert_with(|| response.first());
        }
        let seq = user.seq;
        let (failure, think_ns) = self.generator.advance(user, response);
        let kind = Kind::of(response.status, failure);
        self.recorder.answered(kind, latency_ns, service_ns, response.body_bytes);
        if let Some(failure) = failure {
            self.recorder.failed(failure);
        }
        self.recorder.totals.count_status(response.status, failure, seq);
        if !(self.plan.keep_alive && response.keep_alive) {
            self.recorder.totals.closed_by_server += u64::from(self.plan.keep_alive);
            connection.close();
            self.lose_others(place, now_ns);
        }
        match self.pace {
            Pace::Closed { .. } if think_ns > 0 => self.pause(place, now_ns + think_ns),
            _ => self.free(place, now_ns),
        }
        if self.connections[index].is_leaving {
            self.leave(index, now_ns);
        }
    }

    /// Pauses a user until a time.
    pub(super) fn pause(&mut self, place: usize, until_ns: u64) {
        if !std::mem::replace(&mut self.users[place].is_paused, true) {
            self.paused.push(Reverse((until_ns, place as u32)));
        }
    }
}
