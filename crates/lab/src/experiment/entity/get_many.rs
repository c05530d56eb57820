//! Ten thousand reads in one request, from PHP: one `getMany()` of the store, beside ten thousand
//! calls of `apcu_fetch()` and as many reads of an array of the script's own.
//!
//! Three pages of one resident script; their answers are the same, a digest of all values.

use crate::ask::Ask;
use crate::error::Result;
use crate::experiment::NOT_BUILT;
use crate::fixture::Fixture;
use crate::generator;
use crate::http;
use crate::lab::Lab;
use crate::outboard::{Outboard, Setup};
use crate::report::Report;
use crate::slice::{Turns, measure};
use crate::stack::Stack;
use crate::statistics::median;
use crate::verdict::Verdict;

/// One process each for PHP and for the store.
const WORKERS: usize = 1;
const CONNECTIONS: usize = 2;
const PAGES: [&str; 3] = ["getMany", "apcu_fetch", "array"];
const BAR: &str = "10,000 reads in a request: the three ways give the same";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "entity", &[])?;
    let folder = fixture.writable("entities")?;
    let entities = format!("[kv]\ndata_dir = {folder:?}\n");
    let setup = Setup::worker(&fixture, "worker.php", WORKERS, 1).named("outboard, 10,000 reads");
    let Some(outboard) = Outboard::launch(lab, &setup.with(&entities))? else {
        report.verdicts.push(Verdict::not_measured(BAR, NOT_BUILT));
        return Ok(());
    };
    let stack = &outboard.stack;
    let first = http::get(stack.address, "/getMany")?;
    let answers = PAGES.map(|page| http::get(stack.address, &format!("/{page}")));
    let is_same = answers.iter().all(|answer| {
        answer.as_ref().is_ok_and(|answer| answer.status == 200 && answer.body == first.body)
    });
    let said =
        answers.map(|answer| answer.map_or_else(|error| error.to_string(), |one| one.summary()));
    report.verdicts.push(Verdict::exact(BAR, is_same, said.join("; ")));
    if !is_same {
        return Ok(());
    }
    take_turns(lab, report, stack, &first.body)
}

fn take_turns(lab: &Lab, report: &mut Report, stack: &Stack, body: &[u8]) -> Result<()> {
    let seconds = lab.effort.slice_seconds / 2.5;
    let turns = Turns { slices: lab.effort.slices, beside: None };
    let rounds = turns.among(lab, &PAGES, |index| {
        let ask = Ask::get(&format!("/{}", PAGES[index])).expecting_body(body);
        measure(lab, stack, None, |stack| generator::load(stack, &ask, CONNECTIONS, seconds))
    })?;
    report.add_rounds("10,000 reads in a request", &rounds);
    let cpu_us = |name: &str| rounds.of(name).map_or(f64::NAN, |series| median(&series.cpu_us()));
    let [many, apcu, array] = PAGES.map(cpu_us);
    report.notes.push(format!(
        "10,000 reads in a request cost {many:.0} µs of CPU by getMany, {:.1} × as much as by \
         apcu_fetch ({apcu:.0} µs) and {:.1} × as much as from an array ({array:.0} µs)",
        many / apcu,
        many / array
    ));
    Ok(())
}
