//! One render for all who wait for a page, and none for who can have the old one meanwhile.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Fifo, Request, eventually};
use serde_json::Value;

const CLIENTS: usize = 500;

fn site(tables: &str) -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let tables =
        format!("[app.site.page_cache]\nmode = \"on\"\npurge_from = [\"127.0.0.1\"]\n{tables}");
    Configured::start(docroot, &Configured::text(&tables))
}

fn stats(site: &Configured) -> Value {
    let output = site.command("cache", &["stats", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let stats: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    stats["apps"]["site"].clone()
}

/// A run of the page that says when it begins and waits until it may go on.
struct Run {
    gate: Fifo,
    running: Fifo,
}

impl Run {
    /// The run with this number, from 1.
    fn held(site: &Configured, number: u32) -> Run {
        let folder = site.root().join("state");
        let gate = Fifo::at(folder.join(format!("gate-{number}")));
        Run { gate, running: Fifo::at(folder.join(format!("running-{number}"))) }
    }

    fn has_begun(&mut self) {
        self.running.hear();
    }

    fn goes_on(&mut self) {
        self.gate.open();
    }
}

fn page(header: &str) -> String {
    format!("/page.php?header[]=Cache-Control:{header}")
}

fn start(site: &Configured, target: &str) -> Connection {
    let mut connection = Connection::open(site.address());
    connection.send(&Request::get(target).to_bytes("a")).expect("the server reads");
    connection
}

/// Returns once this many requests wait for the response to another one.
#[track_caller]
fn waiting(site: &Configured, count: u64) {
    eventually("requests wait for another", || stats(site)["waiting"].as_u64() == Some(count));
}

fn purge(site: &Configured, arguments: &[&str]) {
    let output = site.command("cache", &[&["purge"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn concurrent_requests_at_expiry_render_the_page_once() {
    let site = site("lock_timeout = \"60s\"");
    let target = page("max-age=60,must-revalidate");
    start(&site, &target).response().unwrap().expect(200);
    // It is there, but may not be used any more.
    purge(&site, &["--soft", "--all"]);
    let mut run = Run::held(&site, 2);
    let mut clients: Vec<Connection> = (0..CLIENTS).map(|_| start(&site, &target)).collect();
    run.has_begun();
    waiting(&site, CLIENTS as u64 - 1);
    run.goes_on();
    for client in &mut clients {
        assert_eq!(client.response().unwrap().expect(200).text(), "run 2 for visitor\n");
    }
}

#[test]
fn a_stale_page_is_served_while_one_request_renders() {
    let site = site("");
    let target = page("max-age=60");
    start(&site, &target).response().unwrap().expect(200);
    purge(&site, &["--soft", "--all"]);
    let mut run = Run::held(&site, 2);
    for _ in 0..20 {
        let old = start(&site, &target).response().unwrap();
        assert_eq!(old.header("x-cache"), Some("STALE"));
        assert_eq!(old.text(), "run 1 for visitor\n");
    }
    run.has_begun();
    run.goes_on();
    let new = eventually("the new page", || {
        let response = start(&site, &target).response().unwrap();
        (response.header("x-cache") == Some("HIT")).then_some(response)
    });
    assert_eq!(new.text(), "run 2 for visitor\n");
}

#[test]
fn a_page_purged_while_it_was_rendered_is_not_cached() {
    let site = site("");
    let target = page("max-age=60&header[]=Cache-Tag:news");
    for (number, purge_by) in (1..).zip(["--all", "--prefix=/page", "--tag=news"]) {
        let mut run = Run::held(&site, number);
        let mut client = start(&site, &target);
        run.has_begun();
        purge(&site, &[purge_by]);
        run.goes_on();
        let answer = client.response().unwrap();
        let status = answer.header("cache-status").unwrap();
        assert!(status.ends_with("detail=purged_meanwhile"), "{purge_by}: {status}");
        assert_eq!(stats(&site)["entries"].as_u64(), Some(0), "{purge_by}");
    }
}

#[test]
fn waiters_for_an_uncacheable_page_get_their_own() {
    let site = site("lock_timeout = \"60s\"");
    let mut run = Run::held(&site, 1);
    let mut first = start(&site, &page("no-store"));
    run.has_begun();
    let mut second = start(&site, &page("no-store"));
    waiting(&site, 1);
    run.goes_on();
    assert_eq!(first.response().unwrap().text(), "run 1 for visitor\n");
    assert_eq!(second.response().unwrap().text(), "run 2 for visitor\n");
}

#[test]
fn a_client_that_leaves_does_not_end_the_wait_of_others() {
    // Longer than the test waits for a response: the end of the flight has to wake the second client.
    let site = site("lock_timeout = \"10m\"\n[limits]\nabort_on_close = true");
    let mut abandoned = Run::held(&site, 1);
    let first = start(&site, &page("max-age=60"));
    abandoned.has_begun();
    let mut second = start(&site, &page("max-age=60"));
    waiting(&site, 1);
    drop(first);
    let answer = second.response().unwrap().expect(200);
    assert_eq!(answer.header("x-cache"), Some("MISS"));
    assert_eq!(answer.text(), "run 2 for visitor\n");
    abandoned.goes_on();
}

#[test]
fn no_request_waits_longer_than_lock_timeout() {
    let site = site("lock_timeout = \"100ms\"");
    let mut held = Run::held(&site, 1);
    let mut first = start(&site, &page("max-age=60"));
    held.has_begun();
    let second = start(&site, &page("max-age=60")).response().unwrap().expect(200);
    assert_eq!(second.text(), "run 2 for visitor\n");
    held.goes_on();
    first.response().unwrap().expect(200);
}
