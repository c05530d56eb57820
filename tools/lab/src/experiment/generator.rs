//! The load generator of all measurements, against wrk and h2load: its cost per request, its
//! punctuality, and whether all of them measure the same.
//!
//! In the rows of closed loops, the CPU per request is the generator's and not the server's, since
//! the generators are compared.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::Backend;
use crate::error::Result;
use crate::generator::{self, Task};
use crate::h2load::{self, H2load};
use crate::lab::Lab;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::series::{Series, Slice};
use crate::slice::{Rounds, Turns, measure};
use crate::stack::Stack;
use crate::statistics::{Estimate, paired_ratio};
use crate::verdict::{Outcome, Verdict};
use crate::wrk::{self, Wrk};
use crate::{nginx, null};

const CONNECTIONS: usize = 64;

/// The allowed CPU per request relative to wrk's.
const COST: f64 = 1.15;

/// The rate at which punctuality is measured, per second.
const RATE: f64 = 15_000.0;

/// The allowed difference of two generators' measurements of one server.
const AGREEMENT: f64 = 0.02;

/// The limit of additional pairs, as a multiple of the usual number.
const PATIENCE: usize = 4;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let (null, nginx) = (null::server(lab)?, nginx::with_return(lab)?);
    match Wrk::find(lab) {
        Ok(wrk) => {
            cost(lab, report, &wrk, &null)?;
            cost(lab, report, &wrk, &nginx)?;
            agreement(lab, report, &wrk)?;
        }
        Err(error) => missing(report, "generator: against wrk", &error.to_string()),
    }
    match H2load::find() {
        Ok(h2load) => punctuality(lab, report, &h2load, &nginx),
        Err(error) => {
            missing(report, "generator: against h2load", &error.to_string());
            Ok(())
        }
    }
}

fn missing(report: &mut Report, target: &str, why: &str) {
    report.verdicts.push(Verdict::not_measured(target, why));
}

/// CPU of both generators for a request to the same server.
fn cost(lab: &Lab, report: &mut Report, wrk: &Wrk, stack: &Stack) -> Result<()> {
    let title = format!("the generators' own CPU: {} c={CONNECTIONS}", stack.name);
    let seconds = lab.effort.slice_seconds;
    let request = RequestSpec::get("/");
    let names = [generator::NAME, wrk::NAME];
    let take = |index: usize| {
        let slice = measure(lab, stack, None, |stack| match index {
            0 => generator::load(stack, &request, CONNECTIONS, seconds),
            _ => wrk.run(stack.address, "/", CONNECTIONS, seconds),
        })?;
        Ok(as_the_generators(names[index], slice))
    };
    let target = format!("generator: CPU per request on {} ≤ {COST} × wrk's", stack.name);
    until_decided(lab, report, &title, names, take, |rounds| {
        vec![Verdict::ratio(&target, COST, ratio(rounds, Series::cpu_us))]
    })
}

/// The slice with the generator's CPU in place of the server's.
fn as_the_generators(name: &str, slice: Slice) -> Slice {
    let cpu_us = slice.load.client_us;
    let by_process_us = BTreeMap::from([(name.to_owned(), cpu_us)]);
    Slice { cpu_us, shared_us: slice.cpu_us, by_process_us, pss_bytes: 0, ..slice }
}

