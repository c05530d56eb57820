//! [`Recorder`]: the counters and histograms of one thread.
//!
//! The worker calls it for every request. Once per interval it hands its slice to the collecting
//! thread and starts a new one, so that nothing is shared on the hot path and each request is
//! recorded once. Histograms hold nanoseconds with three significant digits.

use crate::failures::{Failure, Failures};
use crate::socket::ClosingSocket;
use crate::times::{Kind, Times, histogram};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// Further responses with a bad status are counted and not listed.
const REJECTED_MAX: usize = 100_000;

/// The counts of one thread in one interval.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub(crate) latency: Histogram<u64>,
    /// Time from sending to the complete response, where it differs from the latency.
    pub(crate) service: Option<Histogram<u64>>,
    pub(crate) sent: u64,
    pub(crate) responses: u64,
    /// Responses among them with status 429 or 503.
    pub(crate) refused: u64,
    pub(crate) failures: Failures,
    pub(crate) body_bytes: u64,
    /// At the end of the interval.
    pub(crate) in_flight: u64,
    /// The largest number of requests that were due and had no connection.
    pub(crate) backlog_max: u64,
}

impl Slice {
    pub(crate) fn new(is_open: bool) -> Self {
        Self {
            latency: histogram(),
            service: is_open.then(histogram),
            sent: 0,
            responses: 0,
            refused: 0,
            failures: Failures::default(),
            body_bytes: 0,
            in_flight: 0,
            backlog_max: 0,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.latency += &other.latency;
        if let (Some(service), Some(other)) = (&mut self.service, &other.service) {
            *service += other;
        }
        self.sent += other.sent;
        self.responses += other.responses;
        self.refused += other.refused;
        self.failures += other.failures;
        self.body_bytes += other.body_bytes;
        self.in_flight += other.in_flight;
        self.backlog_max += other.backlog_max;
    }
}

/// The first response of a run, which shows what is being measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct First {
    /// Its status.
    pub status: u16,
    /// The length of its body.
    pub body_bytes: u64,
    /// The `Server` field; empty without one.
    pub server: String,
}

/// The counts of one thread over the whole run, in addition to its slices.
#[derive(Debug)]
pub(crate) struct Totals {
    /// Of refused requests; created with the first.
    pub(crate) refused: Option<Box<Times>>,
    /// Of requests with another bad response, or a timeout.
    pub(crate) failed: Option<Box<Times>>,
    /// The delay of requests by this program itself.
    pub(crate) lag: Histogram<u64>,
    pub(crate) connect: Histogram<u64>,
    /// Time from sending to the first bytes of the response, if the plan asks for it.
    pub(crate) first_byte: Histogram<u64>,
    /// Responses by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// `{seq}` and status of responses whose status was not good.
    pub(crate) rejected: Vec<(u64, u16)>,
    pub(crate) first: Option<First>,
    pub(crate) received_bytes: u64,
    pub(crate) closed_by_server: u64,
    /// Connections that resumed a TLS session.
    pub(crate) resumed: u64,
    /// The scheduled requests of an open loop.
    pub(crate) due: u64,
    /// Sent late because no connection was free.
    pub(crate) delayed: u64,
    /// Dropped at the deadline.
    pub(crate) shed: u64,
    /// Due within the run and never sent.
    pub(crate) unsent: u64,
    /// Without a response when the run ended.
    pub(crate) unfinished: u64,
    /// Sum of the times that requests were in flight in ns, for Little's law.
    pub(crate) in_flight_ns: u128,
    pub(crate) cpu_us: u64,
    /// When the last request ended, in ns since the start.
    pub(crate) ended_ns: u64,
    /// How long requests were sent in ns: less than planned if the run was stopped.
    pub(crate) duration_ns: u64,
}

impl Totals {
    /// Counts a response, and lists it when its status was not good.
    pub(crate) fn count_status(&mut self, status: u16, failure: Option<Failure>, seq: Option<u64>) {
        *self.statuses.entry(status).or_default() += 1;
        if let (Some(Failure::Status), Some(seq)) = (failure, seq)
            && self.rejected.len() < REJECTED_MAX
        {
            self.rejected.push((seq, status));
        }
    }
}

