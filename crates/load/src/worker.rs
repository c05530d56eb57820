//! [`Worker`]: one thread of a run, with its users, its connections and its share of the schedule.
//!
//! Started by `run`. Each user holds a connection, or a lane of one that several share, and has at
//! most one request in flight. The
//! loop sends what is due, sleeps in epoll until an answer comes or the next request is due, and
//! takes the answers; in a closed loop an answer is followed by the next request at once, without
//! another turn.
//!
//! Times are nanoseconds from the beginning of the run. A request knows when it was intended: its
//! latency counts from there, whatever delayed it.

use crate::codec::Codec;
use crate::connection::{Connection, News};
use crate::failures::Failure;
use crate::plan::{Load, Plan};
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::tls::Tls;
use crate::user::User;
use crate::wording::Wording;
use crate::{answer::Answer, plan::Step};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

mod loss;

const EVENTS_A_TURN: usize = 256;
const BUFFER_BYTES: usize = 64 * 1024;
/// How often time-outs are looked for.
const SWEEP_NS: u64 = 20_000_000;
/// How long a user waits after a failed connection, so that a server that is not there is not
/// asked a million times a second.
const REST_NS: u64 = 10_000_000;
/// How long connections may take to open before the clock starts without them.
const OPENING_NS: u64 = 2_000_000_000;

/// What the threads of a run share.
pub(crate) struct Start {
    pub(crate) barrier: Barrier,
    pub(crate) origin: OnceLock<Instant>,
    /// The run ends now, whatever the plan says.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Where this thread stands among the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) thread: usize,
    pub(crate) threads: usize,
}

impl Share {
    /// This thread's part of `count` things.
    fn of(self, count: u64) -> u64 {
        let (thread, threads) = (self.thread as u64, self.threads as u64);
        count / threads + u64::from(thread < count % threads)
    }
}

enum Pace {
    Closed { left: u64 },
    Open { schedule: Schedule, deadline_ns: u64 },
}

