//! The report for programs: all results in one JSON object.
//!
//! Times are nanoseconds, as the names say; `schema` changes when a name does.

use super::spectrum;
use crate::interval::Interval;
use crate::plan::Load;
use crate::schedule::{Arrival, Rate};
use crate::summary::Summary;
use crate::times::Times;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

/// Renders the object.
pub fn json(summary: &Summary) -> Value {
    let warnings = summary.warnings();
    let kinds = summary.by_kind();
    let warnings: Vec<Value> = warnings
        .iter()
        .map(|warning| json!({"name": warning.name(), "why": warning.to_string()}))
        .collect();
    json!({
        "schema": "outboard.bench.v1",
        "url": summary.url,
        "protocol": summary.protocol.to_string(),
        "load": load(&summary.load),
        "connections": summary.connections,
        "streams": summary.streams,
        "threads": summary.threads,
        "keep_alive": summary.keep_alive,
        "seconds": summary.seconds,
        "partial": summary.is_partial,
        "valid": warnings.is_empty(),
        "warnings": warnings,
        "rate": summary.rate(),
        "rate_ratio": summary.rate_ratio(),
        "sent": summary.sent,
        "responses": summary.responses,
        "failures": failures(summary),
        "statuses": summary.statuses,
        "body_bytes": summary.body_bytes,
        "received_bytes": summary.received_bytes,
        "schedule": {
            "due": summary.due,
            "delayed": summary.delayed,
            "shed": summary.shed,
            "unsent": summary.unsent,
            "backlog_max": summary.backlog_max,
        },
        "unfinished": summary.unfinished,
        "in_flight_mean": summary.in_flight_mean,
        "connections_opened": summary.connect.len(),
        "connections_closed_by_server": summary.closed_by_server,
        "tls_sessions_resumed": summary.resumed,
        "latency": times(&summary.latency),
        "service": times(&summary.service),
        "accepted": kinds.as_ref().map(|(accepted, _)| both(accepted)),
        "refused": kinds.as_ref().map(|(_, refused)| both(refused)),
        "connect": times(&summary.connect),
        "lag": times(&summary.lag),
        "first_response": summary.first.as_ref().map(|first| json!({
            "status": first.status, "body_bytes": first.body_bytes, "server": first.server,
        })),
        "client": {
            "cpu_us": summary.client_cpu_us,
            "cpu_us_per_request": summary.client_us_per_request(),
            "share": summary.client_share(),
        },
        "server": summary.server.as_ref().map(|server| json!({
            "cpu_us": server.total_us,
            "cpu_us_per_request": summary.server_us_per_request(),
            "by_program": server.by_program.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })),
        "intervals": summary.intervals.iter().map(interval).collect::<Vec<_>>(),
    })
}

/// One interval of the time series.
pub(super) fn interval(interval: &Interval) -> Value {
    json!({
        "at_seconds": interval.at_seconds,
        "seconds": interval.seconds,
        "rate": interval.rate(),
        "sent": interval.sent,
        "responses": interval.responses,
        "refused": interval.refused,
        "failures": interval.failures.total(),
        "body_bytes": interval.body_bytes,
        "p50_ns": interval.p50_ns,
        "p99_ns": interval.p99_ns,
        "max_ns": interval.max_ns,
        "service_p99_ns": interval.service_p99_ns,
        "in_flight": interval.in_flight,
        "backlog_max": interval.backlog_max,
    })
}

fn load(load: &Load) -> Value {
    let Load::Open { rate, arrival, deadline } = load else {
        return json!({"loop": "closed"});
    };
    let arrival = match arrival {
        Arrival::Even => "even",
        Arrival::Poisson => "poisson",
    };
    let (from, to, step) = match *rate {
        Rate::Fixed(rate) => (rate, rate, None),
        Rate::Ramp { from, to } => (from, to, None),
        Rate::Step { from, during, to } => (from, to, Some(during.as_secs_f64())),
    };
    let deadline_ns = deadline.map(|deadline| deadline.as_nanos() as u64);
    json!({
        "loop": "open", "rate_from": from, "rate_to": to, "arrival": arrival,
        "deadline_ns": deadline_ns, "step_at_seconds": step,
    })
}

fn failures(summary: &Summary) -> Value {
    let classes = summary.failures.classes().map(|(name, count)| (name.to_owned(), count.into()));
    let mut object: Map<String, Value> = classes.collect();
    object.insert("total".to_owned(), summary.failures.total().into());
    Value::Object(object)
}

/// Times of one kind of response.
fn both(kind: &Times) -> Value {
    json!({"latency": times(&kind.latency), "service": times(&kind.service)})
}

/// A distribution: its percentiles and its spectrum.
fn times(times: &Histogram<u64>) -> Value {
    let at = |quantile| times.value_at_quantile(quantile);
    let points: Vec<[f64; 2]> =
        spectrum(times, 5).iter().map(|point| [point.quantile, point.ns as f64]).collect();
    json!({
        "count": times.len(),
        "mean_ns": times.mean(),
        "stdev_ns": times.stdev(),
        "min_ns": if times.is_empty() { 0 } else { times.min() },
        "p50_ns": at(0.5),
        "p75_ns": at(0.75),
        "p90_ns": at(0.9),
        "p99_ns": at(0.99),
        "p999_ns": at(0.999),
        "p9999_ns": at(0.9999),
        "max_ns": times.max(),
        "spectrum": points,
    })
}
