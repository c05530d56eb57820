//! The home page of a WordPress: a real application that is dominated by PHP.
//!
//! Each slice is a fixed number of requests. All stacks share the database, whose CPU is accounted
//! separately.

use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::series::Series;
use crate::slice::{Rounds, Turns};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::{Estimate, median, paired_ratio};
use crate::verdict::Verdict;
use crate::wordpress::{HOME, POINT, WordPress};

const CONNECTIONS: usize = 10;

const AT_INIT: &str = "outboard, snapshot at init";
const AT_LOADED: &str = "outboard, snapshot at wp_loaded";

/// A page costs about 20 ms of CPU on the machine that the targets were set on.
const PAGES_PER_SECOND: f64 = 100.0;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    let site = WordPress::of_run(lab, &database)?;
    let nginx = nginx::with_fpm(lab, &site.root)?;
    let classic = Setup::classic(lab, &site.root).with(&at("none"));
    let outboard = Outboard::launch(lab, &classic)?;
    let booted = booted(lab, &site)?;
    let outboards = outboard.iter().chain(&booted).map(|outboard| &outboard.stack);
    let stacks: Vec<&Stack> = outboards.chain([&nginx]).collect();
    check_same_responses(&stacks, HOME)?;
    let count = (lab.effort.slice_seconds * PAGES_PER_SECOND).ceil() as u64;
    let turns = Turns { slices: lab.effort.slices, shared: Some(&database.group) };
    let rounds = turns.take(lab, &stacks, |stack| {
        let task = Task::on(stack, &RequestSpec::get(HOME), CONNECTIONS);
        Ok(generator::run_count(&task, count)?.load)
    })?;
    report.add_rounds("WordPress home c=10", &rounds);
    let apart = median(&rounds.series.iter().map(Series::shared_us).collect::<Vec<f64>>());
    report.notes.push(format!("WordPress home: MariaDB, counted apart, {apart:.0} µs per page"));
    let target = format!("WordPress home: CPU per request ≤ {}", nginx.name);
    report.verdicts.push(cpu_verdict(&rounds, &target, nginx.name, 1.0));
    report.verdicts.push(p99_verdict(&rounds, nginx.name));
    for (point, peer) in [AT_INIT, AT_LOADED]
        .into_iter()
        .flat_map(|point| [(point, outboard::NAME), (point, nginx.name)])
    {
        report.notes.extend(gain_of(point, peer, &rounds));
    }
    let target = "WordPress home, snapshot at init: CPU ≤ 0.75 × php-fpm";
    report.verdicts.push(match (rounds.of(AT_INIT), rounds.of(nginx.name)) {
        (Some(rewind), Some(fpm)) => {
            Verdict::ratio(target, 0.75, paired_ratio(&rewind.cpu_us(), &fpm.cpu_us()))
        }
        _ => Verdict::not_measured(target, NOT_BUILT),
    });
    Ok(())
}

/// The same site with the must-use plugin, whose snapshot stands before or behind the `init` of plugins and theme.
fn booted(lab: &mut Lab, site: &WordPress) -> Result<Vec<Outboard>> {
    let setups = [(AT_INIT, "init"), (AT_LOADED, "wp_loaded")];
    let setups =
        setups.map(|(name, point)| Setup::classic(lab, &site.root).named(name).with(&at(point)));
    let outboards = Outboard::launch_all(lab, &setups)?;
    for outboard in &outboards {
        outboard.await_snapshot(HOME)?;
    }
    Ok(outboards)
}

/// The point of the snapshot.
fn at(point: &str) -> String {
    format!("[app.site.php.env]\n{POINT} = {point:?}\n")
}

fn gain_of(name: &str, peer: &str, rounds: &Rounds) -> Option<String> {
    let (booted, other) = (rounds.of(name)?, rounds.of(peer)?);
    let Estimate { low, middle, high, .. } = paired_ratio(&booted.cpu_us(), &other.cpu_us())?;
    Some(format!("WordPress home, {name}: CPU {middle:.3} [{low:.3}, {high:.3}] x {peer}"))
}

fn p99_verdict(rounds: &Rounds, peer: &str) -> Verdict {
    let target = format!("WordPress home: p99 ≤ {peer}");
    let (Some(subject), Some(reference)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    let p99 = |series: &Series| series.values(|slice| slice.load.latency.p99_us);
    Verdict::ratio(&target, 1.0, paired_ratio(&p99(subject), &p99(reference)))
}