/// From a thread to the collector.
#[derive(Debug)]
pub(crate) enum Message {
    Slice {
        index: u64,
        slice: Box<Slice>,
    },
    /// With its connections, which are closed once they are no longer needed.
    Done {
        totals: Box<Totals>,
        sockets: Vec<ClosingSocket>,
    },
    Failed(std::io::Error),
}

pub(crate) struct Recorder {
    slice: Slice,
    pub(crate) totals: Totals,
    interval_ns: u64,
    index: u64,
    messages: Sender<Message>,
}

impl Recorder {
    pub(crate) fn new(is_open: bool, interval_ns: u64, messages: Sender<Message>) -> Self {
        Self {
            slice: Slice::new(is_open),
            totals: Totals {
                refused: None,
                failed: None,
                lag: histogram(),
                connect: histogram(),
                first_byte: histogram(),
                statuses: BTreeMap::new(),
                rejected: Vec::new(),
                first: None,
                received_bytes: 0,
                closed_by_server: 0,
                resumed: 0,
                due: 0,
                delayed: 0,
                shed: 0,
                unsent: 0,
                unfinished: 0,
                in_flight_ns: 0,
                cpu_us: 0,
                ended_ns: 0,
                duration_ns: 0,
            },
            interval_ns,
            index: 0,
            messages,
        }
    }

    pub(crate) fn sent(&mut self) {
        self.slice.sent += 1;
    }

    pub(crate) fn backlog(&mut self, waiting: u64) {
        self.slice.backlog_max = self.slice.backlog_max.max(waiting);
    }

    /// Records a complete response.
    pub(crate) fn answered(
        &mut self,
        kind: Kind,
        latency_ns: u64,
        service_ns: u64,
        body_bytes: u64,
    ) {
        self.slice.responses += 1;
        self.slice.refused += u64::from(kind == Kind::Refused);
        self.slice.body_bytes += body_bytes;
        self.ended(kind, latency_ns, service_ns);
    }

    /// Records how long a request took, whatever its outcome.
    pub(crate) fn ended(&mut self, kind: Kind, latency_ns: u64, service_ns: u64) {
        self.slice.latency.saturating_record(latency_ns);
        self.totals.in_flight_ns += u128::from(service_ns);
        if let Some(service) = &mut self.slice.service {
            service.saturating_record(service_ns);
        }
        let times = match kind {
            Kind::Accepted => return,
            Kind::Refused => &mut self.totals.refused,
            Kind::Failed => &mut self.totals.failed,
        };
        times.get_or_insert_with(|| Box::new(Times::new())).record(latency_ns, service_ns);
    }

    pub(crate) fn failed(&mut self, failure: Failure) {
        self.slice.failures.add(failure);
    }

    /// The end of the current interval, in ns since the start.
    pub(crate) fn boundary_ns(&self) -> u64 {
        (self.index + 1) * self.interval_ns
    }

    /// Sends the slices that are complete at `now_ns`.
    pub(crate) fn turn(&mut self, now_ns: u64, in_flight: u64) {
        while now_ns >= self.boundary_ns() {
            self.hand_over(in_flight);
        }
    }

    fn hand_over(&mut self, in_flight: u64) {
        let next = Slice::new(self.slice.service.is_some());
        let mut slice = std::mem::replace(&mut self.slice, next);
        slice.in_flight = in_flight;
        // Without a collector nobody needs the results.
        let _ = self.messages.send(Message::Slice { index: self.index, slice: Box::new(slice) });
        self.index += 1;
    }

    /// Sends what is left.
    pub(crate) fn finish(mut self, in_flight: u64, sockets: Vec<ClosingSocket>) {
        self.hand_over(in_flight);
        let totals = Box::new(self.totals);
        let _ = self.messages.send(Message::Done { totals, sockets });
    }
}
