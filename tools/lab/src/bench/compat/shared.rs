//! What both tools have in common: the usage, the plan of one request, its fields and the exit code.
//!
//! Called by the file of each tool.

use super::getopt::GetoptArgs;
use crate::bench::stop::{INVALID, Stop};
use crate::terminal::show;
use outboard_load::{Plan, Request, Step, Summary, Target, Template};
use std::time::Duration;

const USAGE: &str = "The flags are those of the old tool, and the report has its layout:

  outboard bench ab [-n REQUESTS] [-c CONCURRENCY] [-t SECONDS] [-k] [-H HEADER] [-C COOKIE]
                    [-A USER:PASSWORD] [-p|-u BODY_FILE] [-T TYPE] [-m METHOD] [-i] [-l]
                    [-s TIMEOUT] [-e CSV_FILE] [-g GNUPLOT_FILE] URL
  outboard bench wrk [-c CONNECTIONS] [-d DURATION] [-t THREADS] [-H HEADER] [--latency]
                     [--timeout TIME] URL
";

/// Prints the usage if it was requested, and says so.
pub(super) fn helps(words: &[String]) -> bool {
    let is_asked = words.is_empty() || words.iter().any(|word| word == "--help" || word == "-h");
    if is_asked {
        show(USAGE);
    }
    is_asked
}

pub(super) fn plan(url: &str) -> Result<Plan, Stop> {
    let url = if url.contains(':') { url.to_owned() } else { format!("http://{url}") };
    let target = Target::parse(&url).map_err(Stop::mistake)?;
    // These tools check no certificates.
    Ok(Plan { verify_tls: false, ..Plan::new(target) })
}

/// The step of a plan of one request.
pub(super) fn only_step(plan: &mut Plan) -> &mut Step {
    let script = plan.scripts.first_mut().expect("a new plan has one script");
    script.steps.first_mut().expect("a new plan has one step")
}

pub(super) fn headers(flags: &GetoptArgs, request: &mut Request) -> Result<(), Stop> {
    for line in flags.all('H') {
        let (name, value) =
            line.split_once(':').ok_or_else(|| Stop::mistake(format!("-H {line}: no colon")))?;
        header(request, name.trim(), value.trim());
    }
    Ok(())
}

pub(super) fn header(request: &mut Request, name: &str, value: &str) {
    request.headers.push((name.to_owned(), Template::literal(value)));
}

/// Prints the warnings and returns the exit code.
pub(super) fn warnings(summary: &Summary) -> u8 {
    let warnings = summary.warnings();
    warnings.iter().for_each(|warning| eprintln!("not reliable: {warning}"));
    if warnings.is_empty() { 0 } else { INVALID }
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

pub(super) fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse::<u64>().ok().filter(|&seconds| seconds > 0);
    seconds.map(Duration::from_secs)
}
