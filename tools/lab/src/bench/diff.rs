//! `outboard bench diff A.json B.json`: two results side by side.
//!
//! It computes ratios and does not judge: two consecutive runs differ by whatever the machine did
//! in between. `outboard lab ab` interleaves and judges.

use super::outputs;
use super::stop::{INVALID, Stop};
use crate::terminal::show;
use clap::Args;
use outboard_load::report;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The supported format of results.
const SCHEMA: &str = "outboard.bench.v1";

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// The reference, written with --json.
    a: PathBuf,
    /// The result to compare with it.
    b: PathBuf,
    /// Write both numbers and their ratios as JSON.
    #[arg(long, short = 'o', value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn run(arguments: &DiffArguments) -> Result<u8, Stop> {
    let [a, b] = [read(&arguments.a)?, read(&arguments.b)?];
    show(&text(&a, &b));
    if let Some(path) = &arguments.json {
        outputs::write(path, &format!("{:#}\n", numbers(&a, &b)))?;
    }
    let is_reliable = |result: &Value| result["valid"] == true;
    Ok(if is_reliable(&a) && is_reliable(&b) { 0 } else { INVALID })
}

fn read(path: &Path) -> Result<Value, Stop> {
    let mistake = |why: String| Stop::mistake(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| mistake(error.to_string()))?;
    let result: Value = serde_json::from_str(&text).map_err(|error| mistake(error.to_string()))?;
    match result["schema"].as_str() {
        Some(SCHEMA) => Ok(result),
        _ => Err(mistake(format!("is no result of `outboard bench --json` ({SCHEMA})"))),
    }
}

/// The unit of a number.
#[derive(Clone, Copy)]
enum Unit {
    Ns,
    PerSecond,
    Us,
    Count,
}

/// The compared numbers: name, JSON pointer and unit.
const LINES: [(&str, &str, Unit); 12] = [
    ("responses per second", "/rate", Unit::PerSecond),
    ("failures", "/failures/total", Unit::Count),
    ("latency 50 %", "/latency/p50_ns", Unit::Ns),
    ("latency 75 %", "/latency/p75_ns", Unit::Ns),
    ("latency 90 %", "/latency/p90_ns", Unit::Ns),
    ("latency 99 %", "/latency/p99_ns", Unit::Ns),
    ("latency 99.9 %", "/latency/p999_ns", Unit::Ns),
    ("latency max", "/latency/max_ns", Unit::Ns),
    ("latency mean", "/latency/mean_ns", Unit::Ns),
    ("service 99 %", "/service/p99_ns", Unit::Ns),
    ("server CPU per request", "/server/cpu_us_per_request", Unit::Us),
    ("generator CPU per request", "/client/cpu_us_per_request", Unit::Us),
];

fn text(a: &Value, b: &Value) -> String {
    let mut out = format!("{:<24}{:>14}{:>14}{:>12}\n", "", "A", "B", "B / A");
    for (name, pointer, unit) in LINES {
        let number = |result: &Value| result.pointer(pointer).and_then(Value::as_f64);
        let (a, b) = (number(a), number(b));
        if a.is_none() && b.is_none() {
            continue;
        }
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| unit.write(value));
        out += &format!("{name:<24}{:>14}{:>14}{:>12}\n", cell(a), cell(b), change(a, b));
    }
    for (name, result) in [("A", a), ("B", b)] {
        for warning in result["warnings"].as_array().into_iter().flatten() {
            let why = warning["why"].as_str().unwrap_or_default();
            out += &format!("\n  {name} is not reliable: {why}\n");
        }
        if result["partial"] == true {
            out += &format!("\n  {name} was interrupted before its end\n");
        }
    }
    for difference in different_settings(a, b) {
        out += &format!("\n  different settings: {difference}\n");
    }
    out + "\n  NOT INTERLEAVED: the machine may have changed between these runs.\n  \
           `outboard lab ab --a URL --b URL` interleaves and judges.\n"
}

/// The same for programs.
fn numbers(a: &Value, b: &Value) -> Value {
    let lines = LINES.iter().filter_map(|(name, pointer, _)| {
        let (a, b) = (a.pointer(pointer)?.as_f64()?, b.pointer(pointer)?.as_f64()?);
        Some(json!({"name": name, "a": a, "b": b, "ratio": (a > 0.0).then(|| b / a)}))
    });
    json!({
        "schema": "outboard.diff.v1",
        "numbers": lines.collect::<Vec<Value>>(),
        "different_settings": different_settings(a, b),
        "valid": a["valid"] == true && b["valid"] == true,
        "interleaved": false,
    })
}

/// The settings in which the two runs differ.
fn different_settings(a: &Value, b: &Value) -> Vec<String> {
    let names = ["url", "load", "connections", "streams", "threads", "keep_alive"];
    let differ = names.into_iter().filter(|&name| a[name] != b[name]);
    differ.map(|name| format!("{name}: {} and {}", a[name], b[name])).collect()
}

fn change(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a > 0.0 => {
            let percent = (b / a - 1.0) * 100.0;
            let sign = if percent < 0.0 { "−" } else { "+" };
            format!("{sign}{:.1} %", percent.abs())
        }
        _ => String::new(),
    }
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Unit::Ns => report::time(value as u64),
            Unit::PerSecond => format!("{value:.1}"),
            Unit::Us => format!("{value:.2} µs"),
            Unit::Count => report::count(value as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(rate: f64, connections: u32) -> Value {
        json!({"schema": SCHEMA, "valid": true, "warnings": [], "url": "http://a/", "rate": rate,
               "connections": connections, "latency": {"p99_ns": 2_000_000}})
    }

    #[test]
    fn common_numbers_are_shown_with_their_change() {
        let text = text(&result(1000.0, 8), &result(1100.0, 8));
        let line = |name| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line("responses per second").ends_with("+10.0 %"), "{text}");
        assert!(line("latency 99 %").ends_with("+0.0 %"), "{text}");
        assert!(!text.contains("server CPU"), "neither measured it: {text}");
        assert!(text.contains("NOT INTERLEAVED"));
    }

    #[test]
    fn json_has_the_ratio_of_common_numbers() {
        let numbers = numbers(&result(1000.0, 8), &result(1100.0, 8));
        assert_eq!(numbers["numbers"].as_array().map(Vec::len), Some(2), "{numbers}");
        assert_eq!(numbers["numbers"][0]["ratio"], 1.1);
        assert_eq!(numbers["interleaved"], false);
    }

    #[test]
    fn another_measurement_is_called_so() {
        let text = text(&result(1000.0, 8), &result(1000.0, 16));
        assert!(text.contains("different settings: connections: 8 and 16"), "{text}");
    }
}
