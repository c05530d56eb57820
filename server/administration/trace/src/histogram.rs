//! Latency histograms: recorded by one thread without locks, added up when they are read.
//!
//! A histogram counts each duration twice: in the buckets that Prometheus calls classic, whose bounds are
//! round numbers, and in exponential ones, eight for each power of two, which are those of its native
//! histograms (schema 3) and from which quantiles are computed. Invariants: recording allocates only the
//! first time; a duration is in the first bucket whose bound it does not exceed, as `le` requires.

mod buckets;
mod exemplar;
mod snapshot;

pub use buckets::{BOUNDS_US, FIRST_KEY, SCHEMA};
pub use exemplar::Exemplar;
pub use snapshot::Snapshot;

use buckets::{CLASSIC, EXPONENTIAL, LONGEST_US, classic, exponential};
use std::cell::{Cell, OnceCell};

/// Counts of durations, on the thread that records them. One without durations takes no memory.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: OnceCell<Box<Counts>>,
    exemplars: OnceCell<Box<[Cell<Option<Exemplar>>; CLASSIC]>>,
}

#[derive(Debug)]
struct Counts {
    classic: [Cell<u64>; CLASSIC],
    exponential: [Cell<u64>; EXPONENTIAL],
    sum_us: Cell<u64>,
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&self, us: u64) {
        let us = us.min(LONGEST_US);
        let counts = self.counts.get_or_init(Box::default);
        let add = |cell: &Cell<u64>, by| cell.set(cell.get().wrapping_add(by));
        add(&counts.classic[classic(us)], 1);
        add(&counts.exponential[exponential(us)], 1);
        add(&counts.sum_us, us);
    }

    /// Makes a request that was counted the example of its bucket.
    pub fn set_exemplar(&self, exemplar: Exemplar) {
        let exemplars =
            self.exemplars.get_or_init(|| Box::new(std::array::from_fn(|_| Cell::new(None))));
        exemplars[classic(exemplar.us.min(LONGEST_US))].set(Some(exemplar));
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.get().map_or(0, |counts| counts.classic.iter().map(Cell::get).sum())
    }

    /// Adds the counts to a sum, without its exemplars.
    pub fn add_to(&self, sum: &mut Snapshot) {
        let Some(counts) = self.counts.get() else { return };
        let add = |sums: &mut [u64], cells: &[Cell<u64>]| {
            let pairs = sums.iter_mut().zip(cells);
            pairs.for_each(|(sum, cell)| *sum = sum.wrapping_add(cell.get()));
        };
        add(&mut sum.classic, &counts.classic);
        add(&mut sum.exponential, &counts.exponential);
        sum.sum_us = sum.sum_us.wrapping_add(counts.sum_us.get());
    }

    /// The counts now; `None` if there is none.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let counts = self.counts.get()?;
        let exemplars = self.exemplars.get();
        Some(Snapshot {
            classic: counts.classic.iter().map(Cell::get).collect(),
            exponential: counts.exponential.iter().map(Cell::get).collect(),
            sum_us: counts.sum_us.get(),
            exemplars: exemplars
                .map_or(vec![None; CLASSIC], |all| all.iter().map(Cell::get).collect()),
        })
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            classic: std::array::from_fn(|_| Cell::new(0)),
            exponential: std::array::from_fn(|_| Cell::new(0)),
            sum_us: Cell::new(0),
        }
    }
}