/// If the server's latency dominates, all generators must find the same. Slices are long compared
/// with the first responses: wrk's first second starts before it has connected.
fn agreement(lab: &Lab, report: &mut Report, wrk: &Wrk) -> Result<()> {
    let backend = Backend::start()?;
    let (path, seconds) = ("/10ms", lab.effort.slice_seconds.max(2.0));
    let task = Task::get(backend.address(), path, CONNECTIONS);
    let take = |index| {
        let load = match index {
            0 => generator::run_for(&task, Duration::from_secs_f64(seconds))?.load,
            _ => wrk.run(backend.address(), path, CONNECTIONS, seconds)?,
        };
        Ok(Slice { load, ..Slice::default() })
    };
    let turns = Turns { slices: lab.effort.slices, shared: None };
    let rounds = turns.among(lab, &[generator::NAME, wrk::NAME], take)?;
    report.add_rows(&format!("a server of 10 ms c={CONNECTIONS}"), &rounds);
    let what = "generator: a server of 10 ms:";
    let p50 = |series: &Series| series.values(|slice| slice.load.latency.p50_us);
    report.verdicts.extend([
        agrees(&rounds, &format!("{what} rate as wrk's ± 2 %"), Series::rates),
        agrees(&rounds, &format!("{what} p50 as wrk's ± 2 %"), p50),
    ]);
    Ok(())
}

/// At a fixed rate: the share of the schedule that is sent, the delay, and whether h2load gets the
/// same rate of responses. It sends in bursts, so the server's CPU and latency cannot be compared.
fn punctuality(lab: &Lab, report: &mut Report, h2load: &H2load, nginx: &Stack) -> Result<()> {
    // h2load takes whole seconds only.
    let seconds = lab.effort.slice_seconds.ceil() as u64;
    let request = RequestSpec::get("/");
    let take = |index| {
        measure(lab, nginx, None, |stack| match index {
            0 => generator::load_at(stack, &request, CONNECTIONS, seconds as f64, RATE),
            _ => h2load.run(stack.address, "/", CONNECTIONS, seconds, RATE),
        })
    };
    let title = format!("{RATE}/s on {} c={CONNECTIONS}", nginx.name);
    until_decided(lab, report, &title, [generator::NAME, h2load::NAME], take, |rounds| {
        let own = &rounds.series[0];
        let off = |rate: &f64| (rate / RATE - 1.0).abs() * 100.0;
        let off_percent: Vec<f64> = own.rates().iter().map(off).collect();
        let late_ms = own.values(|slice| slice.load.late_p99_us.unwrap_or(f64::NAN) / 1e3);
        let what = format!("generator: {RATE}/s c={CONNECTIONS}:");
        let [rate, late, same] =
            ["achieved rate within 0.5 %", "pacing error p99 < 1 ms", "rate as h2load's ± 2 %"]
                .map(|target| format!("{what} {target}"));
        vec![
            Verdict::at_most(&rate, 0.5, &off_percent, "% off"),
            Verdict::at_most(&late, 1.0, &late_ms, "ms"),
            agrees(rounds, &same, Series::rates),
        ]
    })
}

/// Takes the usual number of pairs, and as many again while a target is undecided, up to a limit.
/// Adds rows and verdicts.
fn until_decided(
    lab: &Lab,
    report: &mut Report,
    title: &str,
    names: [&str; 2],
    mut take: impl FnMut(usize) -> Result<Slice>,
    judge: impl Fn(&Rounds) -> Vec<Verdict>,
) -> Result<()> {
    let turns = Turns { slices: lab.effort.slices, shared: None };
    let mut rounds = Rounds::default();
    loop {
        rounds.extend(turns.among(lab, &names, &mut take)?);
        let verdicts = judge(&rounds);
        let is_open = verdicts.iter().any(|verdict| verdict.outcome == Outcome::Undecided);
        if !is_open || rounds.pairs() >= PATIENCE * turns.slices {
            report.add_rows(title, &rounds);
            report.verdicts.extend(verdicts);
            return Ok(());
        }
    }
}

fn agrees(rounds: &Rounds, target: &str, values: impl Fn(&Series) -> Vec<f64>) -> Verdict {
    Verdict::agreement(target, AGREEMENT, ratio(rounds, values))
}

fn ratio(rounds: &Rounds, values: impl Fn(&Series) -> Vec<f64>) -> Option<Estimate> {
    paired_ratio(&values(&rounds.series[0]), &values(&rounds.series[1]))
}
