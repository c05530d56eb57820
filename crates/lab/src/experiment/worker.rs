//! Two bytes from a resident script, against the two bytes that nginx says by itself.
//!
//! As they are, and after a look at the whole request; the second also in the manner of worker
//! scripts for other servers, with superglobals and echo.

use crate::ask::Ask;
use crate::error::Result;
use crate::experiment::{NOT_BUILT, crowds};
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, Outboard, Setup};
use crate::report::Report;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CROWDS: [usize; 3] = [100, 500, 1_000];

/// What the handlers look at.
const HEADERS: [&str; 2] = ["X-Probe: header", "Cookie: probe=cookie"];

/// More CPU than nginx that a full look at the request may cost.
const GLOBALS_LIMIT: f64 = 1.3;

const GLOBALS: &str = "outboard, $_SERVER";

const HANDLE_REQUEST: &str = "outboard, handle_request";

/// Resident scripts: a request takes them less than a µs, so one process is enough for a core.
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
    let ask = HEADERS.iter().fold(Ask::get("/"), |ask, line| ask.header(line));
    let length_bytes = check_same(&stacks, "/", &ask)?;
    let ask = ask.expecting(length_bytes);
    let seconds = lab.effort.slice_seconds;
    for &connections in crowds(lab, report, &CROWDS) {
        let rounds =
            interleave(lab, &stacks, |stack| generator::load(stack, &ask, connections, seconds))?;
        let title = format!("worker hello c={connections}");
        report.add_rounds(&title, &rounds);
        report.verdicts.extend([
            cpu_verdict(&rounds, &format!("{title}: CPU per request ≤ nginx's return"), 1.0),
            globals_verdict(&rounds, &title),
            failures_verdict(&rounds, &title),
        ]);
    }
    Ok(())
}

fn cpu_verdict(rounds: &Rounds, bar: &str, limit: f64) -> Verdict {
    named_cpu_verdict(rounds, outboard::NAME, bar, limit)
}

fn globals_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let bar = format!("{title}, $_SERVER, header, cookie: ≤ {GLOBALS_LIMIT} × nginx's return");
    named_cpu_verdict(rounds, GLOBALS, &bar, GLOBALS_LIMIT)
}

fn named_cpu_verdict(rounds: &Rounds, subject: &str, bar: &str, limit: f64) -> Verdict {
    let (Some(subject), Some(nginx)) = (rounds.of(subject), rounds.of("nginx-return")) else {
        return Verdict::not_measured(bar, NOT_BUILT);
    };
    Verdict::ratio(bar, limit, paired_ratio(&subject.cpu_us(), &nginx.cpu_us()))
}

fn failures_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let bar = format!("{title}: 0 failed requests");
    let subjects = [outboard::NAME, GLOBALS, HANDLE_REQUEST];
    let series: Vec<_> = subjects.iter().filter_map(|name| rounds.of(name)).collect();
    if series.is_empty() {
        return Verdict::not_measured(&bar, NOT_BUILT);
    }
    let failed: u64 = series.iter().map(|series| series.failures().total()).sum();
    let answers: u64 = series.iter().map(|series| series.answers()).sum();
    let flawless = series.iter().all(|series| series.is_flawless());
    Verdict::exact(&bar, flawless, format!("{answers} answers, {failed} failed"))
}
