//! Metrics as text: in the format of Prometheus (0.0.4), or as OpenMetrics (1.0.0), which has exemplars.

use super::page::{Family, Page, Sample, Samples};
use outboard_trace::histogram::{BOUNDS_US, Exemplar, Snapshot};
use std::fmt::{Display, Write};

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Prometheus,
    OpenMetrics,
}

/// A page.
pub(super) fn render(page: &Page, dialect: Dialect) -> String {
    let mut out = String::new();
    page.families.iter().for_each(|family| write_family(&mut out, family, dialect));
    if dialect == Dialect::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

// Writing to a String does not fail.
fn write_family(out: &mut String, Family { name, help, samples }: &Family, dialect: Dialect) {
    let kind = match samples {
        Samples::Counter(_) => "counter",
        Samples::Gauge(_) => "gauge",
        Samples::Histogram(_) => "histogram",
    };
    // In OpenMetrics the suffix belongs to the sample.
    let family = match dialect {
        Dialect::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        Dialect::Prometheus => name,
    };
    let _ = writeln!(out, "# HELP {family} {help}\n# TYPE {family} {kind}");
    match samples {
        Samples::Counter(samples) | Samples::Gauge(samples) => {
            for Sample { labels, value } in samples {
                write_sample(out, name, "", (labels, None), value);
            }
        }
        Samples::Histogram(samples) => {
            samples.iter().for_each(|sample| write_histogram(out, name, sample, dialect));
        }
    }
}

fn write_sample(
    out: &mut String,
    name: &str,
    suffix: &str,
    (labels, bound): (&[(&str, impl AsRef<str>)], Option<&str>),
    value: impl Display,
) {
    let labels = labels.iter().map(|(key, text)| (*key, text.as_ref()));
    let labels = labels.chain(bound.map(|bound| ("le", bound)));
    let labels: Vec<String> =
        labels.map(|(key, text)| format!("{key}=\"{}\"", escaped(text))).collect();
    let _ = match labels.is_empty() {
        true => writeln!(out, "{name}{suffix} {value}"),
        false => writeln!(out, "{name}{suffix}{{{}}} {value}", labels.join(",")),
    };
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn write_histogram(out: &mut String, name: &str, sample: &Sample<Snapshot>, dialect: Dialect) {
    let Sample { labels, value } = sample;
    let mut below = 0;
    for (index, count) in value.classic.iter().enumerate() {
        below += count;
        let bound = match (BOUNDS_US.get(index), dialect) {
            (None, _) => "+Inf".to_owned(),
            (Some(us), Dialect::Prometheus) => seconds(*us).to_string(),
            // Canonical numbers (OpenMetrics, "Considerations: Canonical Numbers").
            (Some(us), Dialect::OpenMetrics) => format!("{:?}", seconds(*us)),
        };
        let exemplar = value.exemplars[index].filter(|_| dialect == Dialect::OpenMetrics);
        let text = match exemplar {
            None => below.to_string(),
            Some(exemplar) => format!("{below} # {}", example(&exemplar)),
        };
        write_sample(out, name, "_bucket", (labels, Some(&bound)), text);
    }
    write_sample(out, name, "_sum", (labels, None), seconds(value.sum_us));
    write_sample(out, name, "_count", (labels, None), below);
}

fn example(exemplar: &Exemplar) -> String {
    let (trace, span) = (hex(&exemplar.trace_id), hex(&exemplar.span_id));
    let (value, time) = (seconds(exemplar.us), seconds(exemplar.unix_us / 1_000 * 1_000));
    format!("{{trace_id=\"{trace}\",span_id=\"{span}\"}} {value} {time}")
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Microseconds in seconds.
pub(super) fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_trace::histogram::Histogram;

    fn page() -> Page {
        let mut page = Page::default();
        page.metric("m_total", "Help.");
        page.sample(&[("app", "a\"b\\c\n")], 3_u64);
        page.sample(&[], -4_i64);
        let histogram = Histogram::default();
        [90, 300_000, 300_000, 99_000_000].into_iter().for_each(|us| histogram.record(us));
        let (trace_id, span_id) = ([0xab; 16], [1; 8]);
        histogram.set_exemplar(Exemplar { trace_id, span_id, us: 300_000, unix_us: 1_500_000 });
        let value = histogram.snapshot().expect("it has durations");
        page.histogram("d_seconds", "Help.", vec![Sample { labels: Vec::new(), value }]);
        page
    }

    #[test]
    fn labels_are_escaped() {
        let text = render(&page(), Dialect::Prometheus);
        let expected = "# HELP m_total Help.\n# TYPE m_total counter\n\
                        m_total{app=\"a\\\"b\\\\c\\n\"} 3\nm_total -4\n";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn buckets_are_cumulative_up_to_infinity() {
        let text = render(&page(), Dialect::Prometheus);
        for line in [
            "# TYPE d_seconds histogram",
            "d_seconds_bucket{le=\"0.0001\"} 1",
            "d_seconds_bucket{le=\"0.25\"} 1",
            "d_seconds_bucket{le=\"0.5\"} 3",
            "d_seconds_bucket{le=\"60\"} 3",
            "d_seconds_bucket{le=\"+Inf\"} 4",
            "d_seconds_sum 99.60009",
            "d_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("trace_id"), "the format has no exemplars");
    }

    #[test]
    fn open_metrics_have_exemplars_and_an_end() {
        let text = render(&page(), Dialect::OpenMetrics);
        assert!(text.starts_with("# HELP m Help.\n# TYPE m counter\nm_total{"), "{text}");
        let trace = "ab".repeat(16);
        let example = format!(
            "d_seconds_bucket{{le=\"0.5\"}} 3 # {{trace_id=\"{trace}\",span_id=\"0101010101010101\"}} 0.3 1.5\n"
        );
        assert!(text.contains(&example) && text.contains("{le=\"1.0\"} 3\n"), "{text}");
        assert!(text.ends_with("d_seconds_count 4\n# EOF\n"), "{text}");
    }
}
