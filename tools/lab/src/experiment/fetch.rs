//! A page that waits for a backend: by the gateway's fetch, and by plain curl in a coroutine.
//!
//! The peer is the same curl in php-fpm with four children, each of which blocks while it waits.
//! The backend responds after 1, 10 or 30 ms; with enough connections a server that does not block
//! has the same rate for all.

use crate::backend::Backend;
use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::series::Series;
use crate::slice::{Rounds, Turns, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const WORKERS: usize = 2;

/// Concurrent requests of one worker: the maximum.
const CONCURRENCY: usize = 1_000;

const CONNECTIONS: usize = 500;

/// So many that 30 ms are no limit: 2,000 / 30 ms is 66,000 requests per second.
const ENOUGH: usize = 2_000;

const FPM_CHILDREN: usize = 4;

/// The fewest pairs whose interval decides a target.
const FEWEST: usize = 5;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let backend = Backend::start()?;
    let address = backend.address().to_string();
    let fixture = Fixture::unpack(lab, "fetch", &[("BACKEND", &address)])?;
    let setup = Setup::worker(&fixture, "worker.php", WORKERS, CONCURRENCY);
    // The directory of php-fpm has the script as a file; the worker's is empty.
    let setup = Setup { root: fixture.writable("empty")?, ..setup };
    let outboard = Outboard::launch(lab, &setup)?;
    let fpm = nginx::with_fpm_children(lab, &fixture.public(), FPM_CHILDREN)?;
    by_fetch(lab, report, outboard.as_ref())?;
    by_curl(lab, report, outboard.as_ref(), &fpm)?;
    whatever_the_latency(lab, report, outboard.as_ref())
}

fn by_fetch(lab: &Lab, report: &mut Report, outboard: Option<&Outboard>) -> Result<()> {
    let targets = ["fetch(), 30 ms, c=500: ≥ 14,000 rps", "fetch(), 30 ms, c=500: CPU ≤ 30 µs"];
    let Some(outboard) = outboard else {
        report.verdicts.extend(targets.map(|target| Verdict::not_measured(target, NOT_BUILT)));
        return Ok(());
    };
    let path = "/fetch?latency=30ms";
    let stacks = [&outboard.stack];
    let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("fetch(), 30 ms, c=500", &rounds);
    let series = &rounds.series[0];
    report.verdicts.push(Verdict::at_least(targets[0], 14_000.0, &series.rates(), "rps"));
    report.verdicts.push(Verdict::at_most(targets[1], 30.0, &series.cpu_us(), "µs"));
    report.verdicts.push(failures_verdict("fetch(), 30 ms, c=500", series));
    Ok(())
}

fn by_curl(lab: &Lab, report: &mut Report, outboard: Option<&Outboard>, fpm: &Stack) -> Result<()> {
    let path = "/curl.php?latency=30ms";
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain([fpm]).collect();
    let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
    let seconds = lab.effort.slice_seconds;
    // The peer needs four seconds for the requests in flight at the end of a slice, so there are
    // few slices in a quick run.
    let slices = if lab.effort.is_quick() { FEWEST } else { lab.effort.slices };
    let turns = Turns { slices, shared: None };
    let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
    let rounds = turns.take(lab, &stacks, load)?;
    report.add_rounds("curl_exec, 30 ms, c=500", &rounds);
    let least = "unmodified curl_exec, 30 ms, c=500: ≥ 8,000 rps";
    let times = "unmodified curl_exec, 30 ms, c=500: ≥ 50 × php-fpm with 4 children";
    let (Some(subject), Some(peer)) = (rounds.of(outboard::NAME), rounds.of(fpm.name)) else {
        let missing = [least, times].map(|target| Verdict::not_measured(target, NOT_BUILT));
        report.verdicts.extend(missing);
        return Ok(());
    };
    report.verdicts.push(Verdict::at_least(least, 8_000.0, &subject.rates(), "rps"));
    let ratio = paired_ratio(&subject.rates(), &peer.rates());
    report.verdicts.push(Verdict::ratio_at_least(times, 50.0, ratio));
    report.verdicts.push(failures_verdict("curl_exec, 30 ms, c=500", subject));
    Ok(())
}

/// The same load on backends of three latencies, in turns.
fn whatever_the_latency(lab: &Lab, report: &mut Report, outboard: Option<&Outboard>) -> Result<()> {
    let target = format!("fetch(), c={ENOUGH}: throughput at 30 ms ≥ 0.9 × at 1 ms");
    let Some(outboard) = outboard else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    let rounds_of = |latency_ms: u64| -> Result<Rounds> {
        let request = RequestSpec::get(&format!("/fetch?latency={latency_ms}ms"));
        let seconds = lab.effort.slice_seconds;
        interleave(lab, &[&outboard.stack], |stack| {
            generator::load(stack, &request, ENOUGH, seconds)
        })
    };
    let mut rates = Vec::new();
    for latency_ms in [1, 10, 30] {
        let rounds = rounds_of(latency_ms)?;
        report.add_rounds(&format!("fetch(), {latency_ms} ms, c={ENOUGH}"), &rounds);
        rates.push(rounds.series[0].rates());
    }
    let ratio = paired_ratio(&rates[2], &rates[0]);
    report.verdicts.push(Verdict::ratio_at_least(&target, 0.9, ratio));
    Ok(())
}

pub(super) fn failures_verdict(title: &str, series: &Series) -> Verdict {
    let failures = series.failures();
    let measured = format!("{} responses, {failures} failed", series.responses());
    Verdict::exact(&format!("{title}: 0 failed requests"), series.is_flawless(), measured)
}
