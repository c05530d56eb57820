//! [`Latencies`]: how long the requests of an app took, by phase, kind of route and class of status.
//!
//! Owned by the app of each thread, and passed on by a reload. Invariants: the number of series is fixed,
//! whatever clients request; recording locks nothing, and allocates only for the first of a series.

use outboard_trace::histogram::{Exemplar, Histogram, Snapshot};

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// From the first byte of the request to the last of the response.
    Total,
    /// From the first byte of the request to the head of the response.
    FirstByte,
    /// From when PHP was needed until a worker had the request.
    Queue,
    /// From then to the end of the response.
    Php,
    /// From a request to another server to the end of its response.
    Upstream,
}

/// What has responded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A refusal, a redirect.
    #[default]
    Other,
    File,
    /// The page cache.
    Hit,
    /// A script in classic mode.
    Script,
    /// A worker script.
    Worker,
    Proxy,
    Composed,
}

/// The labels of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Series {
    pub(crate) phase: Phase,
    pub(crate) kind: Kind,
    /// The first digit of the status; 0: no response was complete.
    pub(crate) class: u8,
}

const KINDS: usize = Kind::ALL.len();
const CLASSES: usize = 6;

impl Phase {
    pub(crate) const ALL: [Self; 5] =
        [Self::Total, Self::FirstByte, Self::Queue, Self::Php, Self::Upstream];

    /// In the history of the dashboard.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::FirstByte => "first_byte",
            Self::Queue => "queue",
            Self::Php => "php",
            Self::Upstream => "upstream",
        }
    }
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Other,
        Self::File,
        Self::Hit,
        Self::Script,
        Self::Worker,
        Self::Proxy,
        Self::Composed,
    ];

    /// In labels and attributes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::File => "file",
            Self::Hit => "hit",
            Self::Script => "script",
            Self::Worker => "worker",
            Self::Proxy => "proxy",
            Self::Composed => "composed",
        }
    }
}

impl Series {
    pub(crate) fn new(phase: Phase, kind: Kind, status: u16) -> Self {
        let class = match status / 100 {
            class @ 1..=5 => class as u8,
            _ => 0,
        };
        Self { phase, kind, class }
    }

    /// `2xx`.
    pub(crate) fn class_name(self) -> &'static str {
        ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"][usize::from(self.class)]
    }

    fn index(self) -> usize {
        let of_phase = self.phase as usize * KINDS + self.kind as usize;
        of_phase * CLASSES + usize::from(self.class)
    }

    fn all() -> impl Iterator<Item = Self> {
        let classes =
            |phase, kind| (0..CLASSES as u8).map(move |class| Self { phase, kind, class });
        let kinds = move |phase| Kind::ALL.into_iter().flat_map(move |kind| classes(phase, kind));
        Phase::ALL.into_iter().flat_map(kinds)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Latencies(Box<[Histogram]>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Series::all().map(|_| Histogram::default()).collect())
    }
}

impl Latencies {
    /// Counts a duration.
    pub(crate) fn record(&self, series: Series, us: u64) {
        self.0[series.index()].record(us);
    }

    /// Makes a request that was counted an example.
    pub(crate) fn set_exemplar(&self, series: Series, exemplar: Exemplar) {
        self.0[series.index()].set_exemplar(exemplar);
    }

    /// Adds the durations of a phase to a sum.
    pub(crate) fn add_phase(&self, phase: Phase, sum: &mut Snapshot) {
        let first = phase as usize * KINDS * CLASSES;
        let of_phase = &self.0[first..first + KINDS * CLASSES];
        of_phase.iter().for_each(|histogram| histogram.add_to(sum));
    }

    /// Whole requests by the class of their status.
    pub(crate) fn classes(&self) -> [u64; CLASSES] {
        let mut counts = [0; CLASSES];
        for (series, histogram) in Series::all().zip(&self.0).take(KINDS * CLASSES) {
            counts[usize::from(series.class)] += histogram.count();
        }
        counts
    }

    /// The series that have durations.
    pub(crate) fn snapshots(&self) -> impl Iterator<Item = (Series, Snapshot)> {
        let pairs = Series::all().zip(&self.0);
        pairs.filter_map(|(series, histogram)| Some((series, histogram.snapshot()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_a_histogram_of_its_own() {
        let latencies = Latencies::default();
        for (at, series) in Series::all().enumerate() {
            assert_eq!(series.index(), at);
            latencies.record(series, at as u64);
        }
        let sums = latencies.snapshots().map(|(series, found)| (series.index(), found.sum_us));
        assert!(sums.into_iter().all(|(index, sum_us)| index as u64 == sum_us));
    }

    #[test]
    fn the_durations_of_a_phase_are_added_up() {
        let latencies = Latencies::default();
        Series::all().for_each(|series| latencies.record(series, 1 + series.phase as u64));
        for phase in Phase::ALL {
            let mut sum = Snapshot::default();
            latencies.add_phase(phase, &mut sum);
            let count = (KINDS * CLASSES) as u64;
            assert_eq!((sum.count(), sum.sum_us), (count, count * (1 + phase as u64)));
        }
    }

    #[test]
    fn an_unknown_status_is_no_series_of_its_own() {
        let of = |status| Series::new(Phase::Total, Kind::File, status).class_name();
        assert_eq!(
            [0, 99, 101, 204, 599, 600, 999].map(of),
            ["0xx", "0xx", "1xx", "2xx", "5xx", "0xx", "0xx"]
        );
    }
}
