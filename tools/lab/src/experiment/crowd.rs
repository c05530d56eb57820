//! hello.php at c = 1,000: many more connections than PHP processes, without a failure.

use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_responses};
use crate::verdict::Verdict;

const CONNECTIONS: usize = 1_000;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let peers = [nginx::with_fpm(lab, &site.root)?, nginx::with_return(lab)?];
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain(&peers).collect();
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("hello c=1000", &rounds);
    let target = "hello c=1000: 0 failed requests";
    report.verdicts.push(match rounds.of(outboard::NAME) {
        None => Verdict::not_measured(target, NOT_BUILT),
        Some(series) => {
            let failures = series.failures();
            let measured = format!("{} responses, {failures} failed", series.responses());
            Verdict::exact(target, series.is_flawless(), measured)
        }
    });
    Ok(())
}
