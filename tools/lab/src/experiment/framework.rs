//! 23 bytes with validators, as on a framework's demonstration page: by a script per request under
//! php-fpm, by a worker script, and by the package's MVC in it.

use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::series::Series;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;

const PATH: &str = "/index.php";

const TITLE: &str = "framework c=100";

const WORKER: &str = "outboard, worker";

const MVC: &str = "outboard, MVC";

/// The allowed cost of routing and a controller beyond the bare handler.
const MVC_LIMIT_US: f64 = 1.5;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "framework", &[])?;
    fixture.add_package()?;
    let root = fixture.writable("empty")?;
    let workers = lab.php_processes();
    let mut launch = |script: &str, name| {
        let setup = Setup::worker(&fixture, script, workers, 1).named(name);
        Outboard::launch(lab, &Setup { root: root.clone(), ..setup })
    };
    let outboards = [launch("worker.php", WORKER)?, launch("mvc.php", MVC)?];
    let fpm = nginx::with_fpm(lab, &fixture.public())?;
    let subjects = outboards.iter().flatten().map(|outboard| &outboard.stack);
    let stacks: Vec<&Stack> = subjects.chain([&fpm]).collect();
    let request = RequestSpec::get(PATH).expecting(check_same_responses(&stacks, PATH)?);
    let seconds = lab.effort.short_slice_seconds();
    let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
    let rounds = interleave(lab, &stacks, load)?;
    report.add_rounds(TITLE, &rounds);
    report.verdicts.extend([added_verdict(&rounds), fpm_verdict(&rounds, fpm.name)]);
    report.verdicts.push(failures_verdict(&rounds));
    Ok(())
}

fn added_verdict(rounds: &Rounds) -> Verdict {
    let target = format!("{TITLE}: the MVC adds ≤ {MVC_LIMIT_US} µs CPU per request to the worker");
    let (Some(mvc), Some(worker)) = (rounds.of(MVC), rounds.of(WORKER)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    let pairs = mvc.cpu_us().into_iter().zip(worker.cpu_us());
    let added: Vec<f64> = pairs.map(|(mvc, worker)| mvc - worker).collect();
    Verdict::at_most(&target, MVC_LIMIT_US, &added, "µs")
}

fn fpm_verdict(rounds: &Rounds, fpm: &str) -> Verdict {
    let target = format!("{TITLE}: CPU per request of the MVC ≤ 1/8 of {fpm}'s bare script");
    let (Some(mvc), Some(fpm)) = (rounds.of(MVC), rounds.of(fpm)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    Verdict::ratio(&target, 1.0 / 8.0, paired_ratio(&mvc.cpu_us(), &fpm.cpu_us()))
}

fn failures_verdict(rounds: &Rounds) -> Verdict {
    let target = format!("{TITLE}: 0 failed requests");
    let series: Vec<&Series> = [WORKER, MVC].iter().filter_map(|name| rounds.of(name)).collect();
    if series.is_empty() {
        return Verdict::not_measured(&target, NOT_BUILT);
    }
    let responses: u64 = series.iter().map(|series| series.responses()).sum();
    let failed: u64 = series.iter().map(|series| series.failures().total()).sum();
    let flawless = series.iter().all(|series| series.is_flawless());
    Verdict::exact(&target, flawless, format!("{responses} responses, {failed} failed"))
}
