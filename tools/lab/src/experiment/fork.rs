//! Isolation by fork: a fork of the booted script handles each request.
//!
//! A Symfony application in three modes of outboard and under php-fpm; the cost of a fork of a
//! process of 30 MB; and the boot time from which forking costs less than booting.

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
use crate::slice::{Rounds, Turns, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::{median, paired_ratio};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 10;

const CLASSIC: &str = "outboard, classic";

const FORK: &str = "outboard, fork";

const WORKER: &str = "outboard, worker";

/// Strings that the large script holds: with the engine's own memory they make 30 MB.
const KEPT_MIB: &str = "22";

/// Boot times of the synthetic script.
const BOOTS_MS: [u64; 6] = [1, 2, 5, 10, 20, 30];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    symfony(lab, report)?;
    large(lab, report)?;
    break_even(lab, report)
}

fn symfony(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "symfony", &[])?;
    fixture.writable("var")?;
    let workers = lab.php_processes();
    let setups = [
        Setup::classic(lab, &fixture.public()).named(CLASSIC),
        Setup::fork(&fixture, "fork.php", workers).named(FORK),
        Setup::worker(&fixture, "worker.php", workers, 1).named(WORKER),
    ];
    let fpm = nginx::with_fpm(lab, &fixture.public())?;
    let outboards = Outboard::launch_all(lab, &setups)?;
    let stacks: Vec<&Stack> = outboards.iter().map(|o| &o.stack).chain([&fpm]).collect();
    let request = RequestSpec::get("/").expecting(check_same_responses(&stacks, "/")?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("Symfony page c=10", &rounds);
    let title = "Symfony, isolation = \"fork\"";
    let p99 = |series: &Series| series.values(|slice| slice.load.latency.p99_us);
    report.verdicts.extend([
        against_classic(&rounds, &format!("{title}: CPU ≤ 0.6 × classic"), 0.6, Series::cpu_us),
        against_classic(&rounds, &format!("{title}: p99 ≤ classic"), 1.0, p99),
    ]);
    report.verdicts.extend(rounds.of(FORK).map(|series| failures_verdict(title, series)));
    Ok(())
}

fn against_classic(
    rounds: &Rounds,
    target: &str,
    limit: f64,
    values: impl Fn(&Series) -> Vec<f64>,
) -> Verdict {
    let (Some(fork), Some(classic)) = (rounds.of(FORK), rounds.of(CLASSIC)) else {
        return Verdict::not_measured(target, NOT_BUILT);
    };
    Verdict::ratio(target, limit, paired_ratio(&values(fork), &values(classic)))
}

/// The CPU of a whole request, including the gateway's part, is an upper bound of a fork's.
fn large(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let target = "a request by a fork of a 30 MB process: CPU ≤ 2 ms";
    let fixture = Fixture::unpack(lab, "fork", &[("MIB", KEPT_MIB)])?;
    let setup = Setup::fork(&fixture, "heavy.php", lab.php_processes());
    let setup = Setup { root: fixture.writable("empty")?, ..setup };
    let Some(outboard) = Outboard::launch(lab, &setup)? else {
        report.verdicts.push(Verdict::not_measured(target, NOT_BUILT));
        return Ok(());
    };
    let seconds = lab.effort.slice_seconds;
    let load = |stack: &Stack| generator::load(stack, &RequestSpec::get("/"), CONNECTIONS, seconds);
    let rounds = interleave(lab, &[&outboard.stack], load)?;
    report.add_rounds("30 MB process, fork, c=10", &rounds);
    let series = &rounds.series[0];
    report.verdicts.push(Verdict::at_most(target, 2_000.0, &series.cpu_us(), "µs"));
    report.verdicts.push(failures_verdict("30 MB process, fork", series));
    Ok(())
}

/// CPU per request in classic mode and with forks for each boot time, and where the two meet.
fn break_even(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let turns = Turns { slices: 3, shared: None };
    let seconds = lab.effort.slice_seconds.min(1.0);
    let fixture = Fixture::unpack(lab, "fork", &[("MIB", KEPT_MIB)])?;
    let mut points = Vec::new();
    // A quick run uses every other boot time.
    let every = if lab.effort.is_quick() { 2 } else { 1 };
    for boot_ms in BOOTS_MS.into_iter().step_by(every) {
        let environment = format!("[app.site.php]\nenv = {{ BOOT_MS = \"{boot_ms}\" }}\n");
        let workers = lab.php_processes();
        let setups = [
            Setup::classic(lab, &fixture.public()).with(&environment).named(CLASSIC),
            Setup::fork(&fixture, "public/index.php", workers).with(&environment).named(FORK),
        ];
        let outboards = Outboard::launch_all(lab, &setups)?;
        let stacks: Vec<&Stack> = outboards.iter().map(|outboard| &outboard.stack).collect();
        let load =
            |stack: &Stack| generator::load(stack, &RequestSpec::get("/"), CONNECTIONS, seconds);
        let rounds = turns.take(lab, &stacks, load)?;
        report.add_rounds(&format!("boot of {boot_ms} ms c=10"), &rounds);
        let cpu_us = |name| rounds.of(name).map(|series| median(&series.cpu_us()));
        let Some((classic_us, fork_us)) = cpu_us(CLASSIC).zip(cpu_us(FORK)) else { return Ok(()) };
        points.push(Point { boot_ms: boot_ms as f64, classic_us, fork_us });
    }
    report.notes.push(match meeting_ms(&points) {
        Some(ms) => format!("fork costs less than classic mode from a boot of {ms:.1} ms on"),
        None => "fork costs more than classic mode at every boot time measured".into(),
    });
    Ok(())
}

/// The cost of a request at one boot time.
struct Point {
    boot_ms: f64,
    classic_us: f64,
    fork_us: f64,
}

/// The boot time from which a fork is cheaper, interpolated between the points around it; 0 if the
/// first point is.
fn meeting_ms(points: &[Point]) -> Option<f64> {
    let gain = |point: &Point| point.classic_us - point.fork_us;
    let at = points.iter().position(|point| gain(point) >= 0.0)?;
    let Some(before) = at.checked_sub(1).map(|at| &points[at]) else {
        // A boot costs its time, so the line through the first point has slope 1 ms per ms.
        let first = &points[at];
        return Some((first.boot_ms - gain(first) / 1e3).max(0.0));
    };
    let (low, high) = (gain(before), gain(&points[at]));
    Some(before.boot_ms + (points[at].boot_ms - before.boot_ms) * -low / (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(boot_ms: f64, classic_us: f64) -> Point {
        Point { boot_ms, classic_us, fork_us: 1_500.0 }
    }

    #[test]
    fn the_lines_meet_between_the_points_around_it() {
        let points = [point(1.0, 1_000.0), point(2.0, 2_000.0), point(5.0, 5_000.0)];
        assert_eq!(meeting_ms(&points), Some(1.5));
    }

    #[test]
    fn a_fork_that_never_pays_has_no_meeting_point() {
        assert_eq!(meeting_ms(&[point(0.1, 100.0)]), None);
        assert_eq!(meeting_ms(&[point(2.0, 2_000.0)]), Some(1.5));
    }
}
