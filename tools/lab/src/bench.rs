//! `outboard-lab bench`, which `outboard bench` executes: measures a server.
//!
//! Parses the arguments, runs the plan with `outboard_load`, shows its progress and writes the
//! result. Exit codes: 0 done, 1 the run failed, 2 a mistake in the arguments, 3 a threshold or a
//! check was missed, 5 the result is not reliable, 130 interrupted.

mod arguments;
mod compat;
mod diff;
mod find;
mod live;
mod null;
mod outputs;
mod stop;

use crate::terminal::{Terminal, fail, show};
use arguments::PlanArguments;
use clap::{Args, Subcommand};
use live::Live;
use outboard_load::{Expect, Plan, Run, Summary, Threshold};
use outputs::Outputs;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stop::{FAILED, INTERRUPTED, INVALID, MISSED, Stop};

/// `outboard bench`.
///
/// Exit codes: 0 done, 1 the run failed, 2 a mistake in the arguments, 3 a threshold (--slo) or
/// check was missed, 5 the result is not reliable (the reason is printed), 130 interrupted: the
/// result covers the time until then.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    special: Option<Special>,
    #[command(flatten)]
    request: RequestArguments,
}

#[derive(Debug, Args)]
struct RequestArguments {
    /// The target: http://HOST/PATH, http+unix:SOCKET:/PATH, https://,
    /// fcgi://HOST:PORT/srv/www/index.php or fcgi+unix:SOCKET:/srv/www/index.php.
    #[arg(required = true)]
    url: Option<String>,
    #[command(flatten)]
    plan: PlanArguments,
    /// A threshold for the result: p99<50ms, mean<5ms, errors<0.1%, rate>1000, cpu<400us. May be
    /// given more than once.
    #[arg(long, value_name = "THRESHOLD", value_parser = Threshold::parse)]
    slo: Vec<Threshold>,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Debug, Subcommand)]
enum Special {
    /// Find the highest rate that meets a threshold.
    Find(Box<find::FindArguments>),
    /// Compare two results that were written with --json.
    ///
    /// Exit code 5 if one of them is not reliable.
    Diff(diff::DiffArguments),
    /// Measure the generator itself, against a server with almost no cost.
    Null(null::NullArguments),
    /// Take the flags of ab and print its report.
    #[command(disable_help_flag = true)]
    Ab(CompatArguments),
    /// Take the flags of wrk and print its report.
    #[command(disable_help_flag = true)]
    Wrk(CompatArguments),
}

#[derive(Debug, Args)]
struct CompatArguments {
    /// The arguments of the original tool.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<String>,
}

pub(crate) fn run(arguments: BenchArguments, terminal: Terminal) -> ExitCode {
    let outcome = match arguments.special {
        None => bench(&arguments.request, terminal),
        Some(Special::Find(arguments)) => find::run(&arguments),
        Some(Special::Diff(arguments)) => diff::run(&arguments),
        Some(Special::Null(arguments)) => null::run(&arguments),
        Some(Special::Ab(arguments)) => compat::ab(&arguments.words),
        Some(Special::Wrk(arguments)) => compat::wrk(&arguments.words),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(Stop(code, why)) => fail(&why, code),
    }
}

fn bench(arguments: &RequestArguments, terminal: Terminal) -> Result<u8, Stop> {
    let url = arguments.url.as_deref().ok_or_else(|| Stop::mistake("the URL is missing"))?;
    let plan = arguments.plan.plan(url).map_err(Stop::mistake)?;
    if let Some(warmup) = arguments.plan.warmup {
        Run::start(Plan { duration: warmup, requests: None, ..plan.clone() })?.finish()?;
    }
    let has_checks = has_checks(&plan);
    let stop = stop_at_interrupt()?;
    let mut series = arguments.outputs.open_series()?;
    let mut live = Live::new(&plan, arguments.outputs.quiet);
    let mut run = Run::start_until(plan, stop)?;
    while let Some(interval) = run.next_interval()? {
        series.write(&interval)?;
        live.show(&interval);
    }
    live.end();
    let summary = run.finish()?;
    arguments.outputs.write(&summary, terminal)?;
    let missed: Vec<&Threshold> =
        arguments.slo.iter().filter(|slo| !slo.is_met(&summary)).collect();
    for slo in &missed {
        show(&format!("\n  threshold missed: {slo}, measured {}\n", slo.measured(&summary)));
    }
    Ok(verdict(&summary, has_checks, !missed.is_empty()))
}

/// A flag that the first Ctrl-C sets; the second Ctrl-C ends the program.
fn stop_at_interrupt() -> Result<Arc<AtomicBool>, Stop> {
    let stop = Arc::new(AtomicBool::new(false));
    let cannot = |error| Stop(FAILED, format!("no handler for Ctrl-C: {error}"));
    flag::register_conditional_default(SIGINT, stop.clone()).map_err(cannot)?;
    flag::register(SIGINT, stop.clone()).map_err(cannot)?;
    Ok(stop)
}

/// Whether the user defined what a good response is.
fn has_checks(plan: &Plan) -> bool {
    let mut steps = plan.scripts.iter().flat_map(|script| &script.steps);
    steps.any(|step| step.expect != Expect::default())
}

/// The exit code of a result. A wrong response counts in any case; thresholds are decided by
/// reliable results only.
fn verdict(summary: &Summary, has_checks: bool, has_missed: bool) -> u8 {
    if summary.is_partial {
        INTERRUPTED
    } else if has_checks && summary.failures.total() > 0 {
        MISSED
    } else if !summary.warnings().is_empty() {
        INVALID
    } else if has_missed {
        MISSED
    } else {
        0
    }
}
