//! Worker mode from outside: which requests reach the script that stays, how many a worker has at
//! a time, and what it costs the others when one goes wrong.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Configured, Connection, Docroot, Fifo, Held, Launch, Process, Request, Server, eventually,
};
use serde_json::Value;
use std::collections::HashSet;

/// A server of the fixtures with so many workers.
/// Isolation by rewind where none is possible: each request has a fork of its own.
const FORKS: &str = "worker.isolation = \"rewind\"\nphp.env.OUTBOARD_FORBID_REWIND = \"1\"";

fn serving(workers: usize, worker: &str, tables: &str) -> Configured {
    serving_with_threads(2, workers, worker, tables)
}

fn serving_with_threads(threads: usize, workers: usize, worker: &str, tables: &str) -> Configured {
    let docroot = Docroot::of("worker_pool");
    let text = format!(
        "mode = \"worker\"\n\
         worker.script = \"www/worker.php\"\n{worker}\n\
         [pool]\nmin = {workers}\nmax = {workers}\nloopback_slots = 0\n{tables}"
    );
    Configured::start(docroot, &format!("threads = {threads}\n{}", text_with(&text)))
}

fn text_with(app: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n{app}\n"
    )
}

/// Which process answers, and how many it has answered with this.
#[track_caller]
fn who(site: &Configured) -> (u32, u32) {
    let said = site.client().get("/who").expect(200).text();
    let (pid, count) = said.trim().split_once(" answered ").expect("the fixture says so");
    (pid.parse().unwrap(), count.parse().unwrap())
}

#[track_caller]
fn pool_of(site: &Configured) -> Value {
    site.status()["pools"][0].clone()
}

#[test]
fn files_are_served_and_the_rest_goes_to_the_script() {
    let site = serving(1, "", "");
    site.client().get("/plain.txt").expect(200).saying("plain text\n");
    site.client().get("/docs/").expect(200).saying("<p>the docs\n");
    let moved = site.client().send(&Request::get("/docs")).expect(301);
    assert_eq!(moved.header("location"), Some("/docs/"));
    for target in ["/", "/who", "/page.php", "/worker.php", "/page.php/more", "/none/at/all?a=b"] {
        let said = site.client().get(target).expect(200).text();
        assert!(said.contains(" answered "), "{target}: {said}");
    }
    site.client().get("/.env").expect(404);
}

#[test]
fn a_framework_finds_its_base_path() {
    let docroot = Docroot::of("worker_pool");
    docroot.put("index.php", "<?php");
    let app = "path = \"/shop\"\nmode = \"worker\"\nworker.script = \"www/worker.php\"";
    let below = Configured::start(docroot, &text_with(app));
    let above = serving(1, "", "");
    for (site, prefix, script) in
        [(&above, "", "/www/worker.php"), (&below, "/shop", "/www/index.php")]
    {
        let target = format!("{prefix}/any/server?a=1");
        let said = site.client().get(&target).expect(200).text();
        let variables: Value = serde_json::from_str(&said).unwrap();
        let index = format!("{prefix}/index.php");
        let expected = [
            ("SCRIPT_NAME", &index[..]),
            ("PHP_SELF", &index),
            ("REQUEST_URI", &target),
            ("QUERY_STRING", "a=1"),
        ];
        for (name, value) in expected {
            assert_eq!(variables[name], value, "{name} in {said}");
        }
        assert_eq!(variables["PATH_INFO"].as_str().unwrap_or_default(), "", "{said}");
        let filename = variables["SCRIPT_FILENAME"].as_str().unwrap();
        assert!(filename.ends_with(script), "{filename}");
    }
}

#[test]
fn a_worker_keeps_what_it_knows_between_requests() {
    let site = serving(1, "", "");
    let (pid, count) = who(&site);
    assert_eq!(count, 1);
    assert_eq!(who(&site), (pid, 2));
    assert_eq!(pool_of(&site)["mode"], "worker");
}

#[test]
fn one_process_holds_many_requests_and_answers_others_meanwhile() {
    let site = serving(1, "worker.concurrency = 8", "");
    let held: Vec<Held> = (0..5).map(|_| site.hold()).collect();
    let (pid, _) = who(&site);
    assert!(held.iter().all(|held| held.pid() == pid));
    let pool = pool_of(&site);
    assert_eq!((&pool["in_flight"], &pool["concurrency"]), (&5.into(), &8.into()), "{pool:#}");
    assert_eq!(pool["workers"][0]["in_flight"], 5, "{pool:#}");
    let waits = pool["waits"].as_array().unwrap();
    assert!(waits.iter().any(|wait| wait["suspended"].as_u64() >= Some(5)), "{pool:#}");
    for held in held {
        held.finishes();
    }
    assert_eq!(pool_of(&site)["in_flight"], 0);
}

#[test]
fn beyond_its_concurrency_requests_wait() {
    let site = serving(1, "worker.concurrency = 2", "");
    let (one, two) = (site.hold(), site.hold());
    let mut third = Connection::open(site.address());
    third.send(&Request::get("/who").to_bytes("a")).unwrap();
    eventually("the third waits", || pool_of(&site)["queue_length"] == 1);
    one.finishes();
    third.response().unwrap().expect(200);
    two.finishes();
}

