//! Records the history of the dashboard, on the lead.
//!
//! Spawned by the server. Invariants: a server that has nothing to do is not woken; other tasks run between
//! any few apps.

use crate::app::App;
use crate::gateway::Gateway;
use crate::latencies::Phase;
use outboard_dashboard::{APPS_MAX, AppTotals, Totals, Usage, WorkerUsage};
use outboard_log::Wall;
use outboard_reactor::{activity, on_disk_thread, sleep, yield_now};
use outboard_supervisor::cpu;
use outboard_supervisor::memory::{Resident, available_bytes};
use outboard_trace::histogram::Snapshot;
use std::rc::Rc;

/// The interval between two points.
const INTERVAL_MS: u64 = 5_000;
/// The apps whose durations are added up in a turn of the loop.
const APPS_PER_TURN: usize = 16;

/// Records for as long as the server runs.
pub(crate) async fn record_regularly(gateway: Rc<Gateway>) {
    record(&gateway).await;
    loop {
        activity().await;
        let now_ms = Wall::now().unix_us / 1_000;
        let since_ms = now_ms.saturating_sub(gateway.history.borrow().last_ms());
        if since_ms > 2 * INTERVAL_MS {
            // The end of a quiet time, which is not part of the interval that begins.
            record(&gateway).await;
        }
        sleep(INTERVAL_MS).await;
        record(&gateway).await;
    }
}

/// Adds a point to the history.
pub(super) async fn record(gateway: &Rc<Gateway>) {
    let others = gateway.shards.on_followers(async |gateway| of_thread(&gateway).await).await;
    let mut sum = of_thread(gateway).await;
    for other in others {
        sum.classes.iter_mut().zip(other.classes).for_each(|(sum, count)| *sum += count);
        sum.body_bytes += other.body_bytes;
        sum.usage.workers.extend(other.usage.workers);
        sum.in_flight += other.in_flight;
        sum.waiting += other.waiting;
        let phases = sum.phases.iter_mut().zip(&other.phases);
        phases.for_each(|((_, sum), (_, other))| sum.add(other));
        for app in other.apps {
            match sum.apps.iter_mut().find(|known| known.name == app.name) {
                Some(known) => known.add(&app),
                None => sum.apps.push(app),
            }
        }
    }
    add_common(gateway, &mut sum);
    let workers = std::mem::take(&mut sum.usage.workers);
    sum.usage = on_disk_thread(move || usage(workers)).await;
    gateway.history.borrow_mut().add(sum);
}

/// What the threads count separately.
async fn of_thread(gateway: &Gateway) -> Totals {
    let mut totals = Totals::default();
    {
        let counters = gateway.server.counters();
        // What is no class of HTTP is counted as an incomplete response.
        for (class, count) in counters.by_class.iter().enumerate() {
            totals.classes[if class < 6 { class } else { 0 }] += count;
        }
        totals.body_bytes = counters.body_bytes;
    }
    for pool in gateway.pools.borrow().iter() {
        let app = pool.app();
        let worker = |pid| WorkerUsage { app: app.to_owned(), pid, ..WorkerUsage::default() };
        totals.usage.workers.extend(pool.worker_pids().into_iter().map(worker));
        let (in_flight, waiting) = pool.load();
        totals.in_flight += in_flight as u64;
        totals.waiting += waiting as u64;
    }
    totals.phases = no_durations();
    let generation = gateway.generation();
    for apps in generation.apps.chunks(APPS_PER_TURN) {
        for app in apps {
            if totals.apps.len() < APPS_MAX && app.latencies.classes() != [0; 6] {
                let own = of_app(app);
                let both = totals.phases.iter_mut().zip(&own.phases);
                both.for_each(|((_, sum), (_, own))| sum.add(own));
                totals.apps.push(own);
            } else {
                add_durations(app, &mut totals.phases);
            }
        }
        yield_now().await;
    }
    totals
}

/// What an app counts.
fn of_app(app: &App) -> AppTotals {
    let mut phases = no_durations();
    add_durations(app, &mut phases);
    AppTotals { name: app.config.name.clone(), classes: app.latencies.classes(), phases }
}

fn add_durations(app: &App, phases: &mut [(&'static str, Snapshot)]) {
    for (phase, (_, sum)) in Phase::ALL.into_iter().zip(phases) {
        app.latencies.add_phase(phase, sum);
    }
}

fn no_durations() -> Vec<(&'static str, Snapshot)> {
    Phase::ALL.map(|phase| (phase.name(), Snapshot::default())).into()
}

/// Processor time and memory now, with those of these workers. Another thread reads them: there may be hundreds.
fn usage(mut workers: Vec<WorkerUsage>) -> Usage {
    for worker in &mut workers {
        worker.us = cpu::process_us(worker.pid).unwrap_or(0);
        worker.own_bytes = Resident::read(worker.pid).map_or(0, |memory| memory.own_bytes());
    }
    let own_pid = std::process::id().cast_signed();
    Usage {
        machine_us: cpu::machine_us().unwrap_or(0),
        gateway_us: cpu::process_us(own_pid).unwrap_or(0),
        available_bytes: available_bytes().unwrap_or(0),
        gateway_bytes: Resident::read(own_pid).map_or(0, |memory| memory.total_bytes),
        workers,
    }
}

/// What all threads have in common.
fn add_common(gateway: &Gateway, totals: &mut Totals) {
    totals.at_ms = Wall::now().unix_us / 1_000;
    totals.connections = gateway.server.shared.open_connections();
    let generation = gateway.generation();
    for cache in generation.apps.iter().filter_map(|app| app.page_cache.as_ref()) {
        let [(_, hits), (_, stale), (_, misses), _] = cache.responses();
        totals.hits += hits + stale;
        totals.misses += misses;
    }
}

#[cfg(test)]
mod tests;
