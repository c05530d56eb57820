//! The report in the layout of ab (ApacheBench), for programs that parse it.

use crate::failures::Failure;
use crate::summary::Summary;
use crate::target::{Address, Target};
use hdrhistogram::Histogram;
use std::fmt::Write;

const PERCENTAGES: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// The report.
pub fn ab(summary: &Summary, target: &Target) -> String {
    let mut out = String::new();
    let first = summary.first.clone().unwrap_or_default();
    let (host, port) = match target.host.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.to_owned()),
        None => (target.host.clone(), port_of(&target.address)),
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{:<24}{value}", format!("{name}:"));
    };
    let seconds = summary.seconds.max(f64::MIN_POSITIVE);
    let (responses, wrong_status) = (summary.responses, summary.failures.count(Failure::Status));
    line("Server Software", first.server);
    line("Server Hostname", host);
    line("Server Port", port);
    line("", String::new());
    line("Document Path", target.path.clone());
    line("Document Length", format!("{} bytes", first.body_bytes));
    line("", String::new());
    line("Concurrency Level", summary.connections.to_string());
    line("Time taken for tests", format!("{seconds:.3} seconds"));
    line("Complete requests", responses.to_string());
    line("Failed requests", (summary.failures.total() - wrong_status).to_string());
    failures(summary, &mut out);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{:<24}{value}", format!("{name}:"));
    };
    if wrong_status > 0 {
        line("Non-2xx responses", wrong_status.to_string());
    }
    if summary.keep_alive {
        let reopened = summary.closed_by_server.min(responses);
        line("Keep-Alive requests", (responses - reopened).to_string());
    }
    line("Total transferred", format!("{} bytes", summary.received_bytes));
    line("HTML transferred", format!("{} bytes", summary.body_bytes));
    let each_ms = seconds * 1e3 / responses.max(1) as f64;
    let user_ms = each_ms * summary.connections as f64;
    line("Requests per second", format!("{:.2} [#/sec] (mean)", summary.rate()));
    line("Time per request", format!("{user_ms:.3} [ms] (mean)"));
    line("Time per request", format!("{each_ms:.3} [ms] (mean, across all concurrent requests)"));
    let transfer = summary.received_bytes as f64 / 1024.0 / seconds;
    line("Transfer rate", format!("{transfer:.2} [Kbytes/sec] received"));
    connection_times(summary, &mut out);
    percentages(&summary.latency, &mut out);
    out.replace("\n:                       \n", "\n\n")
}

fn port_of(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.port().to_string(),
        Address::Unix(path) => path.display().to_string(),
    }
}

fn failures(summary: &Summary, out: &mut String) {
    use Failure::{Body, Closed, Connect, Length, Malformed, Ports, Timeout};
    let count = |classes: &[Failure]| -> u64 {
        classes.iter().map(|class| summary.failures.count(*class)).sum()
    };
    let (connect, receive) = (count(&[Connect, Ports]), count(&[Closed, Malformed]));
    let (length, others) = (count(&[Length]), count(&[Timeout, Body]));
    if connect + receive + length + others > 0 {
        let _ = writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {others})"
        );
    }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// Connecting counts only for requests that had their own connection.
fn connection_times(summary: &Summary, out: &mut String) {
    out.push_str("\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n");
    let mut row = |name: &str, times: &Histogram<u64>| {
        let min = if times.is_empty() { 0.0 } else { ms(times.min() as f64) };
        let (mean, deviation) = (ms(times.mean()), ms(times.stdev()));
        let median = ms(times.value_at_quantile(0.5) as f64);
        let max = ms(times.max() as f64);
        let _ =
            writeln!(out, "{name:<12}{min:>5.0}{mean:>5.0}{deviation:>6.1}{median:>7.0}{max:>8.0}");
    };
    row("Connect:", &summary.connect);
    row("Processing:", &summary.service);
    row("Waiting:", &summary.first_byte);
    row("Total:", &summary.latency);
}

fn percentages(times: &Histogram<u64>, out: &mut String) {
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in PERCENTAGES {
        let ms = ms(times.value_at_quantile(f64::from(percent) / 100.0) as f64);
        let longest = if percent == 100 { " (longest request)" } else { "" };
        let _ = writeln!(out, " {percent:>3}%{ms:>7.0}{longest}");
    }
}

/// The output of `ab -e FILE`: a time in ms for each percent.
pub fn ab_csv(summary: &Summary) -> String {
    let mut out = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..100 {
        let ns = summary.latency.value_at_quantile(f64::from(percent) / 100.0);
        let _ = writeln!(out, "{percent},{:.3}", ms(ns as f64));
    }
    out
}

/// The output of `ab -g FILE`: the times in ms, sorted.
pub fn ab_gnuplot(summary: &Summary) -> String {
    let mut out = "ttime\n".to_owned();
    for value in summary.latency.iter_recorded() {
        let time = format!("{:.3}\n", ms(value.value_iterated_to() as f64));
        (0..value.count_at_value()).for_each(|_| out.push_str(&time));
    }
    out
}
