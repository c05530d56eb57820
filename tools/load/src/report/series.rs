//! The time series with one line per interval, as JSON or as comma-separated values.

use super::json;
use crate::interval::Interval;
use crate::summary::Summary;
use std::fmt::Write;

/// One interval as a line of JSON.
pub fn ndjson(interval: &Interval) -> String {
    format!("{}\n", json::interval(interval))
}

/// All intervals, after a line with the column names.
pub fn csv(summary: &Summary) -> String {
    let mut out =
        "at_seconds,seconds,rate,sent,responses,failures,body_bytes,p50_ns,p99_ns,max_ns,\
                   in_flight,backlog_max,refused,service_p99_ns\n"
            .to_owned();
    for interval in &summary.intervals {
        let Interval { at_seconds, seconds, sent, responses, body_bytes, .. } = interval;
        let Interval { p50_ns, p99_ns, max_ns, in_flight, backlog_max, .. } = interval;
        let Interval { refused, service_p99_ns, .. } = interval;
        let (rate, failures) = (interval.rate(), interval.failures.total());
        let _ = writeln!(
            out,
            "{at_seconds},{seconds},{rate},{sent},{responses},{failures},{body_bytes},{p50_ns},\
             {p99_ns},{max_ns},{in_flight},{backlog_max},{refused},{service_p99_ns}"
        );
    }
    out
}
