//! What is killed comes back, what ends early costs nothing, and nothing is left at the end.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Process, eventually, repeating};
use rustix::process::Signal;
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn serving(tables: &str) -> Configured {
    Configured::serving("supervision", tables)
}

/// Asks until the pool serves again; what it says meanwhile is honest.
#[track_caller]
fn serves_again(site: &Configured) {
    let response = eventually("the pool serves again", || {
        let response = site.client().get("/hello.php");
        assert!(matches!(response.status, 200 | 502 | 503), "{response:?}");
        if response.status == 200 { Ok(response) } else { Err(response) }
    });
    assert_eq!(response.text(), "Hello, world\n");
}

/// Any process of the user that PHP runs as can stop it, PHP itself among them.
#[test]
fn a_stopped_zygote_is_replaced_and_its_stuck_worker_ends() {
    let site = serving(
        "[limits]\nrequest_deadline = \"300ms\"\n[pool]\nmin = 1\nmax = 1\nloopback_slots = 0",
    );
    let zygote = site.processes()[0];
    let stopped = rustix::process::Pid::from_raw(zygote as i32).expect("it runs");
    let mut held = site.hold();
    rustix::process::kill_process(stopped, Signal::STOP).expect("it runs");
    let response = held.answer().expect(504);
    assert_eq!(response.header("x-outboard-reason"), Some("deadline"));
    site.logs(&["did not end a worker", "it is killed"]);
    held.worker().wait_until_gone();
    serves_again(&site);
}

/// Without pauses each request of a crawler would cost a fork and a line in the log.
#[test]
fn an_app_that_always_crashes_is_paused_and_recovers() {
    let site = serving("[pool]\nmin = 1\nmax = 1\nloopback_slots = 0");
    let mut refused = 0;
    let began = Instant::now();
    while refused < 50 {
        let response = site.client().get("/crash.php");
        match response.status {
            502 => {}
            503 => {
                assert_eq!(response.header("x-outboard-reason"), Some("app_down"));
                refused += 1;
            }
            _ => panic!("{response:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no request is refused");
    }
    site.logs(&["each of the last 20 requests has killed its worker"]);
    let pool = &site.status()["pools"][0];
    assert_eq!(pool["phase"], "crashing", "{pool:#}");
    assert!(pool["crashes"].as_u64() < Some(60), "{pool:#}");
    serves_again(&site);
    site.logs(&["a request has succeeded"]);
    assert_eq!(site.status()["pools"][0]["phase"], "serving");
}

#[test]
fn a_hundred_kills_cost_a_hundred_requests() {
    let site = serving("[pool]\nmin = 2\nmax = 2");
    for _ in 0..100 {
        let mut held = site.hold();
        held.worker().kill();
        let response = held.answer().expect(502);
        assert_eq!(response.header("x-outboard-reason"), Some("worker_crashed"));
        site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    }
    assert_eq!(site.status()["pools"][0]["crashes"].as_u64(), Some(100));
}

#[test]
fn all_workers_killed_at_once_come_back() {
    let site = serving("[pool]\nmin = 4\nmax = 4");
    let held: Vec<_> = (0..4).map(|_| site.hold()).collect();
    held.iter().for_each(|held| held.worker().kill());
    for mut held in held {
        held.answer().expect(502);
    }
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    // All four of them: none would be free otherwise.
    let held: Vec<_> = (0..4).map(|_| site.hold()).collect();
    held.into_iter().for_each(|held| held.finishes());
}

#[test]
fn scripts_that_end_early_end_no_worker() {
    let site = serving("[pool]\nmin = 1\nmax = 1");
    let pid = site.client().get("/pid.php").expect(200).text();
    for (how, status) in [
        ("exit", 200),
        ("exits_in_shutdown", 200),
        ("throws", 500),
        ("undefined", 500),
        ("memory", 500),
        ("compile", 500),
    ] {
        site.client().get(&format!("/ends.php?how={how}")).expect(status);
        site.client().get("/pid.php").expect(200).saying(&pid);
    }
    site.logs(&["app=site", "on purpose", "ends.php"]);
}

#[test]
fn a_killed_zygote_comes_back_with_its_workers() {
    let site = serving("[pool]\nmin = 2\nmax = 2");
    for _ in 0..3 {
        eventually("a zygote is there", || !site.processes().is_empty());
        let before = site.processes();
        let zygote = Process::of(before[0]);
        zygote.kill();
        zygote.wait_until_gone();
        serves_again(&site);
        assert_ne!(site.processes()[0], before[0]);
        // Both workers are there: none would be free otherwise.
        let (one, other) = (site.hold(), site.hold());
        one.finishes();
        other.finishes();
    }
}

#[test]
fn nothing_survives_a_killed_gateway() {
    let site = serving("[pool]\nmin = 3\nmax = 3");
    let _held = [site.hold(), site.hold()];
    let processes: Vec<Process> = site.processes().into_iter().map(Process::of).collect();
    assert_eq!(processes.len(), site.threads() + 3, "zygotes and three workers");
    site.child().signal(Signal::KILL);
    for process in &processes {
        process.wait_until_gone();
    }
}

#[test]
fn a_stop_lets_requests_finish_and_leaves_nothing() {
    for how in ["SIGTERM", "SIGINT", "outboard stop"] {
        let site = serving("[pool]\nmin = 2\nmax = 2");
        let held = site.hold();
        let processes: Vec<Process> = site.processes().into_iter().map(Process::of).collect();
        match how {
            "SIGTERM" => site.child().signal(Signal::TERM),
            "SIGINT" => site.child().signal(Signal::INT),
            _ => assert!(site.command("stop", &[]).status.success()),
        }
        site.logs(&["stopping"]);
        eventually("no connection is accepted", || TcpStream::connect(site.served_at()).is_err());
        held.finishes();
        assert_eq!(site.child().wait(), Some(0), "{how}: {}", site.child().output());
        for process in &processes {
            process.wait_until_gone();
        }
    }
}

#[test]
fn unfinished_requests_end_at_the_drain_timeout() {
    let text =
        format!("drain_timeout = \"300ms\"\n{}", Configured::text("[pool]\nmin = 1\nmax = 1"));
    let site = Configured::start(outboard_e2e::Docroot::of("supervision"), &text);
    let mut held = site.hold();
    site.child().signal(Signal::TERM);
    held.answer().expect(503);
    held.worker().wait_until_gone();
    assert_eq!(site.child().wait(), Some(0), "{}", site.child().output());
}

fn recycled(site: &Configured) -> u64 {
    site.status()["pools"][0]["recycled"].as_u64().expect("a number")
}

#[test]
fn workers_are_recycled_without_a_failed_request() {
    let site = serving("[pool]\nmin = 2\nmax = 2\nmax_requests = 10\nmax_requests_jitter = \"0%\"");
    let client = |is_over: &dyn Fn() -> bool| {
        let mut wire = site.wire();
        while !is_over() {
            wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
            let head = wire.head();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            wire.expect("Hello, world\n");
        }
    };
    repeating(4, client, || {
        // One at a time is away, so how many are renewed depends on how fast the machine forks.
        eventually("20 workers are replaced", || recycled(&site) >= 20);
    });
    let pool = &site.status()["pools"][0];
    assert_eq!(pool["crashes"].as_u64(), Some(0), "{pool:#}");
}

#[test]
fn a_worker_is_never_recycled_in_the_middle_of_a_request() {
    let site = serving("[pool]\nmin = 2\nmax = 2\nmax_requests = 1\nmax_requests_jitter = \"0%\"");
    let held = site.hold();
    for _ in 0..20 {
        site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    }
    held.finishes();
}
