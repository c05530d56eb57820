//! What a burst leaves behind: a moderate rate ten seconds after five of 1,000 connections, beside a server that had
//! none.
//!
//! A pool that has grown for work which only computes is larger than its processors, and its workers keep each other
//! from the core on which they are cheap.

use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::slice::{Turns, measure};
use crate::stack::check_same_responses;
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const FRESH: &str = "outboard, fresh";
const AFTER: &str = "outboard, after a burst";

const BURST_CONNECTIONS: usize = 1_000;
const BURST_SECONDS: f64 = 5.0;
const REST: Duration = Duration::from_secs(10);

const CONNECTIONS: usize = 50;
const RATE: f64 = 5_000.0;
const SECONDS: f64 = 3.0;
/// The allowed CPU per request relative to a fresh server.
const LIMIT: f64 = 1.1;
/// Workers beyond the processors.
const SPARE_WORKERS: usize = 2;

/// The pool chooses its size, as it does unless it is configured.
const POOL: &str = "[app.site.pool]\nmin = \"auto\"\nmax = \"auto\"\n";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let site = Site::write(lab)?;
    after_burst(lab, report, "worker", |_| Setup::worker(&fixture, "hello.php", 1, 1))?;
    after_burst(lab, report, "classic", |lab| Setup::classic(lab, &site.root))?;
    after_burst(lab, report, "rewind", |_| Setup::rewind(&fixture, "hello.php", 1))
}

fn after_burst(
    lab: &mut Lab,
    report: &mut Report,
    mode: &str,
    setup: impl Fn(&Lab) -> Setup,
) -> Result<()> {
    let title = format!("{mode} hello at {RATE}/s, {} s after a burst", REST.as_secs());
    let price = format!("{title}: CPU per request ≤ {LIMIT} × that of a fresh server");
    let size = format!("{title}: workers ≤ processors + {SPARE_WORKERS}");
    let setups = [FRESH, AFTER].map(|name| setup(lab).named(name).with(POOL));
    let [fresh, after] = &Outboard::launch_all(lab, &setups)?[..] else {
        let missing = [price, size].map(|target| Verdict::not_measured(&target, NOT_BUILT));
        report.verdicts.extend(missing);
        return Ok(());
    };
    lab.progress(&title);
    let stacks = [&fresh.stack, &after.stack];
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let mut most_workers = 0;
    let turns = Turns { slices: lab.effort.slices, shared: None };
    let rounds = turns.among(lab, &[FRESH, AFTER], |index| {
        if index == 1 {
            generator::load(stacks[1], &request, BURST_CONNECTIONS, BURST_SECONDS)?;
            thread::sleep(REST);
            most_workers = most_workers.max(after.workers().len());
        }
        measure(lab, stacks[index], None, |stack| {
            generator::load_at(stack, &request, CONNECTIONS, SECONDS, RATE)
        })
    })?;
    report.add_rows(&title, &rounds);
    let [before, later] = &rounds.series[..] else { return Ok(()) };
    let ratio = paired_ratio(&later.cpu_us(), &before.cpu_us());
    report.verdicts.push(Verdict::ratio(&price, LIMIT, ratio));
    let is_met = most_workers <= lab.cores + SPARE_WORKERS;
    report.verdicts.push(Verdict::exact(&size, is_met, format!("{most_workers} workers")));
    Ok(())
}
