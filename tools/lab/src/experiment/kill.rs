//! `kill -9` of workers under load: exactly their requests in flight get a 502, and a new worker is
//! there at once.
//!
//! The respawn time comes from `/proc`: from the signal to the first new child of the zygote,
//! polled every 0.1 ms.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::background::{Background, load_while};
use crate::error::{Error, Result};
use crate::generator::Task;
use crate::janitor;
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard};
use crate::report::Report;
use crate::request_trace::{RequestTrace, account_crashes};
use crate::site::{Site, TRACED};
use crate::statistics::median;
use crate::verdict::Verdict;
use outboard_profile::process_table::{Pid, Process, children};

const KILLS: u64 = 100;
const CONNECTIONS: usize = 32;

/// Requests between two kills: about one per connection.
const BETWEEN: u64 = 32;

const RESPAWN_LIMIT_MS: f64 = 5.0;

/// The timeout for a new worker and its first request.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let kills = KILLS / lab.effort.shortening;
    let exact = format!("{kills} × kill -9: 502 for exactly the requests in flight, else 200");
    let respawn = format!("{kills} × kill -9: respawn p50 < {RESPAWN_LIMIT_MS} ms");
    let site = Site::write(lab)?;
    let Some(outboard) = Outboard::start(lab, &site.root)? else {
        let missing = [exact, respawn].map(|target| Verdict::not_measured(&target, NOT_BUILT));
        report.verdicts.extend(missing);
        return Ok(());
    };
    let address = outboard.stack.address;
    let task = Task { is_numbered: true, ..Task::get(address, TRACED, CONNECTIONS) };
    let (account, deaths) =
        load_while(&task, |background| kill(&outboard, &site, kills, background))?;
    let killed: Vec<Pid> = deaths.iter().map(|death| death.pid).collect();
    let accounting = account_crashes(&RequestTrace::read(&site.trace)?, &killed, &account);
    let measured = format!(
        "{:?}; killed {} workers: {} requests running, {} at the edge, {} without a 502, {} 502s \
         unexplained, {} other failures, {} run twice",
        account.statuses,
        accounting.killed,
        accounting.running,
        accounting.at_the_edge,
        accounting.without_502,
        accounting.unexplained_502,
        accounting.other_failures,
        accounting.run_twice,
    );
    report.verdicts.push(Verdict::exact(&exact, accounting.is_exact(), measured));
    let times_ms: Vec<f64> = deaths.iter().map(|death| death.respawn_ms).collect();
    let p50 = median(&times_ms);
    let longest = times_ms.iter().copied().fold(0.0, f64::max);
    let measured = format!("p50 {p50:.2} ms, longest {longest:.2} ms");
    report.verdicts.push(Verdict::exact(&respawn, p50 < RESPAWN_LIMIT_MS, measured));
    Ok(())
}

/// A killed worker, and how long its replacement took.
struct Death {
    pid: Pid,
    respawn_ms: f64,
}

/// Kills one worker after the other; none before it has served, since that would be a failed start,
/// and none twice, however long a zombie stays in the process table.
fn kill(
    outboard: &Outboard,
    site: &Site,
    kills: u64,
    background: &Background,
) -> Result<Vec<Death>> {
    let mut deaths: Vec<Death> = Vec::new();
    for _ in 0..kills {
        background.await_requests(BETWEEN);
        let is_dead = |pid: &Pid| deaths.iter().any(|death| death.pid == *pid);
        let has_served = |pid: &Pid| site.trace.join(pid.to_string()).exists();
        let pid = wait_for("a worker that has served a request", || {
            outboard.workers().into_iter().find(|pid| has_served(pid) && !is_dead(pid))
        })?;
        deaths.push(kill_one(pid)?);
    }
    Ok(deaths)
}

fn kill_one(pid: Pid) -> Result<Death> {
    let zygote = Process::read(pid).map(|process| process.parent);
    let zygote = zygote.ok_or_else(|| missing("the zygote of a worker"))?;
    let before = children(zygote);
    let began = Instant::now();
    janitor::signal(pid, Signal::KILL);
    let is_new = |pid: &Pid| !before.contains(pid);
    wait_for("a successor of a killed worker", || children(zygote).into_iter().find(is_new))?;
    Ok(Death { pid, respawn_ms: began.elapsed().as_secs_f64() * 1e3 })
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(value) = found() {
            return Ok(value);
        }
        thread::sleep(Duration::from_micros(100));
    }
    Err(missing(what))
}

fn missing(what: &str) -> Error {
    Error::Unexpected {
        who: crate::outboard::NAME.into(),
        what: format!("timed out waiting for {what}"),
    }
}
