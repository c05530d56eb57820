//! The status report, for `outboard status` and for metrics.

mod sum;

use crate::app::App;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::measured::Measured;
use crate::upstreams;
use outboard_admin_api::status::{Pool, Status, Turns, UnsharedPageCache, Upstream};
use outboard_log::Wall;
use outboard_upstream::Client;

fn upstream(client: &Client) -> Upstream {
    let counters = client.counters();
    let gauges = client.gauges();
    let failures = counters.failures().filter(|(_, count)| *count > 0);
    Upstream {
        requests: counters.requests,
        under_way: gauges.under_way,
        responses: gauges.responses,
        connections: counters.connections,
        reused: counters.reused,
        idle: gauges.idle,
        redirects: counters.redirects,
        retries: counters.retries,
        failures: failures.map(|(kind, count)| (kind.word().to_owned(), count)).collect(),
    }
}

fn turns() -> Turns {
    let turns = outboard_reactor::turns();
    let [over_1_ms, over_5_ms, over_20_ms, over_100_ms] = turns.slow;
    let longest_us = u64::try_from(turns.longest.as_micros()).unwrap_or(u64::MAX);
    Turns { count: turns.count, longest_us, over_1_ms, over_5_ms, over_20_ms, over_100_ms }
}

/// The state of the server now, all threads together. Called on the lead's thread.
pub(crate) async fn of(gateway: &Gateway) -> Status {
    let mut status = of_thread(gateway);
    let others = gateway.shards.on_followers(async |gateway| of_thread(&gateway)).await;
    others.into_iter().for_each(|other| sum::add(&mut status, other));
    status.latencies = Measured::of(gateway).await.quantiles();
    status
}

/// The pools, those of an app together: of several, all but the newest finish their requests.
pub(crate) fn by_app(pools: Vec<Pool>) -> Vec<Pool> {
    let mut apps: Vec<Pool> = Vec::with_capacity(pools.len());
    for pool in pools.into_iter().rev() {
        match apps.iter_mut().find(|newest| newest.app == pool.app) {
            Some(newest) => sum::add_pool(newest, pool),
            None => apps.push(pool),
        }
    }
    apps.reverse();
    apps
}

/// The state of the gateway of this thread.
fn of_thread(gateway: &Gateway) -> Status {
    let counters = gateway.server.counters();
    let generation = gateway.generation();
    let classes = counters.by_class.iter().enumerate().filter(|(_, count)| **count > 0);
    let listeners = gateway.listeners.borrow();
    Status {
        name: gateway.name.borrow().clone(),
        environment: generation.config.environment().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        threads: 1,
        active_threads: u32::try_from(gateway.spread.active()).unwrap_or(u32::MAX),
        uptime_s: Wall::now().unix_s().saturating_sub(gateway.started.unix_s()),
        generation: generation.number,
        drain_timeout_ms: generation.config.drain_timeout_ms,
        ready: gateway.ready.get(),
        draining: gateway.server.is_draining(),
        listeners: listeners.iter().map(|bound| bound.name()).collect(),
        connections: gateway.server.shared.open_connections(),
        max_connections: gateway.server.max_connections(),
        streams: gateway.server.open_streams(),
        accepted: counters.connections,
        tls: counters.tls,
        requests: counters.requests,
        body_bytes: counters.body_bytes,
        responses: classes.map(|(class, count)| (format!("{class}xx"), *count)).collect(),
        reasons: counters.reasons(),
        memory: gateway.server.memory.status(generation.apps.iter().map(|app| &app.memory)),
        upstream: upstream(&generation.upstream),
        upstreams: upstreams::status(&generation.upstreams),
        turns: turns(),
        lost_log_lines: gateway.sinks.borrow().all().map(|sink| sink.lost_lines()).sum(),
        pools: gateway.pools.borrow().iter().map(|pool| pool.status()).collect(),
        tasks: generation.tasks().map(|tasks| tasks.status()).collect(),
        processes: gateway.processes.status(),
        latencies: Vec::new(),
        unshared_page_caches: unshared(&generation),
        snapshots: generation.apps.iter().flat_map(|app| app.snapshot_status()).collect(),
    }
}

fn unshared(generation: &Generation) -> Vec<UnsharedPageCache> {
    let why = |app: &App| app.page_cache.as_ref()?.unshared_because();
    let apps = generation.apps.iter();
    apps.filter_map(|app| Some(UnsharedPageCache { app: app.config.name.clone(), why: why(app)? }))
        .collect()
}

#[cfg(test)]
mod tests;
