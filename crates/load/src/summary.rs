//! [`Summary`]: what a run came to.
//!
//! Made by `run`; read by the reports, by the search for a rate and by other crates. Whether it
//! may be believed is asked of [`Summary::doubts`].

use crate::doubt::Doubt;
use crate::failures::Failures;
use crate::moment::Moment;
use crate::plan::{Load, Plan};
use crate::recorder::{First, Slice, Totals, histogram};
use crate::schedule::Rate;
use crate::server_cpu::ServerCpu;
use crate::times::Times;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The result of one run, or of several of the same plan merged.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The URL as it was written.
    pub url: String,
    /// When requests were sent.
    pub load: Load,
    /// Connections held.
    pub connections: usize,
    /// Requests at a time on each of them.
    pub streams: usize,
    /// Threads that did the work.
    pub threads: usize,
    /// Whether connections carried more than one request.
    pub keep_alive: bool,
    /// Whether the run had a number of requests to send, or users who think: then the
    /// connections are not always busy, even in a closed loop.
    pub has_pauses: bool,
    /// Whether it was stopped before its end.
    pub is_partial: bool,
    /// How long requests were sent, in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub sent: u64,
    /// Whole answers, of any status.
    pub answers: u64,
    /// Requests that failed; bad answers are among them and among [`Self::answers`].
    pub failures: Failures,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Bytes received, heads and TLS included.
    pub received_bytes: u64,
    /// Latency in ns: from when a request was intended to its whole answer. In a closed loop from
    /// when it was sent. Requests that timed out are here with the time they took until then.
    pub latency: Histogram<u64>,
    /// Time of service in ns: from when a request was sent.
    pub service: Histogram<u64>,
    /// Times of the requests that the server had no room for, which are among those above.
    pub refused: Times,
    /// Times of the requests that had another bad answer, or none in time; among them as well.
    pub failed: Times,
    /// How much later than it could a request was sent, in ns: this program's own delay.
    pub lag: Histogram<u64>,
    /// Time to connect, in ns, of every connection made.
    pub connect: Histogram<u64>,
    /// Time in ns to the first byte of each answer, if the plan asked for it.
    pub first_byte: Histogram<u64>,
    /// The first answer that came.
    pub first: Option<First>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// `{seq}` and status of the answers whose status was not good, as far as requests had a `{seq}`
    /// and there were fewer than 100,000.
    pub rejected: Vec<(u64, u16)>,
    /// Requests that the schedule of an open loop had.
    pub due: u64,
    /// Of these, sent late because no connection was free.
    pub delayed: u64,
    /// Of these, given up at the deadline.
    pub shed: u64,
    /// Of these, still waiting for a connection when the run ended.
    pub unsent: u64,
    /// Sent, and without an answer when the run ended.
    pub unfinished: u64,
    /// Most requests that waited for a connection at once.
    pub backlog_max: u64,
    /// Connections that the server closed although they should have been kept.
    pub closed_by_server: u64,
    /// Mean of the requests in flight, from their times of service.
    pub in_flight_mean: f64,
    /// CPU time of the threads that did the work, in µs.
    pub client_cpu_us: u64,
    /// CPU time of the server, if the plan named its processes.
    pub server: Option<ServerCpu>,
    /// The time series.
    pub moments: Vec<Moment>,
}

