//! Stacks measured with the same settings: a table with bars, the comparisons, and, folded, the
//! pairs, the processes and the slices.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{chart, escape, number};
use crate::comparison::{Comparison, change};
use crate::load::QUANTILES;
use crate::metric::Metric;
use crate::profile::{Kind, Profile};
use crate::report::Report;
use crate::row::Row;
use crate::series::Slice;
use crate::statistics::judge::Class;
use crate::statistics::{Estimate, median, middle};
use outboard_profile::flame;
use outboard_profile::process_table::kind_of;

/// Renders the rows with the same settings: numbers, comparisons and details.
pub(super) fn put(
    html: &mut String,
    report: &Report,
    rows: &[Row],
    open: bool,
) -> std::fmt::Result {
    let title = &rows[0].experiment;
    writeln!(html, "<article><h3>{}</h3>", escape(title))?;
    put_rows(html, rows)?;
    let comparisons: Vec<&Comparison> =
        report.comparisons.iter().filter(|comparison| comparison.experiment == *title).collect();
    put_comparisons(html, &comparisons)?;
    let state = if open { " open" } else { "" };
    writeln!(html, "<details{state}><summary>Pairs, processes and slices</summary>")?;
    put_differences(html, &comparisons)?;
    put_processes(html, rows)?;
    put_spectrum(html, rows)?;
    writeln!(html, "<div class=\"columns\">")?;
    put_over_slices(html, "Responses per second, over the slices", rows, |s| s.load.rate())?;
    put_over_slices(html, "p99 in ms", rows, |s| s.load.latency.p99_us / 1e3)?;
    put_over_slices(html, "Memory (PSS) in MiB", rows, |s| s.pss_bytes as f64 / 1_048_576.0)?;
    writeln!(html, "</div></details>")?;
    put_profiles(html, report, &rows[0])?;
    writeln!(html, "</article>")
}

/// A flame graph per stack, and the difference of the first two, each folded.
fn put_profiles(html: &mut String, report: &Report, row: &Row) -> std::fmt::Result {
    let is_here = |profile: &&Profile| {
        (&profile.section, &profile.experiment) == (&row.section, &row.experiment)
    };
    for kind in [Kind::Php, Kind::Native] {
        let profiles = report.profiles.iter().filter(is_here);
        let profiles: Vec<&Profile> = profiles.filter(|profile| profile.kind == kind).collect();
        let id = |which: &str| {
            let name = format!("{}-{}-{}-{which}", row.section, row.experiment, kind.word());
            name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        };
        for profile in &profiles {
            let (stack, graph) =
                (escape(&profile.stack), flame::graph(&profile.folded, &id(&profile.stack)));
            let title = format!("{stack}: {}", kind.word());
            writeln!(html, "<details><summary>{title}</summary>{graph}</details>")?;
        }
        if let [b, a, ..] = &profiles[..] {
            let graph = flame::difference(&a.folded, &b.folded, &id("difference"));
            let (a, b) = (escape(&a.stack), escape(&b.stack));
            let title = format!("{}: from {a} to {b}", kind.word());
            writeln!(html, "<details><summary>{title}</summary>{graph}</details>")?;
        }
    }
    Ok(())
}

fn put_rows(html: &mut String, rows: &[Row]) -> std::fmt::Result {
    let most = rows.iter().filter_map(|row| cpu(row).map(|cpu| cpu.high)).fold(0.0, f64::max);
    writeln!(
        html,
        "<div class=\"scroll\"><table class=\"stacks\"><tr><th>Stack</th>\
         <th class=\"wide\">CPU per request</th><th class=\"number\">µs</th>\
         <th class=\"number\">instructions</th>\
         <th class=\"number\">responses/s</th><th class=\"number\">p50 ms</th>\
         <th class=\"number\">p99 ms</th><th class=\"number\">PSS MiB</th>\
         <th class=\"number\">failed</th></tr>"
    )?;
    for (at, row) in rows.iter().enumerate() {
        let whisker = cpu(row).map_or_else(String::new, |cpu| chart::bar(&cpu, most, at));
        let failed = escape(&row.failures.to_string());
        writeln!(
            html,
            "<tr><th>{}{}</th><td>{whisker}</td><td class=\"number\"><b>{}</b></td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{:.1}</td><td class=\"number{}\">{failed}</td></tr>",
            chart::key(at),
            escape(&row.stack),
            number(row.cpu_us),
            row.instructions_text(),
            number(row.rate),
            number(row.p50_ms),
            number(row.p99_ms),
            row.pss_mib,
            if failed == "0" { "" } else { " warn" }
        )?;
    }
    writeln!(html, "</table></div>")?;
    for row in rows {
        if let Some(refusal) = &row.refusal {
            let (stack, scope) = (escape(&row.stack), refusal.scope());
            let why = escape(&refusal.to_string());
            writeln!(html, "<p class=\"note\"><b>{stack} is not ranked{scope}:</b> {why}.</p>")?;
        }
    }
    Ok(())
}

