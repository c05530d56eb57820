//! Hello at rates that real sites have: what a request costs while the machine is not full.
//!
//! At saturation batches hide what a sleeping process costs to wake. An open loop at a fixed rate shows
//! it: a worker script, with and without direct connections, and a script per request, beside nginx's own response and
//! php-fpm behind nginx.

use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 50;

const WORKER: &str = "outboard, worker";
const DIRECT: &str = "outboard, direct";
const CLASSIC: &str = "outboard, classic";

/// What a worker's request may cost with direct connections, relative to one without.
const DIRECT_LIMIT: f64 = 0.65;

/// Half a second passes before a server that adapts to a load has done so.
const SHORTEST_SLICE_S: f64 = 2.0;

/// A request takes a worker script less than a µs.
const WORKERS: usize = 1;

/// A rate, in requests per second, and the CPU that a request may cost.
struct Target {
    rate: u32,
    /// A worker script, relative to nginx's own response.
    worker: Option<f64>,
    /// A script per request, relative to nginx and php-fpm: one part of so many.
    classic_part: Option<f64>,
}

const TARGETS: [Target; 5] = [
    Target { rate: 200, worker: None, classic_part: None },
    Target { rate: 1_000, worker: Some(1.6), classic_part: Some(3.0) },
    Target { rate: 5_000, worker: Some(2.2), classic_part: Some(3.0) },
    Target { rate: 10_000, worker: None, classic_part: Some(5.0) },
    Target { rate: 20_000, worker: Some(1.4), classic_part: None },
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let site = Site::write(lab)?;
    let worker = Setup::worker(&fixture, "hello.php", WORKERS, 1).named(WORKER);
    let direct = Setup::worker(&fixture, "hello.php", WORKERS, 1).named(DIRECT);
    let classic = Setup::classic(lab, &site.root).named(CLASSIC);
    let outboards = [worker, direct.with("direct = true\n"), classic];
    let outboards = Outboard::launch_all(lab, &outboards)?;
    let peers = [nginx::with_return(lab)?, nginx::with_fpm(lab, &site.root)?];
    let subjects = outboards.iter().map(|outboard| &outboard.stack);
    let stacks: Vec<&Stack> = subjects.chain(&peers).collect();
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let seconds = lab.effort.slice_seconds.max(SHORTEST_SLICE_S);
    for target in &TARGETS {
        let title = format!("hello at {}/s c={CONNECTIONS}", target.rate);
        lab.progress(&title);
        let rounds = interleave(lab, &stacks, |stack| {
            generator::load_at(stack, &request, CONNECTIONS, seconds, f64::from(target.rate))
        })?;
        report.add_rows(&title, &rounds);
        report.verdicts.extend(verdicts(&rounds, target));
    }
    Ok(())
}

fn verdicts(rounds: &Rounds, target: &Target) -> impl Iterator<Item = Verdict> {
    let rate = target.rate;
    let worker = target.worker.map(|limit| {
        let words = format!("worker hello at {rate}/s: CPU per request ≤ {limit} × nginx's return");
        ratio(rounds, &words, WORKER, nginx::RETURN, limit)
    });
    let direct = format!("direct hello at {rate}/s: CPU per request ≤ {DIRECT_LIMIT} × {WORKER}");
    let direct = ratio(rounds, &direct, DIRECT, WORKER, DIRECT_LIMIT);
    let classic = target.classic_part.map(|part| {
        let words =
            format!("classic hello at {rate}/s: CPU per request ≤ 1/{part} of {}", nginx::FPM);
        ratio(rounds, &words, CLASSIC, nginx::FPM, 1.0 / part)
    });
    worker.into_iter().chain([direct]).chain(classic)
}

fn ratio(rounds: &Rounds, target: &str, subject: &str, peer: &str, limit: f64) -> Verdict {
    let (Some(subject), Some(peer)) = (rounds.of(subject), rounds.of(peer)) else {
        return Verdict::not_measured(target, NOT_BUILT);
    };
    Verdict::ratio(target, limit, paired_ratio(&subject.cpu_us(), &peer.cpu_us()))
}
