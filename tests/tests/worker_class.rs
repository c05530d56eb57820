//! A class that answers: its life, its services, its tasks, and that a request which ends badly
//! ends alone.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Fifo, Request, eventually};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The fixtures, with the Composer package where PHP's user can read it.
fn docroot() -> (Docroot, String) {
    let docroot = Docroot::of("worker_class");
    docroot.writable("var");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../php");
    let copied = docroot.beside().folder("php");
    for part in ["src", "autoload.php"] {
        let status = Command::new("cp").arg("-r").arg(package.join(part)).arg(&copied).status();
        assert!(status.expect("cp is there").success());
    }
    let status = Command::new("chmod").args(["-R", "a+rX"]).arg(&copied).status();
    assert!(status.expect("chmod is there").success());
    (docroot, copied.to_string_lossy().into_owned())
}

fn text(package: &str, worker: &str) -> String {
    Configured::text(&format!(
        "[pool]\nmin = 1\nmax = 1\nmin_idle = 0\n\
         [app.site.worker]\nconcurrency = 10\n{worker}\n\
         [app.site.tasks]\nworkers = 1\n\
         [app.site.php.env]\nOUTBOARD_PACKAGE = {package:?}\n"
    ))
    .replace("root = \"www\"\n", "root = \"www\"\nmode = \"worker\"\n")
}

fn serving(worker: &str) -> Configured {
    let (docroot, package) = docroot();
    Configured::start(docroot, &text(&package, worker))
}

const BY_CONFIGURATION: &str = "script = \"www/worker.php\"\nclass = \"App\\\\Shop\"";

const BY_RUN: &str = "script = \"www/run.php\"";

#[track_caller]
fn lines(site: &Configured, name: &str, expected: &str) {
    let mut client = site.client();
    eventually(&format!("{name} holds {expected:?}"), || {
        let text = client.get(&format!("/lines?name={name}")).expect(200).text();
        if text == expected { Ok(()) } else { Err(text) }
    });
}

#[track_caller]
fn json_of(site: &Configured, target: &str) -> Value {
    let text = site.client().get(target).expect(200).text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{target} is answered by {text}"))
}

#[test]
fn a_class_serves_named_by_the_script_or_the_configuration() {
    for worker in [BY_CONFIGURATION, BY_RUN] {
        let site = serving(worker);
        let mut client = site.client();
        for answered in ["1", "2"] {
            let answer = client.get("/").expect(200).saying("welcome");
            assert_eq!(answer.header("X-Answered"), Some(answered));
        }
        // One of each pool; which is first, nobody knows.
        let started = client.get("/lines?name=started").expect(200).text();
        let mut started: Vec<&str> = started.lines().collect();
        started.sort_unstable();
        assert_eq!(started, ["task worker", "worker"]);
    }
}

#[test]
fn shared_services_are_the_workers_and_scoped_ones_the_requests() {
    let site = serving(BY_CONFIGURATION);
    for requests in [1, 2] {
        assert_eq!(json_of(&site, "/services"), json!({"requests": requests, "scoped": 1}));
    }
}

#[test]
fn on_task_runs_elsewhere_and_on_finish_hears_of_it_here() {
    let site = serving(BY_CONFIGURATION);
    let result = json!({"task": "double", "result": 42, "in_task_worker": true});
    assert_eq!(json_of(&site, "/task?number=21"), result);
    site.client().get("/later?number=4").expect(200).saying("begun");
    lines(&site, "finished", "worker double 8\n");
}

#[test]
fn octanes_tasks_run_at_the_same_time() {
    let site = serving(BY_CONFIGURATION);
    assert_eq!(json_of(&site, "/octane"), json!({"a": "a", "b": "b"}));
    lines(&site, "dispatched", "worker\n");
}

#[test]
fn exit_and_an_exception_end_their_own_request_and_no_other() {
    let site = serving(BY_CONFIGURATION);
    let mut fifo = Fifo::at(site.docroot().beside().path().join("gate"));
    let mut waiting = Connection::open(site.address());
    let target = format!("/gate?fifo={}", fifo.path().display());
    waiting.send(&Request::get(&target).to_bytes("localhost")).expect("the server reads");
    let mut client = site.client();
    client.get("/exit").expect(200).saying("half");
    client.get("/throw").expect(500);
    client.get("/").expect(200).saying("welcome");
    fifo.open();
    let answer = waiting.response().expect("the server answers");
    assert_eq!((answer.status, answer.text().as_str()), (200, "go\n"));
    lines(&site, "stopped", "");
}

#[test]
fn on_stop_is_called_when_the_worker_leaves() {
    let site = serving(BY_CONFIGURATION);
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}");
    let mut client = site.client();
    eventually("on_stop is called", || {
        let stopped = client.get("/lines?name=stopped").expect(200).text();
        if stopped.lines().any(|line| line == "worker") { Ok(()) } else { Err(stopped) }
    });
}

#[test]
fn a_missing_or_invalid_class_fails_the_start_with_a_reason() {
    let site = serving(BY_CONFIGURATION);
    for (class, why) in [
        ("App\\\\Shopp", "the worker class App\\Shopp does not exist after the script has run"),
        ("stdClass", "the worker class stdClass does not implement Outboard\\HttpWorker"),
    ] {
        let package = site.docroot().beside().path().join("php");
        let worker = format!("script = \"www/worker.php\"\nclass = \"{class}\"");
        site.rewrite(&text(&package.to_string_lossy(), &worker));
        let output = site.command("reload", &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
    }
}
