//! Sums of the threads' figures.

use super::*;
use outboard_admin_api::status::{UnsharedPageCache, Worker};

/// The status of a thread with these pools, each with its number as all of its figures.
fn status(pools: &[(&str, u64)]) -> Status {
    let value = serde_json::json!({
        "name": null, "environment": "production", "version": "1", "pid": 1, "threads": 1, "active_threads": 1,
        "uptime_s": 5, "generation": 2, "drain_timeout_ms": 1, "ready": true,
        "draining": false, "listeners": ["a"], "connections": 7, "max_connections": 8,
        "streams": 2, "accepted": 10, "requests": 20, "body_bytes": 30,
        "responses": {"2xx": 3},
        "tls": {"full_1_2": 1, "resumed_1_2": 2, "full_1_3": 3, "resumed_1_3": 4, "failed": 5},
        "reasons": [], "memory": [],
        "upstream": {
            "requests": 1, "under_way": 2, "responses": 3, "connections": 4, "reused": 5,
            "idle": 6, "redirects": 7, "retries": 8, "failures": {"dns": 1},
        },
        "turns": {
            "count": 9, "longest_us": 100, "over_1_ms": 4, "over_5_ms": 3, "over_20_ms": 2,
            "over_100_ms": 1,
        },
        "lost_log_lines": 1, "pools": [], "tasks": [], "latencies": [], "unshared_page_caches": [],
    });
    let status: Status = serde_json::from_value(value).expect("a status");
    Status { pools: pools.iter().map(|(app, figure)| pool(app, *figure)).collect(), ..status }
}

fn pool(app: &str, figure: u64) -> Pool {
    let count = figure as usize;
    let worker = Worker {
        pid: Some(figure as i32),
        state: "idle".to_owned(),
        in_flight: 0,
        request: None,
        for_ms: 0,
        served: 0,
        memory_bytes: 0,
    };
    Pool {
        app: app.to_owned(),
        min: count,
        max: count,
        queue_length: figure,
        in_flight: count,
        requests: figure,
        direct_connections: count,
        direct_requests: figure,
        adopted_requests: figure,
        queued: figure,
        rejected: figure,
        crashes: figure,
        deadlines: figure,
        recycled: figure,
        forks: figure,
        mean_start_us: figure,
        workers: vec![worker],
        ..Pool::default()
    }
}

fn sum_of(mut lead: Status, others: impl IntoIterator<Item = Status>) -> Status {
    others.into_iter().for_each(|other| add(&mut lead, other));
    lead
}

#[test]
fn what_is_counted_per_thread_is_added_and_what_all_share_is_not() {
    let sum = sum_of(status(&[]), [status(&[]), status(&[])]);
    assert_eq!((sum.threads, sum.accepted, sum.requests, sum.body_bytes), (3, 30, 60, 90));
    assert_eq!((sum.connections, sum.max_connections, sum.streams), (7, 8, 6));
    assert_eq!((sum.lost_log_lines, sum.responses["2xx"], sum.uptime_s), (3, 9, 5));
    assert_eq!(sum.listeners, ["a"]);
    assert_eq!((sum.tls.full_1_2, sum.tls.resumed_1_2, sum.tls.failed), (3, 6, 15));
    assert_eq!((sum.tls.full_1_3, sum.tls.resumed_1_3), (9, 12));
    assert_eq!(sum.turns.count, 27);
    let over = [sum.turns.over_1_ms, sum.turns.over_5_ms, sum.turns.over_20_ms];
    assert_eq!((over, sum.turns.over_100_ms), ([12, 9, 6], 3));
    assert_eq!((sum.upstream.requests, sum.upstream.retries), (3, 24));
    assert_eq!(sum.upstream.failures["dns"], 3);
}

#[test]
fn the_longest_turn_is_that_of_any_thread() {
    let mut other = status(&[]);
    other.turns.longest_us = 500;
    assert_eq!(sum_of(status(&[]), [other, status(&[])]).turns.longest_us, 500);
}

#[test]
fn names_that_only_another_thread_knows_are_added() {
    let mut other = status(&[]);
    other.responses = BTreeMap::from([("5xx".to_owned(), 2)]);
    let reason = |count| ReasonCount { reason: "a".to_owned(), status: 503, count };
    other.reasons = vec![reason(4)];
    let cache = UnsharedPageCache { app: "site".to_owned(), why: "gone".to_owned() };
    other.unshared_page_caches = vec![cache];
    let mut third = other.clone();
    third.reasons = vec![reason(5)];
    let sum = sum_of(status(&[]), [other, third]);
    assert_eq!((sum.responses["2xx"], sum.responses["5xx"]), (3, 4));
    assert_eq!(sum.reasons, [reason(9)]);
    assert_eq!(sum.unshared_page_caches.len(), 1, "it is the same one");
}

