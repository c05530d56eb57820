//! [`Page`]: a page of metrics while it is collected.
//!
//! Filled by the metrics, rendered in one of the formats. Invariant: the samples of a metric are together,
//! as all formats require.

use outboard_trace::histogram::Snapshot;
use std::borrow::Cow;

/// Name, help and value of a metric of each `T`.
pub(super) type Metric<T> = (&'static str, &'static str, fn(&T) -> u64);

/// See the module.
#[derive(Default)]
pub(super) struct Page {
    pub(super) families: Vec<Family>,
}

/// A metric.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) samples: Samples,
}

/// The samples of a metric.
pub(super) enum Samples {
    Counter(Vec<Sample<i128>>),
    Gauge(Vec<Sample<i128>>),
    Histogram(Vec<Sample<Snapshot>>),
}

/// The labels of a sample.
pub(super) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// A value with its labels.
pub(super) struct Sample<T> {
    pub(super) labels: Labels,
    pub(super) value: T,
}

impl Page {
    /// Starts a metric, a counter if its name says so.
    pub(super) fn metric(&mut self, name: &'static str, help: &'static str) {
        let samples = match name.ends_with("_total") {
            true => Samples::Counter(Vec::new()),
            false => Samples::Gauge(Vec::new()),
        };
        self.families.push(Family { name, help, samples });
    }

    /// A metric without labels.
    pub(super) fn single(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.metric(name, help);
        self.sample(&[], value);
    }

    /// A histogram.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: Vec<Sample<Snapshot>>,
    ) {
        self.families.push(Family { name, help, samples: Samples::Histogram(samples) });
    }

    /// Metrics with a sample for each labeled item.
    pub(super) fn each<T, const N: usize>(
        &mut self,
        items: &[([(&'static str, String); N], &T)],
        metrics: &[Metric<T>],
    ) {
        for (name, help, value) in metrics {
            self.metric(name, help);
            for (labels, item) in items {
                let labels: Vec<_> = labels.iter().map(|(key, text)| (*key, &text[..])).collect();
                self.sample(&labels, value(item));
            }
        }
    }

    /// A sample of the last metric.
    pub(super) fn sample(&mut self, labels: &[(&'static str, &str)], value: impl Into<i128>) {
        let labels = labels.iter().map(|(key, text)| (*key, Cow::Owned((*text).to_owned())));
        let sample = Sample { labels: labels.collect(), value: value.into() };
        match self.families.last_mut().map(|family| &mut family.samples) {
            Some(Samples::Counter(samples) | Samples::Gauge(samples)) => samples.push(sample),
            Some(Samples::Histogram(_)) | None => debug_assert!(false, "no metric was started"),
        }
    }
}
