//! A request that takes too long ends at its deadline, whatever PHP is doing.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Fifo, Process, Request, Response, eventually};
use std::net::TcpListener;
use std::path::Path;

/// A server with short deadlines and a slow log of its own.
fn serving(workers: usize) -> Configured {
    let docroot = Docroot::of("deadlines");
    docroot.writable("");
    let tables = format!(
        "[limits]\nrequest_deadline = \"300ms\"\n\
         [log.slow]\npath = \"slow.log\"\nthreshold = \"10m\"\n\
         [pool]\nmin = {workers}\nmax = {workers}\nloopback_slots = 0"
    );
    Configured::start(docroot, &Configured::text(&tables))
}

/// A request of a script that never ends, and the worker that has it.
struct Stuck {
    connection: Connection,
    worker: Process,
}

impl Stuck {
    fn start(site: &Configured, target: &str) -> Stuck {
        let folder = site.docroot().beside().path();
        let mut done = Fifo::at(folder.join("done"));
        let query = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{query}done={}", done.path().display());
        let mut connection = Connection::open(site.address());
        connection.send(&Request::get(&target).to_bytes("a")).unwrap();
        let pid = done.hear().parse().expect("the script says which process it is");
        std::fs::remove_file(done.path()).unwrap();
        Stuck { connection, worker: Process::of(pid) }
    }

    #[track_caller]
    fn answer(&mut self) -> Response {
        let response = self.connection.response().unwrap().expect(504);
        assert_eq!(response.header("x-outboard-reason"), Some("deadline"));
        response
    }
}

/// The line of the fixture that holds this text.
fn line_of(text: &str) -> usize {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/deadlines/stuck.php");
    let source = std::fs::read_to_string(fixture).unwrap();
    let found = source.lines().position(|line| line.contains(text));
    1 + found.unwrap_or_else(|| panic!("no line of stuck.php holds {text:?}"))
}

/// A request is stuck in a function; all that is promised about it.
#[track_caller]
fn ends_at_the_deadline(how: &str, more: &str, statement: &str) {
    let site = serving(1);
    let mut stuck = Stuck::start(&site, &format!("/stuck.php?how={how}{more}"));
    stuck.answer();
    stuck.worker.wait_until_gone();
    // Its successor is the only worker.
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    site.logs(&["app=site", "reason=deadline", "status=504", "/stuck.php"]);
    let log = std::fs::read_to_string(site.docroot().beside().path().join("slow.log")).unwrap();
    assert!(log.contains(&format!("how={how}")), "the request is named:\n{log}");
    let place = format!("stuck.php:{}", line_of(statement));
    assert!(log.contains(how) && log.contains(&place), "{place} is not in the slow log:\n{log}");
    let call = format!("stuck.php:{}", line_of("$_GET['how']();"));
    assert!(log.contains(&call), "the caller {call} is not in the slow log:\n{log}");
}

#[test]
fn a_sleep_ends_at_the_deadline() {
    ends_at_the_deadline("sleeps", "", "sleep(1000);");
}

#[test]
fn a_busy_loop_ends_at_the_deadline() {
    ends_at_the_deadline("loops", "", "while (true);");
}

#[test]
fn a_blocked_lock_ends_at_the_deadline() {
    ends_at_the_deadline("waits_for_a_lock", "", "flock($second, LOCK_EX);");
}

#[test]
fn a_read_from_a_silent_upstream_ends_at_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    ends_at_the_deadline("reads_from_upstream", &format!("&port={port}"), "fgets($upstream);");
}

#[test]
fn a_script_that_ignores_every_limit_ends_at_the_deadline() {
    let site = serving(1);
    let mut stuck = Stuck::start(&site, "/stuck.php?how=ignores_everything");
    stuck.answer();
    stuck.worker.wait_until_gone();
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn the_locks_of_a_stuck_request_are_free_after_it() {
    let site = serving(2);
    let mut stuck = Stuck::start(&site, "/stuck.php?how=waits_for_a_lock");
    stuck.answer();
    stuck.worker.wait_until_gone();
    site.client().get("/lock.php").expect(200).saying("true\n");
}

#[test]
fn a_deadline_is_one_requests_own() {
    let site = serving(3);
    let mut stuck = Stuck::start(&site, "/stuck.php?how=loops");
    let mut client = site.client();
    let before = client.get("/pid.php").expect(200).text();
    stuck.answer();
    stuck.worker.wait_until_gone();
    // Those who answered meanwhile go on to answer.
    let process = Process::of(before.trim().parse().unwrap());
    client.get("/hello.php").expect(200).saying("Hello, world\n");
    drop(process);
    assert_eq!(site.status()["pools"][0]["deadlines"].as_u64(), Some(1));
    assert_eq!(site.status()["pools"][0]["crashes"].as_u64(), Some(0));
}

/// The status is out already; the client must not take what came for the whole.
#[test]
fn an_answer_that_has_begun_is_broken_off() {
    let site = serving(1);
    let mut wire = site.wire();
    wire.send("GET /begun.php HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = wire.head();
    assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{head}");
    let came = wire.to_any_end();
    assert!(!came.ends_with(b"0\r\n\r\n"), "the end of the chunks was sent");
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_script_that_outlives_its_answer_keeps_its_deadline() {
    let site = serving(1);
    let mut stuck = Stuck::start(&site, "/finished.php");
    stuck.connection.response().unwrap().expect(200).saying("answered\n");
    stuck.worker.wait_until_gone();
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_request_that_takes_long_is_in_the_slow_log_and_finishes() {
    let tables = "[log.slow]\npath = \"slow.log\"\nthreshold = \"10ms\"";
    let site = Configured::serving("deadlines", tables);
    let log = site.docroot().beside().path().join("slow.log");
    site.client().get("/slow.php").expect(200).saying("slow, but done\n");
    eventually("the request is in the slow log", || {
        std::fs::read_to_string(&log).unwrap_or_default().contains("/slow.php")
    });
}
