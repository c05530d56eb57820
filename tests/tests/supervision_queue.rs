//! Which requests wait for a worker, for how long, and which get 503 with Retry-After.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Response, Wire, eventually};

fn serving(pool: &str) -> Configured {
    Configured::serving("supervision", &format!("[pool]\nmin = 1\nmax = 1\n{pool}"))
}

/// An honest refusal: when to come again, and why.
#[track_caller]
fn refused(response: Response, reason: &str) {
    let response = response.expect(503);
    assert_eq!(response.header("x-outboard-reason"), Some(reason));
    let after = response.header("retry-after").expect("it says when");
    assert!(after.parse::<u32>().is_ok(), "{after}");
}

/// Sends a request that waits; returns once the server says so.
fn waiting(site: &Configured) -> Wire {
    let queued = |site: &Configured| site.status()["pools"][0]["queue_length"].as_u64();
    let before = queued(site);
    let mut wire = site.wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    eventually("the request waits", || queued(site) != before);
    wire
}

#[test]
fn a_full_queue_is_503_with_retry_after() {
    let site = serving("queue_length = 2\nloopback_slots = 0");
    let held = site.hold();
    let mut inside = [waiting(&site), waiting(&site)];
    for _ in 0..3 {
        refused(site.client().get("/hello.php"), "queue_full");
    }
    site.logs(&["app=site", "reason=queue_full", "status=503"]);
    held.finishes();
    for wire in &mut inside {
        assert!(wire.to_end().ends_with("\r\n\r\nHello, world\n"));
    }
    assert_eq!(site.status()["pools"][0]["rejected"].as_u64(), Some(3));
}

#[test]
fn a_queue_timeout_is_503_with_retry_after() {
    let site = serving("queue_timeout = \"200ms\"\nloopback_slots = 0");
    let held = site.hold();
    refused(site.client().get("/hello.php"), "queue_timeout");
    held.finishes();
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_client_that_leaves_the_queue_costs_no_worker() {
    let site = serving("loopback_slots = 0");
    let held = site.hold();
    drop((waiting(&site), waiting(&site)));
    eventually("the queue is empty", || site.status()["pools"][0]["queue_length"] == 0);
    held.finishes();
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn files_need_no_worker() {
    let site = serving("loopback_slots = 0");
    std::fs::write(site.root().join("file.txt"), "a file\n").unwrap();
    let held = site.hold();
    site.client().get("/file.txt").expect(200).saying("a file\n");
    held.finishes();
}

/// A single worker that waits for itself would be a deadlock.
#[test]
fn a_script_that_calls_its_own_site_is_answered() {
    let site = serving("queue_timeout = \"3s\"");
    for _ in 0..3 {
        site.client().get("/self_call.php").expect(200).saying("said: Hello, world\n");
    }
}

#[test]
fn a_full_pool_of_scripts_that_call_their_own_site_is_answered() {
    let tables = "[pool]\nmin = 2\nmax = 2\nqueue_timeout = \"5s\"";
    let site = Configured::serving("supervision", tables);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let response = site.client().get("/self_call.php");
                    response.expect(200).saying("said: Hello, world\n");
                }
            });
        }
    });
}
