//! The report in the layout of webbench: pages per minute, without latencies.

use crate::summary::Summary;

/// The report.
pub fn webbench(summary: &Summary, method: &str) -> String {
    let failed = summary.failures.unanswered();
    let seconds = summary.seconds.max(f64::MIN_POSITIVE);
    let pages = (summary.responses + failed) as f64 / seconds * 60.0;
    let bytes = summary.received_bytes as f64 / seconds;
    format!(
        "Webbench - Simple Web Benchmark\n\nBenchmarking: {method} {}\n{} clients, running {:.0} \
         sec.\n\nSpeed={pages:.0} pages/min, {bytes:.0} bytes/sec.\nRequests: {} susceed, {failed} \
         failed.\n",
        summary.url, summary.connections, summary.seconds, summary.responses,
    )
}
