//! The report in the layout of wrk.
//!
//! Thread statistics are derived from the whole run: the spread of the rate is that of the
//! intervals of the time series, divided by the number of threads.

use crate::failures::Failure;
use crate::summary::Summary;
use hdrhistogram::Histogram;
use std::fmt::Write;

/// The report; `wrk --latency` has four percentiles in addition.
pub fn wrk(summary: &Summary, has_distribution: bool) -> String {
    let mut out = format!(
        "Running {:.0}s test @ {}\n  {} threads and {} connections\n",
        summary.seconds, summary.url, summary.threads, summary.connections
    );
    thread_stats(summary, &mut out);
    if has_distribution {
        out.push_str("  Latency Distribution\n");
        percentiles(&summary.latency, &[50.0, 75.0, 90.0, 99.0], &mut out);
    }
    totals(summary, &mut out);
    out
}

fn thread_stats(summary: &Summary, out: &mut String) {
    let times = &summary.latency;
    let (mean, deviation) = (times.mean(), times.stdev());
    let within = times.count_between((mean - deviation).max(0.0) as u64, (mean + deviation) as u64);
    let within = within as f64 * 100.0 / times.len().max(1) as f64;
    let threads = summary.threads as f64;
    let rates: Vec<f64> =
        summary.intervals.iter().map(|interval| interval.rate() / threads).collect();
    let (rate, rate_deviation, rate_max, rate_within) = statistics(&rates);
    let _ = write!(
        out,
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   {:>7}  {:>7}  {:>7}  \
         {within:>6.2}%\n    Req/Sec   {:>7}  {:>7}  {:>7}  {rate_within:>6.2}%\n",
        time(mean),
        time(deviation),
        time(times.max() as f64),
        metric(rate),
        metric(rate_deviation),
        metric(rate_max),
    );
}

/// Mean, deviation, maximum, and the share within one deviation of the mean.
fn statistics(values: &[f64]) -> (f64, f64, f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let deviation = variance.sqrt();
    let within = values.iter().filter(|value| (*value - mean).abs() <= deviation).count();
    let max = values.iter().copied().fold(0.0, f64::max);
    (mean, deviation, max, within as f64 * 100.0 / count)
}

fn percentiles(times: &Histogram<u64>, percents: &[f64], out: &mut String) {
    for percent in percents {
        let time = time(times.value_at_quantile(percent / 100.0) as f64);
        let _ = writeln!(out, "   {percent:>3.0}%  {time:>7}");
    }
}

fn totals(summary: &Summary, out: &mut String) {
    use Failure::{Body, Closed, Connect, Length, Malformed, Ports, Status, Timeout};
    let count = |classes: &[Failure]| -> u64 {
        classes.iter().map(|class| summary.failures.count(*class)).sum()
    };
    let seconds = summary.seconds.max(f64::MIN_POSITIVE);
    let received = binary(summary.received_bytes as f64);
    let _ = writeln!(out, "  {} requests in {seconds:.2}s, {received} read", summary.responses);
    let (connect, read) = (count(&[Connect, Ports]), count(&[Closed, Malformed]));
    let (timeout, wrong) = (count(&[Timeout]), count(&[Status, Length, Body]));
    if connect + read + timeout > 0 {
        let _ = writeln!(
            out,
            "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"
        );
    }
    if wrong > 0 {
        let _ = writeln!(out, "  Non-2xx or 3xx responses: {wrong}");
    }
    let _ = writeln!(out, "Requests/sec: {:>10.2}", summary.rate());
    let transfer = binary(summary.received_bytes as f64 / seconds);
    let _ = writeln!(out, "Transfer/sec: {transfer:>12}");
}

/// A time in wrk's format: `812.00us`, `3.41ms`, `1.20s`.
fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e6 => format!("{:.2}us", ns / 1e3),
        _ if ns < 1e9 => format!("{:.2}ms", ns / 1e6),
        _ => format!("{:.2}s", ns / 1e9),
    }
}

fn metric(value: f64) -> String {
    match value {
        _ if value < 1e3 => format!("{value:.2}"),
        _ if value < 1e6 => format!("{:.2}k", value / 1e3),
        _ => format!("{:.2}M", value / 1e6),
    }
}

fn binary(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1024.0 => format!("{bytes:.2}B"),
        _ if bytes < 1_048_576.0 => format!("{:.2}KB", bytes / 1024.0),
        _ if bytes < 1_073_741_824.0 => format!("{:.2}MB", bytes / 1_048_576.0),
        _ => format!("{:.2}GB", bytes / 1_073_741_824.0),
    }
}
