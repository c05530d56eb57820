//! A million requests of many kinds to worker scripts: memory stays flat, and no state of one
//! request reaches another.
//!
//! One request of eleven leaves behind as much state as a request can, and another one checks for
//! it and returns 500 if it finds any. Workers are not recycled meanwhile.

use crate::backend::Backend;
use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::load::Failures;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;

const WORKERS: usize = 2;

const CONCURRENCY: usize = 64;

/// Requests after which memory is read; the first reading is the reference.
const MARKS: [u64; 3] = [100_000, 500_000, 1_000_000];

/// Growth that counts as flat: about half a byte per request.
const GROWTH_LIMIT_MIB: f64 = 0.5;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let marks = MARKS.map(|mark| mark / lab.effort.shortening);
    let last = marks[marks.len() - 1];
    let memory = format!("{last} mixed requests: growth ≤ {GROWTH_LIMIT_MIB} MiB");
    let state = format!("{last} mixed requests: 0 failed, no state carried over");
    let backend = Backend::start()?;
    let address = backend.address().to_string();
    let fixture = Fixture::unpack(lab, "mixed", &[("BACKEND", &address)])?;
    let setup = Setup::worker(&fixture, "worker.php", WORKERS, CONCURRENCY)
        .with("[app.site.pool]\nmax_requests = 0\n");
    let Some(outboard) = Outboard::launch(lab, &setup)? else {
        report.verdicts.extend([memory, state].map(|b| Verdict::not_measured(&b, NOT_BUILT)));
        return Ok(());
    };
    let task = Task { requests: requests(), ..Task::get(outboard.stack.address, "/", CONNECTIONS) };
    let (mut sent, mut failures, mut pss_mib) = (0, Failures::default(), Vec::new());
    let first_workers = outboard.workers();
    for mark in marks {
        failures += generator::run_count(&task, mark - sent)?.load.failures;
        sent = mark;
        outboard.stack.settle();
        let mib = outboard.stack.group.pss_bytes() as f64 / 1_048_576.0;
        lab.progress(&format!("{mark:>8} requests: {mib:.2} MiB; {failures} failed"));
        pss_mib.push(mib);
    }
    let growth = pss_mib[pss_mib.len() - 1] - pss_mib[0];
    let readings: Vec<String> =
        marks.iter().zip(&pss_mib).map(|(mark, mib)| format!("{mib:.2} MiB at {mark}")).collect();
    let same = outboard.workers() == first_workers;
    let replaced = if same { "" } else { "; workers were replaced meanwhile" };
    let measured = format!("{}{replaced}", readings.join(", "));
    let flat = growth <= GROWTH_LIMIT_MIB && same;
    report.verdicts.push(Verdict::exact(&memory, flat, measured));
    report.verdicts.push(Verdict::exact(
        &state,
        failures.total() == 0,
        format!("{failures} failed"),
    ));
    Ok(())
}

fn requests() -> Vec<RequestSpec> {
    vec![
        RequestSpec::get("/"),
        RequestSpec::get("/json?a=1&b[]=2"),
        RequestSpec::post("/form", "name=somebody&more=1").expecting("somebody".len()),
        RequestSpec::get("/dirty").header("Cookie: session=1"),
        RequestSpec::get("/clean").expecting("clean".len()),
        RequestSpec::get("/server").header("X-Probe: 1"),
        RequestSpec::get("/memory").expecting("262144".len()),
        RequestSpec::get("/fetch").expecting(2_890),
        RequestSpec::get("/sleep").expecting("slept".len()),
        RequestSpec::get("/parallel").expecting("slept,slept,slept".len()),
        RequestSpec::get("/hello?x=1"),
    ]
}
