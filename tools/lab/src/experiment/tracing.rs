//! What traces cost a request that is not exported: a worker hello without traces, with a sample of 1 %, and with
//! the default, which also holds the spans of each request until it is known whether it failed or was slow.
//!
//! The difference is small, so there are more slices than elsewhere, and instructions where valgrind counts them.

use crate::callgrind::Callgrind;
use crate::collector::Collector;
use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::generator;
use crate::instructions::{CountedLoad, per_request};
use crate::lab::Lab;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Rounds, Turns};
use crate::stack::{Stack, check_same};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;

const SAMPLED: &str = "outboard, 1 % of traces";
const HELD: &str = "outboard, 1 % and failed and slow";

/// The settings of each beside the endpoint.
const SETTINGS: [(&str, &str); 2] =
    [(SAMPLED, "sample = \"1%\"\nerrors = false\nslow = \"0\"\n"), (HELD, "sample = \"1%\"\n")];

/// The CPU relative to the same server without traces.
const LIMIT: f64 = 1.02;

/// An effect of one part in a hundred needs so many times the usual slices.
const SLICES: usize = 4;

/// The requests that are counted; valgrind takes fifty times as long as the processor.
const COUNTED: u64 = 5_000;

/// A request takes a worker script less than a µs.
const WORKERS: usize = 1;

const TITLE: &str = "traces of a worker hello c=100";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let collector = Collector::start()?;
    let setups: Vec<Setup> = setups(&fixture, &collector).collect();
    let started = setups.iter().map(|setup| Outboard::launch(lab, setup));
    let outboards = started.collect::<Result<Vec<_>>>()?;
    let stacks: Vec<&Stack> = outboards.iter().flatten().map(|outboard| &outboard.stack).collect();
    if stacks.is_empty() {
        report.verdicts.push(Verdict::not_measured(&target(SAMPLED), NOT_BUILT));
        return Ok(());
    }
    let request = RequestSpec::get("/");
    let request = request.clone().expecting(check_same(&stacks, "/", &request)?);
    let seconds = lab.effort.slice_seconds;
    let turns = Turns { slices: lab.effort.slices * SLICES, shared: None };
    let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
    let rounds = turns.take(lab, &stacks, load)?;
    report.add_rounds(TITLE, &rounds);
    report.verdicts.extend(SETTINGS.map(|(subject, _)| verdict(&rounds, subject)));
    if collector.received_bytes() == 0 {
        let what = "no span has reached the collector".into();
        return Err(Error::Unexpected { who: "outboard".into(), what });
    }
    drop(outboards);
    if let Err(error) = count(lab, report, &setups, &request) {
        report.notes.push(format!("tracing: instructions per request: {error}"));
    }
    Ok(())
}

/// Without traces, and with each of the settings.
fn setups(fixture: &Fixture, collector: &Collector) -> impl Iterator<Item = Setup> {
    let without = Setup::worker(fixture, "hello.php", WORKERS, 1);
    let with = SETTINGS.map(|(name, settings)| Setup {
        server: format!("[tracing]\nendpoint = \"{}\"\n{settings}", collector.url()),
        ..Setup::worker(fixture, "hello.php", WORKERS, 1).named(name)
    });
    std::iter::once(without).chain(with)
}

fn target(subject: &str) -> String {
    let settings = subject.trim_start_matches("outboard, ");
    format!("{TITLE}, {settings}: CPU per request ≤ {LIMIT} × without")
}

fn verdict(rounds: &Rounds, subject: &str) -> Verdict {
    let target = target(subject);
    let (Some(with), Some(without)) = (rounds.of(subject), rounds.of(outboard::NAME)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    Verdict::ratio(&target, LIMIT, paired_ratio(&with.cpu_us(), &without.cpu_us()))
}

/// The instructions of the gateway alone.
fn count(
    lab: &mut Lab,
    report: &mut Report,
    setups: &[Setup],
    request: &RequestSpec,
) -> Result<()> {
    let callgrind = Callgrind::new(lab.directory("callgrind")?)?;
    callgrind.check()?;
    let requests = COUNTED / lab.effort.shortening;
    let load = CountedLoad { connections: CONNECTIONS, requests };
    for setup in setups {
        lab.progress(&format!("instructions: {}", setup.name));
        let instructions = per_request(lab, &callgrind, request, load, |lab| {
            Ok(Outboard::launch(lab, setup)?.expect("there is a binary").stack)
        })?;
        report.add_instructions(TITLE, setup.name, instructions);
    }
    Ok(())
}
