//! Two bytes from a worker script, against two bytes from nginx itself.
//!
//! Without and with reading the whole request; the latter also in the style of other servers'
//! worker scripts, with superglobals and echo.

use crate::error::Result;
use crate::experiment::quick::connection_counts;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CONNECTION_COUNTS: [usize; 3] = [100, 500, 1_000];

/// The parts of the request that the handlers read.
const HEADERS: [&str; 2] = ["X-Probe: header", "Cookie: probe=cookie"];

/// The allowed CPU relative to nginx's own response.
const LIMIT: f64 = 1.15;

/// The same when the whole request is read.
const GLOBALS_LIMIT: f64 = 1.4;

const GLOBALS: &str = "outboard, $_SERVER";

const HANDLE_REQUEST: &str = "outboard, handle_request";

/// A request takes a worker script less than a µs, so one process per core suffices.
const WORKERS: usize = 1;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let nginx = nginx::with_return(lab)?;
    let mut launch = |script: &str, name| {
        Outboard::launch(lab, &Setup::worker(&fixture, script, WORKERS, 1).named(name))
    };
    let outboards = [
        launch("hello.php", outboard::NAME)?,
        launch("globals.php", GLOBALS)?,
        launch("handle_request.php", HANDLE_REQUEST)?,
    ];
    let subjects = outboards.iter().flatten().map(|outboard| &outboard.stack);
    let stacks: Vec<&Stack> = subjects.chain([&nginx]).collect();
    let request = HEADERS.iter().fold(RequestSpec::get("/"), |request, line| request.header(line));
    let length_bytes = check_same(&stacks, "/", &request)?;
    let request = request.expecting(length_bytes);
    let seconds = lab.effort.slice_seconds;
    for &connections in connection_counts(lab, report, &CONNECTION_COUNTS) {
        let rounds = interleave(lab, &stacks, |stack| {
            generator::load(stack, &request, connections, seconds)
        })?;
        let title = format!("worker hello c={connections}");
        report.add_rounds(&title, &rounds);
        report.verdicts.extend([
            cpu_verdict(&rounds, &title),
            globals_verdict(&rounds, &title),
            failures_verdict(&rounds, &title),
        ]);
    }
    Ok(())
}

fn cpu_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let target = format!("{title}: CPU per request ≤ {LIMIT} × nginx's return");
    named_cpu_verdict(rounds, outboard::NAME, &target, LIMIT)
}

fn globals_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let target = format!("{title}, $_SERVER, header, cookie: ≤ {GLOBALS_LIMIT} × nginx's return");
    named_cpu_verdict(rounds, GLOBALS, &target, GLOBALS_LIMIT)
}

fn named_cpu_verdict(rounds: &Rounds, subject: &str, target: &str, limit: f64) -> Verdict {
    let (Some(subject), Some(nginx)) = (rounds.of(subject), rounds.of(nginx::RETURN)) else {
        return Verdict::not_measured(target, NOT_BUILT);
    };
    Verdict::ratio(target, limit, paired_ratio(&subject.cpu_us(), &nginx.cpu_us()))
}

fn failures_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let target = format!("{title}: 0 failed requests");
    let subjects = [outboard::NAME, GLOBALS, HANDLE_REQUEST];
    let series: Vec<_> = subjects.iter().filter_map(|name| rounds.of(name)).collect();
    if series.is_empty() {
        return Verdict::not_measured(&target, NOT_BUILT);
    }
    let failed: u64 = series.iter().map(|series| series.failures().total()).sum();
    let responses: u64 = series.iter().map(|series| series.responses()).sum();
    let flawless = series.iter().all(|series| series.is_flawless());
    Verdict::exact(&target, flawless, format!("{responses} responses, {failed} failed"))
}
