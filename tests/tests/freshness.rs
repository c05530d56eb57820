//! Snapshots that are out of date: what retires them, what does not, and what requests get meanwhile.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Request, eventually};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn text(threads: usize, worker: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nthreads = {threads}\n[log.access]\npath = \"off\"\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.worker]\nscript = \"www/worker.php\"\n{worker}\n"
    )
}

fn serving(worker: &str) -> Configured {
    Configured::start(Docroot::of("freshness"), &text(1, worker))
}

/// The server logs it once a deployment takes long.
const OLD_SERVES: &str = "it serves until they are complete";

/// While it is there, a start with the setting `slow` goes on for ever.
struct SlowStart(fs::File);

impl SlowStart {
    fn of(site: &Configured) -> SlowStart {
        let gate = fs::File::open(site.root().join("gate")).unwrap();
        flock(&gate, FlockOperation::LockExclusive).unwrap();
        site.docroot().put(".env", "slow");
        SlowStart(gate)
    }

    fn ends(self) {
        flock(&self.0, FlockOperation::Unlock).unwrap();
    }
}

fn rewinding() -> Configured {
    serving("isolation = \"rewind\"")
}

/// What the start has read that a request is served by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    code: String,
    setting: String,
    package: String,
    /// The start itself.
    start: String,
    result: String,
}

#[track_caller]
fn ask(client: &mut Client, target: &str) -> Said {
    let text = client.get(target).expect(200).text();
    let mut words = text.trim_end_matches('\n').split(' ').map(str::to_owned);
    let mut next = || words.next().unwrap_or_else(|| panic!("{text:?}"));
    Said { code: next(), setting: next(), package: next(), start: next(), result: next() }
}

#[track_caller]
fn said(site: &Configured) -> Said {
    ask(&mut site.client(), "/")
}

#[track_caller]
fn retired(site: &Configured) -> u64 {
    let status = site.status();
    let pools = status["pools"].as_array().unwrap().iter();
    let snapshot = pools.filter_map(|pool| pool["snapshot"].as_object()).next_back();
    snapshot.unwrap_or_else(|| panic!("{status:#}"))["retired"].as_u64().unwrap()
}

#[test]
fn the_next_request_is_served_by_the_changed_code() {
    // Without a rewind a fork of the snapshot serves each request.
    for (way, env) in
        [("rewind", ""), ("fork", "\n[app.site.php.env]\nOUTBOARD_FORBID_REWIND = \"1\"")]
    {
        let site = serving(&format!("isolation = \"rewind\"{env}"));
        let before = said(&site);
        assert_eq!((before.code.as_str(), said(&site).start), ("first", before.start.clone()));
        for code in ["second", "third"] {
            site.docroot().put("code.php", format!("<?php return '{code}';"));
            assert_eq!(said(&site).code, code, "{way}");
        }
        assert_eq!(said(&site).start, said(&site).start, "it is booted once");
        site.logs(&["a new snapshot serves", "code.php"]);
    }
}

#[test]
fn a_file_that_appears_or_disappears_retires_the_snapshot() {
    let site = rewinding();
    assert_eq!(said(&site).setting, "none");
    site.docroot().put(".env", "debug");
    assert_eq!(said(&site).setting, "debug");
    fs::remove_file(site.root().join(".env")).unwrap();
    assert_eq!(said(&site).setting, "none");
    site.docroot().put("package/a.php", "<?php return 'one';");
    assert_eq!(said(&site).package, "[one]");
    fs::rename(site.root().join("package"), site.root().join("gone")).unwrap();
    assert_eq!(said(&site).package, "[]");
}

#[test]
fn files_that_the_start_has_not_read_retire_nothing() {
    let docroot = Docroot::of("freshness");
    docroot.writable("uploads");
    let site = Configured::start(docroot, &text(1, "isolation = \"rewind\""));
    let before = said(&site);
    for number in 0..50 {
        assert_eq!(ask(&mut site.client(), "/upload").result, "9");
        site.docroot().put(&format!("src/{number}.php"), "<?php");
        site.docroot().put(&format!("storage/logs/{number}.log"), "a line");
    }
    assert_eq!(said(&site).start, before.start);
    assert_eq!(retired(&site), 0);
}

#[test]
fn no_start_is_made_of_half_of_the_files() {
    let docroot = Docroot::of("freshness");
    let write = |docroot: &Docroot, number: usize, version: u32| {
        docroot.put(&format!("package/{number}.php"), format!("<?php return {version};"));
    };
    (0..200).for_each(|number| write(&docroot, number, 1));
    let site = Configured::start(docroot, &text(1, "isolation = \"rewind\""));
    assert_eq!(said(&site).package, "[1]");
    let address = site.address();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let visitor = thread::spawn(move || {
        let (mut client, mut seen) = (Client::new(address), HashSet::new());
        while stopped.try_recv().is_err() {
            seen.insert(ask(&mut client, "/").package);
        }
        seen
    });
    for number in 0..200 {
        write(site.docroot(), number, 2);
        thread::sleep(Duration::from_millis(2));
    }
    // The old start serves meanwhile if it has taken more than a second.
    eventually("a start of the new files", || said(&site).package == "[2]");
    stop.send(()).unwrap();
    let seen = visitor.join().unwrap();
    assert!(seen.iter().all(|package| package == "[1]" || package == "[2]"), "{seen:?}");
}

