//! The percentile spectrum, which is finer near the slowest requests.

use hdrhistogram::Histogram;
use std::fmt::Write;

/// Points per halving of the distance to 100 %, as in wrk2 and HdrHistogram.
const HGRM_TICKS: u32 = 5;

/// One point of the spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The share of requests, from 0 to 1.
    pub quantile: f64,
    /// The time that this share needed at most, in ns.
    pub ns: u64,
    /// The number of these requests.
    pub count: u64,
}

/// The points, `ticks` for each halving of the distance to 100 %.
pub fn spectrum(times: &Histogram<u64>, ticks: u32) -> Vec<Point> {
    if times.is_empty() {
        return Vec::new();
    }
    let points = times.iter_quantiles(ticks);
    let mut points: Vec<Point> = points
        .scan(0, |count, value| {
            *count += value.count_since_last_iteration();
            let ns = value.value_iterated_to().min(times.max());
            Some(Point { quantile: value.quantile_iterated_to(), ns, count: *count })
        })
        .collect();
    // The rest between the last halving and the end is one point.
    points.dedup_by(|later, former| later.quantile == former.quantile);
    points
}

/// The spectrum in the `.hgrm` format, in ms, which plotting tools read.
pub fn hgrm(times: &Histogram<u64>) -> String {
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for point in spectrum(times, HGRM_TICKS) {
        let ms = point.ns as f64 / 1e6;
        let _ = write!(out, "{ms:>12.3} {:>14.12} {:>10}", point.quantile, point.count);
        let _ = match point.quantile {
            1.0 => writeln!(out),
            quantile => writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile)),
        };
    }
    let (mean, stdev) = (times.mean() / 1e6, times.stdev() / 1e6);
    let (max, count) = (times.max() as f64 / 1e6, times.len());
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]");
    let _ = writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]");
    let (buckets, halves) =
        (times.buckets(), times.distinct_values() / usize::from(times.buckets()));
    let _ = writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {halves:>12}]");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::histogram;

    fn uniform() -> Histogram<u64> {
        let mut times = histogram();
        (1..=10_000).for_each(|us| times.saturating_record(us * 1000));
        times
    }

    #[test]
    fn the_spectrum_rises_to_the_slowest() {
        let points = spectrum(&uniform(), 5);
        assert!(points.is_sorted_by(|a, b| a.quantile < b.quantile && a.ns <= b.ns));
        let last = points.last().expect("there are points");
        assert_eq!((last.quantile, last.count), (1.0, 10_000));
        let median = points.iter().find(|point| point.quantile == 0.5).expect("a point");
        assert!(median.ns.abs_diff(5_000_000) < 10_000, "{}", median.ns);
    }

    #[test]
    fn an_empty_histogram_has_no_spectrum() {
        assert!(spectrum(&histogram(), 5).is_empty());
        assert!(hgrm(&histogram()).contains("Total count    =            0"));
    }

    #[test]
    fn the_file_ends_with_the_totals() {
        let text = hgrm(&uniform());
        assert!(text.contains("#[Max     =       10.0"), "{text}");
        assert!(text.contains("Total count    =        10000]"), "{text}");
    }
}
