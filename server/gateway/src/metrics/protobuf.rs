//! Metrics as delimited messages (`io.prometheus.client.MetricFamily`), the only format that has native
//! histograms.

use super::page::{Family, Labels, Page, Sample, Samples};
use super::text::{hex, seconds};
use outboard_trace::histogram::{BOUNDS_US, Exemplar, FIRST_KEY, SCHEMA, Snapshot};
use outboard_trace::protobuf::{Message, put_varint};

const COUNTER: u64 = 0;
const GAUGE: u64 = 1;
const HISTOGRAM: u64 = 4;

/// A page.
pub(super) fn render(page: &Page) -> Vec<u8> {
    let (mut out, mut family) = (Vec::new(), Vec::new());
    for one in &page.families {
        family.clear();
        write_family(&mut Message::new(&mut family), one);
        put_varint(&mut out, family.len() as u64);
        out.extend_from_slice(&family);
    }
    out
}

fn write_family(message: &mut Message<'_>, Family { name, help, samples }: &Family) {
    message.bytes(1, name.as_bytes());
    message.bytes(2, help.as_bytes());
    // The message of a counter and that of a gauge differ in their field only.
    let mut single = |kind: u64, field: u32, samples: &[Sample<i128>]| {
        message.number(3, kind);
        for Sample { labels, value } in samples {
            message.message(4, |metric| {
                write_labels(metric, labels);
                metric.message(field, |message| message.double(1, *value as f64));
            });
        }
    };
    match samples {
        Samples::Counter(samples) => single(COUNTER, 3, samples),
        Samples::Gauge(samples) => single(GAUGE, 2, samples),
        Samples::Histogram(samples) => {
            message.number(3, HISTOGRAM);
            for Sample { labels, value } in samples {
                message.message(4, |metric| {
                    write_labels(metric, labels);
                    metric.message(7, |histogram| write_histogram(histogram, value));
                });
            }
        }
    }
}

fn write_labels(metric: &mut Message<'_>, labels: &Labels) {
    for (name, value) in labels {
        metric.message(1, |label| write_label(label, name, value));
    }
}

fn write_label(label: &mut Message<'_>, name: &str, value: &str) {
    label.bytes(1, name.as_bytes());
    label.bytes(2, value.as_bytes());
}

fn write_histogram(message: &mut Message<'_>, snapshot: &Snapshot) {
    message.number(1, snapshot.count());
    message.double(2, seconds(snapshot.sum_us));
    let mut below = 0;
    for (index, count) in snapshot.classic.iter().enumerate() {
        below += count;
        message.message(3, |bucket| {
            bucket.number(1, below);
            bucket.double(2, BOUNDS_US.get(index).map_or(f64::INFINITY, |us| seconds(*us)));
            if let Some(exemplar) = &snapshot.exemplars[index] {
                bucket.message(3, |message| write_exemplar(message, exemplar));
            }
        });
    }
    message.signed(5, SCHEMA.into());
    // Even the shortest duration has a bucket.
    message.double(6, f64::MIN_POSITIVE);
    message.number(7, 0);
    for (offset, length) in spans(&snapshot.exponential) {
        message.message(12, |span| {
            span.signed(1, offset);
            span.number(2, length);
        });
    }
    let (mut before, counts) = (0, snapshot.exponential.iter().filter(|count| **count > 0));
    message.packed(
        13,
        counts.map(|count| {
            let delta = *count as i64 - before;
            before = *count as i64;
            delta
        }),
    );
}

/// Runs of buckets that are not empty: the distance to the one before, the first to zero, and the length.
fn spans(counts: &[u64]) -> Vec<(i64, u64)> {
    let mut spans: Vec<(i64, u64)> = Vec::new();
    let (mut end, mut last) = (-i64::from(FIRST_KEY), None);
    for (at, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        match spans.last_mut().filter(|_| last.is_some_and(|last| last + 1 == at)) {
            Some((_, length)) => *length += 1,
            None => spans.push((at as i64 - end, 1)),
        }
        end = at as i64 + 1;
        last = Some(at);
    }
    spans
}

fn write_exemplar(message: &mut Message<'_>, exemplar: &Exemplar) {
    message.message(1, |label| write_label(label, "trace_id", &hex(&exemplar.trace_id)));
    message.message(1, |label| write_label(label, "span_id", &hex(&exemplar.span_id)));
    message.double(2, seconds(exemplar.us));
    message.message(3, |time| {
        time.number(1, exemplar.unix_us / 1_000_000);
        time.number(2, exemplar.unix_us % 1_000_000 * 1_000);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_buckets_are_relative_to_zero_and_to_each_other() {
        let mut counts = vec![0; 256];
        let zero = -FIRST_KEY as usize;
        for at in [zero - 2, zero - 1, zero + 4, zero + 5, zero + 9] {
            counts[at] = 1;
        }
        assert_eq!(spans(&counts), [(-2, 2), (4, 2), (3, 1)]);
        assert_eq!(spans(&[0; 256]), []);
    }
}
