//! The pages of a running server, as operators read them.

use crate::status::{state, write};
use crate::terminal::Terminal;
use outboard_admin_api::status::Status;
use serde_json::{Value, json};

const PLAIN: Terminal = Terminal { color_out: false, color_err: false };

/// The status of a server, with these fields changed.
fn status(changes: Value) -> Status {
    let mut status = json!({
        "environment": "production", "version": "1.2.3", "pid": 7, "threads": 2, "uptime_s": 61,
        "generation": 3, "drain_timeout_ms": 30_000, "ready": true, "draining": false,
        "listeners": ["0.0.0.0:80", "0.0.0.0:443"], "connections": 4, "max_connections": 100,
        "streams": 0, "accepted": 50, "requests": 60, "body_bytes": 0, "responses": {},
        "tls": { "full_1_2": 0, "resumed_1_2": 0, "full_1_3": 0, "resumed_1_3": 0, "failed": 0 },
        "reasons": [], "memory": [], "lost_log_lines": 0, "pools": [], "tasks": [],
        "latencies": [], "unshared_page_caches": [],
        "upstream": {
            "requests": 0, "under_way": 0, "responses": 0, "connections": 0, "reused": 0,
            "idle": 0, "redirects": 0, "retries": 0, "failures": {},
        },
        "turns": {
            "count": 0, "longest_us": 0, "over_1_ms": 0, "over_5_ms": 0, "over_20_ms": 0,
            "over_100_ms": 0,
        },
    });
    for (name, value) in changes.as_object().unwrap() {
        status[name] = value.clone();
    }
    serde_json::from_value(status).unwrap()
}

fn page(changes: Value, terminal: Terminal) -> String {
    let mut page = String::new();
    write(&mut page, &status(changes), &terminal).unwrap();
    page
}

/// A pool, with these fields changed.
fn pool(changes: Value) -> Value {
    let pool = outboard_admin_api::status::Pool {
        app: "shop".to_owned(),
        mode: "worker".to_owned(),
        concurrency: 8,
        phase: "serving".to_owned(),
        php_version: "8.2".to_owned(),
        min: 1,
        max: 4,
        sizing: "by processors".to_owned(),
        mean_start_us: 1_234,
        direct_connections: 0,
        direct_requests: 0,
        adopted_requests: 0,
        ..Default::default()
    };
    let mut pool = serde_json::to_value(pool).unwrap();
    for (name, value) in changes.as_object().unwrap() {
        pool[name] = value.clone();
    }
    json!({ "pools": [pool] })
}

#[test]
fn a_server_without_requests_is_three_lines() {
    let expected = "outboard 1.2.3 RUNNING  pid 7  up 1 min 1 s  generation 3  threads 2\n\
                    listening    0.0.0.0:80, 0.0.0.0:443\n\
                    connections  4 open, 50 accepted\n\
                    requests     60\n";
    assert_eq!(page(json!({}), PLAIN), expected);
    let gathered = page(json!({ "active_threads": 1 }), PLAIN);
    assert!(gathered.contains("  threads 2 (1 active)\n"), "{gathered}");
    let colored = page(json!({}), Terminal { color_out: true, color_err: false });
    assert!(
        colored.starts_with("\u{1b}[1moutboard 1.2.3\u{1b}[0m \u{1b}[1mRUNNING"),
        "{colored:?}"
    );
}

#[test]
fn the_state_is_the_next_one() {
    for (ready, draining, expected) in [
        (true, false, "RUNNING"),
        (false, false, "STARTING"),
        (true, true, "STOPPING"),
        (false, true, "STOPPING"),
    ] {
        assert_eq!(state(&status(json!({ "ready": ready, "draining": draining }))), expected);
    }
}

#[test]
fn uptimes_have_two_units() {
    for (seconds, expected) in [
        (0, "up 0 s"),
        (59, "up 59 s"),
        (3_599, "up 59 min 59 s"),
        (3_600, "up 1 h 0 min"),
        (86_399, "up 23 h 59 min"),
        (90_000, "up 1 d 1 h"),
    ] {
        let page = page(json!({ "uptime_s": seconds }), PLAIN);
        assert!(page.contains(&format!("  {expected}  ")), "{page}");
    }
}

