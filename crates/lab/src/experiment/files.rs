//! A static file of 1 KiB against nginx with sendfile and an open-file cache.

use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::Outboard;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{KIBIBYTE, Site};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_responses};

const CONNECTIONS: usize = 100;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let nginx = nginx::with_files(lab, &site.root)?;
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain([&nginx]).collect();
    let request = RequestSpec::get(KIBIBYTE).expecting(check_same_responses(&stacks, KIBIBYTE)?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("1 KiB file c=100", &rounds);
    let target = "1 KiB file: CPU per request ≤ 1.2 × nginx";
    report.verdicts.push(cpu_verdict(&rounds, target, nginx.name, 1.2));
    Ok(())
}
