//! [`Worker`]: one thread of a run with its users, connections and share of the schedule.
//!
//! Started by `run`. Each user has a connection, or a lane of one that several share, and at most
//! one request in flight. The loop sends the due requests ([`pace`]), sleeps in epoll until a
//! response arrives or the next request is due, and handles responses ([`request`]). In a closed
//! loop a response is followed by the next request at once, without another iteration. [`opening`]
//! opens and replaces connections, [`loss`] handles requests that fail.
//!
//! Times are nanoseconds since the start of the run. A latency counts from when the request was
//! due, whatever delayed it.

use crate::codec::Codec;
use crate::connection::{Connection, Outcome};
use crate::failures::Failure;
use crate::plan::{Plan, Step};
use crate::recorder::Recorder;
use crate::request_generator::RequestGenerator;
use crate::response::Response;
use crate::share::Share;
use crate::timers::{Alarm, Timers};
use crate::tls::Tls;
use crate::user::User;
use pace::Pace;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

mod loss;
mod opening;
mod pace;
mod request;

const EVENTS_A_TURN: usize = 256;
const BUFFER_BYTES: usize = 64 * 1024;
/// The interval of checks for timeouts.
const SWEEP_NS: u64 = 20_000_000;
/// The pause of a user after a failed connection, so that a missing server is not tried a million
/// times per second.
const PAUSE_NS: u64 = 10_000_000;

/// State that the threads of a run share.
pub(crate) struct Start {
    /// A barrier for all threads and the collector.
    barrier: Barrier,
    origin: OnceLock<Instant>,
    /// The run ends now, whatever the plan says.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Start {
    pub(crate) fn new(threads: usize, stop: Arc<AtomicBool>) -> Self {
        Self { barrier: Barrier::new(threads + 1), origin: OnceLock::new(), stop }
    }

    /// Starts all threads at once, when all connections are open and `meanwhile` is done, which no
    /// request disturbs.
    pub(crate) fn give<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.barrier.wait();
        let done = meanwhile();
        self.barrier.wait();
        done
    }

    /// Reports that a thread has opened its connections, or failed to, and returns when the run
    /// started.
    pub(crate) fn take(&self) -> Instant {
        self.barrier.wait();
        self.barrier.wait();
        *self.origin.get_or_init(Instant::now)
    }
}

/// One thread of a run.
pub(crate) struct Worker<'p> {
    plan: &'p Plan,
    tls: Option<Tls>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    timers: Rc<RefCell<Timers>>,
    /// Users of one connection; they are adjacent in `users`.
    lanes: usize,
    users: Vec<User>,
    generator: RequestGenerator<'p>,
    pace: Pace,
    /// Users that are ready for a scheduled request, longest waiting first.
    idle: VecDeque<u32>,
    /// Paused users.
    paused: BinaryHeap<Reverse<(u64, u32)>>,
    in_flight: u64,
    recorder: Recorder,
    origin: Instant,
    end_ns: u64,
    is_stopped: bool,
    next_sweep_ns: u64,
    /// Whether a response has arrived since the last check for timeouts.
    is_moving: bool,
}