#[test]
fn during_a_long_deployment_the_old_snapshot_serves() {
    let docroot = Docroot::of("freshness");
    docroot.put("package/a.php", "<?php return 0;");
    let site = Configured::start(docroot, &text(1, "isolation = \"rewind\""));
    let (address, is_over, answers) = (site.address(), AtomicBool::new(false), AtomicUsize::new(0));
    let seen = thread::scope(|scope| {
        let (is_over, answers) = (&is_over, &answers);
        let visitor = scope.spawn(move || {
            let (mut client, mut seen) = (Client::new(address), HashSet::new());
            while !is_over.load(Ordering::Relaxed) {
                seen.insert(ask(&mut client, "/").package);
                answers.fetch_add(1, Ordering::Relaxed);
            }
            seen
        });
        // Until the visitor has been served in the middle of it, which only the old one can do.
        let (mut names, mut awaited) = ((0..100).cycle(), None);
        eventually("the visitor is served", || {
            let name = names.next().unwrap();
            site.docroot().put(&format!("package/{name}.php"), "<?php return 7;");
            let answers = answers.load(Ordering::Relaxed);
            if awaited.is_none() && site.child().output().contains(OLD_SERVES) {
                awaited = Some(answers + 100);
            }
            awaited.is_some_and(|awaited| answers >= awaited)
        });
        is_over.store(true, Ordering::Relaxed);
        visitor.join().unwrap()
    });
    assert_eq!(seen, HashSet::from(["[0]".to_owned()]));
    eventually("the new files", || (said(&site).package == "[7+0]").then_some(()));
}

#[test]
fn a_switched_link_of_a_deployment_retires_the_snapshot() {
    let docroot = Docroot::of("freshness");
    let root = docroot.path().to_owned();
    for release in ["41", "42"] {
        let worker = fs::read(root.join("worker.php")).unwrap();
        docroot.put(&format!("releases/{release}/worker.php"), worker);
        docroot.put(&format!("releases/{release}/code.php"), format!("<?php return {release};"));
    }
    symlink("releases/41", root.join("current")).unwrap();
    let text =
        text(1, "isolation = \"rewind\"").replace("www/worker.php", "www/current/worker.php");
    let site = Configured::start(docroot, &text);
    assert_eq!(said(&site).code, "41");
    symlink("releases/42", root.join("next")).unwrap();
    fs::rename(root.join("next"), root.join("current")).unwrap();
    assert_eq!(said(&site).code, "42");
}

#[test]
fn code_that_does_not_start_leaves_the_old_snapshot() {
    let site = rewinding();
    let before = said(&site);
    site.docroot().put("code.php", "<?php return 'unfinished");
    assert_eq!(said(&site), before);
    site.logs(&["no new snapshot starts", "code.php", "the retired one goes on serving"]);
    // It has never been part of a snapshot, but of the start that failed.
    site.docroot().put("code.php", "<?php return require __DIR__ . '/other.php';");
    assert_eq!(said(&site), before);
    site.docroot().put("other.php", "<?php return 'other';");
    assert_eq!(said(&site).code, "other");
}

#[test]
fn a_script_retires_by_key_or_all() {
    let site = rewinding();
    let mut client = site.client();
    let mut before = said(&site);
    for (target, count) in [
        ("/retire", "1"),
        ("/retire?key=options", "1"),
        ("/retire?key=theme", "1"),
        ("/retire?key=unrelated", "0"),
    ] {
        let answer = ask(&mut client, target);
        assert_eq!((&answer.start, answer.result.as_str()), (&before.start, count), "{target}");
        let after = ask(&mut client, "/");
        assert_eq!(after.start != before.start, count == "1", "{target}");
        before = after;
    }
    let status = site.status();
    assert_eq!(retired(&site), 3, "{status:#}");
}

#[test]
fn an_administrator_retires_by_app_and_key() {
    let site = rewinding();
    for (arguments, count) in [
        (&["retire"][..], 1),
        (&["retire", "site"], 1),
        (&["retire", "site", "--key", "options"], 1),
        (&["retire", "--key", "unrelated"], 0),
    ] {
        let before = said(&site);
        let output = site.command("snapshot", arguments);
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, format!("site  {count} retired\n"));
        assert_eq!(said(&site).start != before.start, count == 1, "{arguments:?}");
    }
    let output = site.command("snapshot", &["retire", "other"]);
    assert!(!output.status.success() && output.stderr.ends_with(b"no app other\n"), "{output:?}");
}

