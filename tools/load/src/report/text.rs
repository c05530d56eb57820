//! The report for a terminal: the most important numbers and the warnings.

use super::units::{count, time};
use crate::plan::Load;
use crate::schedule::{Arrival, Rate};
use crate::summary::Summary;
use hdrhistogram::Histogram;
use std::fmt::Write;

/// The percentiles shown.
pub(super) const QUANTILES: [(&str, f64); 7] = [
    ("50 %", 0.50),
    ("75 %", 0.75),
    ("90 %", 0.90),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("max", 1.0),
];

/// The whole report.
pub fn text(summary: &Summary) -> String {
    let mut out = String::new();
    head(summary, &mut out);
    counts(summary, &mut out);
    latencies(summary, &mut out);
    cpu(summary, &mut out);
    warnings(summary, &mut out);
    out
}

fn head(summary: &Summary, out: &mut String) {
    let reuse = match (summary.keep_alive, summary.streams) {
        (true, 1) => "persistent".to_owned(),
        (true, streams) => format!("persistent, {streams} streams each"),
        (false, _) => "one request each".to_owned(),
    };
    let _ = writeln!(out, "{}", summary.url);
    let _ = writeln!(
        out,
        "  {}, {}, {} connections ({reuse}), {} threads, {:.2} s{}\n",
        summary.protocol,
        load(&summary.load),
        summary.connections,
        summary.threads,
        summary.seconds,
        if summary.is_partial { ", interrupted" } else { "" }
    );
}

/// The load in words.
pub(super) fn load(load: &Load) -> String {
    let Load::Open { rate, arrival, .. } = load else {
        return "closed loop".to_owned();
    };
    let arrival = match arrival {
        Arrival::Even => "",
        Arrival::Poisson => ", Poisson arrivals",
    };
    match rate {
        Rate::Fixed(rate) => format!("open loop at {rate}/s{arrival}"),
        Rate::Step { from, during, to } => {
            let seconds = during.as_secs_f64();
            format!("open loop at {from}/s for {seconds} s, then at {to}/s{arrival}")
        }
        Rate::Ramp { from, to } => format!("open loop from {from}/s to {to}/s{arrival}"),
    }
}

fn counts(summary: &Summary, out: &mut String) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<12}{value}");
    };
    let per_second = summary.body_bytes as f64 / summary.seconds.max(f64::MIN_POSITIVE) / 1e6;
    line("rate", format!("{:.1} responses/s, {per_second:.2} MB/s of bodies", summary.rate()));
    line("responses", count(summary.responses));
    line("failures", summary.failures.to_string());
    if let Some((accepted, refused)) = summary.by_kind() {
        let (good, no) = (accepted.count(), refused.count());
        let each = good as f64 / summary.seconds.max(f64::MIN_POSITIVE);
        line("accepted", format!("{}, {each:.1}/s; refused {}", count(good), count(no)));
    }
    if summary.load != Load::Closed {
        line(
            "schedule",
            format!(
                "{} due, {:.2} % sent; {} waited for a connection (at most {} at once), {} dropped",
                count(summary.due),
                summary.rate_ratio() * 100.0,
                count(summary.delayed),
                count(summary.backlog_max),
                count(summary.shed)
            ),
        );
    }
    let resumed = match summary.resumed {
        0 => String::new(),
        resumed => format!(" ({} by resuming a TLS session)", count(resumed)),
    };
    line(
        "connections",
        format!(
            "{} opened{resumed}, {} closed early by the server",
            count(summary.connect.len()),
            count(summary.closed_by_server)
        ),
    );
}

fn latencies(summary: &Summary, out: &mut String) {
    let is_open = summary.load != Load::Closed;
    let kinds = summary.by_kind();
    let mut columns: Vec<(&str, &Histogram<u64>)> = match is_open {
        true => vec![("latency", &summary.latency), ("service", &summary.service)],
        false => vec![("service", &summary.service)],
    };
    if let Some((accepted, refused)) = &kinds {
        columns.extend([("accepted", &accepted.service), ("refused", &refused.service)]);
    }
    let _ = write!(out, "\n  {:<12}", "");
    for (name, _) in &columns {
        let _ = write!(out, "{name:>12}");
    }
    let mut row = |name: &str, value: &dyn Fn(&Histogram<u64>) -> u64| {
        let _ = write!(out, "\n  {name:<12}");
        for (_, times) in &columns {
            let _ = write!(out, "{:>12}", time(value(times)));
        }
    };
    for (name, quantile) in QUANTILES {
        row(name, &|times| times.value_at_quantile(quantile));
    }
    row("mean", &|times| times.mean() as u64);
    out.push_str(match is_open {
        true => "\n  latency counts from when a request was due, service from when it was sent\n",
        false => "\n  closed loop: the next request waits for the response, so users wait longer\n",
    });
    if kinds.is_some() {
        out.push_str(
            "  accepted and refused (429, 503): service time of good and of refused responses\n",
        );
    }
}

fn cpu(summary: &Summary, out: &mut String) {
    out.push('\n');
    if let (Some(server), Some(each_us)) = (&summary.server, summary.server_us_per_request()) {
        let _ = write!(out, "  {:<12}{each_us:.2} µs of CPU per request", "server");
        let responses = summary.responses.max(1) as f64;
        let mut programs = server.by_program.clone();
        programs.sort_by_key(|(_, us)| std::cmp::Reverse(*us));
        let shown =
            programs.iter().map(|(name, us)| format!("{name} {:.2}", *us as f64 / responses));
        let shown: Vec<String> = shown.collect();
        let _ =
            if shown.len() > 1 { writeln!(out, ": {}", shown.join(", ")) } else { writeln!(out) };
    }
    let _ = writeln!(
        out,
        "  {:<12}{:.2} µs of CPU per request, {:.0} % of its threads; sent late by 99 %: {}",
        "generator",
        summary.client_us_per_request(),
        summary.client_share() * 100.0,
        time(summary.lag.value_at_quantile(0.99))
    );
}

fn warnings(summary: &Summary, out: &mut String) {
    for warning in summary.warnings() {
        let _ = writeln!(out, "\n  not reliable: {warning}");
    }
}