fn cpu(row: &Row) -> Option<Estimate> {
    middle(&Metric::Cpu.values(&row.slices))
}

fn put_comparisons(html: &mut String, comparisons: &[&Comparison]) -> std::fmt::Result {
    if comparisons.is_empty() {
        return Ok(());
    }
    writeln!(html, "<div class=\"scroll\"><table class=\"compared\"><tr><th></th>")?;
    let metrics = metrics(comparisons);
    for metric in &metrics {
        write!(html, "<th>{}</th>", metric.name())?;
    }
    writeln!(html, "</tr>")?;
    for pair in comparisons.chunk_by(|a, b| a.reference == b.reference) {
        let (subject, reference) = (escape(&pair[0].subject), escape(&pair[0].reference));
        write!(html, "<tr><th>{subject} <span class=\"quiet\">against</span> {reference}</th>")?;
        for comparison in pair {
            write!(
                html,
                "<td title=\"{}\">{}</td>",
                escape(&comparison.to_string()),
                cell(comparison)
            )?;
        }
        writeln!(html, "</tr>")?;
    }
    writeln!(html, "</table></div>")
}

/// The metrics of these comparisons, each once, in order.
fn metrics(comparisons: &[&Comparison]) -> Vec<Metric> {
    let used = |metric: &Metric| comparisons.iter().any(|comparison| comparison.metric == *metric);
    Metric::ALL.into_iter().filter(used).collect()
}

fn cell(comparison: &Comparison) -> String {
    let (tone, word) = tone(&comparison.class);
    let badge = format!("<span class=\"badge {tone}\">{word}</span>");
    match (&comparison.class, comparison.ratio) {
        (Class::Invalid { .. }, _) | (_, None) => badge,
        (class, Some(ratio)) => {
            let more = match class {
                Class::Undecided { more_pairs: Some(more) } => format!(", {more} more pairs"),
                _ => String::new(),
            };
            let (low, high) = (change(ratio.low), change(ratio.high));
            let middle = change(ratio.middle);
            format!("{badge} {middle} <small>{low} to {high}{more}</small>")
        }
    }
}

fn tone(class: &Class) -> (&'static str, &'static str) {
    let tone = match class {
        Class::Better => "good",
        Class::Worse => "bad",
        Class::Equal => "none",
        Class::Undecided { .. } | Class::Invalid { .. } => "open",
    };
    (tone, class.word())
}

fn put_differences(html: &mut String, comparisons: &[&Comparison]) -> std::fmt::Result {
    let shown: Vec<&&Comparison> = comparisons
        .iter()
        .filter(|c| c.metric == Metric::Cpu && !c.differences.is_empty())
        .collect();
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(html, "<h4>CPU per request, pair by pair: left is cheaper</h4>")?;
    let most =
        shown.iter().flat_map(|c| &c.differences).fold(0.02, |most: f64, d| most.max(d.abs()));
    writeln!(html, "<div class=\"dots\">")?;
    for comparison in shown {
        let (subject, reference) = (escape(&comparison.subject), escape(&comparison.reference));
        writeln!(
            html,
            "<p>{subject} / {reference}</p>{}",
            chart::dots(&comparison.differences, most * 1.08)
        )?;
    }
    writeln!(html, "<p></p>{}</div>", chart::ratio_axis(most * 1.08))
}

fn put_processes(html: &mut String, rows: &[Row]) -> std::fmt::Result {
    let shares: Vec<Vec<(String, f64)>> = rows.iter().map(process_shares).collect();
    let most = rows.iter().map(|row| row.cpu_us).fold(0.0, f64::max);
    if shares.iter().all(Vec::is_empty) || most <= 0.0 {
        return Ok(());
    }
    let mut kinds: Vec<&str> = Vec::new();
    for (kind, _) in shares.iter().flatten() {
        if !kinds.contains(&kind.as_str()) {
            kinds.push(kind);
        }
    }
    writeln!(html, "<h4>CPU per request in µs, by process</h4><div class=\"dots\">")?;
    for (row, shares) in rows.iter().zip(&shares) {
        let stacked = chart::stacked(shares, &kinds, most);
        writeln!(html, "<p>{}</p>{stacked}", escape(&row.stack))?;
    }
    writeln!(html, "<p></p>{}</div>", chart::legend(&kinds))
}

