//! [`AppHistories`]: rates and durations of apps in the last hour.
//!
//! Part of the history, which passes the totals. Invariant: at most [`APPS_MAX`] apps, each with at most an hour of
//! points; a time without requests is one point, however long it is.

use crate::usage::PhpUse;
use outboard_admin_api::dashboard::{AppLoad, AppPoint, Quantiles};
use outboard_trace::histogram::Snapshot;
use std::collections::{BTreeMap, VecDeque};

/// The most apps that have a history.
pub const APPS_MAX: usize = 32;
/// An hour.
const HELD_MS: u64 = 3_600_000;

/// The counters of an app at a time.
#[derive(Debug, Clone, Default)]
pub struct AppTotals {
    /// Its name.
    pub name: String,
    /// Responses by the first digit of the status; 0: no response was complete.
    pub classes: [u64; 6],
    /// Durations, by the name of the phase.
    pub phases: Vec<(&'static str, Snapshot)>,
}

impl AppTotals {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Self) {
        self.classes.iter_mut().zip(other.classes).for_each(|(sum, count)| *sum += count);
        for ((_, sum), (_, other)) in self.phases.iter_mut().zip(&other.phases) {
            sum.add(other);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AppHistories(BTreeMap<String, AppHistory>);

#[derive(Debug, Default)]
struct AppHistory {
    last: AppTotals,
    php: PhpUse,
    intervals: VecDeque<Interval>,
}

/// A point, in less memory than it is sent with.
#[derive(Debug)]
struct Interval {
    at_ms: u64,
    for_ms: u64,
    classes: [u32; 6],
    phases: Box<[(&'static str, Quantiles)]>,
}

impl AppHistories {
    /// Adds a point to each app that is listed; the others are forgotten.
    pub(crate) fn add(
        &mut self,
        (at_ms, for_ms): (u64, u64),
        apps: Vec<AppTotals>,
        php: &BTreeMap<String, PhpUse>,
    ) {
        self.0.retain(|name, _| apps.iter().any(|totals| totals.name == *name));
        for totals in apps {
            if self.0.len() < APPS_MAX || self.0.contains_key(&totals.name) {
                let history = self.0.entry(totals.name.clone()).or_default();
                history.php = php.get(&totals.name).copied().unwrap_or_default();
                history.add((at_ms, for_ms), totals);
            }
        }
        let earliest_ms = at_ms.saturating_sub(HELD_MS);
        for history in self.0.values_mut() {
            let is_late = |interval: &Interval| interval.at_ms > earliest_ms;
            while history.intervals.front().is_some_and(|first| !is_late(first)) {
                history.intervals.pop_front();
            }
        }
    }

    /// The apps.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The last interval of each app.
    pub(crate) fn loads(&self) -> Vec<AppLoad> {
        self.0.iter().map(|(name, history)| history.load(name)).collect()
    }

    /// The points of an app after a time.
    pub(crate) fn since(&self, app: &str, at_ms: u64) -> Vec<AppPoint> {
        let intervals = self.0.get(app).into_iter().flat_map(|history| &history.intervals);
        intervals.filter(|interval| interval.at_ms > at_ms).map(Interval::point).collect()
    }
}

impl AppHistory {
    fn add(&mut self, (at_ms, for_ms): (u64, u64), totals: AppTotals) {
        let phases = quantiles(&self.last.phases, &totals.phases).collect();
        let classes = std::array::from_fn(|class| {
            let count = totals.classes[class].saturating_sub(self.last.classes[class]);
            u32::try_from(count).unwrap_or(u32::MAX)
        });
        let interval = Interval { at_ms, for_ms, classes, phases };
        match self.intervals.back_mut() {
            Some(last) if last.is_quiet() && interval.is_quiet() => {
                last.at_ms = at_ms;
                last.for_ms += for_ms;
            }
            _ => self.intervals.push_back(interval),
        }
        self.last = totals;
    }
}

impl AppHistory {
    fn load(&self, name: &str) -> AppLoad {
        let last = self.intervals.back().map(Interval::point).unwrap_or_default();
        let failed = [0, 5].map(|class| last.classes.get(class).copied().unwrap_or(0));
        AppLoad {
            app: name.to_owned(),
            at_ms: last.at_ms,
            for_ms: last.for_ms,
            requests: last.classes.iter().sum(),
            failed: failed.iter().sum(),
            p50_us: last.phases.get("total").map_or(0, |total| total.p50_us),
            php_us: self.php.us,
            php_bytes: self.php.own_bytes,
        }
    }
}

impl Interval {
    fn is_quiet(&self) -> bool {
        self.phases.is_empty() && self.classes == [0; 6]
    }

    fn point(&self) -> AppPoint {
        let phases = self.phases.iter().map(|(name, quantiles)| ((*name).to_owned(), *quantiles));
        AppPoint {
            at_ms: self.at_ms,
            for_ms: self.for_ms,
            classes: self.classes.iter().map(|count| u64::from(*count)).collect(),
            phases: phases.collect(),
        }
    }
}

/// The quantiles of what was added to durations, of the phases in which something was.
pub(crate) fn quantiles<'a>(
    last: &'a [(&'static str, Snapshot)],
    now: &'a [(&'static str, Snapshot)],
) -> impl Iterator<Item = (&'static str, Quantiles)> + 'a {
    now.iter().filter_map(|(name, snapshot)| {
        let before = last.iter().find(|(other, _)| other == name);
        let durations = before.map_or_else(|| snapshot.clone(), |(_, one)| snapshot.since(one));
        let quantile = |share| durations.quantile_us(share);
        let quantiles = Quantiles {
            count: durations.count(),
            p50_us: quantile(0.5)?,
            p90_us: quantile(0.9)?,
            p99_us: quantile(0.99)?,
        };
        Some((*name, quantiles))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(name: &str, requests: u64) -> AppTotals {
        AppTotals { name: name.to_owned(), classes: [0, 0, requests, 0, 0, 0], phases: Vec::new() }
    }

    #[test]
    fn a_quiet_time_is_one_point() {
        let mut histories = AppHistories::default();
        for (step, requests) in [5, 5, 5, 5, 9].into_iter().enumerate() {
            histories.add(
                (5_000 * (step as u64 + 1), 5_000),
                vec![totals("a", requests)],
                &BTreeMap::new(),
            );
        }
        let points = histories.since("a", 0);
        let found: Vec<_> =
            points.iter().map(|one| (one.at_ms, one.for_ms, one.classes[2])).collect();
        assert_eq!(found, [(5_000, 5_000, 5), (20_000, 15_000, 0), (25_000, 5_000, 4)]);
        assert_eq!(histories.since("a", 20_000), points[2..]);
        assert!(histories.since("b", 0).is_empty());
    }

    #[test]
    fn memory_is_bounded_in_apps_and_in_time() {
        let mut histories = AppHistories::default();
        let many = |requests| (0..100).map(move |n| totals(&format!("{n}"), requests));
        (0..2_000).for_each(|at| {
            histories.add((at * 5_000, 5_000), many(at).collect(), &BTreeMap::new())
        });
        assert_eq!(histories.names().len(), APPS_MAX);
        assert_eq!(histories.since("0", 0).len(), 720);
        histories.add((10_000_000 + HELD_MS, HELD_MS), vec![totals("0", 1_999)], &BTreeMap::new());
        assert_eq!(histories.names(), ["0"], "the others are gone");
        assert_eq!(histories.since("0", 0).len(), 1, "an hour has passed");
    }
}
