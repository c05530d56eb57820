//! [`Page`]: a page of metrics while it is written.
//!
//! Used by the metrics.

use std::fmt::{Display, Write};

/// Name, help and value of a metric of each `T`.
pub(super) type Metric<T> = (&'static str, &'static str, fn(&T) -> u64);

/// See the module.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    /// Starts a metric, a counter if its name says so.
    pub(super) fn metric(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A metric without labels.
    pub(super) fn single(&mut self, name: &str, help: &str, value: u64) {
        self.metric(name, help);
        self.sample(name, &[], value);
    }

    /// Metrics with a sample for each labeled item.
    pub(super) fn each<T, const N: usize>(
        &mut self,
        items: &[([(&str, String); N], &T)],
        metrics: &[Metric<T>],
    ) {
        for (name, help, value) in metrics {
            self.metric(name, help);
            for (labels, item) in items {
                let labels: Vec<_> = labels.iter().map(|(key, text)| (*key, &text[..])).collect();
                self.sample(name, &labels, value(item));
            }
        }
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, text)| format!("{key}=\"{}\"", text.escape_default()))
            .collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{}}} {value}", labels.join(",")),
        };
    }
}