/// The µs of each kind of process per request, the most expensive first.
fn process_shares(row: &Row) -> Vec<(String, f64)> {
    let mut sums = BTreeMap::<String, u64>::new();
    for (name, us) in row.slices.slices.iter().flat_map(|slice| &slice.by_process_us) {
        *sums.entry(kind_of(name)).or_default() += us;
    }
    if let (1, Some((name, 0))) = (sums.len(), sums.first_key_value()) {
        // Many short-lived processes, each too short for the clock: the time can only be theirs.
        return vec![(name.clone(), row.cpu_us)];
    }
    let total = sums.values().sum::<u64>().max(1) as f64;
    let share = |(name, us): (String, u64)| (name, us as f64 / total * row.cpu_us);
    let mut shares: Vec<(String, f64)> =
        sums.into_iter().filter(|(_, us)| *us > 0).map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// The latency spectrum; each further nine has the same width.
fn put_spectrum(html: &mut String, rows: &[Row]) -> std::fmt::Result {
    let place = |quantile: f64| -(1.0 - quantile).log10() / 4.0;
    let curves: Vec<(&str, Vec<(f64, f64)>)> = rows
        .iter()
        .map(|row| {
            let at = |index| {
                let reported = row.slices.slices.iter();
                let reported =
                    reported.filter_map(|slice| slice.load.spectrum_us.get(index).copied());
                reported.collect::<Vec<f64>>()
            };
            let values = QUANTILES.iter().enumerate().map(|(index, &q)| (place(q), at(index)));
            let values = values.filter(|(_, values)| !values.is_empty());
            let points = values.map(|(place, values)| (place, median(&values) / 1e3)).collect();
            (row.stack.as_str(), points)
        })
        .collect();
    let names =
        [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
    let names = names.map(|(quantile, name)| (place(quantile), name.to_owned()));
    let svg = chart::curves(&curves, &names);
    if svg.is_empty() {
        return Ok(());
    }
    writeln!(html, "<figure><h4>Latency by percentile</h4>{svg}</figure>")
}

/// Latency over the offered rates, if a section measured that.
pub(super) fn put_rates(html: &mut String, rows: &[&Row]) -> std::fmt::Result {
    let offered = |row: &Row| row.slices.slices.first().and_then(|slice| slice.load.offered);
    let mut rates: Vec<f64> = rows.iter().filter_map(|row| offered(row)).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let (Some(&least), Some(&most)) = (rates.first(), rates.last()) else { return Ok(()) };
    if rates.len() < 3 {
        return Ok(());
    }
    let place = |rate: f64| (rate / least).ln() / (most / least).ln();
    let mut stacks: Vec<&str> = Vec::new();
    for row in rows {
        if !stacks.contains(&row.stack.as_str()) {
            stacks.push(&row.stack);
        }
    }
    let names: Vec<(f64, String)> = rates.iter().map(|&rate| (place(rate), number(rate))).collect();
    let curves = |value: fn(&Row) -> f64| -> Vec<(&str, Vec<(f64, f64)>)> {
        let of = |stack: &&str| -> Vec<(f64, f64)> {
            let rows = rows.iter().filter(|row| row.stack == **stack);
            rows.filter_map(|row| Some((place(offered(row)?), value(row)))).collect()
        };
        stacks.iter().map(|stack| (*stack, of(stack))).collect()
    };
    writeln!(html, "<article><h3>Latency against rate</h3>{}", chart::stacks(&stacks))?;
    writeln!(html, "<div class=\"columns two\">")?;
    for (title, value) in [
        ("Median by offered requests per second", (|row| row.p50_ms) as fn(&Row) -> f64),
        ("99th percentile", |row| row.p99_ms),
    ] {
        let svg = chart::curves(&curves(value), &names);
        writeln!(html, "<figure><h4>{title}</h4>{svg}</figure>")?;
    }
    writeln!(html, "</div></article>")
}

fn put_over_slices(
    html: &mut String,
    title: &str,
    rows: &[Row],
    value: impl Fn(&Slice) -> f64,
) -> std::fmt::Result {
    let series: Vec<(&str, Vec<f64>)> =
        rows.iter().map(|row| (row.stack.as_str(), row.slices.values(&value))).collect();
    writeln!(html, "<figure><h4>{title}</h4>{}</figure>", chart::lines(&series))
}
