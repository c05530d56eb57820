//! An app with `pool.min = 0` has no process without requests, and answers all the same.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Process, eventually};
use std::fmt::Write as _;
use std::thread;

const SLEEPS: &str = "[pool]\nmin = 0\nidle_timeout = \"300ms\"";

#[track_caller]
fn falls_asleep(site: &Configured) {
    eventually("no process of PHP is left", || {
        let processes = site.processes();
        let phase = site.status()["pools"][0]["phase"].clone();
        if processes.is_empty() && phase == "asleep" { Ok(()) } else { Err((processes, phase)) }
    });
}

#[track_caller]
fn reload(site: &Configured) {
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn an_app_sleeps_from_its_start_and_after_its_requests() {
    for threads in [1, 2, 4] {
        let site = Configured::with_threads("supervision", threads, SLEEPS);
        assert_eq!(site.status()["pools"][0]["phase"], "asleep");
        assert!(site.processes().is_empty());
        for _ in 0..3 {
            let visitors: Vec<_> = (0..16)
                .map(|_| {
                    let mut client = site.client();
                    thread::spawn(move || client.get("/hello.php").expect(200).text())
                })
                .collect();
            for visitor in visitors {
                assert_eq!(visitor.join().expect("no panic"), "Hello, world\n");
            }
            falls_asleep(&site);
        }
        assert!(!site.child().output().contains("starting PHP again"));
    }
}

#[test]
fn a_request_that_takes_longer_than_the_idle_timeout_is_finished() {
    for threads in [1, 2] {
        let site = Configured::with_threads("supervision", threads, SLEEPS);
        let held = site.hold();
        thread::sleep(std::time::Duration::from_millis(900));
        assert!(!site.processes().is_empty());
        held.finishes();
        falls_asleep(&site);
    }
}

#[test]
fn a_worker_script_boots_again_and_a_rewound_one_too() {
    let script = "<?php $boot = 'boot'; while (Outboard\\handle_request(function () use ($boot) { echo $boot; })) {}";
    for isolation in ["", "isolation = \"rewind\"\n"] {
        let docroot = Docroot::of("supervision");
        docroot.put("worker.php", script);
        let mode = format!(
            "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n{isolation}"
        );
        let text =
            Configured::text("").replace("root = \"www\"\n", &format!("root = \"www\"\n{mode}"));
        let site = Configured::start(docroot, &format!("{text}{SLEEPS}\n"));
        for _ in 0..3 {
            site.client().get("/").expect(200).saying("boot");
            falls_asleep(&site);
        }
    }
}

#[test]
fn a_reload_and_the_end_wake_nobody() {
    let site = Configured::serving("supervision", SLEEPS);
    reload(&site);
    assert!(site.processes().is_empty());
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    reload(&site);
    falls_asleep(&site);
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_killed_zygote_of_a_sleeping_app_comes_back_for_a_request() {
    let site = Configured::serving("supervision", "[pool]\nmin = 0\nidle_timeout = \"60s\"");
    for _ in 0..3 {
        site.client().get("/hello.php").expect(200).saying("Hello, world\n");
        let zygote = Process::of(site.processes()[0]);
        zygote.kill();
        zygote.wait_until_gone();
    }
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

/// Its memory, and that of its children, with a part of what they share (proc_pid_smaps_rollup).
fn pss_kib(site: &Configured) -> u64 {
    let pid = site.child().pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().expect("a pid"));
    let of = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    std::iter::once(pid).chain(children).map(of).sum()
}

#[test]
fn a_thousand_sleeping_apps_take_less_than_a_gibibyte() {
    const APPS: u64 = 1_000;
    let with = |count: u64| {
        let docroot = Docroot::of("supervision");
        let mut text = format!("listen = \"127.0.0.1:0\"\n{SLEEPS}\n");
        for app in 0..count {
            writeln!(text, "[app.a{app}]\nroot = \"www\"\npath = \"/a{app}\"").expect("a string");
        }
        Configured::start(docroot, &text)
    };
    let (one, many) = (with(1), with(APPS));
    assert!(many.processes().is_empty());
    let (least_kib, kib) = (pss_kib(&one), pss_kib(&many));
    assert!(least_kib > 0 && kib > least_kib, "{kib} KiB");
    assert!((kib - least_kib) / (APPS - 1) < 1024, "{kib} KiB against {least_kib} KiB");
    many.client().get("/a999/hello.php").expect(200).saying("Hello, world\n");
    eventually("the app sleeps again", || {
        let processes = many.processes();
        if processes.is_empty() { Ok(()) } else { Err(processes) }
    });
}

/// Their workers would stay.
#[test]
fn a_script_that_takes_a_snapshot_gets_none_and_is_answered() {
    let docroot = Docroot::of("supervision");
    docroot.put("boots.php", "<?php Outboard\\snapshot(); echo 'booted';");
    let site = Configured::start(docroot, &Configured::text(SLEEPS));
    for _ in 0..3 {
        site.client().get("/boots.php").expect(200).saying("booted");
        falls_asleep(&site);
    }
    assert_eq!(site.status()["pools"].as_array().map(Vec::len), Some(1));
}
