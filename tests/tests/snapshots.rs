//! `Outboard\snapshot()` in a script of classic mode: it is booted once, and handles the requests that agree
//! with what the boot has read.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Process, Request, eventually};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn serving(keys: &str) -> Configured {
    serving_with_threads(1, keys)
}

fn serving_with_threads(threads: usize, keys: &str) -> Configured {
    let text = format!(
        "threads = {threads}\nlisten = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n{keys}\n"
    );
    Configured::start(Docroot::of("snapshots"), &text)
}

fn ask(site: &Configured, request: &Request) -> Value {
    let said = site.client().send(request).expect(200).text();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A request for this host.
fn to(host: &str, target: &str) -> Request {
    Request::get(target).header("Host", host)
}

/// The status of a script's snapshots.
fn snapshots(site: &Configured, script: &str) -> Value {
    let status = site.status();
    let all = status["snapshots"].as_array().expect("a list");
    all.iter().find(|one| one["script"] == script).cloned().unwrap_or_default()
}

/// Sends such requests until one is handled from a snapshot.
fn boot(site: &Configured, request: &Request) -> Value {
    let mut last = Value::Null;
    eventually("a snapshot handles the request", || {
        last = ask(site, request);
        last["is_snapshot"] == true
    });
    last
}

#[test]
fn a_script_that_takes_a_snapshot_is_booted_once() {
    let site = serving("");
    let first = ask(&site, &to("a.test", "/"));
    assert_eq!((&first["is_snapshot"], &first["host"]), (&false.into(), &"a.test".into()));
    let booted = boot(&site, &to("a.test", "/?q=1"));
    for number in 0..20 {
        let answer = ask(&site, &to("a.test", &format!("/index.php?q={number}")));
        assert_eq!(answer["pid"], booted["pid"], "one boot: {answer}");
        assert_eq!(answer["query"]["q"], number.to_string());
        assert_eq!((&answer["count"], &answer["host"]), (&1.into(), &"a.test".into()));
    }
    let posted = Request::post("/", "text/plain", "a body").header("Host", "a.test");
    let answer = ask(&site, &posted);
    assert_eq!((&answer["method"], &answer["body"]), (&"POST".into(), &"a body".into()));
    assert_eq!(answer["pid"], booted["pid"]);
    assert!(site.client().get("/plain.php").expect(200).text().starts_with("plain "));
    let status = snapshots(&site, "/index.php");
    let reads: Vec<_> =
        status["reads"].as_array().unwrap().iter().map(|read| &read["name"]).collect();
    assert_eq!(reads, ["_SERVER.HTTP_HOST", "_COOKIE.lang"]);
    assert_eq!((&status["snapshots"], &status["reads"][0]["line"]), (&1.into(), &3.into()));
}

#[test]
fn a_request_that_does_not_agree_is_handled_as_before() {
    let site = serving("");
    boot(&site, &to("a.test", "/"));
    for request in [to("b.test", "/"), to("a.test", "/").header("Cookie", "lang=de; x=y")] {
        for _ in 0..5 {
            let answer = ask(&site, &request);
            assert_eq!(answer["is_snapshot"], false, "{answer}");
            assert_eq!(answer["host"], answer["now"]);
        }
    }
    let other = to("a.test", "/").header("Cookie", "other=1");
    assert_eq!(ask(&site, &other)["is_snapshot"], true);
    // Many such requests are worth a snapshot of their own.
    let german = to("a.test", "/").header("Cookie", "x=y; lang=de");
    let answer = boot(&site, &german);
    assert_eq!((&answer["lang"], &answer["host"]), (&"de".into(), &"a.test".into()));
    assert_eq!(ask(&site, &to("a.test", "/"))["lang"], "none");
    assert_eq!(snapshots(&site, "/index.php")["snapshots"], 2);
}

#[test]
fn a_script_that_cannot_be_booted_once_is_handled_as_before() {
    let site = serving("");
    for (script, why) in [("/all.php", "reads $_SERVER"), ("/printed.php", "printed")] {
        eventually("the reason is known", || {
            site.client().get(script).expect(200);
            snapshots(&site, script)["refused_because"]
                .as_str()
                .is_some_and(|said| said.contains(why))
        });
        site.client().get(script).expect(200);
        assert_eq!(snapshots(&site, script)["snapshots"], 0);
    }
    boot(&site, &to("a.test", "/"));
    let doctor = site.command("doctor", &["snapshots"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert_eq!(doctor.status.code(), Some(1), "{said}");
    assert!(said.contains("site /printed.php: no snapshot: the script has printed"), "{said}");
    assert!(said.contains("index.php:4 reads $_COOKIE['lang']"), "{said}");
}

#[test]
fn all_threads_have_the_same_snapshots() {
    let site = serving_with_threads(4, "[app.site.pool]\nmin = 1\nmax = 8");
    let booted = boot(&site, &to("a.test", "/"));
    // Connections are spread over the threads, each of which starts its part at its own time.
    let mut in_turn = 0;
    eventually("every connection is served from the one boot", || {
        let answer = ask(&site, &to("a.test", "/"));
        in_turn = if answer["pid"] == booted["pid"] { in_turn + 1 } else { 0 };
        in_turn == 100
    });
    assert_eq!(snapshots(&site, "/index.php")["snapshots"], 1);
    let waiting = site.status();
    let pools: Vec<_> =
        waiting["pools"].as_array().unwrap().iter().map(|pool| &pool["app"]).collect();
    assert_eq!(pools, ["site", "site:/index.php"]);
    assert!(site.command("reload", &[]).status.success());
    boot(&site, &to("a.test", "/"));
}

#[test]
fn a_worker_that_dies_costs_one_answer() {
    let site = serving("[app.site.php.ini]\ndisplay_errors = \"0\"");
    let booted = boot(&site, &to("a.test", "/"));
    let pool = |site: &Configured| {
        let status = site.status();
        let pools = status["pools"].as_array().expect("a list").clone();
        pools.into_iter().find(|pool| pool["app"] == "site:/index.php").expect("the snapshot's")
    };
    let worker = pool(&site)["workers"][0]["pid"].as_i64().expect("a worker");
    Process::of(u32::try_from(worker).unwrap()).kill();
    eventually("a successor is forked", || pool(&site)["crashes"] != 0);
    let answer = ask(&site, &to("a.test", "/"));
    assert_eq!((&answer["pid"], &answer["is_snapshot"]), (&booted["pid"], &true.into()));
    // Without its zygote a script is handled as before until it has booted again.
    let zygote = booted["pid"].as_i64().unwrap();
    Process::of(u32::try_from(zygote).unwrap()).kill();
    eventually("it has booted again", || {
        let answer = ask(&site, &to("a.test", "/"));
        answer["is_snapshot"] == true && answer["pid"] != booted["pid"]
    });
}

#[test]
fn a_changed_file_is_seen_by_the_next_request() {
    // What no snapshot handles is as under php-fpm: there OPcache looks at a stored file every two seconds.
    let site = serving("[app.site.php.ini]\n\"opcache.revalidate_freq\" = 0");
    let part = site.docroot().app().root.join("part.php");
    // A file that was just written is not stored.
    let old = SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(&part).unwrap().set_modified(old).unwrap();
    let first = boot(&site, &to("a.test", "/"));
    for number in 2..6 {
        std::fs::write(&part, format!("<?php const PART = {number};")).unwrap();
        assert_eq!(ask(&site, &to("a.test", "/"))["part"], number);
    }
    let again = boot(&site, &to("a.test", "/"));
    assert_eq!(again["part"], 5);
    assert_ne!(again["pid"], first["pid"]);
    // What cannot be booted is handled as in classic mode, with its error.
    std::fs::write(&part, "<?php no_such_function();").unwrap();
    for _ in 0..5 {
        site.client().send(&to("a.test", "/")).expect(500);
    }
    std::fs::write(&part, "<?php const PART = 7;").unwrap();
    eventually("it is mended", || site.client().send(&to("a.test", "/")).status == 200);
    assert_eq!(boot(&site, &to("a.test", "/"))["part"], 7);
    site.docroot().put("note.txt", "no part of the boot");
    let pid = ask(&site, &to("a.test", "/"))["pid"].clone();
    assert_eq!(ask(&site, &to("a.test", "/"))["pid"], pid);
    assert!(site.command("snapshot", &["retire"]).status.success());
    let answer = ask(&site, &to("a.test", "/"));
    assert_eq!(answer["is_snapshot"], false, "while it boots: {answer}");
    assert_ne!(boot(&site, &to("a.test", "/"))["pid"], pid);
}

#[test]
fn snapshots_can_be_turned_off() {
    let site = serving("[app.site.pool]\nmax_snapshots = 0");
    for _ in 0..50 {
        assert_eq!(ask(&site, &to("a.test", "/"))["is_snapshot"], false);
    }
    assert_eq!(site.status()["snapshots"].as_array().map(Vec::len), Some(0));
}

/// With the settings of opcache that PHP has by itself; the files are older than what it takes for unfinished.
#[test]
fn files_below_the_snapshot_are_stored_and_seen_when_they_change() {
    let script = "<?php $boot = getmypid(); Outboard\\snapshot(); $part = require __DIR__ . '/below.php';\n\
                  echo json_encode(['part' => $part, 'is_snapshot' => $boot !== getmypid(),\n\
                  'stored' => opcache_is_script_cached(__DIR__ . '/below.php')]);";
    let docroot = Docroot::of("snapshots");
    let old = SystemTime::now() - Duration::from_secs(60);
    let put = |root: &Path, name: &str, text: &str, time: SystemTime| {
        let path = root.join(name);
        std::fs::write(&path, text).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    put(docroot.path(), "below.php", "<?php return 1;", old);
    docroot.put("stored.php", script);
    let text =
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(docroot, text);
    let request = Request::get("/stored.php");
    eventually("a snapshot handles the request", || ask(&site, &request)["is_snapshot"] == true);
    let expected = |part: u32| json!({"part": part, "is_snapshot": true, "stored": true});
    assert_eq!(ask(&site, &request), expected(1));
    put(site.root(), "below.php", "<?php return 2;", old + Duration::from_secs(5));
    // OPcache looks every two seconds.
    eventually("the change is seen", || ask(&site, &request) == expected(2));
    // Newer than the boot: stored once it is two seconds old.
    put(site.root(), "below.php", "<?php return 3;", SystemTime::now());
    eventually("the new file is stored", || ask(&site, &request) == expected(3));
}
