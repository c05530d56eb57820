//! The status of all threads together, from the statuses of each.
//!
//! Called by [`super::of`]. Invariant: a figure is that of the whole server, as if it had one thread;
//! what only the lead has is the lead's. Connections, and the limits and peaks of memory are
//! those of all threads together, so each of them reports all.

use outboard_admin_api::status::{
    MemoryAccount, Pool, ReasonCount, Rewind, Route, Status, Tls, Turns, Upstream, Wait,
};
use std::collections::BTreeMap;

/// Adds the status of another thread to the lead's.
pub(super) fn add(sum: &mut Status, other: Status) {
    sum.threads += other.threads;
    sum.accepted += other.accepted;
    add_tls(&mut sum.tls, other.tls);
    sum.requests += other.requests;
    sum.body_bytes += other.body_bytes;
    sum.streams += other.streams;
    sum.lost_log_lines += other.lost_log_lines;
    for account in other.memory {
        add_held(&mut sum.memory, &account);
    }
    add_counts(&mut sum.responses, other.responses);
    for reason in other.reasons {
        add_reason(&mut sum.reasons, reason);
    }
    add_upstream(&mut sum.upstream, other.upstream);
    add_turns(&mut sum.turns, &other.turns);
    add_pools(&mut sum.pools, other.pools);
    for cache in other.unshared_page_caches {
        if sum.unshared_page_caches.iter().all(|known| known.app != cache.app) {
            sum.unshared_page_caches.push(cache);
        }
    }
}

fn add_counts(sum: &mut BTreeMap<String, u64>, other: BTreeMap<String, u64>) {
    for (name, count) in other {
        *sum.entry(name).or_default() += count;
    }
}

fn add_tls(sum: &mut Tls, other: Tls) {
    sum.full_1_2 += other.full_1_2;
    sum.resumed_1_2 += other.resumed_1_2;
    sum.full_1_3 += other.full_1_3;
    sum.resumed_1_3 += other.resumed_1_3;
    sum.failed += other.failed;
}

fn add_reason(sum: &mut Vec<ReasonCount>, other: ReasonCount) {
    match sum.iter_mut().find(|known| known.reason == other.reason) {
        Some(known) => known.count += other.count,
        None => sum.push(other),
    }
}

fn add_held(sum: &mut [MemoryAccount], other: &MemoryAccount) {
    let is_it = |known: &&mut MemoryAccount| known.kind == other.kind && known.app == other.app;
    if let Some(known) = sum.iter_mut().find(is_it) {
        known.held_bytes += other.held_bytes;
    }
}

fn add_upstream(sum: &mut Upstream, other: Upstream) {
    sum.requests += other.requests;
    sum.under_way += other.under_way;
    sum.responses += other.responses;
    sum.connections += other.connections;
    sum.reused += other.reused;
    sum.idle += other.idle;
    sum.redirects += other.redirects;
    sum.retries += other.retries;
    add_counts(&mut sum.failures, other.failures);
}

fn add_turns(sum: &mut Turns, other: &Turns) {
    sum.count += other.count;
    sum.longest_us = sum.longest_us.max(other.longest_us);
    sum.over_1_ms += other.over_1_ms;
    sum.over_5_ms += other.over_5_ms;
    sum.over_20_ms += other.over_20_ms;
    sum.over_100_ms += other.over_100_ms;
}

/// Adds the pools of a thread to those of the same app. Of several generations the newest is the last.
fn add_pools(sum: &mut [Pool], others: Vec<Pool>) {
    let mut before = sum.len();
    for other in others.into_iter().rev() {
        let found = sum[..before].iter().rposition(|pool| pool.app == other.app);
        let place = found.or_else(|| sum.iter().rposition(|pool| pool.app == other.app));
        if let Some(place) = place {
            add_pool(&mut sum[place], other);
            before = if found.is_some() { place } else { before };
        }
    }
}

pub(super) fn add_pool(sum: &mut Pool, other: Pool) {
    sum.min += other.min;
    sum.max += other.max;
    sum.queue_length += other.queue_length;
    sum.in_flight += other.in_flight;
    sum.requests += other.requests;
    sum.direct_connections += other.direct_connections;
    sum.direct_requests += other.direct_requests;
    sum.adopted_requests += other.adopted_requests;
    sum.queued += other.queued;
    sum.rejected += other.rejected;
    sum.crashes += other.crashes;
    sum.deadlines += other.deadlines;
    sum.recycled += other.recycled;
    sum.mean_start_us = mean((sum.mean_start_us, sum.forks), (other.mean_start_us, other.forks));
    sum.forks += other.forks;
    sum.rewind.iter_mut().zip(other.rewind).for_each(|(sum, other)| add_rewind(sum, &other));
    sum.workers.extend(other.workers);
    for wait in other.waits {
        add_wait(&mut sum.waits, wait);
    }
    for route in other.routes {
        add_route(&mut sum.routes, route);
    }
}

fn add_rewind(sum: &mut Rewind, other: &Rewind) {
    sum.mean_us = mean((sum.mean_us, sum.rewinds), (other.mean_us, other.rewinds));
    sum.mean_pages = mean((sum.mean_pages, sum.rewinds), (other.mean_pages, other.rewinds));
    sum.rewinds += other.rewinds;
}

/// The mean of both, each with the number of its values.
fn mean((one, count): (u64, u64), (other, other_count): (u64, u64)) -> u64 {
    let sum = u128::from(one) * u128::from(count) + u128::from(other) * u128::from(other_count);
    let all = (u128::from(count) + u128::from(other_count)).max(1);
    u64::try_from(sum / all).unwrap_or(u64::MAX)
}

fn add_wait(sum: &mut Vec<Wait>, other: Wait) {
    match sum.iter_mut().find(|known| known.call == other.call) {
        Some(known) => {
            known.suspended += other.suspended;
            known.blocked += other.blocked;
            known.blocked_ms += other.blocked_ms;
        }
        None => sum.push(other),
    }
}

fn add_route(sum: &mut Vec<Route>, other: Route) {
    let Some(known) = sum.iter_mut().find(|known| known.route == other.route) else {
        return sum.push(other);
    };
    let requests = (known.requests + other.requests).max(1);
    let peaks = u128::from(known.mean_peak_bytes) * u128::from(known.requests)
        + u128::from(other.mean_peak_bytes) * u128::from(other.requests);
    known.mean_peak_bytes = u64::try_from(peaks / u128::from(requests)).unwrap_or(u64::MAX);
    known.requests += other.requests;
    known.max_peak_bytes = known.max_peak_bytes.max(other.max_peak_bytes);
    known.growth_bytes += other.growth_bytes;
}

#[cfg(test)]
mod tests;