/// One thread; see the module.
pub(crate) struct Worker<'p> {
    plan: &'p Plan,
    tls: Option<Tls>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Users of one connection; they stand one after the other in `users`.
    lanes: usize,
    users: Vec<User>,
    wording: Wording<'p>,
    pace: Pace,
    /// Users who could take a request of the schedule, longest waiting first.
    idle: VecDeque<u32>,
    /// Users who do nothing until a time.
    resting: BinaryHeap<Reverse<(u64, u32)>>,
    in_flight: u64,
    recorder: Recorder,
    origin: Instant,
    end_ns: u64,
    is_stopped: bool,
    next_sweep_ns: u64,
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
        let pace = match plan.load {
            Load::Closed => Pace::Closed { left: plan.requests.map_or(u64::MAX, |n| share.of(n)) },
            Load::Open { rate, arrival, deadline } => Pace::Open {
                schedule: Schedule::new(
                    rate,
                    arrival,
                    end_ns,
                    (share.thread, share.threads),
                    plan.seed.wrapping_add(share.thread as u64),
                ),
                deadline_ns: deadline.map_or(u64::MAX, |deadline| deadline.as_nanos() as u64),
            },
        };
        let answer = || Answer {
            wants_fields: true,
            wants_body: plan.scripts.iter().flat_map(|script| &script.steps).any(Step::reads_body),
            ..Answer::default()
        };
        let connection = || {
            let codec = Codec::new(&plan.target, plan.keep_alive, plan.streams);
            let answers = (0..plan.streams).map(|_| answer()).collect();
            Connection::new(codec, answers, plan.first_byte)
        };
        let mut wording = Wording::new(plan, share);
        let users = connections * plan.streams;
        Ok(Self {
            plan,
            tls,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: (0..connections).map(|_| connection()).collect(),
            lanes: plan.streams,
            users: (0..users).map(|_| wording.new_user()).collect(),
            wording,
            pace,
            idle: VecDeque::with_capacity(users),
            resting: BinaryHeap::new(),
            in_flight: 0,
            recorder,
            origin: Instant::now(),
            end_ns,
            is_stopped: false,
            next_sweep_ns: SWEEP_NS,
        })
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Runs to the end of the plan.
    pub(crate) fn run(mut self, start: &Start) -> io::Result<()> {
        // The default of 50 µs (prctl(2), PR_SET_TIMERSLACK) would be most of the pacing error.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut buffer = vec![0; BUFFER_BYTES];
        if self.plan.keep_alive {
            self.open_all(&mut buffer)?;
        }
        start.barrier.wait();
        self.origin = *start.origin.get_or_init(Instant::now);
        let cpu_before_us = thread_cpu_us();
        for place in 0..self.users.len() {
            let now_ns = self.now_ns();
            self.free(place, now_ns);
        }
        let ended_ns = self.turn_until_over(start, &mut buffer)?;
        self.recorder.totals.cpu_us = thread_cpu_us() - cpu_before_us;
        self.recorder.totals.ended_ns = ended_ns;
        self.recorder.totals.unfinished = self.in_flight;
        for user in self.users.iter().filter(|user| user.is_busy) {
            self.recorder.totals.in_flight_ns += u128::from(ended_ns - user.began_ns.min(ended_ns));
        }
        self.recorder.totals.received_bytes =
            self.connections.iter().map(|connection| connection.received_bytes).sum();
        self.recorder.totals.duration_ns = self.end_ns;
        if let Pace::Open { schedule, .. } = &mut self.pace {
            let unsent = schedule.take_rest();
            self.recorder.totals.unsent = unsent;
            self.recorder.totals.due += unsent;
        }
        self.recorder.finish(self.in_flight);
        Ok(())
    }

    /// Connects everybody before the clock starts, as users with kept connections are.
    fn open_all(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for index in 0..self.connections.len() {
            // One that fails is tried again, and counted, when it is needed.
            let _ = self.open(index, 0);
        }
        let mut open = self.connections.iter().filter(|one| !one.is_closed()).count();
        let mut events = Vec::with_capacity(EVENTS_A_TURN);
        while open > 0 && self.now_ns() < OPENING_NS {
            self.wait(&mut events, OPENING_NS - self.now_ns())?;
            for event in events.drain(..) {
                let index = event.data.u64() as u32 as usize;
                let opened_ns = self.connections[index].opening_ns;
                match self.connections[index].advance(event.flags, buffer) {
                    News::Nothing => continue,
                    News::Ready => {
                        let took_ns = self.now_ns().saturating_sub(opened_ns);
                        self.recorder.totals.connect.saturating_record(took_ns);
                    }
                    News::Answered | News::Lost(_) => self.connections[index].close(),
                }
                open -= 1;
            }
        }
        Ok(())
    }

    /// Waits for events, `at_most_ns`. epoll_pwait(2) knows whole milliseconds only, and the call
    /// that knows more is newer than some of the machines that this runs on: whoever waits for a
    /// due time waits in ppoll(2), which counts nanoseconds, for the epoll itself.
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

    /// The loop; gives when the last request ended.
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
            self.send_due(now_ns);
            let wake_ns = self.wake_ns();
            self.wait(&mut events, wake_ns.saturating_sub(self.now_ns()))?;
            for event in events.drain(..) {
                let data = event.data.u64();
                let (index, generation) = (data as u32 as usize, (data >> 32) as u32);
                if self.connections[index].generation() == generation {
                    self.on_event(index, event.flags, buffer);
                }
            }
        }
    }

    /// Ends the plan earlier than it was meant to; what is in flight is left unless it drains.
    fn end_at(&mut self, now_ns: u64) {
        self.end_ns = now_ns;
        self.is_stopped = true;
        if let Pace::Open { schedule, .. } = &mut self.pace {
            schedule.end_at(now_ns);
        }
    }

    /// A closed loop leaves what is in flight at its end unless it drains; an open one waits for it, since a slow
    /// answer belongs to the latencies all the more. What was due before the end and had a free
    /// user is sent even when this thread notices late.
    fn is_over(&self, now_ns: u64) -> bool {
        match &self.pace {
            Pace::Closed { left } => {
                let is_late = now_ns >= self.end_ns;
                let is_done = self.in_flight == 0 && (is_late || *left == 0);
                is_done || (is_late && !self.plan.drains)
            }
            Pace::Open { .. } if self.is_stopped => !self.plan.drains || self.in_flight == 0,
            Pace::Open { schedule, .. } => {
                let may_send = !self.idle.is_empty() && schedule.next_ns().is_some();
                now_ns >= self.end_ns && self.in_flight == 0 && !may_send
            }
        }
    }

    /// When the loop must look again without any event.
    fn wake_ns(&self) -> u64 {
        let mut wake_ns = self.next_sweep_ns.min(self.recorder.boundary_ns());
        if let Some(Reverse((rested_ns, _))) = self.resting.peek() {
            wake_ns = wake_ns.min(*rested_ns);
        }
        if let (Pace::Open { schedule, .. }, false) = (&self.pace, self.idle.is_empty()) {
            wake_ns = wake_ns.min(schedule.next_ns().unwrap_or(u64::MAX));
        }
        wake_ns
    }

    /// Sends what has become due, as long as somebody is free to do so.
    fn send_due(&mut self, now_ns: u64) {
        while let Some(&Reverse((rested_ns, place))) = self.resting.peek() {
            if rested_ns > now_ns {
                break;
            }
            self.resting.pop();
            self.users[place as usize].is_resting = false;
            self.free(place as usize, now_ns);
        }
        while let Some(&place) = self.idle.front() {
            let Some(intended_ns) = self.take_due(now_ns) else { break };
            self.idle.pop_front();
            self.begin(place as usize, intended_ns, self.now_ns());
        }
        if let Pace::Open { schedule, .. } = &self.pace {
            self.recorder.backlog(schedule.waiting(now_ns));
        }
    }

    /// Takes the next request of the schedule if it is due, giving up those whose time is over.
    fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        let Pace::Open { schedule, deadline_ns } = &mut self.pace else { return None };
        loop {
            let due_ns = schedule.next_ns().filter(|&due_ns| due_ns <= now_ns)?;
            schedule.take();
            self.recorder.totals.due += 1;
            if now_ns - due_ns <= *deadline_ns {
                return Some(due_ns);
            }
            self.recorder.totals.shed += 1;
        }
    }

    /// A user has nothing to do: gives him a connection, or the next request.
    fn free(&mut self, place: usize, now_ns: u64) {
        let index = place / self.lanes;
        self.users[place].free_since_ns = now_ns;
        match &mut self.pace {
            Pace::Closed { left } => {
                if *left > 0 && now_ns < self.end_ns {
                    *left -= 1;
                    self.begin(place, now_ns, now_ns);
                } else if self.plan.drains
                    && self.users_of(index).all(|one| !self.users[one].is_busy)
                {
                    self.connections[index].close();
                }
            }
            Pace::Open { .. } if now_ns >= self.end_ns => {}
            Pace::Open { .. } if self.plan.keep_alive && !self.connections[index].is_ready() => {
                // He is free again when the connection is ready.
                if self.connections[index].is_closed()
                    && let Err(failure) = self.open(index, now_ns)
                {
                    self.recorder.failed(failure);
                    self.rest(place, now_ns + REST_NS);
                }
            }
            Pace::Open { .. } => match self.take_due(now_ns) {
                Some(intended_ns) => self.begin(place, intended_ns, now_ns),
                None => self.idle.push_back(place as u32),
            },
        }
    }

    /// The server takes no more on a connection: when all that was sent is answered, there is a new
    /// one for those who wait.
    fn leave(&mut self, index: usize, now_ns: u64) {
        if self.users_of(index).any(|one| self.users[one].is_busy && self.users[one].is_sent) {
            return;
        }
        self.users_of(index).for_each(|place| self.leave_queue(place));
        self.connections[index].close();
        if let Err(failure) = self.open(index, now_ns) {
            self.lose(index, failure, now_ns);
        }
    }

    /// A user waits for his connection and not for the schedule.
    fn leave_queue(&mut self, place: usize) {
        if let Some(at) = self.idle.iter().position(|&waiting| waiting as usize == place) {
            self.idle.remove(at);
        }
    }

    fn users_of(&self, index: usize) -> std::ops::Range<usize> {
        index * self.lanes..(index + 1) * self.lanes
    }

    fn open(&mut self, index: usize, now_ns: u64) -> Result<(), Failure> {
        let address = &self.plan.target.address;
        let connection = &mut self.connections[index];
        connection.opening_ns = now_ns;
        connection.open(address, self.tls.as_ref(), &self.epoll, index as u32)
    }

    fn rest(&mut self, place: usize, until_ns: u64) {
        if !std::mem::replace(&mut self.users[place].is_resting, true) {
            self.resting.push(Reverse((until_ns, place as u32)));
        }
    }

    /// A request begins: is sent, or waits for its connection.
    fn begin(&mut self, place: usize, intended_ns: u64, now_ns: u64) {
        let user = &mut self.users[place];
        user.is_busy = true;
        user.is_sent = false;
        user.intended_ns = intended_ns;
        user.began_ns = now_ns;
        self.in_flight += 1;
        if matches!(self.pace, Pace::Open { .. }) {
            // What it waited for a connection is the server's, the rest this program's own delay.
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
            // Another user of it has opened it.
            _ => Ok(()),
        };
        match outcome {
            _ if self.connections[index].is_leaving => self.leave(index, now_ns),
            Ok(()) => {}
            Err(failure) => self.lose(index, failure, now_ns),
        }
    }

    fn send(&mut self, place: usize) -> Result<(), Failure> {
        let (index, lane) = (place / self.lanes, place % self.lanes);
        let user = &mut self.users[place];
        self.wording.send(user, &mut self.connections[index], lane)?;
        user.is_sent = true;
        Ok(())
    }

    fn on_event(&mut self, index: usize, flags: epoll::EventFlags, buffer: &mut [u8]) {
        match self.connections[index].advance(flags, buffer) {
            News::Nothing => {}
            News::Answered => self.on_answers(index),
            News::Ready => self.on_ready(index),
            News::Lost(failure) => self.lose(index, failure, self.now_ns()),
        }
    }

    fn on_answers(&mut self, index: usize) {
        while let Some(lane) = self.connections[index].came.refused.pop() {
            self.users[index * self.lanes + lane].is_sent = false;
        }
        // Whoever closes the connection meanwhile empties the list.
        while let Some(lane) = self.connections[index].came.whole.pop() {
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

    fn on_ready(&mut self, index: usize) {
        let now_ns = self.now_ns();
        let took_ns = now_ns.saturating_sub(self.connections[index].opening_ns);
        self.recorder.totals.connect.saturating_record(took_ns);
        for place in self.users_of(index) {
            // One who could not send has lost it for all of them.
            if self.connections[index].is_ready() && !self.users[place].is_resting {
                self.begin_on_ready(place, now_ns);
            }
        }
    }

    fn begin_on_ready(&mut self, place: usize, now_ns: u64) {
        let user = &mut self.users[place];
        if !user.is_busy {
            return self.free(place, now_ns);
        }
        if self.plan.keep_alive && matches!(self.pace, Pace::Closed { .. }) {
            // Connecting is no part of a request on a kept connection.
            user.intended_ns = now_ns;
            user.began_ns = now_ns;
        }
        if let Err(failure) = self.send(place) {
            self.lose(place / self.lanes, failure, now_ns);
        }
    }

    /// The answer is whole.
    fn finish(&mut self, place: usize) {
        let now_ns = self.now_ns();
        let (index, lane) = (place / self.lanes, place % self.lanes);
        let (user, connection) = (&mut self.users[place], &mut self.connections[index]);
        let answer = &mut connection.answers[lane];
        user.is_busy = false;
        self.in_flight -= 1;
        self.recorder.answered(
            now_ns - user.intended_ns,
            now_ns - user.began_ns,
            answer.body_bytes,
        );
        if let Some(at) = connection.first_byte_at.take() {
            let at_ns = at.saturating_duration_since(self.origin).as_nanos() as u64;
            let times = &mut self.recorder.totals.first_byte;
            times.saturating_record(at_ns.saturating_sub(user.began_ns));
        }
        // The first answer of a connection says what there is to know of the server.
        if answer.wants_fields {
            answer.wants_fields = self.plan.keeps_cookies();
            self.recorder.totals.first.get_or_insert_with(|| answer.first());
        }
        let seq = user.seq;
        let (failure, think_ns) = self.wording.advance(user, answer);
        if let Some(failure) = failure {
            self.recorder.failed(failure);
        }
        self.recorder.totals.count_status(answer.status, failure, seq);
        if !(self.plan.keep_alive && answer.keep_alive) {
            self.recorder.totals.closed_by_server += u64::from(self.plan.keep_alive);
            connection.close();
            self.lose_others(place, now_ns);
        }
        match self.pace {
            Pace::Closed { .. } if think_ns > 0 => self.rest(place, now_ns + think_ns),
            _ => self.free(place, now_ns),
        }
        if self.connections[index].is_leaving {
            self.leave(index, now_ns);
        }
    }
}

fn thread_cpu_us() -> u64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000 + spent.tv_nsec as u64 / 1000
}