#[test]
fn refusals_are_listed_with_their_reasons() {
    let page = page(
        json!({
            "responses": { "2xx": 58, "5xx": 2 },
            "reasons": [{ "reason": "queue-full", "status": 503, "count": 2 }],
            "unshared_page_caches": [{ "app": "shop", "why": "no route" }],
        }),
        PLAIN,
    );
    let rest: Vec<&str> = page.lines().skip(3).collect();
    let expected = [
        "requests     60 (2xx 58, 5xx 2)",
        "         2 × queue-full (503)",
        "page cache   of shop not shared: no route",
    ];
    assert_eq!(rest, expected);
}

#[test]
fn accounts_of_apps_are_shown_once_they_refused() {
    let account = |kind: &str, app: Option<&str>, refused: u64| {
        json!({
            "kind": kind, "app": app, "held_bytes": 2048, "peak_bytes": 4096,
            "limit_bytes": 1 << 20, "refused": refused,
        })
    };
    let memory = json!([
        account("all", None, 0),
        account("request_bodies", None, 0),
        account("request_bodies", Some("a"), 0),
        account("request_bodies", Some("b"), 3),
    ]);
    let page = page(json!({ "memory": memory }), PLAIN);
    let rest: Vec<&str> = page.lines().skip(4).collect();
    let expected = [
        "memory       2 KiB held, 4 KiB at most, of 1 MiB; 0 refused",
        "  request bodies  2 KiB held, 4 KiB at most, of 1 MiB; 0 refused",
        "  request bodies of b 2 KiB held, 4 KiB at most, of 1 MiB; 3 refused",
    ];
    assert_eq!(rest, expected);
}

#[test]
fn durations_are_a_table_with_the_app_first() {
    let latency = |kind: &str| {
        json!({
            "app": "shop", "kind": kind, "count": 9, "p50_us": 1_234, "p90_us": 20_000, "p99_us": 5,
        })
    };
    let page = page(json!({ "latencies": [latency("all"), latency("script")] }), PLAIN);
    let words = |at: usize| page.lines().nth(at).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(4), ["APP,", "KIND", "REQUESTS", "P50", "P90", "P99"]);
    assert_eq!(words(5), ["shop", "9", "1.23", "ms", "20.00", "ms", "0.00", "ms"]);
    assert_eq!(words(6)[0], "script");
}

#[test]
fn a_pool_has_its_workers_and_their_requests() {
    let worker = json!({
        "pid": 11, "state": "busy", "in_flight": 2, "request": "GET /a", "for_ms": 5, "served": 6,
        "memory_bytes": 7 << 20,
    });
    let starting = json!({
        "pid": null, "state": "booting", "in_flight": 0, "request": null, "for_ms": 1, "served": 0,
        "memory_bytes": 0,
    });
    let page = page(pool(json!({ "workers": [worker, starting], "zygote_pid": 9 })), PLAIN);
    let line = |at: usize| page.lines().nth(at).unwrap();
    assert_eq!(
        line(5),
        "app shop serving  worker ×8  PHP 8.2  zygote 9  1 to 4 workers, 0 in flight, 0 waiting"
    );
    assert_eq!(line(7), "  by processors");
    let words = |at: usize| line(at).split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(9), ["11", "busy", "5", "ms", "2/8", "6", "7", "MiB", "GET", "/a"]);
    assert_eq!(words(10), ["–", "booting", "1", "ms", "0/8", "0", "0", "MiB"]);
}

