//! [`History`]: rates and durations of the last hour, as differences of counters.
//!
//! Owned by the lead, which adds the [`Totals`] of all threads regularly. Invariant: at most [`POINTS_MAX`]
//! points, whatever the number of apps.

use crate::app_history::{AppHistories, AppTotals, quantiles};
use crate::usage::{Meter, PhpUse, Usage};
use outboard_admin_api::dashboard::{AppLoad, AppPoint, MemoryUse, Point, Processor, Quantiles};
use outboard_trace::histogram::Snapshot;
use std::collections::{BTreeMap, VecDeque};

/// An hour of points each five seconds.
const POINTS_MAX: usize = 720;

/// The counters of a server at a time.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Responses by the first digit of the status; 0: no response was complete.
    pub classes: [u64; 6],
    /// Body bytes sent.
    pub body_bytes: u64,
    /// Requests answered from page caches.
    pub hits: u64,
    /// Requests whose response was not in the page cache.
    pub misses: u64,
    /// Open connections.
    pub connections: u32,
    /// Requests that PHP handles.
    pub in_flight: u64,
    /// Requests that wait for a worker.
    pub waiting: u64,
    /// Processor time and memory.
    pub usage: Usage,
    /// Durations, by the name of the phase.
    pub phases: Vec<(&'static str, Snapshot)>,
    /// The apps that had requests.
    pub apps: Vec<AppTotals>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct History {
    last: Option<Totals>,
    points: VecDeque<Interval>,
    apps: AppHistories,
    meter: Meter,
}

/// A point, whose phases are stored in less memory than it is sent with.
#[derive(Debug)]
struct Interval {
    point: Point,
    phases: Vec<(&'static str, Quantiles)>,
}

impl History {
    /// Adds a point: the difference from the last totals, if there are any.
    pub fn add(&mut self, mut totals: Totals) {
        let apps = std::mem::take(&mut totals.apps);
        let php = self.meter.add(&std::mem::take(&mut totals.usage.workers));
        if let Some(last) = self.last.take() {
            if self.points.len() == POINTS_MAX {
                self.points.pop_front();
            }
            let interval = difference(&last, &totals, &php);
            self.apps.add((interval.point.at_ms, interval.point.for_ms), apps, &php);
            self.points.push_back(interval);
        }
        self.last = Some(totals);
    }

    /// The time of the last totals; 0 without any.
    pub fn last_ms(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.at_ms)
    }

    /// The apps that have a history of their own.
    pub fn apps(&self) -> Vec<String> {
        self.apps.names()
    }

    /// The last interval of each of these apps.
    pub fn loads(&self) -> Vec<AppLoad> {
        self.apps.loads()
    }

    /// The points of an app after a time, the earliest first.
    pub fn of_app_since(&self, app: &str, at_ms: u64) -> Vec<AppPoint> {
        self.apps.since(app, at_ms)
    }

    /// The points after a time, the earliest first.
    pub fn since(&self, at_ms: u64) -> Vec<Point> {
        let later = self.points.iter().skip_while(|one| one.point.at_ms <= at_ms);
        let named = |(name, quantiles): &(&str, Quantiles)| ((*name).to_owned(), *quantiles);
        let point = |one: &Interval| Point {
            phases: one.phases.iter().map(named).collect(),
            ..one.point.clone()
        };
        later.map(point).collect()
    }
}

/// Counters fall when a reload has removed an app: then they count as unchanged.
fn difference(last: &Totals, now: &Totals, php: &BTreeMap<String, PhpUse>) -> Interval {
    let phases = quantiles(&last.phases, &now.phases);
    let classes = now.classes.iter().zip(&last.classes);
    let point = Point {
        at_ms: now.at_ms,
        for_ms: now.at_ms.saturating_sub(last.at_ms),
        classes: classes.map(|(now, last)| now.saturating_sub(*last)).collect(),
        body_bytes: now.body_bytes.saturating_sub(last.body_bytes),
        hits: now.hits.saturating_sub(last.hits),
        misses: now.misses.saturating_sub(last.misses),
        connections: now.connections,
        in_flight: now.in_flight,
        waiting: now.waiting,
        processor: Processor {
            machine_us: now.usage.machine_us.saturating_sub(last.usage.machine_us),
            gateway_us: now.usage.gateway_us.saturating_sub(last.usage.gateway_us),
            php_us: php.values().map(|app| app.us).sum(),
        },
        memory: MemoryUse {
            available_bytes: now.usage.available_bytes,
            gateway_bytes: now.usage.gateway_bytes,
            php_bytes: php.values().map(|app| app.own_bytes).sum(),
        },
        phases: BTreeMap::new(),
    };
    Interval { point, phases: phases.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::WorkerUsage;
    use outboard_trace::histogram::Histogram;

    fn totals(at_ms: u64, requests: u64, histogram: &Histogram) -> Totals {
        let phases = vec![("total", histogram.snapshot().unwrap_or_default())];
        Totals { at_ms, classes: [0, 0, requests, 0, 0, 0], phases, ..Totals::default() }
    }

    #[test]
    fn a_point_is_the_difference_of_two_totals() {
        let (mut history, histogram) = (History::default(), Histogram::default());
        (0..100).for_each(|_| histogram.record(1_000_000));
        history.add(totals(1_000, 100, &histogram));
        assert!(history.since(0).is_empty(), "what was before is of no interval");
        (0..10).for_each(|_| histogram.record(100));
        history.add(totals(6_000, 110, &histogram));
        history.add(totals(11_000, 110, &histogram));
        let points = history.since(0);
        assert_eq!((points[0].classes[2], points[0].for_ms), (10, 5_000));
        let total = points[0].phases["total"];
        assert!(total.count == 10 && total.p99_us <= 110, "{total:?}");
        assert!(points[1].phases.is_empty() && points[1].classes[2] == 0);
        assert_eq!(history.since(6_000), points[1..]);
    }

    #[test]
    fn processor_time_is_of_the_interval_and_memory_of_its_end() {
        let (mut history, histogram) = (History::default(), Histogram::default());
        let at = |at_ms, us| {
            let worker = WorkerUsage { app: "a".to_owned(), pid: 1, us, own_bytes: us };
            let usage = Usage {
                machine_us: 10 * us,
                gateway_us: 2 * us,
                available_bytes: 5,
                gateway_bytes: 6,
                workers: vec![worker],
            };
            let apps = vec![AppTotals { name: "a".to_owned(), ..AppTotals::default() }];
            Totals { usage, apps, ..totals(at_ms, 0, &histogram) }
        };
        history.add(at(1_000, 100));
        history.add(at(6_000, 130));
        let point = &history.since(0)[0];
        let processor = Processor { machine_us: 300, gateway_us: 60, php_us: 30 };
        assert_eq!(point.processor, processor);
        let memory = MemoryUse { available_bytes: 5, gateway_bytes: 6, php_bytes: 130 };
        assert_eq!(point.memory, memory);
        let load = &history.loads()[0];
        assert_eq!(
            (&load.app[..], load.php_us, load.php_bytes, load.for_ms),
            ("a", 30, 130, 5_000)
        );
    }

    #[test]
    fn counters_that_fall_are_no_underflow() {
        let (mut history, histogram) = (History::default(), Histogram::default());
        histogram.record(5);
        history.add(totals(1_000, 7, &histogram));
        history.add(totals(2_000, 3, &Histogram::default()));
        let point = &history.since(0)[0];
        assert!(point.classes[2] == 0 && point.phases.is_empty());
    }

    #[test]
    fn an_hour_is_remembered() {
        let (mut history, histogram) = (History::default(), Histogram::default());
        (1..2_000).for_each(|at| history.add(totals(at * 5_000, at, &histogram)));
        let points = history.since(0);
        assert_eq!(points.len(), POINTS_MAX);
        assert_eq!(points[719].at_ms - points[0].at_ms, 3_595_000);
    }
}
