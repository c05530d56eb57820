//! [`Summary`]: the result of a run.
//!
//! Created by `run`; read by the reports, by the search for a rate and by other crates.
//! [`Summary::warnings`] says whether it is reliable.

use crate::failures::Failures;
use crate::interval::Interval;
use crate::plan::{Load, Plan};
use crate::recorder::{First, Slice, Totals};
use crate::schedule::Rate;
use crate::server_cpu::ServerCpu;
use crate::target::Protocol;
use crate::times::{Times, histogram};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The result of one run, or of several of the same plan merged.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The URL as it was given.
    pub url: String,
    /// The protocol.
    pub protocol: Protocol,
    /// When requests were sent.
    pub load: Load,
    /// The number of connections.
    pub connections: usize,
    /// Concurrent requests per connection.
    pub streams: usize,
    /// The number of threads.
    pub threads: usize,
    /// Whether connections carried more than one request.
    pub keep_alive: bool,
    /// Whether the run had a number of requests or think time: then the connections are not always
    /// busy, even in a closed loop.
    pub has_pauses: bool,
    /// Whether it was stopped before its end.
    pub is_partial: bool,
    /// How long requests were sent, in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub sent: u64,
    /// Complete responses of any status.
    pub responses: u64,
    /// Requests that failed; bad responses count here and in [`Self::responses`].
    pub failures: Failures,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Bytes received, including heads and TLS.
    pub received_bytes: u64,
    /// Latency in ns: from when a request was due to its complete response; in a closed loop from
    /// when it was sent. Includes requests that timed out, with the time until then.
    pub latency: Histogram<u64>,
    /// Service time in ns: from when a request was sent.
    pub service: Histogram<u64>,
    /// Times of the refused requests (429, 503), which are included above.
    pub refused: Times,
    /// Times of requests with another bad response or a timeout, which are included above.
    pub failed: Times,
    /// The delay of requests by this program itself, in ns.
    pub lag: Histogram<u64>,
    /// Time to connect, in ns, of every connection.
    pub connect: Histogram<u64>,
    /// Time in ns to the first byte of each response, if the plan has it.
    pub first_byte: Histogram<u64>,
    /// The first response.
    pub first: Option<First>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// `{seq}` and status of the responses whose status was not good, for requests with a `{seq}`
    /// and at most 100,000 of them.
    pub rejected: Vec<(u64, u16)>,
    /// Scheduled requests of an open loop.
    pub due: u64,
    /// Those sent late because no connection was free.
    pub delayed: u64,
    /// Those dropped at the deadline.
    pub shed: u64,
    /// Those still waiting for a connection when the run ended.
    pub unsent: u64,
    /// Sent, and without a response when the run ended.
    pub unfinished: u64,
    /// The largest number of requests that waited for a connection at once.
    pub backlog_max: u64,
    /// Persistent connections that the server closed.
    pub closed_by_server: u64,
    /// Connections that resumed a TLS session.
    pub resumed: u64,
    /// Mean number of requests in flight, from their service times.
    pub in_flight_mean: f64,
    /// CPU time of the threads of this run, in µs.
    pub client_cpu_us: u64,
    /// CPU time of the server, if the plan named its processes.
    pub server: Option<ServerCpu>,
    /// The time series.
    pub intervals: Vec<Interval>,
}

