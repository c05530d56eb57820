//! `outboard bench find`: the highest rate that keeps a promise.
//!
//! A closed loop finds what the server can do at all; below that, open loops of a few seconds
//! halve what lies between a rate that keeps the promise and one that does not.

use super::arguments::PlanArguments;
use super::{BROKEN, INVALID, Stop, outputs};
use crate::terminal::show;
use clap::Args;
use outboard_load::{
    Arrival, Doubt, Load, Plan, Promise, Rate, Run, Search, Summary, parse_duration, report,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Above the closed loop's rate there is nothing to find; a little more, as it is measured too.
const HEADROOM: f64 = 1.05;
/// How often in a row a trial may say nothing before the search is given up.
const UNCLEAR_MAX: u32 = 3;

#[derive(Debug, Args)]
pub(super) struct FindArguments {
    /// What to measure, as for `outboard bench`.
    url: String,
    /// What must hold: p99<50ms, errors<0.1%, cpu<400us. May be given more than once.
    #[arg(long, value_name = "PROMISE", value_parser = Promise::parse, required = true)]
    slo: Vec<Promise>,
    /// How long each rate is tried.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    trial: Duration,
    /// How well the rate must be known: 0.05 is to one part in twenty.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    precision: f64,
    /// Do not look above so many requests a second.
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
            Trial::Kept => search.note(rate, true),
            Trial::Broken => search.note(rate, false),
            Trial::Unclear(doubt) if unclear == UNCLEAR_MAX => {
                show(&format!("\nnot to be believed: {doubt}\n"));
                return Ok(INVALID);
            }
            Trial::Unclear(_) => {
                unclear += 1;
                continue;
            }
        }
        unclear = 0;
    }
    let (kept, broken) = search.bounds();
    if let Some(path) = &arguments.json {
        let found = json!({"schema": "outboard.find.v1", "kept": kept, "not_kept": broken,
                           "trials": Value::Array(trials)});
        outputs::write(path, &format!("{found:#}\n"))?;
    }
    let promises: Vec<String> = arguments.slo.iter().map(ToString::to_string).collect();
    let promises = promises.join(" and ");
    if kept == 0.0 {
        show(&format!("\nno rate keeps {promises}\n"));
        return Ok(BROKEN);
    }
    show(&format!("\n{kept:.0} requests a second keep {promises}; {broken:.0} do not\n"));
    Ok(0)
}

/// What the server does at most, by a closed loop.
fn ceiling(plan: &Plan) -> Result<f64, Stop> {
    let summary = Run::start(plan.clone())?.finish()?;
    show(&format!("closed loop: {:.0} answers a second\n", summary.rate()));
    Ok((summary.rate() * HEADROOM).max(1.0))
}

/// What a trial says of its rate.
enum Trial {
    Kept,
    Broken,
    /// The promise was not kept, but that may be the generator's fault.
    Unclear(Doubt),
}

impl Trial {
    /// The generator's own delay is part of the latencies: what is kept in spite of it is kept.
    fn of(summary: &Summary, promises: &[Promise]) -> Self {
        let doubts = summary.doubts();
        let is_late = |doubt: &Doubt| matches!(doubt, Doubt::ClientLate { .. });
        if doubts.iter().all(is_late) && promises.iter().all(|promise| promise.is_kept(summary)) {
            return Trial::Kept;
        }
        let own = |doubt: &Doubt| {
            is_late(doubt)
                || matches!(doubt, Doubt::ClientBusy { .. } | Doubt::PortsExhausted { .. })
        };
        doubts.into_iter().find(own).map_or(Trial::Broken, Trial::Unclear)
    }

    fn word(&self) -> &'static str {
        match self {
            Trial::Kept => "kept",
            Trial::Broken => "not kept",
            Trial::Unclear(_) => "unclear",
        }
    }
}

fn line(rate: f64, summary: &Summary, promises: &[Promise], trial: &Trial) -> String {
    let found = promises.iter().map(|promise| format!("{promise}: {}", promise.found(summary)));
    let found: Vec<String> = found.collect();
    let sent = summary.rate_ratio() * 100.0;
    let word = trial.word();
    let doubts = summary.doubts();
    let why = doubts.first().map(|doubt| format!(" ({})", doubt.name())).unwrap_or_default();
    format!("{rate:>10.0}/s  {word:<9} {}, {sent:.1} % sent{why}", found.join(", "))
}
