//! Latency histograms: recorded by one thread without locks, added up when they are read.
//!
//! A histogram counts each duration twice: in the buckets that Prometheus calls classic, whose bounds are
//! round numbers, and in exponential ones, eight for each power of two, which are those of its native
//! histograms (schema 3) and from which quantiles are computed. Invariants: recording allocates only the
//! first time; a duration is in the first bucket whose bound it does not exceed, as `le` requires.

#![forbid(unsafe_code)]

mod buckets;
mod exemplar;
mod histogram;
mod snapshot;

pub use buckets::{BOUNDS_US, FIRST_KEY, SCHEMA};
pub use exemplar::Exemplar;
pub use histogram::Histogram;
pub use snapshot::Snapshot;
