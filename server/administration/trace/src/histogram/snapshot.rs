//! [`Snapshot`]: the counts of a histogram at a time, which can be sent to another thread and added up.
//!
//! Taken when metrics or the status are requested.

use super::buckets::{CLASSIC, EXPONENTIAL, WIDTH, bound_s};
use super::exemplar::Exemplar;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// By classic bucket, not cumulative.
    pub classic: Vec<u64>,
    /// By exponential bucket, from [`super::FIRST_KEY`].
    pub exponential: Vec<u64>,
    /// The sum of all durations.
    pub sum_us: u64,
    /// By classic bucket.
    pub exemplars: Vec<Option<Exemplar>>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            classic: vec![0; CLASSIC],
            exponential: vec![0; EXPONENTIAL],
            sum_us: 0,
            exemplars: vec![None; CLASSIC],
        }
    }
}

impl Snapshot {
    /// Adds those of another thread or series. Of two exemplars the later one remains.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.classic.iter_mut().zip(&other.classic) {
            *sum = sum.wrapping_add(*count);
        }
        for (sum, count) in self.exponential.iter_mut().zip(&other.exponential) {
            *sum = sum.wrapping_add(*count);
        }
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
        for (known, other) in self.exemplars.iter_mut().zip(&other.exemplars) {
            let is_later = other.map(|one| one.unix_us) > known.map(|one| one.unix_us);
            if is_later {
                *known = *other;
            }
        }
    }

    /// The durations after an earlier snapshot of the same series. Counts that are lower now, because a part of
    /// a sum is gone, are none.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: &[u64], before: &[u64]| {
            now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        Self {
            classic: difference(&self.classic, &earlier.classic),
            exponential: difference(&self.exponential, &earlier.exponential),
            sum_us: self.sum_us.saturating_sub(earlier.sum_us),
            exemplars: vec![None; CLASSIC],
        }
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.classic.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// The duration that this share of all does not exceed, in microseconds, with an error of at most the
    /// width of a bucket, 9 %; `None` without durations. Within a bucket durations are taken to be spread
    /// exponentially, as Prometheus does for native histograms.
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = share * count as f64;
        let mut below = 0.0;
        for (index, bucket) in self.exponential.iter().enumerate() {
            let bucket = *bucket as f64;
            if bucket > 0.0 && below + bucket >= rank {
                let upper = bound_s(index);
                let lower = bound_s(index) / WIDTH;
                let within = ((rank - below) / bucket).clamp(0.0, 1.0);
                return Some((lower * (upper / lower).powf(within) * 1e6).round() as u64);
            }
            below += bucket;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn snapshot_of(all_us: impl IntoIterator<Item = u64>) -> Snapshot {
        let histogram = Histogram::default();
        all_us.into_iter().for_each(|us| histogram.record(us));
        histogram.snapshot().unwrap_or_default()
    }

    #[test]
    fn quantiles_are_within_the_width_of_a_bucket() {
        let snapshot = snapshot_of(1..=100_000);
        for (share, exact) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0)] {
            let quantile = snapshot.quantile_us(share).expect("there are durations") as f64;
            assert!((quantile / exact - 1.0).abs() < 0.09, "{share}: {quantile}");
        }
        assert_eq!(Snapshot::default().quantile_us(0.5), None);
    }

    #[test]
    fn a_sum_has_all_counts_and_the_latest_exemplars() {
        let (mut one, mut other) = (snapshot_of([90, 200]), snapshot_of([95, 70_000_000]));
        let exemplar =
            |unix_us| Some(Exemplar { trace_id: [1; 16], span_id: [2; 8], us: 90, unix_us });
        (one.exemplars[0], other.exemplars[0]) = (exemplar(5), exemplar(7));
        one.add(&other);
        assert_eq!((one.classic[0], one.classic[1], one.classic[CLASSIC - 1]), (2, 1, 1));
        assert_eq!((one.count(), one.sum_us), (4, 70_000_385));
        assert_eq!(one.exemplars[0], exemplar(7));
    }

    #[test]
    fn what_was_counted_earlier_is_subtracted() {
        let (one, both) = (snapshot_of([90, 200]), snapshot_of([90, 200, 70_000]));
        let later = both.since(&one);
        assert_eq!((later.count(), later.sum_us), (1, 70_000));
        assert!(later.quantile_us(0.5).is_some_and(|us| us.abs_diff(70_000) < 6_300));
        assert_eq!(one.since(&both), Snapshot::default());
    }

    #[test]
    fn an_exemplar_is_in_the_bucket_of_its_duration() {
        let histogram = Histogram::default();
        assert_eq!(histogram.snapshot(), None, "it takes no memory");
        histogram.record(300);
        let exemplar = Exemplar { trace_id: [1; 16], span_id: [2; 8], us: 300, unix_us: 1 };
        histogram.set_exemplar(exemplar);
        let snapshot = histogram.snapshot().expect("it has a duration");
        let at = snapshot.exemplars.iter().position(Option::is_some);
        assert_eq!(at, snapshot.classic.iter().position(|count| *count == 1));
    }
}