#[test]
fn a_killed_worker_costs_exactly_its_started_requests() {
    // Each thread chooses among its own workers.
    let site = serving_with_threads(1, 2, "worker.concurrency = 4", "");
    let mut held: Vec<Held> = (0..4).map(|_| site.hold()).collect();
    let victim = held[0].pid();
    let (mut theirs, others): (Vec<Held>, Vec<Held>) =
        held.drain(..).partition(|held| held.pid() == victim);
    assert_eq!((theirs.len(), others.len()), (2, 2), "those with fewest come first");
    theirs[0].worker().kill();
    for lost in &mut theirs {
        lost.answer().expect(502);
    }
    for held in others {
        held.finishes();
    }
    who(&site);
    assert_eq!(pool_of(&site)["crashes"], 1);
}

#[test]
fn a_request_past_its_deadline_leaves_its_neighbours_alone() {
    let site = serving(1, "worker.concurrency = 4", "[limits]\nrequest_deadline = \"500ms\"");
    let mut late = site.hold();
    let answer = late.answer().expect(504);
    assert_eq!(answer.header("x-outboard-reason"), Some("deadline"));
    site.logs(&["a request was ended at its deadline"]);
    let (pid, _) = who(&site);
    assert_eq!(pid, late.pid(), "the worker is the same");
    assert_eq!(pool_of(&site)["in_flight"], 0);
}

#[test]
fn a_worker_that_does_not_react_is_killed_at_the_deadline() {
    let site = serving(1, "worker.concurrency = 4", "[limits]\nrequest_deadline = \"500ms\"");
    let (pid, _) = who(&site);
    let worker = Process::of(pid);
    site.client().get("/forever").expect(504);
    site.logs(&["a worker is killed", "deadline"]);
    worker.wait_until_gone();
    let (successor, _) = who(&site);
    assert_ne!(successor, pid);
}

#[test]
fn a_client_that_takes_nothing_holds_up_its_own_request_alone() {
    let site = serving(1, "worker.concurrency = 4", "");
    let mut slow = Connection::open(site.address());
    slow.send(&Request::get("/flood").to_bytes("a")).unwrap();
    let waits_for_client = || {
        let waits = pool_of(&site)["waits"].as_array().cloned().unwrap_or_default();
        waits.iter().any(|wait| wait["call"] == "client" && wait["suspended"].as_u64() > Some(0))
    };
    eventually("the script waits for the client", waits_for_client);
    for _ in 0..20 {
        who(&site);
    }
    let whole = slow.response().unwrap().expect(200).body;
    let pieces = || whole.chunks(16384).enumerate();
    assert_eq!((whole.len(), pieces().count()), (32 << 20, 2048));
    assert!(pieces().all(|(number, piece)| piece.starts_with(format!("{number} .").as_bytes())));
}

#[test]
fn a_client_that_goes_ends_its_request_and_costs_no_worker() {
    let site = serving(1, "worker.concurrency = 4", "");
    let held = site.hold();
    for number in 0..3 {
        let mut done = Fifo::at(site.docroot().beside().path().join(format!("gone-{number}")));
        let mut leaving = Connection::open(site.address());
        let target = format!("/endless?done={}", done.path().display());
        leaving.send(&Request::get(&target).to_bytes("a")).unwrap();
        leaving.head().unwrap().expect(200);
        drop(leaving);
        let pid: u32 = done.hear().parse().expect("`finally` says which process it is");
        assert_eq!(pid, held.pid());
    }
    assert_eq!(who(&site).0, held.pid());
    held.finishes();
    assert_eq!(pool_of(&site)["recycled"], 0);
}

#[test]
fn with_a_fork_per_request_nothing_is_kept() {
    let site = serving(4, FORKS, "");
    let answers: Vec<(u32, u32)> = (0..20).map(|_| who(&site)).collect();
    assert!(answers.iter().all(|(_, count)| *count == 1), "{answers:?}");
    let mut pids: Vec<u32> = answers.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 20, "each by a process of its own");
    let pool = pool_of(&site);
    assert_eq!((&pool["crashes"], &pool["recycled"]), (&0.into(), &0.into()), "{pool:#}");
    assert_eq!(pool["isolation"], "rewind");
    assert_eq!(pool["rewind_refused"], "OUTBOARD_FORBID_REWIND is set");
    site.client().get("/crash").expect(502);
    assert_eq!(who(&site).1, 1);
    assert_eq!(pool_of(&site)["crashes"], 1);
}

