//! Memory over a million requests, which shows what is leaked per request.

use crate::error::Result;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::load::Failures;
use crate::outboard::{NOT_BUILT, Outboard};
use crate::report::Report;
use crate::site::{HELLO, Site};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;

/// Requests after which memory is read; the first reading is the reference.
const MARKS: [u64; 3] = [100_000, 500_000, 1_000_000];

/// Growth that counts as flat: less than a byte per request.
const GROWTH_LIMIT_MIB: f64 = 0.5;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let marks = MARKS.map(|mark| mark / lab.effort.shortening);
    let last = marks[marks.len() - 1];
    let target = format!(
        "memory over {last} requests: growth ≤ {GROWTH_LIMIT_MIB} MiB after the first tenth"
    );
    let site = Site::write(lab)?;
    let Some(outboard) = Outboard::start(lab, &site.root)? else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    let (mut sent, mut failures) = (0, Failures::default());
    let mut pss_mib = Vec::new();
    for mark in marks {
        let task = Task::get(outboard.stack.address, HELLO, CONNECTIONS);
        failures += generator::run_count(&task, mark - sent)?.load.failures;
        sent = mark;
        outboard.stack.settle();
        let mib = outboard.stack.group.pss_bytes() as f64 / 1_048_576.0;
        lab.progress(&format!("{mark:>8} requests: {mib:.2} MiB"));
        pss_mib.push(mib);
    }
    let growth = pss_mib[pss_mib.len() - 1] - pss_mib[0];
    let readings: Vec<String> =
        marks.iter().zip(&pss_mib).map(|(mark, mib)| format!("{mib:.2} MiB at {mark}")).collect();
    let measured = format!("{}; {failures} failed", readings.join(", "));
    report.verdicts.push(Verdict::exact(
        &target,
        growth <= GROWTH_LIMIT_MIB && failures.total() == 0,
        measured,
    ));
    Ok(())
}