/// The figures of each pool of the sum, by app.
fn pools_of(lead: &[(&str, u64)], others: &[&[(&str, u64)]]) -> Vec<(String, u64, usize)> {
    let sum = sum_of(status(lead), others.iter().map(|pools| status(pools)));
    let figures = |pool: Pool| {
        let counts = [pool.queue_length, pool.queued, pool.rejected, pool.crashes];
        let direct = [pool.direct_connections as u64, pool.direct_requests, pool.adopted_requests];
        assert!(direct.iter().all(|figure| *figure == pool.requests), "{pool:?}");
        let more = [pool.deadlines, pool.recycled, pool.forks];
        let mut all = counts.iter().chain(&more);
        assert!(all.all(|figure| *figure == pool.requests), "{pool:?}");
        assert_eq!((pool.min as u64, pool.max as u64), (pool.requests, pool.requests));
        assert_eq!(pool.in_flight as u64, pool.requests);
        (pool.app, pool.requests, pool.workers.len())
    };
    sum.pools.into_iter().map(figures).collect()
}

fn named(pools: &[(&str, u64, usize)]) -> Vec<(String, u64, usize)> {
    pools.iter().map(|(app, figure, workers)| ((*app).to_owned(), *figure, *workers)).collect()
}

#[test]
fn the_pools_of_an_app_are_one_where_names_must_be_unique() {
    let pools = [("a", 1), ("b", 2), ("a", 10), ("a", 100)].map(|(app, figure)| pool(app, figure));
    let merged = crate::status::by_app(pools.into());
    let merged = merged.into_iter().map(|pool| (pool.app, pool.requests));
    assert_eq!(merged.collect::<Vec<_>>(), [("b".to_owned(), 2), ("a".to_owned(), 111)]);
}

#[test]
fn pools_are_added_by_app_and_generation() {
    for (lead, other, sum) in [
        (&[("a", 1), ("b", 2)][..], &[("a", 10), ("b", 20)][..], &[("a", 11, 2), ("b", 22, 2)][..]),
        // An old generation beside the new one, in their order.
        (
            &[("a", 1), ("b", 2), ("a", 3), ("b", 4)],
            &[("a", 10), ("b", 20), ("a", 30), ("b", 40)],
            &[("a", 11, 2), ("b", 22, 2), ("a", 33, 2), ("b", 44, 2)],
        ),
        // Only one of the threads still has the old one.
        (&[("a", 1), ("a", 3)], &[("a", 30)], &[("a", 1, 1), ("a", 33, 2)]),
        (&[("a", 3)], &[("a", 10), ("a", 30)], &[("a", 43, 3)]),
        (
            &[("a", 1), ("b", 2), ("a", 3), ("b", 4)],
            &[("b", 20), ("a", 30), ("b", 40)],
            &[("a", 1, 1), ("b", 22, 2), ("a", 33, 2), ("b", 44, 2)],
        ),
        // Task workers are the lead's.
        (&[("a", 1), ("a tasks", 5)], &[("a", 10)], &[("a", 11, 2), ("a tasks", 5, 1)]),
        (&[], &[("a", 10)], &[]),
    ] {
        assert_eq!(pools_of(lead, &[other]), named(sum), "{lead:?} {other:?}");
    }
    let three = pools_of(&[("a", 1)], &[&[("a", 10)], &[("a", 100)]]);
    assert_eq!(three, named(&[("a", 111, 3)]));
}

#[test]
fn routes_and_waits_are_added_by_name() {
    let route = |name: &str, requests, mean_peak_bytes, max_peak_bytes| Route {
        route: name.to_owned(),
        requests,
        mean_peak_bytes,
        max_peak_bytes,
        growth_bytes: -5,
    };
    let wait = |call: &str| Wait { call: call.to_owned(), suspended: 1, blocked: 2, blocked_ms: 3 };
    let (mut lead, mut other) = (status(&[("a", 1)]), status(&[("a", 1)]));
    lead.pools[0].routes = vec![route("/", 1, 100, 100), route("/none", 0, 0, 0)];
    lead.pools[0].waits = vec![wait("sleep")];
    other.pools[0].routes =
        vec![route("/", 3, 200, 900), route("/none", 0, 0, 0), route("/other", 1, 1, 1)];
    other.pools[0].waits = vec![wait("sleep"), wait("flock")];
    let sum = sum_of(lead, [other]).pools.remove(0);
    let mut whole = route("/", 4, 175, 900);
    whole.growth_bytes = -10;
    let none = Route { growth_bytes: -10, ..route("/none", 0, 0, 0) };
    assert_eq!(sum.routes, [whole, none, route("/other", 1, 1, 1)]);
    let twice = Wait { suspended: 2, blocked: 4, blocked_ms: 6, ..wait("sleep") };
    assert_eq!(sum.waits, [twice, wait("flock")]);
}
