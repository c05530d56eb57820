//! A page of three parts: a script, an answer of a 30 ms backend, another script.
//!
//! The gateway stitches it together and holds no PHP process while it waits. The peers do the
//! same work: nginx with Lua, and one script of php-fpm with curl.

use crate::ask::Ask;
use crate::backend::Backend;
use crate::client;
use crate::error::Result;
use crate::experiment::NOT_BUILT;
use crate::experiment::fetch::failures_verdict;
use crate::experiment::hello::cpu_verdict;
use crate::fixture::Fixture;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, Outboard, Setup};
use crate::report::Report;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_answers};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const PATH: &str = "/search?q=outboard";

const CONNECTIONS: usize = 100;

/// PHP processes of every stack.
const PROCESSES: usize = 4;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let backend = Backend::start()?;
    let (address, url) = (backend.address(), backend.url(30));
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let values = [("BACKEND", address.to_string()), ("HOST", host), ("PORT", port)];
    let values = values.each_ref().map(|(key, value)| (*key, value.as_str()));
    let fixture = Fixture::unpack(lab, "compose", &values)?;
    let composed = Setup {
        workers: PROCESSES,
        ..Setup::classic(lab, &fixture.public()).with(&format!(
            "[[app.site.compose]]
path = \"/search\"
[[app.site.compose.part]]
script = \"/before.php\"
[[app.site.compose.part]]
fetch = \"{url}\"
[[app.site.compose.part]]
script = \"/after.php\"
"
        ))
    };
    let outboard = Outboard::launch(lab, &composed)?;
    let lua = nginx::with_lua(lab, &fixture.public(), &fixture.path("search.lua"), PROCESSES)?;
    let curl = nginx::with_fpm_children(lab, &fixture.path("inline"), PROCESSES)?;
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain([&lua, &curl]).collect();
    let ask = Ask::get(PATH).expecting(check_same_answers(&stacks, PATH)?);
    let seconds = lab.effort.slice_seconds;
    let load = |stack: &Stack| client::load(stack.address, &ask, CONNECTIONS, seconds);
    let rounds = interleave(lab, &stacks, load)?;
    report.add_rounds("compose, 30 ms, c=100", &rounds);
    let bar = format!("compose, 30 ms, c=100: CPU per request ≤ 1/3 of {}", lua.name);
    report
        .verdicts
        .extend([rate_verdict(&rounds, lua.name), cpu_verdict(&rounds, &bar, lua.name, 1.0 / 3.0)]);
    report.verdicts.extend(
        rounds.of(outboard::NAME).map(|series| failures_verdict("compose, 30 ms, c=100", series)),
    );
    Ok(())
}

/// All stacks are bound by 100 connections / 30 ms, so "at least" leaves room for the noise of
/// two equal rates.
fn rate_verdict(rounds: &Rounds, peer: &str) -> Verdict {
    let bar = format!("compose, 30 ms, c=100: throughput ≥ {peer} (within 2 %)");
    let (Some(subject), Some(reference)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
        return Verdict::not_measured(&bar, NOT_BUILT);
    };
    Verdict::ratio_at_least(&bar, 0.98, paired_ratio(&subject.rates(), &reference.rates()))
}