impl Summary {
    pub(crate) fn of(
        plan: &Plan,
        all: &Slice,
        totals: Vec<Totals>,
        intervals: Vec<Interval>,
        server: Option<ServerCpu>,
    ) -> Self {
        let mut summary = Self {
            url: plan.target.url.clone(),
            protocol: plan.target.protocol,
            load: plan.load,
            connections: plan.connections,
            streams: plan.streams,
            threads: plan.thread_count(),
            keep_alive: plan.keep_alive,
            has_pauses: plan.requests.is_some() || plan.thinks(),
            is_partial: false,
            seconds: plan.duration.as_secs_f64(),
            sent: all.sent,
            responses: all.responses,
            failures: all.failures,
            body_bytes: all.body_bytes,
            received_bytes: 0,
            latency: all.latency.clone(),
            service: all.service.as_ref().unwrap_or(&all.latency).clone(),
            refused: Times::new(),
            failed: Times::new(),
            lag: histogram(),
            connect: histogram(),
            first_byte: histogram(),
            first: None,
            statuses: BTreeMap::new(),
            rejected: Vec::new(),
            due: 0,
            delayed: 0,
            shed: 0,
            unsent: 0,
            unfinished: 0,
            backlog_max: intervals.iter().map(|interval| interval.backlog_max).max().unwrap_or(0),
            closed_by_server: 0,
            resumed: 0,
            in_flight_mean: 0.0,
            client_cpu_us: 0,
            server,
            intervals,
        };
        let (mut in_flight_ns, mut ended_ns, mut duration_ns) = (0, 0, 0);
        for one in &totals {
            summary.add(one);
            in_flight_ns += one.in_flight_ns;
            ended_ns = ended_ns.max(one.ended_ns);
            duration_ns = duration_ns.max(one.duration_ns);
        }
        if !totals.is_empty() && duration_ns < plan.duration.as_nanos() as u64 {
            summary.is_partial = true;
            summary.seconds = duration_ns as f64 / 1e9;
        }
        if plan.load == Load::Closed {
            summary.seconds = ended_ns as f64 / 1e9;
        }
        summary.in_flight_mean = in_flight_ns as f64 / ended_ns.max(1) as f64;
        summary
    }

    /// Adds what one thread has counted.
    fn add(&mut self, one: &Totals) {
        for (sum, times) in [(&mut self.refused, &one.refused), (&mut self.failed, &one.failed)] {
            times.iter().for_each(|times| *sum += times);
        }
        self.lag += &one.lag;
        self.connect += &one.connect;
        self.first_byte += &one.first_byte;
        self.first = self.first.take().or_else(|| one.first.clone());
        self.received_bytes += one.received_bytes;
        self.due += one.due;
        self.delayed += one.delayed;
        self.shed += one.shed;
        self.unsent += one.unsent;
        self.unfinished += one.unfinished;
        self.closed_by_server += one.closed_by_server;
        self.resumed += one.resumed;
        self.client_cpu_us += one.cpu_us;
        add_counts(&mut self.statuses, &one.statuses);
        self.rejected.extend(&one.rejected);
    }

    /// Complete responses per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.responses as f64 / self.seconds } else { 0.0 }
    }

    /// Times of the good responses.
    pub fn accepted(&self) -> Times {
        let rest = |all: &Histogram<u64>, of: fn(&Times) -> &Histogram<u64>| {
            Times::rest(all.clone(), [of(&self.refused), of(&self.failed)])
        };
        Times {
            latency: rest(&self.latency, |times| &times.latency),
            service: rest(&self.service, |times| &times.service),
        }
    }

    /// Times of the good and of the refused requests, if there were both.
    pub fn by_kind(&self) -> Option<(Times, &Times)> {
        let accepted = (self.refused.count() > 0).then(|| self.accepted())?;
        (accepted.count() > 0).then_some((accepted, &self.refused))
    }

    /// The scheduled rate in requests per second; `None` in a closed loop.
    pub fn scheduled_rate(&self) -> Option<f64> {
        match self.load {
            Load::Closed => None,
            Load::Open { rate: Rate::Fixed(rate), .. } => Some(rate),
            Load::Open { rate: Rate::Ramp { from, to }, .. } => Some((from + to) / 2.0),
            Load::Open { rate: Rate::Step { from, during, to }, .. } => {
                let share = (during.as_secs_f64() / self.seconds.max(f64::MIN_POSITIVE)).min(1.0);
                Some(from * share + to * (1.0 - share))
            }
        }
    }

    /// The share of the scheduled requests that were sent; 1 in a closed loop.
    pub fn rate_ratio(&self) -> f64 {
        match self.due {
            0 => 1.0,
            due => (self.due - self.unsent - self.shed) as f64 / due as f64,
        }
    }

    /// The share of requests that failed or were dropped.
    pub fn failure_share(&self) -> f64 {
        let all = self.sent + self.shed;
        if all == 0 { 0.0 } else { (self.failures.total() + self.shed) as f64 / all as f64 }
    }

    /// This program's CPU time per request in µs.
    pub fn client_us_per_request(&self) -> f64 {
        self.client_cpu_us as f64 / self.sent.max(1) as f64
    }

    /// The share of its cores that this program used.
    pub fn client_share(&self) -> f64 {
        self.client_cpu_us as f64 / (self.seconds * 1e6 * self.threads as f64).max(1.0)
    }

    /// The server's CPU time per response in µs.
    pub fn server_us_per_request(&self) -> Option<f64> {
        let server = self.server.as_ref()?;
        Some(server.total_us as f64 / self.responses.max(1) as f64)
    }

    /// Merges another run of the same plan: counts and times add up, and the time series continues.
    pub fn merge(&mut self, other: &Self) {
        let together = (self.seconds + other.seconds).max(f64::MIN_POSITIVE);
        self.in_flight_mean =
            (self.in_flight_mean * self.seconds + other.in_flight_mean * other.seconds) / together;
        let offset = self.seconds;
        self.intervals.extend(other.intervals.iter().cloned().map(|mut interval| {
            interval.at_seconds += offset;
            interval
        }));
        self.seconds += other.seconds;
        self.failures += other.failures;
        self.is_partial |= other.is_partial;
        add_counts(&mut self.statuses, &other.statuses);
        self.rejected.extend(&other.rejected);
        self.backlog_max = self.backlog_max.max(other.backlog_max);
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.service, &other.service),
            (&mut self.lag, &other.lag),
            (&mut self.connect, &other.connect),
            (&mut self.first_byte, &other.first_byte),
        ] {
            *mine += theirs;
        }
        self.refused += &other.refused;
        self.failed += &other.failed;
        for (mine, theirs) in [
            (&mut self.sent, other.sent),
            (&mut self.responses, other.responses),
            (&mut self.body_bytes, other.body_bytes),
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.due, other.due),
            (&mut self.delayed, other.delayed),
            (&mut self.shed, other.shed),
            (&mut self.unsent, other.unsent),
            (&mut self.unfinished, other.unfinished),
            (&mut self.closed_by_server, other.closed_by_server),
            (&mut self.resumed, other.resumed),
            (&mut self.client_cpu_us, other.client_cpu_us),
        ] {
            *mine += theirs;
        }
        match (&mut self.server, &other.server) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, _) => *mine = None,
        }
    }
}