#[test]
fn a_pool_states_how_requests_are_isolated() {
    let rewind = json!({
        "writes_by": "page map", "snapshot_bytes": 3 << 20, "rewinds": 4, "mean_us": 5, "mean_pages": 6,
    });
    for (changes, mode, line) in [
        (json!({ "mode": "classic", "concurrency": 1 }), "classic", None),
        (json!({ "concurrency": 1 }), "worker", None),
        (
            json!({ "isolation": "rewind", "rewind": rewind }),
            "worker, rewind by page map",
            Some("  rewinds 4, 5 µs and 6 pages each, of 3 MiB; a worker is ready after 1.23 ms"),
        ),
        (
            json!({ "isolation": "rewind", "rewind_refused": "no userfaultfd" }),
            "worker, rewind is impossible here: fork",
            Some("  no rewind: no userfaultfd; a fork for each request is ready after 1.23 ms"),
        ),
        (
            json!({ "start_failure": "no such extension" }),
            "worker ×8",
            Some("  PHP does not start: no such extension"),
        ),
    ] {
        let page = page(pool(changes), PLAIN);
        assert!(page.contains(&format!("app shop serving  {mode}  PHP")), "{page}");
        assert!(line.is_none_or(|line| page.lines().any(|one| one == line)), "{page}");
    }
}

#[test]
fn a_snapshot_states_why_it_was_retired() {
    let mut snapshot = json!({
        "retired": 2, "failures": 0, "last_cause": null, "last_at_s": null, "files": 9,
        "watched_directories": 1, "compared_files": 0, "unseen_files": 0, "keys": [], "held": 0,
    });
    let line = |snapshot: &Value| {
        let page = page(pool(json!({ "snapshot": snapshot })), PLAIN);
        page.lines().find(|line| line.starts_with("  snapshot")).unwrap().to_owned()
    };
    assert_eq!(line(&snapshot), "  snapshot of 9 files, retired 2 times");
    (snapshot["compared_files"], snapshot["last_cause"]) = (3.into(), "/a.php".into());
    (snapshot["failures"], snapshot["held"]) = (1.into(), 5.into());
    assert_eq!(
        line(&snapshot),
        "  snapshot of 9 files (3 compared every two seconds), retired 2 times, last because of /a.php; \
         1 starts failed; 5 requests wait for the next"
    );
}

#[test]
fn only_the_routes_with_the_highest_peaks_are_shown() {
    let route = |at: u64| {
        json!({
            "route": format!("/{at}"), "requests": at, "mean_peak_bytes": 2048,
            "max_peak_bytes": 4096, "growth_bytes": -1024,
        })
    };
    let routes: Vec<Value> = (0..12).map(route).collect();
    let wait = json!({ "call": "poll", "suspended": 1, "blocked": 2, "blocked_ms": 3 });
    let page = page(pool(json!({ "routes": routes, "waits": [wait] })), PLAIN);
    let rest: Vec<&str> = page.lines().skip(9).collect();
    assert_eq!(rest[0].split_whitespace().next(), Some("WAITS"));
    assert_eq!(rest[1].split_whitespace().collect::<Vec<_>>(), ["poll", "1", "2", "3", "ms"]);
    let words: Vec<&str> = rest[3].split_whitespace().collect();
    assert_eq!(words, ["0", "2", "KiB", "4", "KiB", "-1", "KiB", "/0"]);
    assert_eq!(rest.last(), Some(&"  … and 2 more, with --json"));
    assert_eq!(rest.len(), 14);
}

#[test]
fn tasks_and_snapshots_of_scripts_have_their_own_paragraphs() {
    let tasks = json!({
        "app": "shop", "waiting": 1, "running": 2, "bytes": 3072, "accepted": 4, "refused": 5,
        "done": 6, "retried": 7, "lost": 8, "given_up": 9,
    });
    let script = |refused_because: Option<&str>| {
        json!({
            "app": "blog", "script": "/index.php", "snapshots": 2, "refused_because": refused_because,
            "reads": [{ "name": "_GET", "file": "/a.php", "line": 3 }],
        })
    };
    let changes =
        json!({ "tasks": [tasks], "snapshots": [script(None), script(Some("it echoes"))] });
    let page = page(changes, PLAIN);
    let rest: Vec<&str> = page.lines().skip(4).filter(|line| !line.is_empty()).collect();
    let expected = [
        "snapshots of blog /index.php 2",
        "  reads _GET in /a.php:3",
        "snapshots of blog /index.php none: it echoes",
        "  reads _GET in /a.php:3",
        "tasks of shop 1 waiting, 2 running, 3 KiB; 4 taken, 5 refused, 6 done, 7 tried again, \
         8 lost with a worker, 9 given up",
    ];
    assert_eq!(rest, expected);
}
