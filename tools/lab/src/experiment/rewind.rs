//! Isolation by rewind: what it costs beyond isolation by reset, and what a framework's page costs.
//!
//! The smallest script, processes of 30 and 80 MB that write to 200 and 1,000 pages, a Symfony
//! application in every mode of outboard and under php-fpm, and a Laravel application in classic mode.

use crate::error::Result;
use crate::experiment::fetch::failures_verdict;
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

const CONNECTIONS: usize = 10;

const CLASSIC: &str = "outboard, classic";
const RESET: &str = "outboard, reset";
const FORK: &str = "outboard, fork";
const REWIND: &str = "outboard, rewind";
const SNAPSHOT: &str = "outboard, snapshot";

/// Of the Laravel application, which accepts any id of a session.
const VISITOR: &str = "Cookie: packing_list=0123456789abcdefghijABCDEFGHIJ0123456789";

/// A process whose requests write to some of its pages, and what a rewind may cost.
struct Process {
    name: &'static str,
    /// Strings that the script holds, in MiB; the engine's own memory comes on top.
    kept_mib: &'static str,
    pages: &'static str,
    limit_us: f64,
}

const PROCESSES: [Process; 2] = [
    Process { name: "30 MB, 200 pages", kept_mib: "22", pages: "200", limit_us: 150.0 },
    Process { name: "80 MB, 1,000 pages", kept_mib: "72", pages: "1000", limit_us: 600.0 },
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let worker = Fixture::unpack(lab, "worker", &[])?;
    against_reset(lab, report, &worker, "hello.php", ("hello", 60.0))?;
    for process in &PROCESSES {
        let variables = [("MIB", process.kept_mib), ("PAGES", process.pages)];
        let fixture = Fixture::unpack(lab, "rewind", &variables)?;
        against_reset(lab, report, &fixture, "large.php", (process.name, process.limit_us))?;
    }
    symfony(lab, report)?;
    laravel(lab, report)
}

/// The CPU of a request beyond that of the same script with isolation by reset.
fn against_reset(
    lab: &mut Lab,
    report: &mut Report,
    fixture: &Fixture,
    script: &str,
    (name, limit_us): (&str, f64),
) -> Result<()> {
    let target = format!("{name}: a rewind costs ≤ {limit_us} µs CPU beyond a reset");
    let workers = lab.php_processes();
    let root = fixture.writable("empty")?;
    let setups = [
        Setup::worker(fixture, script, workers, 1).named(RESET).rooted(&root),
        Setup::rewind(fixture, script, workers).named(REWIND).rooted(&root),
    ];
    let outboards = Outboard::launch_all(lab, &setups)?;
    let [reset, rewind] = &outboards[..] else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    let request =
        RequestSpec::get("/").expecting(check_same_responses(&[&reset.stack, &rewind.stack], "/")?);
    let seconds = lab.effort.slice_seconds;
    let rounds = interleave(lab, &[&reset.stack, &rewind.stack], |stack| {
        generator::load(stack, &request, CONNECTIONS, seconds)
    })?;
    report.add_rounds(&format!("{name} c=10"), &rounds);
    let (reset, rewind) = (&rounds.series[0], &rounds.series[1]);
    let beyond: Vec<f64> =
        rewind.cpu_us().iter().zip(reset.cpu_us()).map(|(rewind, reset)| rewind - reset).collect();
    report.verdicts.push(Verdict::at_most(&target, limit_us, &beyond, "µs"));
    report.verdicts.push(failures_verdict(&format!("{name}, rewind"), rewind));
    Ok(())
}

fn symfony(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "symfony", &[])?;
    fixture.writable("var")?;
    let workers = lab.php_processes();
    let setups = [
        Setup::classic(lab, &fixture.public()).named(CLASSIC),
        Setup::worker(&fixture, "worker.php", workers, 1).named(RESET),
        Setup::fork(&fixture, "snapshot.php", workers).named(FORK),
        Setup::rewind(&fixture, "snapshot.php", workers).named(REWIND),
    ];
    let fpm = nginx::with_fpm(lab, &fixture.public())?;
    let outboards = Outboard::launch_all(lab, &setups)?;
    let stacks: Vec<&Stack> =
        outboards.iter().map(|outboard| &outboard.stack).chain([&fpm]).collect();
    let request = RequestSpec::get("/").expecting(check_same_responses(&stacks, "/")?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("Symfony page c=10", &rounds);
    let p99 = |series: &Series| series.values(|slice| slice.load.latency.p99_us);
    report.verdicts.extend([
        rewind_against(&rounds, fpm.name, "CPU ≤ 0.4 × php-fpm", 0.4, Series::cpu_us),
        rewind_against(&rounds, RESET, "CPU ≤ 1.2 × reset", 1.2, Series::cpu_us),
        rewind_against(&rounds, CLASSIC, "p99 ≤ classic", 1.0, p99),
    ]);
    report
        .verdicts
        .extend(rounds.of(REWIND).map(|series| failures_verdict("Symfony, rewind", series)));
    Ok(())
}

/// Laravel 8 of Debian, whose front controller takes a snapshot in classic mode. All pages are of one visitor: with
/// a new session for each, Laravel would mostly look through their files for old ones.
fn laravel(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::laravel(lab)?;
    let none = "[app.site.pool]\nmax_snapshots = 0\n";
    let setups = [
        Setup::classic(lab, &fixture.public()).named(CLASSIC).with(none),
        Setup::classic(lab, &fixture.public()).named(SNAPSHOT),
    ];
    let fpm = nginx::with_fpm(lab, &fixture.public())?;
    let outboards = Outboard::launch_all(lab, &setups)?;
    let target = "Laravel, snapshot in classic mode: CPU ≤ 0.45 × php-fpm";
    let [classic, snapshot] = &outboards[..] else {
        report.verdicts.push(Verdict::not_measured(target, NOT_BUILT));
        return Ok(());
    };
    snapshot.await_snapshot("/")?;
    let seconds = lab.effort.slice_seconds;
    let stacks = [&classic.stack, &snapshot.stack, &fpm];
    let rounds = interleave(lab, &stacks, |stack| {
        let request = RequestSpec::get("/").header(VISITOR);
        generator::load(stack, &request, CONNECTIONS, seconds)
    })?;
    report.add_rounds("Laravel page c=10", &rounds);
    let [_, snapshot, fpm] = &rounds.series[..] else { return Ok(()) };
    let ratio = paired_ratio(&snapshot.cpu_us(), &fpm.cpu_us());
    report.verdicts.push(Verdict::ratio(target, 0.45, ratio));
    report.verdicts.push(failures_verdict("Laravel, snapshot", snapshot));
    Ok(())
}

fn rewind_against(
    rounds: &Rounds,
    peer: &str,
    target: &str,
    limit: f64,
    values: impl Fn(&Series) -> Vec<f64>,
) -> Verdict {
    let target = format!("Symfony, isolation = \"rewind\": {target}");
    let (Some(rewind), Some(peer)) = (rounds.of(REWIND), rounds.of(peer)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    Verdict::ratio(&target, limit, paired_ratio(&values(rewind), &values(peer)))
}
