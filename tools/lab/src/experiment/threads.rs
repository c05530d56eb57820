//! A gateway with several threads: against one with a single thread, and while all that concerns several
//! threads happens to it.
//!
//! At a rate that one thread can serve, sixteen should cost as much. Equal work has an equal price however many threads share it. Then a million requests to a script, a
//! file and a cached page, over keep-alive connections, while workers are killed, pages are purged and
//! the configuration is reloaded: only a killed worker may cost an answer, and only one each.

use rustix::process::Signal;

use crate::background::{Background, load_while};
use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator::{self, Task};
use crate::janitor;
use crate::lab::Lab;
use crate::load::Failure;
use crate::metric::Metric;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, KIBIBYTE, Site};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;

const CONNECTIONS: usize = 100;
/// The allowed CPU and p99 relative to one thread.
const LIMIT: f64 = 1.1;

const ONE: &str = "outboard, 1 thread";
const TWO: &str = "outboard, 2 threads";

const MANY: &str = "outboard, 16 threads";
/// Connections and requests a second that one thread can serve, and the CPU that many may take, relative to it.
const RATES: [(usize, f64); 2] = [(50, 1_000.0), (1_024, 10_000.0)];
const GATHERED_LIMIT: f64 = 1.25;
/// In the first second connections gather.
const SHORTEST_SLICE_S: f64 = 3.0;

const REQUESTS: u64 = 1_000_000;
/// Requests between a kill, a purge and a reload.
const BETWEEN: u64 = 5_000;
/// Pages of the cache live this long, or until they are purged.
const CACHE: &str = "page_cache = \"on\"\n";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let site = Site::write(lab)?;
    compare(lab, report, "worker hello", "/", |_, name, threads| {
        Setup::worker(&fixture, "hello.php", threads, 1).named(name)
    })?;
    compare(lab, report, "1 KiB file", KIBIBYTE, |lab, name, _| {
        Setup::classic(lab, &site.root).named(name)
    })?;
    for (connections, rate) in RATES {
        gathered(lab, report, &fixture, connections, rate)?;
    }
    events(lab, report, &site)
}

/// At a rate that one thread can serve.
fn gathered(
    lab: &mut Lab,
    report: &mut Report,
    fixture: &Fixture,
    connections: usize,
    rate: f64,
) -> Result<()> {
    let title = format!("worker hello at {rate}/s c={connections}, threads");
    let target = format!("{title}: CPU with 16 ≤ {GATHERED_LIMIT} × with one");
    let setups = [(MANY, 16), (ONE, 1)].map(|(name, threads)| {
        Setup::worker(fixture, "hello.php", 1, 1).named(name).with_threads(threads)
    });
    let outboards = Outboard::launch_all(lab, &setups)?;
    let stacks: Vec<&Stack> = outboards.iter().map(|outboard| &outboard.stack).collect();
    let request = RequestSpec::get("/").expecting(check_same_responses(&stacks, "/")?);
    let seconds = lab.effort.slice_seconds.max(SHORTEST_SLICE_S);
    let rounds = interleave(lab, &stacks, |stack| {
        generator::load_at(stack, &request, connections, seconds, rate)
    })?;
    report.add_rows(&title, &rounds);
    report.verdicts.push(match &rounds.series[..] {
        [many, one] => {
            let ratio = paired_ratio(&many.cpu_us(), &one.cpu_us());
            Verdict::ratio(&target, GATHERED_LIMIT, ratio)
        }
        _ => Verdict::not_measured(&target, NOT_BUILT),
    });
    Ok(())
}

fn compare(
    lab: &mut Lab,
    report: &mut Report,
    what: &str,
    path: &str,
    setup: impl Fn(&Lab, &'static str, usize) -> Setup,
) -> Result<()> {
    let title = format!("{what} c={CONNECTIONS}, threads");
    let mut outboards = Vec::new();
    for (name, threads) in [(TWO, 2), (ONE, 1)] {
        let setup = setup(lab, name, threads).with_threads(threads);
        outboards.extend(Outboard::launch(lab, &setup)?);
    }
    let stacks: Vec<&Stack> = outboards.iter().map(|outboard| &outboard.stack).collect();
    let targets = [Metric::Cpu, Metric::P99].map(|metric| {
        (metric, format!("{title}: {} with two ≤ {LIMIT} × with one", metric.name()))
    });
    if stacks.is_empty() {
        let missing = targets.map(|(_, target)| Verdict::not_measured(&target, NOT_BUILT));
        report.verdicts.extend(missing);
        return Ok(());
    }
    let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
    let seconds = lab.effort.slice_seconds;
    let rounds =
        interleave(lab, &stacks, |stack| generator::load(stack, &request, CONNECTIONS, seconds))?;
    report.add_rows(&title, &rounds);
    let [two, one] = &rounds.series[..] else { return Ok(()) };
    for (metric, target) in targets {
        let ratio = paired_ratio(&metric.values(two), &metric.values(one));
        report.verdicts.push(Verdict::ratio(&target, LIMIT, ratio));
    }
    Ok(())
}

/// What has happened to the gateway.
#[derive(Default)]
struct Events {
    kills: u64,
    purges: u64,
    reloads: u64,
}

fn events(lab: &mut Lab, report: &mut Report, site: &Site) -> Result<()> {
    let requests = REQUESTS / lab.effort.shortening;
    let target = format!(
        "{requests} requests to 2 threads with kills, purges and reloads: at most an answer per kill fails"
    );
    let setup = Setup::classic(lab, &site.root).named("outboard, events").with(CACHE);
    let Some(outboard) = Outboard::launch(lab, &setup.with_threads(2))? else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    lab.progress(&target);
    let paths = [HELLO, KIBIBYTE, "/index.php"].map(RequestSpec::get);
    let task =
        Task { requests: paths.into(), ..Task::get(outboard.stack.address, HELLO, CONNECTIONS) };
    let (account, events) =
        load_while(&task, |background| disturb(lab, &outboard, requests, background))?;
    let good = account.statuses.get(&200).copied().unwrap_or(0);
    let bad = account.statuses.values().sum::<u64>() - good;
    let failures = account.load.failures;
    let broken = failures.total() - failures.count(Failure::Status);
    let measured = format!(
        "{:?}, {failures} failed; {} workers killed, {} purges, {} reloads",
        account.statuses, events.kills, events.purges, events.reloads
    );
    let is_met = good >= requests / 2 && bad <= events.kills && broken == 0;
    report.verdicts.push(Verdict::exact(&target, is_met, measured));
    Ok(())
}

fn disturb(
    lab: &Lab,
    outboard: &Outboard,
    requests: u64,
    background: &Background,
) -> Result<Events> {
    let mut events = Events::default();
    for step in 0..requests / BETWEEN {
        background.await_requests(BETWEEN);
        match step % 4 {
            0 | 2 => {
                outboard.purge()?;
                events.purges += 1;
            }
            1 => {
                if let Some(worker) = outboard.workers().first() {
                    janitor::signal(*worker, Signal::KILL);
                    events.kills += 1;
                }
            }
            _ => {
                outboard.reload()?;
                events.reloads += 1;
                lab.progress(&format!("reload {}", events.reloads));
            }
        }
    }
    Ok(events)
}
