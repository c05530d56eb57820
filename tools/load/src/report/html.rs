//! The report as one page without network or script, light or dark as the reader's system is.

use super::chart::{Chart, Line, Scale};
use super::text::{QUANTILES, load};
use super::units::{count, time};
use super::{json, spectrum};
use crate::interval::Interval;
use crate::plan::Load;
use crate::summary::Summary;
use hdrhistogram::Histogram;
use outboard_profile::page::{STYLE, escape};
use std::fmt::Write;

/// The height of a chart.
const HEIGHT_PX: f64 = 250.0;

/// Renders the page.
pub fn html(summary: &Summary) -> String {
    let url = escape(&summary.url);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{url}</title><style>{STYLE}</style></head>\n<body>\n<h1>{url}</h1>\n\
         <p class=\"soft\">{}, {} connections, {:.2} s</p>\n",
        load(&summary.load),
        summary.connections,
        summary.seconds
    );
    banner(summary, &mut out);
    cards(summary, &mut out);
    out.push_str("<h2>Latency</h2>\n");
    out.push_str(&percentiles(summary));
    table(summary, &mut out);
    out.push_str("<h2>Over time</h2>\n");
    series(&summary.intervals).iter().for_each(|figure| out.push_str(figure));
    details(summary, &mut out);
    // The element runs nothing, but `<` could end it.
    let data = json::json(summary).to_string().replace('<', "\\u003c");
    let _ = write!(
        out,
        "<script type=\"application/json\" id=\"result\">{data}</script>\n</body></html>\n"
    );
    out
}

fn banner(summary: &Summary, out: &mut String) {
    let warnings = summary.warnings();
    if warnings.is_empty() {
        out.push_str("<div class=\"banner\">No warnings.</div>\n");
        return;
    }
    out.push_str("<div class=\"banner bad\"><b>Not reliable</b>");
    for warning in warnings {
        let _ = write!(out, "<p>{}</p>", escape(&warning.to_string()));
    }
    out.push_str("</div>\n");
}

fn cards(summary: &Summary, out: &mut String) {
    let at = |quantile| time(summary.latency.value_at_quantile(quantile));
    let mut cards = vec![
        (format!("{}/s", count(summary.rate().round() as u64)), "responses"),
        (at(0.5), "median"),
        (at(0.99), "99th percentile"),
        (summary.failures.total().to_string(), "failed"),
    ];
    if let Some(us) = summary.server_us_per_request() {
        cards.push((format!("{us:.1} µs"), "server CPU per request"));
    }
    out.push_str("<div class=\"cards\">");
    for (value, name) in cards {
        let _ = write!(out, "<div class=\"card\"><b>{value}</b><span>{name}</span></div>");
    }
    out.push_str("</div>\n");
}

/// Latency by percentile; each power of ten nearer to 100 % has the same width.
fn percentiles(summary: &Summary) -> String {
    let line = |name: &str, colour, times: &Histogram<u64>| {
        let points = spectrum(times, 5);
        let points = points.iter().filter(|point| point.quantile < 1.0);
        let points = points.map(|point| (1.0 / (1.0 - point.quantile), point.ns as f64 / 1e6));
        Line { name: name.to_owned(), colour, points: points.collect() }
    };
    let mut lines = match summary.load {
        Load::Closed => vec![line("service", 1, &summary.service)],
        Load::Open { .. } => vec![
            line("latency, from when due", 1, &summary.latency),
            line("service, from when sent", 2, &summary.service),
        ],
    };
    // A line whose slowest requests are equal ends early, so it is extended at their height.
    let ends = lines.iter().filter_map(|line| line.points.last());
    let end = ends.map(|(x, _)| *x).fold(10.0, f64::max);
    for line in &mut lines {
        let last = line.points.last().copied();
        line.points.extend(last.filter(|(x, _)| *x < end).map(|(_, y)| (end, y)));
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let labels = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];
    let labels = labels.iter().enumerate().map(|(at, name)| (10_f64.powi(at as i32), *name));
    let labels = labels.filter(|(x, _)| *x <= end).map(|(x, name)| (x, name.to_owned()));
    let chart = Chart {
        height_px: HEIGHT_PX,
        x: Scale::Log(1.0, end),
        y: Scale::log_around(all().map(|(_, y)| *y)),
        x_labels: labels.collect(),
        y_unit: "ms",
        lines,
    };
    figure("Percentiles of requests", &chart)
}

