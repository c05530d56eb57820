//! A server that has nothing to do does nothing: no process of it is scheduled.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Held, eventually, eventually_within};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long nothing has to happen.
const WINDOW: Duration = Duration::from_secs(3);

/// The processes of a server: the gateway, the spawner, zygotes and workers.
fn family(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let below = children.split_whitespace().flat_map(|child| family(child.parse().expect("a pid")));
    std::iter::once(pid).chain(below).collect()
}

/// Context switches of every thread so far (proc_pid_status(5)).
fn context_switches(pid: u32) -> BTreeMap<PathBuf, u64> {
    let of_thread = |thread: PathBuf| {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let numbers = counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        (thread, numbers.sum())
    };
    let threads = family(pid).into_iter().flat_map(|pid| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        threads.into_iter().flatten().flatten().map(|entry| entry.path())
    });
    threads.map(of_thread).collect()
}

/// Waits until there is at most one context switch a second.
#[track_caller]
fn becomes_idle(site: &Configured) {
    let pid = site.child().pid();
    eventually_within(Duration::from_secs(60), "the server is idle", || {
        let before = context_switches(pid);
        std::thread::sleep(WINDOW);
        let after = context_switches(pid);
        let busy: BTreeMap<_, _> = after
            .into_iter()
            .map(|(thread, count)| {
                let since = count - before.get(&thread).copied().unwrap_or(0).min(count);
                (thread, since)
            })
            .filter(|(_, since)| *since > 0)
            .collect();
        let total: u64 = busy.values().sum();
        if total <= WINDOW.as_secs() { Ok(()) } else { Err(busy) }
    });
}

#[test]
fn an_idle_server_sleeps_and_serves_at_once_when_it_is_needed() {
    let site = Configured::serving("supervision", "[pool]\nmin = 2\nmax = 4");
    becomes_idle(&site);
    let held = [site.hold(), site.hold(), site.hold()];
    held.into_iter().for_each(Held::finishes);
    becomes_idle(&site);
    assert_eq!(site.client().get("/hello.php").text(), "Hello, world\n");
    eventually("the third worker was idle for long", || {
        let status = site.status();
        let workers = status["pools"][0]["workers"].as_array().map(Vec::len);
        if workers == Some(2) { Ok(()) } else { Err(status) }
    });
}

#[test]
fn a_deadline_after_a_rest_is_kept() {
    let site = Configured::serving("supervision", "[limits]\nrequest_deadline = \"6s\"");
    let mut held = site.hold();
    becomes_idle(&site);
    assert_eq!(held.answer().expect(504).header("x-outboard-reason"), Some("deadline"));
}

#[test]
fn thirty_idle_apps_need_no_more_than_one() {
    let apps = (0..30).map(|number| {
        format!("[app.a{number}]\nroot = \"www\"\npath = \"/a{number}\"\npool.min = 1\n")
    });
    let docroot = Docroot::of("supervision");
    docroot.put("hello.php", "<?php echo 'hello';");
    let text = format!("listen = \"127.0.0.1:0\"\n{}", apps.collect::<String>());
    let site = Configured::start(docroot, &text);
    becomes_idle(&site);
    assert_eq!(site.client().get("/a29/hello.php").text(), "hello");
    becomes_idle(&site);
}
