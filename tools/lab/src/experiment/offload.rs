//! A page of three parts: a script, a response of a slow backend, another script.
//!
//! The gateway composes it and holds no PHP process while it waits. The peers do the same work:
//! nginx with Lua, and one script of php-fpm with curl. The backend takes 1, 10 or 30 ms; the
//! targets are for 30.

use crate::backend::Backend;
use crate::error::Result;
use crate::experiment::fetch::failures_verdict;
use crate::experiment::hello::cpu_verdict;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const PATH: &str = "/search?q=outboard";

const CONNECTIONS: usize = 100;

const LATENCIES_MS: [u64; 3] = [1, 10, 30];

/// The latency of the targets.
const JUDGED_MS: u64 = 30;

/// PHP processes of every stack.
const PROCESSES: usize = 4;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let backend = Backend::start()?;
    for latency_ms in LATENCIES_MS {
        let rounds = rounds(lab, &backend, latency_ms)?;
        let title = title(latency_ms);
        report.add_rounds(&title, &rounds);
        if latency_ms != JUDGED_MS {
            continue;
        }
        let target = format!("{title}: CPU per request ≤ 1/3 of {}", nginx::LUA);
        report.verdicts.extend([
            rate_verdict(&rounds, &title, nginx::LUA),
            cpu_verdict(&rounds, &target, nginx::LUA, 1.0 / 3.0),
        ]);
        report
            .verdicts
            .extend(rounds.of(outboard::NAME).map(|series| failures_verdict(&title, series)));
    }
    Ok(())
}

fn title(latency_ms: u64) -> String {
    format!("offload, {latency_ms} ms, c={CONNECTIONS}")
}

/// The three stacks with a backend of this latency.
fn rounds(lab: &mut Lab, backend: &Backend, latency_ms: u64) -> Result<Rounds> {
    let (address, url) = (backend.address(), backend.url(latency_ms));
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let latency = format!("{latency_ms}ms");
    let address = address.to_string();
    let values =
        [("BACKEND", &*address), ("HOST", &*host), ("PORT", &*port), ("LATENCY", &*latency)];
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
    let request = RequestSpec::get(PATH).expecting(check_same_responses(&stacks, PATH)?);
    let judged = latency_ms == JUDGED_MS;
    let effort = lab.effort;
    let seconds = if judged { effort.slice_seconds } else { effort.short_slice_seconds() };
    interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))
}

/// 100 connections / 30 ms limit all stacks, so "at least" leaves room for the noise of two equal
/// rates.
fn rate_verdict(rounds: &Rounds, title: &str, peer: &str) -> Verdict {
    let target = format!("{title}: throughput ≥ {peer} (within 2 %)");
    let (Some(subject), Some(reference)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
        return Verdict::not_measured(&target, NOT_BUILT);
    };
    Verdict::ratio_at_least(&target, 0.98, paired_ratio(&subject.rates(), &reference.rates()))
}
