//! `outboard bench`: measures a server.
//!
//! Reads the arguments, has `outboard_load` do the work, shows how it goes and writes what came of
//! it. Exit codes: 0 done, 1 it could not be run, 2 the operator's mistake, 3 a promise or check
//! was not kept, 5 the result is not to be believed.

mod arguments;

use crate::terminal::Terminal;
use arguments::PlanArguments;
use clap::Args;
use outboard_load::{Error, Plan, Run, Summary, report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// It could not be run.
const FAILED: u8 = 1;
/// The operator's mistake.
const MISTAKE: u8 = 2;
/// A promise or a check was not kept.
const BROKEN: u8 = 3;
/// The result is not to be believed.
const INVALID: u8 = 5;

/// `outboard bench URL`.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// What to measure: http://, https://, http+unix:SOCKET:/path, fcgi://HOST:PORT/script.php.
    url: String,
    #[command(flatten)]
    plan: PlanArguments,
    /// Write the result as JSON.
    #[arg(long, short = 'o', value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Why there is no result, and the exit code.
struct Stop(u8, String);

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Plan(_)) { MISTAKE } else { FAILED };
        Stop(code, error.to_string())
    }
}

pub(crate) fn run(arguments: BenchArguments, terminal: &Terminal) -> ExitCode {
    match bench(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(Stop(code, why)) => terminal.fail(&why, code),
    }
}

fn bench(arguments: &BenchArguments) -> Result<u8, Stop> {
    let plan = arguments.plan.plan(&arguments.url).map_err(|why| Stop(MISTAKE, why))?;
    if let Some(warmup) = arguments.plan.warmup {
        measure(Plan { duration: warmup, requests: None, ..plan.clone() })?;
    }
    let has_checks = plan
        .scripts
        .iter()
        .flat_map(|script| &script.steps)
        .any(|step| step.expect != outboard_load::Expect::default());
    let summary = measure(plan)?;
    print!("{}", report::text(&summary));
    if let Some(path) = &arguments.json {
        write(path, &format!("{:#}\n", report::json(&summary)))?;
    }
    Ok(verdict(&summary, has_checks))
}

fn measure(plan: Plan) -> Result<Summary, Stop> {
    Ok(Run::start(plan)?.finish()?)
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    let failed = |error| Stop(FAILED, format!("cannot write {}: {error}", path.display()));
    std::fs::write(path, text).map_err(failed)
}

/// The exit code that a result deserves.
fn verdict(summary: &Summary, has_checks: bool) -> u8 {
    if !summary.doubts().is_empty() {
        INVALID
    } else if has_checks && summary.failures.total() > 0 {
        BROKEN
    } else {
        0
    }
}
