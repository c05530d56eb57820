//! hello.php at c = 100: the cost of PHP's smallest response through each stack.

use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::outboard::{self, NOT_BUILT, Outboard};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;
use crate::{apache, nginx};

const CONNECTIONS: usize = 100;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let peers = [
        nginx::with_fpm(lab, &site.root)?,
        apache::with_mod_php(lab, &site.root, apache::PROCESSES)?,
        nginx::with_return(lab)?,
    ];
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain(&peers).collect();
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rounds("hello c=100", &rounds);
    for (peer, limit, part) in
        [(peers[0].name, 1.0 / 7.0, "1/7"), (peers[1].name, 1.0 / 3.0, "1/3")]
    {
        report.verdicts.push(cpu_verdict(
            &rounds,
            &format!("hello c=100: CPU per request ≤ {part} of {peer}"),
            peer,
            limit,
        ));
    }
    Ok(())
}

/// Judges outboard's CPU per request against a peer's.
pub(super) fn cpu_verdict(rounds: &Rounds, target: &str, peer: &str, limit: f64) -> Verdict {
    let (Some(subject), Some(reference)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
        return Verdict::not_measured(target, NOT_BUILT);
    };
    Verdict::ratio(target, limit, paired_ratio(&subject.cpu_us(), &reference.cpu_us()))
}