fn series(intervals: &[Interval]) -> [String; 2] {
    let line = |name: &str, colour, value: &dyn Fn(&Interval) -> f64| {
        let points = intervals
            .iter()
            .map(|interval| (interval.at_seconds + interval.seconds, value(interval)));
        Line { name: name.to_owned(), colour, points: points.collect() }
    };
    let rate = line("responses", 1, &Interval::rate);
    let ms = |ns: u64| ns as f64 / 1e6;
    let latencies = vec![
        line("50 %", 1, &|interval| ms(interval.p50_ns)),
        line("99 %", 2, &|interval| ms(interval.p99_ns)),
        line("max", 3, &|interval| ms(interval.max_ns)),
    ];
    let end = intervals.last().map_or(1.0, |interval| interval.at_seconds + interval.seconds);
    let quarters = (0..=4).map(|quarter| end * f64::from(quarter) / 4.0);
    let x_labels: Vec<(f64, String)> = quarters.map(|at| (at, format!("{at:.1} s"))).collect();
    let chart = |y, y_unit, lines| Chart {
        height_px: HEIGHT_PX,
        x: Scale::Linear(end),
        y,
        x_labels: x_labels.clone(),
        y_unit,
        lines,
    };
    let rates = Scale::linear_to(rate.points.iter().map(|(_, y)| *y));
    let times = latencies.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let times = Scale::log_around(times);
    [
        figure("Responses per second", &chart(rates, "/s", vec![rate])),
        figure("Latency", &chart(times, "ms", latencies)),
    ]
}

/// A chart with its title and the names of its lines.
fn figure(title: &str, chart: &Chart) -> String {
    let mut out = format!("<figure><figcaption>{title}");
    if chart.lines.len() > 1 {
        for line in &chart.lines {
            let _ = write!(out, " <span class=\"key c{}\">{}</span>", line.colour, line.name);
        }
    }
    out + "</figcaption>\n" + &chart.svg() + "</figure>\n"
}

fn table(summary: &Summary, out: &mut String) {
    let kinds = summary.by_kind();
    let mut columns = vec![("latency", &summary.latency), ("service", &summary.service)];
    if let Some((accepted, refused)) = &kinds {
        columns.extend([
            ("service of good responses", &accepted.service),
            ("of refusals", &refused.service),
        ]);
    }
    out.push_str("<table><tr><th></th>");
    columns.iter().for_each(|(name, _)| out.push_str(&format!("<th>{name}</th>")));
    out.push_str("</tr>\n");
    for (name, quantile) in QUANTILES {
        let _ = write!(out, "<tr><td>{name}</td>");
        for (_, times) in &columns {
            let _ = write!(out, "<td>{}</td>", time(times.value_at_quantile(quantile)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str(
        "</table>\n<p class=\"soft\">Latency counts from when a request was due, service from when \
         it was sent. In a closed loop both are the same, and less than what users wait.</p>\n",
    );
}

fn details(summary: &Summary, out: &mut String) {
    out.push_str("<h2>Counts</h2>\n<table>\n");
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "<tr><td>{name}</td><td>{}</td></tr>", escape(&value));
    };
    row("sent", count(summary.sent));
    row("responses", count(summary.responses));
    row("failures", summary.failures.to_string());
    if summary.refused.count() > 0 {
        row("refused (429, 503)", count(summary.refused.count()));
    }
    row("connections opened", count(summary.connect.len()));
    row("closed early by the server", count(summary.closed_by_server));
    if summary.load != Load::Closed {
        row("due", count(summary.due));
        row("sent, of those due", format!("{:.2} %", summary.rate_ratio() * 100.0));
        row("waited for a connection", count(summary.delayed));
        row("dropped", count(summary.shed));
    }
    row("generator CPU per request", format!("{:.2} µs", summary.client_us_per_request()));
    row("generator's own delay, 99 %", time(summary.lag.value_at_quantile(0.99)));
    for (name, us) in summary.server.iter().flat_map(|server| &server.by_program) {
        let each = *us as f64 / summary.responses.max(1) as f64;
        row(&format!("CPU per request of {}", escape(name)), format!("{each:.2} µs"));
    }
    out.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Slice;
    use crate::{Plan, Target};

    #[test]
    fn a_page_is_self_contained_and_escaped() {
        let target = Target::parse("http://127.0.0.1:1/?<script>alert(1)</script>").expect("a URL");
        let slice = Slice::new(false);
        let intervals = vec![Interval::of(&slice, 0.0, 1.0)];
        let page = html(&Summary::of(&Plan::new(target), &slice, Vec::new(), intervals, None));
        assert!(!page.contains("<script>alert"), "{page}");
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(!page.contains("src="));
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
    }
}
