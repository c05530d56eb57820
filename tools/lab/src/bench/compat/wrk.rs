//! `outboard bench wrk`: its flags and report.

use super::getopt::{GetoptArgs, GetoptSpec};
use super::shared::{headers, helps, only_step, plan, warnings};
use crate::bench::stop::Stop;
use crate::terminal::show;
use outboard_load::{Run, parse_duration, report};
use std::time::Duration;

const WRK: GetoptSpec = GetoptSpec {
    short: "c:d:t:s:H:LT:v",
    long: &[
        ("connections", 'c'),
        ("duration", 'd'),
        ("threads", 't'),
        ("script", 's'),
        ("header", 'H'),
        ("latency", 'L'),
        ("timeout", 'T'),
        ("version", 'v'),
    ],
};

/// Runs wrk.
pub(in crate::bench) fn wrk(words: &[String]) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = GetoptArgs::read(&WRK, words)?;
    if flags.has('s') {
        return Err(Stop::mistake(
            "Lua scripts are not supported; see --scenario of outboard bench",
        ));
    }
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', metric)?.unwrap_or(10.0) as usize;
    plan.threads = flags.parsed('t', metric)?.unwrap_or(2.0) as usize;
    plan.duration =
        flags.parsed('d', |text| parse_duration(text).ok())?.unwrap_or(Duration::from_secs(10));
    plan.timeout =
        flags.parsed('T', |text| parse_duration(text).ok())?.unwrap_or(Duration::from_secs(2));
    headers(&flags, &mut only_step(&mut plan).request)?;
    let summary = Run::start(plan)?.finish()?;
    show(&report::wrk(&summary, flags.has('L')));
    Ok(warnings(&summary))
}

/// wrk's numbers: `10`, `2k`, `1.5M`.
fn metric(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match text[at..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    text[..at].parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_wrk() {
        assert_eq!(
            [metric("10"), metric("2k"), metric("1.5M")],
            [Some(10.0), Some(2e3), Some(1.5e6)]
        );
        assert_eq!(metric("2x"), None);
    }
}
