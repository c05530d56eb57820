//! `outboard bench`: measures a server.
//!
//! Reads the arguments, has `outboard_load` do the work, shows how it goes and writes what came of
//! it. Exit codes: 0 done, 1 it could not be run, 2 the operator's mistake, 3 a promise or check
//! was not kept, 5 the result is not to be believed, 130 it was interrupted and is that of a part.

mod arguments;
mod diff;
mod find;
mod live;
mod null;
mod old_flags;
mod old_tools;
mod outputs;

use crate::terminal::{Terminal, show};
use arguments::PlanArguments;
use clap::{Args, Subcommand};
use live::Live;
use outboard_load::{Error, Expect, Plan, Promise, Run, Summary};
use outputs::Outputs;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// It could not be run.
const FAILED: u8 = 1;
/// The operator's mistake.
const MISTAKE: u8 = 2;
/// A promise or a check was not kept.
const BROKEN: u8 = 3;
/// The result is not to be believed.
const INVALID: u8 = 5;
/// Ctrl-C ended it: 128 and the number of the signal, as shells say it.
const INTERRUPTED: u8 = 130;

/// `outboard bench`.
///
/// Exit codes: 0 done, 1 it could not be run, 2 a mistake in the arguments, 3 a promise (--slo) or
/// check was not kept, 5 the result is not to be believed, and why, 130 it was interrupted: the
/// result is that of the part that there was.
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
    /// What to measure: http://HOST/PATH, http+unix:SOCKET:/PATH, https://,
    /// fcgi://HOST:PORT/srv/www/index.php or fcgi+unix:SOCKET:/srv/www/index.php.
    #[arg(required = true)]
    url: Option<String>,
    #[command(flatten)]
    plan: PlanArguments,
    /// What must hold: p99<50ms, mean<5ms, errors<0.1%, rate>1000, cpu<400us. May be given more
    /// than once.
    #[arg(long, value_name = "PROMISE", value_parser = Promise::parse)]
    slo: Vec<Promise>,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Debug, Subcommand)]
enum Special {
    /// Find the highest rate that keeps a promise.
    Find(Box<find::FindArguments>),
    /// Hold one result against another, both written with --json.
    ///
    /// Exit code 5 if one of them is not to be believed.
    Diff(diff::DiffArguments),
    /// Measure the generator itself, against a server that costs next to nothing.
    Null(null::NullArguments),
    /// Take the flags of ab, print its report.
    #[command(disable_help_flag = true)]
    Ab(OldArguments),
    /// Take the flags of wrk, print its report.
    #[command(disable_help_flag = true)]
    Wrk(OldArguments),
    /// Take the flags of wrk2, print its report.
    #[command(disable_help_flag = true)]
    Wrk2(OldArguments),
    /// Take the flags of webbench, print its report.
    #[command(disable_help_flag = true)]
    Webbench(OldArguments),
}

#[derive(Debug, Args)]
struct OldArguments {
    /// As the old tool takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<String>,
}

/// Why there is no result, and the exit code.
struct Stop(u8, String);

impl Stop {
    fn mistake(why: impl ToString) -> Self {
        Stop(MISTAKE, why.to_string())
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Plan(_)) { MISTAKE } else { FAILED };
        Stop(code, error.to_string())
    }
}

pub(crate) fn run(arguments: BenchArguments, terminal: &Terminal) -> ExitCode {
    let outcome = match arguments.special {
        None => bench(&arguments.request, terminal),
        Some(Special::Find(arguments)) => find::run(&arguments),
        Some(Special::Diff(arguments)) => diff::run(&arguments),
        Some(Special::Null(arguments)) => null::run(&arguments),
        Some(Special::Ab(arguments)) => old_tools::ab(&arguments.words),
        Some(Special::Wrk(arguments)) => old_tools::wrk(&arguments.words, false),
        Some(Special::Wrk2(arguments)) => old_tools::wrk(&arguments.words, true),
        Some(Special::Webbench(arguments)) => old_tools::webbench(&arguments.words),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(Stop(code, why)) => terminal.fail(&why, code),
    }
}

fn bench(arguments: &RequestArguments, terminal: &Terminal) -> Result<u8, Stop> {
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
    while let Some(moment) = run.next_moment()? {
        series.write(&moment)?;
        live.show(&moment);
    }
    live.end();
    let summary = run.finish()?;
    arguments.outputs.write(&summary, terminal)?;
    let broken: Vec<&Promise> = arguments.slo.iter().filter(|slo| !slo.is_kept(&summary)).collect();
    for slo in &broken {
        show(&format!("\n  not kept: {slo}, measured {}\n", slo.found(&summary)));
    }
    Ok(verdict(&summary, has_checks, !broken.is_empty()))
}

/// A flag that the first Ctrl-C sets; the second ends the program.
fn stop_at_interrupt() -> Result<Arc<AtomicBool>, Stop> {
    let stop = Arc::new(AtomicBool::new(false));
    let cannot = |error| Stop(FAILED, format!("no handler for Ctrl-C: {error}"));
    flag::register_conditional_default(SIGINT, stop.clone()).map_err(cannot)?;
    flag::register(SIGINT, stop.clone()).map_err(cannot)?;
    Ok(stop)
}

/// Whether the operator said what a good answer is.
fn has_checks(plan: &Plan) -> bool {
    let mut steps = plan.scripts.iter().flat_map(|script| &script.steps);
    steps.any(|step| step.expect != Expect::default())
}

/// The exit code that a result deserves. A wrong answer is one however it was measured; whether a
/// promise was kept is known from a sound measurement only.
fn verdict(summary: &Summary, has_checks: bool, is_broken: bool) -> u8 {
    if summary.is_partial {
        INTERRUPTED
    } else if has_checks && summary.failures.total() > 0 {
        BROKEN
    } else if !summary.doubts().is_empty() {
        INVALID
    } else if is_broken {
        BROKEN
    } else {
        0
    }
}