fn add_counts(mine: &mut BTreeMap<u16, u64>, theirs: &BTreeMap<u16, u64>) {
    for (status, count) in theirs {
        *mine.entry(*status).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use crate::times::Kind;
    use std::time::Duration;

    fn summary() -> Summary {
        let mut plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
        plan.duration = Duration::from_secs(2);
        let mut slice = Slice::new(false);
        slice.responses = 10;
        slice.sent = 10;
        slice.latency.saturating_record(1_000_000);
        let interval = Interval::of(&slice, 0.0, 1.0);
        Summary { seconds: 2.0, ..Summary::of(&plan, &slice, Vec::new(), vec![interval], None) }
    }

    #[test]
    fn two_runs_merged_are_one_of_twice_the_length() {
        let mut merged = summary();
        merged.merge(&summary());
        assert_eq!((merged.responses, merged.seconds, merged.rate()), (20, 4.0, 5.0));
        assert_eq!(merged.latency.len(), 2);
        assert_eq!(merged.intervals[1].at_seconds, 2.0);
    }

    #[test]
    fn refused_and_good_times_are_separate() {
        let mut slice = Slice::new(true);
        let (notes, _collector) = std::sync::mpsc::channel();
        let mut recorder = crate::recorder::Recorder::new(true, 1, notes);
        for (kind, ns) in [(Kind::Accepted, 4_000_000), (Kind::Refused, 1_000), (Kind::Failed, 9)] {
            recorder.answered(kind, 2 * ns, ns, 0);
            slice.latency.saturating_record(2 * ns);
            slice.service.as_mut().expect("an open loop").saturating_record(ns);
        }
        let plan = Plan::new(Target::parse("http://127.0.0.1:1/").expect("a URL"));
        let summary = Summary::of(&plan, &slice, vec![recorder.totals], Vec::new(), None);
        let (accepted, refused) = summary.by_kind().expect("there were both");
        assert_eq!((accepted.count(), refused.count(), summary.failed.count()), (1, 1, 1));
        assert_eq!(refused.service.max(), 1_000);
        assert!(accepted.service.min() > 3_900_000 && accepted.latency.min() > 7_900_000);
    }

    #[test]
    fn the_rate_ratio_is_the_sent_share_of_the_schedule() {
        let summary = Summary { due: 200, unsent: 20, shed: 10, ..summary() };
        assert_eq!(summary.rate_ratio(), 0.85);
    }
}
