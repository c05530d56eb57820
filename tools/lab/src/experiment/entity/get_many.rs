//! Ten thousand reads in one request, from PHP: one `getMany()` of the store, against ten thousand
//! calls of `apcu_fetch()` and as many reads of a PHP array.
//!
//! Three pages of one worker script return the same response, a digest of all values.

use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::http;
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Turns, measure};
use crate::stack::Stack;
use crate::statistics::median;
use crate::verdict::Verdict;

/// One process each for PHP and for the store.
const WORKERS: usize = 1;
const CONNECTIONS: usize = 2;
const PAGES: [&str; 3] = ["getMany", "apcu_fetch", "array"];
const TARGET: &str = "10,000 reads in a request: the three ways give the same";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "entity", &[])?;
    let directory = fixture.writable("entities")?;
    let entities = format!("[kv]\ndata_dir = {directory:?}\n");
    let setup = Setup::worker(&fixture, "worker.php", WORKERS, 1).named("outboard, 10,000 reads");
    let Some(outboard) = Outboard::launch(lab, &setup.with(&entities))? else {
        report.verdicts.push(Verdict::not_measured(TARGET, NOT_BUILT));
        return Ok(());
    };
    let stack = &outboard.stack;
    let first = http::get(stack.address, "/getMany")?;
    let responses = PAGES.map(|page| http::get(stack.address, &format!("/{page}")));
    let is_same = responses.iter().all(|response| {
        response
            .as_ref()
            .is_ok_and(|response| response.status == 200 && response.body == first.body)
    });
    let said = responses
        .map(|response| response.map_or_else(|error| error.to_string(), |one| one.summary()));
    report.verdicts.push(Verdict::exact(TARGET, is_same, said.join("; ")));
    if !is_same {
        return Ok(());
    }
    take_turns(lab, report, stack, &first.body)
}

fn take_turns(lab: &Lab, report: &mut Report, stack: &Stack, body: &[u8]) -> Result<()> {
    let seconds = lab.effort.slice_seconds / 2.5;
    let turns = Turns { slices: lab.effort.slices, shared: None };
    let rounds = turns.among(lab, &PAGES, |index| {
        let request = RequestSpec::get(&format!("/{}", PAGES[index])).expecting_body(body);
        measure(lab, stack, None, |stack| generator::load(stack, &request, CONNECTIONS, seconds))
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
