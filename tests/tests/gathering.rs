//! Connections are served by as few threads as their load needs, and move while clients use them.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, eventually};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const CONNECTIONS: usize = 32;

fn text(gathers: bool) -> String {
    format!("threads = {THREADS}\nio.gather_connections = {gathers}\n{}", Configured::text(""))
}

/// Context switches of each thread of the gateway so far, by its folder (proc_pid_status(5)).
fn switches(site: &Configured) -> BTreeMap<PathBuf, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", site.child().pid()));
    let threads = tasks.expect("the gateway runs").flatten().map(|task| task.path());
    let of_thread = |thread: PathBuf| {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let numbers = counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        (thread, numbers.sum())
    };
    threads.map(of_thread).collect()
}

/// One request on each connection.
fn round(clients: &mut [Client], number: usize) {
    for (index, client) in clients.iter_mut().enumerate() {
        let answer = client.get(&format!("/hello.php?{number}-{index}"));
        answer.expect(200).saying("Hello, world\n");
    }
}

/// How many threads have worked for ten rounds, rather than for a timer or two.
fn working_threads(site: &Configured, clients: &mut [Client]) -> usize {
    let before = switches(site);
    (0..10).for_each(|number| round(clients, number));
    let after = switches(site);
    let has_worked =
        |(thread, count): &(&PathBuf, &u64)| **count > before.get(*thread).unwrap_or(&0) + 20;
    after.iter().filter(has_worked).count()
}

fn active_threads(site: &Configured) -> u64 {
    site.status()["active_threads"].as_u64().expect("a number")
}

#[test]
fn few_requests_are_served_by_one_thread() {
    let site = Configured::start(Docroot::of("supervision"), &text(true));
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| site.client()).collect();
    // The first response of a connection that another thread has accepted.
    round(&mut clients, 0);
    assert_eq!((active_threads(&site), working_threads(&site, &mut clients)), (1, 1));
    assert_eq!(site.status()["threads"].as_u64(), Some(THREADS as u64));
}

#[test]
fn without_gathering_all_threads_serve() {
    let site = Configured::start(Docroot::of("supervision"), &text(false));
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| site.client()).collect();
    round(&mut clients, 0);
    assert_eq!(active_threads(&site), THREADS as u64);
    assert!(working_threads(&site, &mut clients) > 1);
}

#[test]
fn connections_in_use_move_when_the_threads_become_fewer() {
    let docroot = Docroot::of("supervision");
    let site = Configured::start(docroot, &text(false));
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| site.client()).collect();
    round(&mut clients, 0);
    assert!(working_threads(&site, &mut clients) > 1);
    site.rewrite(&text(true));
    assert!(site.command("reload", &[]).status.success(), "{}", site.child().output());
    let started = Instant::now();
    let mut rounds = 0;
    while active_threads(&site) > 1 {
        assert!(started.elapsed() < Duration::from_secs(30), "{} threads", active_threads(&site));
        round(&mut clients, rounds);
        rounds += 1;
    }
    // No client has noticed, and each connection is still there.
    round(&mut clients, rounds);
    eventually("all connections are there", || {
        let status = site.status();
        let open = status["connections"].as_u64();
        if open >= Some(CONNECTIONS as u64) { Ok(()) } else { Err(status) }
    });
    assert_eq!(working_threads(&site, &mut clients), 1);
    drop(clients);
    eventually("the connections have closed", || {
        // That of the status itself is one.
        let open = site.status()["connections"].as_u64();
        if open <= Some(1) { Ok(()) } else { Err(open) }
    });
}