#[test]
fn a_request_in_progress_ends_on_its_snapshot() {
    let site = rewinding();
    let before = said(&site);
    let address = site.address();
    let slow = thread::spawn(move || ask(&mut Client::new(address), "/slow"));
    eventually("the request", || {
        (site.status()["pools"][0]["in_flight"].as_u64() == Some(1)).then_some(())
    });
    ask(&mut site.client(), "/retire");
    let after = said(&site);
    assert_ne!(after.start, before.start);
    assert!(!slow.is_finished());
    site.docroot().put("go-on", "");
    assert_eq!(slow.join().unwrap().start, before.start);
}

#[test]
fn a_retirement_counts_for_the_requests_of_all_threads() {
    let site = Configured::start(
        Docroot::of("freshness"),
        &text(3, "isolation = \"rewind\"\n[app.site.pool]\nmin = 3"),
    );
    assert_eq!(site.threads(), 3);
    let mut visitors: Vec<Client> = (0..12).map(|_| site.client()).collect();
    let mut seen = HashSet::new();
    for round in 0..4 {
        seen.extend(visitors.iter_mut().map(|client| ask(client, "/").start));
        assert_eq!(seen.len(), round + 1, "each start serves all threads");
        ask(&mut visitors[round], "/retire");
        let new = ask(&mut visitors[round + 1], "/").start;
        assert!(!seen.contains(&new), "{seen:?}");
    }
}

#[test]
fn retirements_all_the_time_leave_the_server_usable() {
    let site = rewinding();
    let address = site.address();
    let visitors: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let (mut client, mut starts) = (Client::new(address), HashSet::new());
                let until = Instant::now() + Duration::from_secs(5);
                while Instant::now() < until {
                    starts.insert(ask(&mut client, "/retire").start);
                }
                starts
            })
        })
        .collect();
    let starts: HashSet<String> =
        visitors.into_iter().flat_map(|one| one.join().unwrap()).collect();
    // At most five that are not delayed, and one a second; a busy machine starts fewer.
    assert!((2..=13).contains(&starts.len()), "{}", starts.len());
    let said = site.child().output();
    assert_eq!(said.matches("are retired all the time").count(), 1, "{said}");
}

#[test]
fn a_slow_start_is_waited_for_as_long_as_in_the_queue() {
    let site = serving("isolation = \"rewind\"\n[app.site.pool]\nqueue_timeout = \"1s\"");
    let before = said(&site);
    let (start, asked) = (SlowStart::of(&site), Instant::now());
    // The start never ends by itself, so that it is the time in the queue which ends the wait.
    let refused = site.client().send(&Request::get("/")).expect(503);
    assert_eq!(refused.header("x-outboard-reason"), Some("queue_timeout"));
    assert!(asked.elapsed() >= Duration::from_secs(1), "{:?}", asked.elapsed());
    start.ends();
    eventually("the new snapshot", || {
        let response = site.client().send(&Request::get("/"));
        (response.status == 200 && response.text().contains(" slow ")).then_some(())
    });
    assert_ne!(said(&site).start, before.start);
}

#[test]
fn a_reload_during_a_start_serves_its_requests_and_leaves_nothing() {
    let text = format!("drain_timeout = \"50s\"\n{}", text(1, "isolation = \"rewind\""));
    let site = Configured::start(Docroot::of("freshness"), &text);
    let before = said(&site);
    let processes = site.processes().len();
    let more_than = |count: usize| {
        eventually("a process starts", || site.processes().len() > count);
        site.processes().len()
    };
    for is_waited_for in [true, false] {
        let start = SlowStart::of(&site);
        let address = site.address();
        let waiting = thread::spawn(move || match is_waited_for {
            true => ask(&mut Client::new(address), "/").setting,
            false => "slow".to_owned(),
        });
        let during = more_than(processes);
        thread::scope(|scope| {
            let reload = scope.spawn(|| site.command("reload", &[]));
            more_than(during);
            start.ends();
            assert!(reload.join().unwrap().status.success());
        });
        assert_eq!(waiting.join().unwrap(), "slow");
        assert_eq!(said(&site).setting, "slow");
        fs::remove_file(site.root().join(".env")).unwrap();
        assert_eq!(said(&site).setting, "none");
        eventually("the processes of one pool", || site.processes().len() <= processes);
    }
    assert_ne!(said(&site).start, before.start);
    let start = SlowStart::of(&site);
    more_than(processes);
    let stopped = Instant::now();
    site.into_stopped();
    // A start that is waited for goes on until the time for a drain is over.
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    start.ends();
}

#[test]
fn without_a_watch_files_retire_nothing_but_scripts_do() {
    let site = serving("isolation = \"rewind\"\nwatch = false");
    let before = said(&site);
    site.docroot().put("code.php", "<?php return 'second';");
    assert_eq!(said(&site), before);
    ask(&mut site.client(), "/retire?key=options");
    assert_eq!(said(&site).code, "second");
}

#[test]
fn a_classic_script_may_name_what_does_not_exist() {
    let site = Configured::serving("freshness", "");
    site.client().send(&Request::get("/classic.php")).expect(200).saying("00");
}
