//! The metrics of durations and traces.
//!
//! Called by the metrics.

use super::page::{Page, Sample};
use crate::latencies::Phase;
use crate::measured::Measured;
use outboard_trace::histogram::Snapshot;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The histograms, and the counts of exported spans.
pub(super) fn write(page: &mut Page, measured: Measured) {
    let mut by_phase: BTreeMap<Phase, Vec<Sample<Snapshot>>> = BTreeMap::new();
    for ((series, app), value) in measured.series {
        let labels = vec![
            ("app", Cow::Owned(app)),
            ("kind", Cow::Borrowed(series.kind.name())),
            ("class", Cow::Borrowed(series.class_name())),
        ];
        by_phase.entry(series.phase).or_default().push(Sample { labels, value });
    }
    for phase in Phase::ALL {
        let (name, help) = described(phase);
        page.histogram(name, help, by_phase.remove(&phase).unwrap_or_default());
    }
    let Some(exported) = measured.exported else { return };
    page.each(
        &[([], &exported)],
        &[
            ("outboard_trace_spans_total", "Spans that the collector accepted.", |all| all.spans),
            ("outboard_trace_dropped_spans_total", "Spans that were not exported.", |all| {
                all.dropped
            }),
            ("outboard_trace_rejected_spans_total", "Spans that the collector rejected.", |all| {
                all.rejected
            }),
            ("outboard_trace_failures_total", "Exports that failed, retried ones too.", |all| {
                all.failures
            }),
            ("outboard_trace_buffer_bytes", "Size of spans to export.", |all| all.held_bytes),
        ],
    );
}

fn described(phase: Phase) -> (&'static str, &'static str) {
    match phase {
        Phase::Total => ("outboard_request_duration_seconds", "Duration of requests."),
        Phase::FirstByte => {
            ("outboard_request_first_byte_seconds", "Time to the head of the response.")
        }
        Phase::Queue => ("outboard_php_queue_seconds", "Time that requests waited for a worker."),
        Phase::Php => ("outboard_php_duration_seconds", "Time from a worker to its response."),
        Phase::Upstream => ("outboard_upstream_duration_seconds", "Time of other servers."),
    }
}
