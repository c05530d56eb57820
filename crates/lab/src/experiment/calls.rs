//! Calls of scripts to the gateway, while the server does nothing else: how long each takes.
//!
//! On a busy server something always wakes the gateway and its workers, so only here a call shows that waits for
//! the next timer.

use std::net::SocketAddr;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::http;
use crate::lab::Lab;
use crate::outboard::{NAME, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::statistics::median;
use crate::verdict::Verdict;

/// A call that has to wait for a timer of the gateway takes 20 to 250.
const LIMIT_MS: f64 = 1.0;

/// Names in `site/calls/calls.php`, those first that a script of classic mode has as well.
const CALLS: [&str; 8] = [
    "snapshot_retire",
    "cache_purge",
    "RateLimit",
    "KV::get",
    "KV::put",
    "dispatch",
    "task",
    "fetch",
];
const OF_CLASSIC_MODE: usize = 6;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let backend = Backend::start()?;
    let fixture = Fixture::unpack(lab, "calls", &[("BACKEND", &backend.url(0))])?;
    let worker = Setup::worker(&fixture, "worker.php", 1, 1).named("outboard, worker mode");
    let classic = Setup::classic(lab, &fixture.public()).named("outboard, classic mode");
    let modes =
        [(classic, "classic mode", &CALLS[..OF_CLASSIC_MODE]), (worker, "worker mode", &CALLS[..])];
    for (setup, mode, calls) in modes {
        let setup = with_services(lab, &fixture, setup)?;
        let Some(outboard) = Outboard::launch(lab, &setup)? else {
            let targets =
                calls.iter().map(|call| Verdict::not_measured(&target(mode, call), NOT_BUILT));
            report.verdicts.extend(targets);
            continue;
        };
        for call in calls {
            let times_ms = measure(outboard.stack.address, call)?;
            let (p90, longest) = (times_ms[times_ms.len() * 9 / 10], times_ms[times_ms.len() - 1]);
            let measured =
                format!("p50 {:.2} ms, p90 {p90:.2}, longest {longest:.2}", median(&times_ms));
            lab.progress(&format!("{mode}, {call}: {measured}"));
            report.verdicts.push(Verdict::exact(&target(mode, call), p90 <= LIMIT_MS, measured));
        }
    }
    Ok(())
}

fn target(mode: &str, call: &str) -> String {
    format!("idle server, {mode}: {call} takes ≤ {LIMIT_MS} ms, p90")
}

/// Tasks, a page cache, a rate limit and an entity store.
fn with_services(lab: &Lab, fixture: &Fixture, setup: Setup) -> Result<Setup> {
    let entities = lab.directory(setup.name)?.join("entities");
    let tasks = fixture.path("worker.php");
    let setup = setup.with(&format!(
        "[app.site.tasks]\nworkers = 1\nscript = {tasks:?}\n[app.site.page_cache]\n\
         [app.site.rate_limits.lab]\nrate = \"1000/s\"\n"
    ));
    Ok(Setup { server: format!("[kv]\ndata_dir = {entities:?}\n"), ..setup })
}

/// The times of a call, shortest first.
fn measure(address: SocketAddr, call: &str) -> Result<Vec<f64>> {
    let response = http::get(address, &format!("/?call={call}"))?;
    let unexpected = || Error::Unexpected { who: NAME.into(), what: response.summary() };
    let text = std::str::from_utf8(&response.body).map_err(|_| unexpected())?;
    let times_us = text.split(' ').map(str::parse).collect::<std::result::Result<Vec<f64>, _>>();
    let mut times_ms: Vec<f64> =
        times_us.map_err(|_| unexpected())?.iter().map(|us| us / 1e3).collect();
    times_ms.sort_by(f64::total_cmp);
    Ok(times_ms)
}