/// Major and minor version.
fn kernel() -> (u32, u32) {
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel has one");
    let mut numbers = release.split('.').map_while(|number| number.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn with_a_rewind_after_each_request_nothing_is_kept() {
    let site = serving(4, "worker.isolation = \"rewind\"", "");
    let answers: Vec<(u32, u32)> = (0..60).map(|_| who(&site)).collect();
    assert!(answers.iter().all(|(_, count)| *count == 1), "{answers:?}");
    let pids: HashSet<u32> = answers.iter().map(|(pid, _)| *pid).collect();
    assert!(pids.len() <= 4, "by the same processes: {pids:?}");
    let pool = pool_of(&site);
    assert_eq!((&pool["crashes"], &pool["recycled"]), (&0.into(), &0.into()), "{pool:#}");
    assert_eq!(pool["isolation"], "rewind");
    assert!(pool["rewind"]["snapshot_bytes"].as_u64() > Some(1 << 20), "{pool:#}");
    let by = if kernel() >= (6, 7) { "write protection" } else { "page map" };
    assert_eq!(pool["rewind"]["writes_by"], by, "in the sandbox too");
    let waits = pool["waits"].as_array().expect("a list");
    let rewinds = waits.iter().find(|wait| wait["call"] == "rewind").expect("the rewinds");
    assert!(rewinds["blocked"].as_u64() >= Some(50), "{rewinds}");

    site.client().get("/crash").expect(502);
    assert_eq!(who(&site).1, 1);
    assert_eq!(pool_of(&site)["crashes"], 1);
    let held: Vec<Held> = (0..3).map(|_| site.hold()).collect();
    assert_eq!(who(&site).1, 1, "while others are busy");
    for held in held {
        held.finishes();
    }
}

#[test]
fn forks_answer_at_the_same_time() {
    let site = serving(4, FORKS, "");
    let held: Vec<Held> = (0..3).map(|_| site.hold()).collect();
    assert_eq!(who(&site).1, 1);
    for held in held {
        held.finishes();
    }
}

#[test]
fn a_worker_is_replaced_after_its_requests_by_one_that_is_ready() {
    let site = serving(1, "", "max_requests = 5\nmax_requests_jitter = 0");
    let mut pids = HashSet::new();
    // The worker goes on while its successor boots, so how many it answers is not said.
    eventually("three workers are replaced", || {
        pids.insert(who(&site).0);
        pool_of(&site)["recycled"].as_u64() >= Some(3)
    });
    pids.insert(who(&site).0);
    assert!(pids.len() >= 4, "{pids:?}");
    let pool = pool_of(&site);
    assert_eq!((&pool["crashes"], &pool["rejected"]), (&0.into(), &0.into()), "{pool:#}");
}

/// Serves a script that cannot boot: the command fails with PHP's words in its last message.
#[track_caller]
fn gives_up(worker: &str, words: &str) {
    let docroot = Docroot::of("worker_pool");
    docroot.put("worker.php", "<?php\nno_such_function();\n");
    let app = format!("mode = \"worker\"\nworker.script = \"www/worker.php\"\n{worker}");
    let folder = docroot.beside();
    let child = Launch::new(&Server::binary().to_string_lossy())
        .arg("serve")
        .arg("--config")
        .arg(folder.file("outboard.toml", text_with(&app)))
        .arg("--admin")
        .arg(folder.path().join("admin.sock"))
        .start();
    assert_eq!(child.wait(), Some(1), "{}", child.output());
    let message = |line: &str| {
        let is_log = line.contains(" app=site ");
        (line.contains(words) && !is_log).then_some(())
    };
    child.wait_for(message).unwrap_or_else(|output| panic!("{worker}: no {words:?} in {output}"));
}

#[test]
fn a_failed_boot_is_reported_with_the_message_of_php() {
    for worker in ["", FORKS] {
        gives_up(worker, "no_such_function");
    }
}

#[test]
fn a_reload_boots_the_script_again() {
    let site = serving(2, "", "");
    who(&site);
    let changed = "<?php while (Outboard\\handle_request(function () { echo 'changed'; }));";
    site.docroot().put("worker.php", changed);
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}");
    site.client().get("/who").expect(200).saying("changed");
}

#[test]
fn a_reload_with_a_script_that_does_not_boot_changes_nothing() {
    let site = serving(2, "", "");
    site.docroot().put("worker.php", "<?php\nno_such_function();\n");
    let output = site.command("reload", &[]);
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no_such_function"), "{said}");
    who(&site);
}

#[test]
fn status_and_metrics_show_memory_by_route() {
    let site = serving(1, "", "[admin]\nmetrics = \"/metrics\"");
    for target in ["/a/b/1", "/a/b/2", "/c"] {
        site.client().get(target).expect(200);
    }
    let pool = pool_of(&site);
    let routes = pool["routes"].as_array().unwrap();
    let route = routes.iter().find(|route| route["route"] == "/a/b").expect("it was asked for");
    assert_eq!(route["requests"], 2, "{pool:#}");
    assert!(route["max_peak_bytes"].as_u64() > Some(0), "{pool:#}");
    let page = site.client().get("/metrics").expect(200).text();
    let line = "outboard_php_route_requests_total{app=\"site\",route=\"/a/b\"} 2";
    assert!(page.lines().any(|theirs| theirs == line), "{page}");
}
