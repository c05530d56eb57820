//! `outboard bench find`: the highest rate that meets a threshold.
//!
//! A closed loop finds the capacity of the server; below that, open loops of a few seconds bisect
//! between a rate that meets the threshold and one that does not.

use super::arguments::PlanArguments;
use super::outputs;
use super::stop::{INVALID, MISSED, Stop};
use crate::terminal::show;
use clap::Args;
use outboard_load::{
    Arrival, Load, Plan, Rate, Run, Search, Summary, Threshold, Warning, parse_duration, report,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The closed loop's rate is the upper limit, with a margin for its error.
const HEADROOM: f64 = 1.05;
/// The number of consecutive unclear trials after which the search is given up.
const UNCLEAR_MAX: u32 = 3;

#[derive(Debug, Args)]
pub(super) struct FindArguments {
    /// The measurement, as for `outboard bench`.
    url: String,
    /// The threshold: p99<50ms, errors<0.1%, cpu<400us. May be given more than once.
    #[arg(long, value_name = "THRESHOLD", value_parser = Threshold::parse, required = true)]
    slo: Vec<Threshold>,
    /// The duration of each trial.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    trial: Duration,
    /// The relative precision of the rate.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    precision: f64,
    /// The highest rate to try.
    #[arg(long, value_name = "RATE")]
    ceiling: Option<f64>,
    /// Write all trials as JSON.
    #[arg(long, short = 'o', value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    plan: PlanArguments,
}

pub(super) fn run(arguments: &FindArguments) -> Result<u8, Stop> {
    if arguments.plan.rate.is_some() {
        return Err(Stop::mistake("find chooses the rate itself; leave --rate out"));
    }
    if !(0.001..1.0).contains(&arguments.precision) {
        return Err(Stop::mistake("--precision is a share between 0.001 and 1"));
    }
    let mut plan = arguments.plan.plan(&arguments.url).map_err(Stop::mistake)?;
    plan.duration = arguments.trial;
    plan.requests = None;
    let ceiling = match arguments.ceiling {
        Some(ceiling) => ceiling,
        None => ceiling(&plan)?,
    };
    let mut search = Search::below(ceiling, arguments.precision);
    let mut trials = Vec::new();
    let mut unclear = 0;
    while let Some(rate) = search.next_rate() {
        let load = Load::Open { rate: Rate::Fixed(rate), arrival: Arrival::Even, deadline: None };
        let summary = Run::start(Plan { load, ..plan.clone() })?.finish()?;
        let trial = Trial::of(&summary, &arguments.slo);
        show(&format!("{}\n", line(rate, &summary, &arguments.slo, &trial)));
        trials.push(json!({"rate": rate, "trial": trial.word(), "result": report::json(&summary)}));
        match trial {
            Trial::Met => search.record(rate, true),
            Trial::Missed => search.record(rate, false),
            Trial::Unclear(warning) if unclear == UNCLEAR_MAX => {
                show(&format!("\nnot reliable: {warning}\n"));
                return Ok(INVALID);
            }
            Trial::Unclear(_) => {
                unclear += 1;
                continue;
            }
        }
        unclear = 0;
    }
    let (met, missed) = search.bounds();
    if let Some(path) = &arguments.json {
        let found = json!({"schema": "outboard.find.v1", "met": met, "missed": missed,
                           "trials": Value::Array(trials)});
        outputs::write(path, &format!("{found:#}\n"))?;
    }
    let thresholds: Vec<String> = arguments.slo.iter().map(ToString::to_string).collect();
    let thresholds = thresholds.join(" and ");
    if met == 0.0 {
        show(&format!("\nno rate meets {thresholds}\n"));
        return Ok(MISSED);
    }
    show(&format!("\n{met:.0} requests per second meet {thresholds}; {missed:.0} do not\n"));
    Ok(0)
}

/// The capacity of the server, by a closed loop.
fn ceiling(plan: &Plan) -> Result<f64, Stop> {
    let summary = Run::start(plan.clone())?.finish()?;
    show(&format!("closed loop: {:.0} responses per second\n", summary.rate()));
    Ok((summary.rate() * HEADROOM).max(1.0))
}

/// The outcome of a trial.
enum Trial {
    Met,
    Missed,
    /// The threshold was missed, possibly by the generator's fault.
    Unclear(Warning),
}

impl Trial {
    /// The generator's own delay is part of the latencies, so a threshold that is met is met in
    /// spite of it.
    fn of(summary: &Summary, thresholds: &[Threshold]) -> Self {
        let warnings = summary.warnings();
        let is_late = |warning: &Warning| matches!(warning, Warning::ClientLate { .. });
        if warnings.iter().all(is_late)
            && thresholds.iter().all(|threshold| threshold.is_met(summary))
        {
            return Trial::Met;
        }
        let own = |warning: &Warning| {
            is_late(warning)
                || matches!(warning, Warning::ClientBusy { .. } | Warning::PortsExhausted { .. })
        };
        warnings.into_iter().find(own).map_or(Trial::Missed, Trial::Unclear)
    }

    fn word(&self) -> &'static str {
        match self {
            Trial::Met => "met",
            Trial::Missed => "missed",
            Trial::Unclear(_) => "unclear",
        }
    }
}

fn line(rate: f64, summary: &Summary, thresholds: &[Threshold], trial: &Trial) -> String {
    let found =
        thresholds.iter().map(|threshold| format!("{threshold}: {}", threshold.measured(summary)));
    let found: Vec<String> = found.collect();
    let sent = summary.rate_ratio() * 100.0;
    let word = trial.word();
    let warnings = summary.warnings();
    let why = warnings.first().map(|warning| format!(" ({})", warning.name())).unwrap_or_default();
    format!("{rate:>10.0}/s  {word:<9} {}, {sent:.1} % sent{why}", found.join(", "))
}