impl Summary {
    pub(crate) fn of(
        plan: &Plan,
        all: &Slice,
        totals: Vec<Totals>,
        moments: Vec<Moment>,
        server: Option<ServerCpu>,
    ) -> Self {
        let mut summary = Self {
            url: plan.target.url.clone(),
            load: plan.load,
            connections: plan.connections,
            streams: plan.streams,
            threads: plan.thread_count(),
            keep_alive: plan.keep_alive,
            has_pauses: plan.requests.is_some() || plan.thinks(),
            is_partial: false,
            seconds: plan.duration.as_secs_f64(),
            sent: all.sent,
            answers: all.answers,
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
            backlog_max: moments.iter().map(|moment| moment.backlog_max).max().unwrap_or(0),
            closed_by_server: 0,
            in_flight_mean: 0.0,
            client_cpu_us: 0,
            server,
            moments,
        };
        let mut in_flight_ns = 0;
        let (mut ended_ns, mut duration_ns) = (0, 0);
        for one in &totals {
            for (sum, times) in
                [(&mut summary.refused, &one.refused), (&mut summary.failed, &one.failed)]
            {
                times.iter().for_each(|times| *sum += times);
            }
            summary.lag += &one.lag;
            summary.connect += &one.connect;
            summary.first_byte += &one.first_byte;
            summary.first = summary.first.or_else(|| one.first.clone());
            summary.received_bytes += one.received_bytes;
            summary.due += one.due;
            summary.delayed += one.delayed;
            summary.shed += one.shed;
            summary.unsent += one.unsent;
            summary.unfinished += one.unfinished;
            summary.closed_by_server += one.closed_by_server;
            summary.client_cpu_us += one.cpu_us;
            in_flight_ns += one.in_flight_ns;
            ended_ns = ended_ns.max(one.ended_ns);
            duration_ns = duration_ns.max(one.duration_ns);
            add_counts(&mut summary.statuses, &one.statuses);
            summary.rejected.extend(&one.rejected);
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

    /// Whole answers a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.answers as f64 / self.seconds } else { 0.0 }
    }

    /// Times of the requests that were answered well.
    pub fn accepted(&self) -> Times {
        let rest = |all: &Histogram<u64>, of: fn(&Times) -> &Histogram<u64>| {
            Times::rest(all.clone(), [of(&self.refused), of(&self.failed)])
        };
        Times {
            latency: rest(&self.latency, |times| &times.latency),
            service: rest(&self.service, |times| &times.service),
        }
    }

    /// Times of the requests that were answered well, and of those that were refused, where there
    /// were both.
    pub fn by_kind(&self) -> Option<(Times, &Times)> {
        let accepted = (self.refused.count() > 0).then(|| self.accepted())?;
        (accepted.count() > 0).then_some((accepted, &self.refused))
    }

    /// Requests that the schedule asked for a second; `None` in a closed loop.
    pub fn asked_rate(&self) -> Option<f64> {
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

    /// The share of the schedule's requests that were sent; 1 in a closed loop.
    pub fn rate_ratio(&self) -> f64 {
        match self.due {
            0 => 1.0,
            due => (self.due - self.unsent - self.shed) as f64 / due as f64,
        }
    }

    /// The share of requests that failed, or were given up.
    pub fn failure_share(&self) -> f64 {
        let all = self.sent + self.shed;
        if all == 0 { 0.0 } else { (self.failures.total() + self.shed) as f64 / all as f64 }
    }

    /// This program's CPU time for one request in µs.
    pub fn client_us_per_request(&self) -> f64 {
        self.client_cpu_us as f64 / self.sent.max(1) as f64
    }

    /// The share of its cores that this program used.
    pub fn client_share(&self) -> f64 {
        self.client_cpu_us as f64 / (self.seconds * 1e6 * self.threads as f64).max(1.0)
    }

    /// The server's CPU time for one answer in µs.
    pub fn server_us_per_request(&self) -> Option<f64> {
        let server = self.server.as_ref()?;
        Some(server.total_us as f64 / self.answers.max(1) as f64)
    }

    /// Why these numbers should not be believed; empty when nothing speaks against them.
    pub fn doubts(&self) -> Vec<Doubt> {
        Doubt::about(self)
    }

    /// Takes another run of the same plan in: counts and times add up, and the time series
    /// follows on.
    pub fn merge(&mut self, other: &Self) {
        let together = (self.seconds + other.seconds).max(f64::MIN_POSITIVE);
        self.in_flight_mean =
            (self.in_flight_mean * self.seconds + other.in_flight_mean * other.seconds) / together;
        let offset = self.seconds;
        self.moments.extend(other.moments.iter().cloned().map(|mut moment| {
            moment.at_seconds += offset;
            moment
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
            (&mut self.answers, other.answers),
            (&mut self.body_bytes, other.body_bytes),
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.due, other.due),
            (&mut self.delayed, other.delayed),
            (&mut self.shed, other.shed),
            (&mut self.unsent, other.unsent),
            (&mut self.unfinished, other.unfinished),
            (&mut self.closed_by_server, other.closed_by_server),
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
        slice.answers = 10;
        slice.sent = 10;
        slice.latency.saturating_record(1_000_000);
        let moment = Moment::of(&slice, 0.0, 1.0);
        Summary { seconds: 2.0, ..Summary::of(&plan, &slice, Vec::new(), vec![moment], None) }
    }

    #[test]
    fn two_runs_merged_are_one_of_twice_the_length() {
        let mut merged = summary();
        merged.merge(&summary());
        assert_eq!((merged.answers, merged.seconds, merged.rate()), (20, 4.0, 5.0));
        assert_eq!(merged.latency.len(), 2);
        assert_eq!(merged.moments[1].at_seconds, 2.0);
    }

    #[test]
    fn what_was_refused_is_told_apart_from_what_was_done() {
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
    fn the_rate_ratio_is_the_share_of_the_schedule_that_was_sent() {
        let summary = Summary { due: 200, unsent: 20, shed: 10, ..summary() };
        assert_eq!(summary.rate_ratio(), 0.85);
    }
}