impl<'p> Worker<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        tls: Option<Tls>,
        share: Share,
        recorder: Recorder,
    ) -> io::Result<Self> {
        let connections = share.of(plan.connections as u64) as usize;
        let end_ns = plan.duration.as_nanos() as u64;
        let response = || Response {
            wants_fields: true,
            wants_body: plan.scripts.iter().flat_map(|script| &script.steps).any(Step::reads_body),
            ..Response::default()
        };
        let timers = Rc::new(RefCell::new(Timers::new(connections)));
        let connection = |place| {
            let codec = Codec::new(&plan.target, plan.keep_alive, plan.streams);
            let responses = (0..plan.streams).map(|_| response()).collect();
            let alarm = Alarm::new(timers.clone(), place);
            Connection::new(codec, responses, plan.first_byte, alarm)
        };
        let mut generator = RequestGenerator::new(plan, share);
        let users = connections * plan.streams;
        Ok(Self {
            plan,
            tls,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: (0..connections).map(connection).collect(),
            timers,
            lanes: plan.streams,
            users: (0..users).map(|_| generator.new_user()).collect(),
            generator,
            pace: Pace::new(plan, share),
            idle: VecDeque::with_capacity(users),
            paused: BinaryHeap::new(),
            in_flight: 0,
            recorder,
            origin: Instant::now(),
            end_ns,
            is_stopped: false,
            next_sweep_ns: SWEEP_NS,
            is_moving: false,
        })
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Executes the plan to its end.
    pub(crate) fn run(mut self, start: &Start) -> io::Result<()> {
        // The default of 50 µs (prctl(2), PR_SET_TIMERSLACK) would be most of the pacing error.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut buffer = vec![0; BUFFER_BYTES];
        let opened = if self.plan.keep_alive { self.open_all(&mut buffer) } else { Ok(()) };
        self.origin = start.take();
        opened?;
        let cpu_before_us = thread_cpu_us();
        for place in 0..self.users.len() {
            let now_ns = self.now_ns();
            self.free(place, now_ns);
        }
        let ended_ns = self.turn_until_over(start, &mut buffer)?;
        self.recorder.totals.cpu_us = thread_cpu_us() - cpu_before_us;
        self.conclude(ended_ns);
        Ok(())
    }

    /// Sends the final counts to the collector. The connections go along, since they are closed
    /// only after the server's CPU time has been read.
    fn conclude(mut self, ended_ns: u64) {
        let totals = &mut self.recorder.totals;
        totals.ended_ns = ended_ns;
        totals.unfinished = self.in_flight;
        let busy = self.users.iter().filter(|user| user.is_busy);
        totals.in_flight_ns +=
            busy.map(|user| u128::from(ended_ns - user.began_ns.min(ended_ns))).sum::<u128>();
        totals.received_bytes =
            self.connections.iter().map(|connection| connection.received_bytes).sum();
        totals.duration_ns = self.end_ns;
        totals.unsent = self.pace.take_rest();
        totals.due += totals.unsent;
        let sockets = self.connections.iter_mut().filter_map(Connection::take_socket).collect();
        self.recorder.finish(self.in_flight, sockets);
    }

    /// Waits for events for `at_most_ns`. epoll_pwait(2) takes whole milliseconds only, and
    /// epoll_pwait2(2) is newer than some supported kernels, so a wait for a due time uses
    /// ppoll(2), which takes nanoseconds, on the epoll descriptor.
    fn wait(&self, events: &mut Vec<epoll::Event>, at_most_ns: u64) -> io::Result<()> {
        let mut timeout = Timespec {
            tv_sec: (at_most_ns / 1_000_000_000) as i64,
            tv_nsec: (at_most_ns % 1_000_000_000) as i64,
        };
        events.clear();
        if at_most_ns > 0 && matches!(self.pace, Pace::Open { .. }) {
            let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => timeout = Timespec::default(),
                Err(error) => return Err(error.into()),
            }
        }
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The loop; returns when the last request ended.
    fn turn_until_over(&mut self, start: &Start, buffer: &mut [u8]) -> io::Result<u64> {
        let mut events = Vec::with_capacity(EVENTS_A_TURN);
        loop {
            let now_ns = self.now_ns();
            if start.stop.load(Ordering::Relaxed) && self.end_ns > now_ns {
                self.send_due(now_ns);
                self.end_at(now_ns);
            }
            if self.is_over(now_ns) {
                return Ok(now_ns);
            }
            if now_ns >= self.recorder.boundary_ns() {
                self.recorder.turn(now_ns, self.in_flight);
            }
            if now_ns >= self.next_sweep_ns {
                self.sweep(now_ns);
            }
            while let Some((index, outcome)) = self.next_expired() {
                self.on_outcome(index, outcome);
            }
            self.send_due(now_ns);
            let wake_ns = self.wake_ns();
            self.wait(&mut events, wake_ns.saturating_sub(self.now_ns()))?;
            for event in events.drain(..) {
                let data = event.data.u64();
                let (index, generation) = (data as u32 as usize, (data >> 32) as u32);
                if self.connections[index].generation() == generation {
                    let outcome = self.connections[index].advance(event.flags, buffer);
                    self.on_outcome(index, outcome);
                }
            }
        }
    }

    /// When the next timer of a connection expires.
    fn timer_ns(&self) -> u64 {
        let next = self.timers.borrow().next();
        next.map_or(u64::MAX, |at| at.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    /// Has a connection whose timer has expired looked at; the outcome.
    fn next_expired(&mut self) -> Option<(usize, Outcome)> {
        let index = self.timers.borrow_mut().expire(Instant::now())? as usize;
        Some((index, self.connections[index].expire()))
    }

    fn on_outcome(&mut self, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Received => self.on_responses(index),
            Outcome::Ready => self.on_ready(index),
            Outcome::Lost(failure) => self.lose(index, failure, self.now_ns()),
        }
    }

    fn on_responses(&mut self, index: usize) {
        while let Some(lane) = self.connections[index].received.refused.pop() {
            self.users[index * self.lanes + lane].is_sent = false;
        }
        while let Some((lane, failure)) = self.connections[index].received.failed.pop() {
            self.fail(index * self.lanes + lane, failure);
        }
        // Closing the connection meanwhile empties the list.
        while let Some(lane) = self.connections[index].received.complete.pop() {
            let place = index * self.lanes + lane;
            match self.users[place].is_busy {
                true => self.finish(place),
                false => self.lose(index, Failure::Malformed, self.now_ns()),
            }
        }
        match &self.connections[index] {
            connection if !connection.is_leaving => {}
            connection if connection.has_ended() => {
                self.lose(index, Failure::Closed, self.now_ns());
            }
            _ => self.leave(index, self.now_ns()),
        }
    }
}

fn thread_cpu_us() -> u64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000 + spent.tv_nsec as u64 / 1000
}
