//! The time series: a line for each interval, as JSON or as comma-separated values.

use super::json;
use crate::moment::Moment;
use crate::summary::Summary;
use std::fmt::Write;

/// One interval as a line of JSON, with its end.
pub fn ndjson(moment: &Moment) -> String {
    format!("{}\n", json::moment(moment))
}

/// All intervals, under a line that names the columns.
pub fn csv(summary: &Summary) -> String {
    let mut out = "at_seconds,seconds,rate,sent,answers,failures,body_bytes,p50_ns,p99_ns,max_ns,\
                   in_flight,backlog_max,refused,service_p99_ns\n"
        .to_owned();
    for moment in &summary.moments {
        let Moment { at_seconds, seconds, sent, answers, body_bytes, .. } = moment;
        let Moment { p50_ns, p99_ns, max_ns, in_flight, backlog_max, .. } = moment;
        let Moment { refused, service_p99_ns, .. } = moment;
        let (rate, failures) = (moment.rate(), moment.failures.total());
        let _ = writeln!(
            out,
            "{at_seconds},{seconds},{rate},{sent},{answers},{failures},{body_bytes},{p50_ns},\
             {p99_ns},{max_ns},{in_flight},{backlog_max},{refused},{service_p99_ns}"
        );
    }
    out
}
