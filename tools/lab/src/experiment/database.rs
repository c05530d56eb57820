//! `SELECT SLEEP(0.03)` through unmodified PDO: one worker with waiting coroutines, against four
//! php-fpm children that block.

use crate::error::Result;
use crate::experiment::fetch::failures_verdict;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::Turns;
use crate::stack::{Stack, check_same_responses};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;

/// Concurrent requests of the one worker.
const CONCURRENCY: usize = 128;

const FPM_CHILDREN: usize = 4;

/// 100 connections / 30 ms is 3,333.
const LIMIT_RPS: f64 = 3_000.0;

const SLEEP: &str = "/sleep.php";

const CONNECTING: &str = "/connect";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    database.execute("CREATE DATABASE IF NOT EXISTS lab")?;
    let socket = database.socket.to_string_lossy().into_owned();
    let fixture = Fixture::unpack(lab, "database", &[("SOCKET", &socket)])?;
    let setup = Setup::worker(&fixture, "worker.php", 1, CONCURRENCY);
    let setup = Setup { root: fixture.writable("empty")?, ..setup };
    let outboard = Outboard::launch(lab, &setup)?;
    let fpm = nginx::with_fpm_children(lab, &fixture.public(), FPM_CHILDREN)?;
    let seconds = lab.effort.slice_seconds;
    let turns = Turns { slices: lab.effort.slices, shared: Some(&database.group) };

    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain([&fpm]).collect();
    let request = RequestSpec::get(SLEEP).expecting(check_same_responses(&stacks, SLEEP)?);
    let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
    let rounds = turns.take(lab, &stacks, load)?;
    report.add_rounds("PDO SLEEP(0.03) c=100", &rounds);
    let target = "PDO SELECT SLEEP(0.03), one worker, c=100: ≥ 3,000 rps";
    let Some((outboard, series)) = outboard.as_ref().zip(rounds.of(outboard::NAME)) else {
        report.verdicts.push(Verdict::not_measured(target, NOT_BUILT));
        return Ok(());
    };
    report.verdicts.push(Verdict::at_least(target, LIMIT_RPS, &series.rates(), "rps"));
    report.verdicts.push(failures_verdict("PDO SLEEP(0.03) c=100", series));
    let apart = series.shared_us();
    report.notes.push(format!("PDO: MariaDB, counted apart, {apart:.0} µs per request"));

    let stacks = [&outboard.stack];
    let request =
        RequestSpec::get(CONNECTING).expecting(check_same_responses(&stacks, CONNECTING)?);
    let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
    let rounds = turns.take(lab, &stacks, load)?;
    report.add_rounds("the same, connecting each time", &rounds);
    Ok(())
}
