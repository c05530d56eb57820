//! The processes of PHP of a server with several threads, where these are fewer than the threads, or one
//! thread needs those of the others.
//!
//! Each test runs with 1, 2 and 4 threads, also where there are fewer cores.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, THREAD_COUNTS, VISITORS, eventually, repeating};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Workers with a script of their own, and these lines of their table.
/// Isolation by rewind where none is possible.
const FORKS: &str = "worker.isolation = \"rewind\"\nphp.env.OUTBOARD_FORBID_REWIND = \"1\"\n";

fn with_script(threads: usize, worker: &str, pool: &str) -> Configured {
    let text = Configured::text_with_threads(threads, &format!("[pool]\n{pool}"));
    let app =
        format!("root = \"www\"\nmode = \"worker\"\nworker.script = \"www/worker.php\"\n{worker}");
    Configured::start(Docroot::of("worker_pool"), &text.replace("root = \"www\"", &app))
}

fn pool(site: &Configured) -> Value {
    site.status()["pools"][0].clone()
}

fn workers(site: &Configured) -> usize {
    pool(site)["workers"].as_array().expect("a list").len()
}

/// What clients of all threads get at the same time; each requests it so often.
fn said(site: &Configured, target: &str, times: usize) -> Vec<String> {
    let address = site.address();
    let client = || {
        let mut client = Client::new(address);
        (0..times).map(|_| client.get(target).expect(200).text()).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..VISITORS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().flat_map(|client| client.join().expect("it was served")).collect()
    })
}

/// The busy thread that has the worker gives it to the others.
#[test]
fn no_thread_has_the_only_worker_for_itself() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 1\nmax = 1\nqueue_timeout = \"3s\"\nloopback_slots = 0";
        let site = Configured::with_threads("supervision", threads, tables);
        let served: Vec<AtomicUsize> = (0..16).map(|_| AtomicUsize::new(0)).collect();
        let next = AtomicUsize::new(0);
        let client = |is_over: &dyn Fn() -> bool| {
            let own = &served[next.fetch_add(1, Ordering::Relaxed)];
            let mut client = site.client();
            while !is_over() {
                client.get("/hello.php").expect(200).saying("Hello, world\n");
                own.fetch_add(1, Ordering::Relaxed);
            }
        };
        repeating(served.len(), client, || {
            eventually("all are served", || {
                let counts: Vec<_> = served.iter().map(|one| one.load(Ordering::Relaxed)).collect();
                if counts.iter().all(|count| *count >= 200) { Ok(()) } else { Err(counts) }
            });
        });
        assert_eq!(workers(&site), 1, "{threads} threads");
    }
}

/// The pool may grow for requests of any thread, whichever may fork the workers.
#[test]
fn a_pool_grows_to_its_maximum_for_the_requests_of_any_thread() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 1\nmax = 4\nmin_idle = 0\nloopback_slots = 0";
        let site = Configured::with_threads("supervision", threads, tables);
        let held: Vec<_> = (0..4).map(|_| site.hold()).collect();
        let pids: HashSet<u32> = held.iter().map(|one| one.pid()).collect();
        assert_eq!((pids.len(), workers(&site)), (4, 4), "{threads} threads");
        held.into_iter().for_each(|one| one.finishes());
    }
}

#[test]
fn loopback_requests_are_served_on_every_thread() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads(
            "supervision",
            threads,
            "[pool]\nmin = 1\nmax = 1\nmin_idle = 0",
        );
        for _ in 0..VISITORS / 4 {
            let said = site.client().get("/self_call.php").expect(200).text();
            assert_eq!(said, "said: Hello, world\n");
        }
    }
}

#[test]
fn workers_with_a_script_serve_the_clients_of_all_threads() {
    for threads in THREAD_COUNTS {
        for (concurrency, count) in [(1, 1), (1, 4), (8, 1), (8, 4)] {
            let worker = format!("worker.concurrency = {concurrency}\n");
            let pool = format!("min = {count}\nmax = {count}\nmin_idle = 0\nloopback_slots = 0\n");
            let site = with_script(threads, &worker, &pool);
            let said = said(&site, "/who", 10);
            let pids: HashSet<&str> =
                said.iter().filter_map(|text| text.split(' ').next()).collect();
            assert!(pids.len() <= count, "{threads} threads, {concurrency}: {pids:?}");
        }
    }
}

/// A thread whose part of the forks is none has those of the others.
#[test]
fn forks_for_one_request_serve_the_clients_of_all_threads() {
    for threads in THREAD_COUNTS {
        for count in [1, 4] {
            let pool = format!("min = {count}\nmax = {count}\nmin_idle = 0\nloopback_slots = 0\n");
            let site = with_script(threads, FORKS, &pool);
            let said: Vec<String> = said(&site, "/who", 4);
            assert!(said.iter().all(|text| text.trim().ends_with(" answered 1")), "{said:?}");
            let pids: HashSet<&String> = said.iter().collect();
            assert_eq!(pids.len(), said.len(), "{threads} threads: a process for each");
        }
    }
}

#[test]
fn crashes_are_survived_on_every_thread() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads(
            "supervision",
            threads,
            "[pool]\nmin = 2\nmax = 2\nloopback_slots = 0",
        );
        let crashed = (0..8).filter(|_| site.client().get("/crash.php").status == 502).count();
        assert!(crashed > 0);
        eventually("all are served", || {
            (0..VISITORS).all(|_| site.client().get("/hello.php").status == 200)
        });
        eventually("nothing is left behind", || site.processes().len() == threads + 2);
        let deadline = "[limits]\nrequest_deadline = \"300ms\"\n[pool]\nmin = 2\nmax = 2\n";
        let site = Configured::with_threads("supervision", threads, deadline);
        for _ in 0..4 {
            site.client().get("/stuck.php?how=sleeps").expect(504);
        }
        assert_eq!(pool(&site)["deadlines"].as_u64(), Some(4));
        eventually("the killed ones are replaced", || site.processes().len() == threads + 2);
    }
}

#[test]
fn a_reload_that_fails_changes_nothing_on_any_thread() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 2\nmax = 2";
        let site = Configured::with_threads("supervision", threads, tables);
        let before = site.processes();
        site.docroot().beside().file("preload.php", "<?php throw new Exception('not today');\n");
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = taken.local_addr().expect("it is bound").to_string();
        for failing in [
            Configured::text_with_threads(threads, "[php]\npreload = \"preload.php\""),
            Configured::text_with_threads(
                threads,
                "[app.zoo]\nroot = \"www\"\nhosts = [\"zoo\"]\nuser = \"nobody-has-it\"",
            ),
            // Found when the pools of all threads are ready.
            Configured::text_with_threads(threads, tables).replace("127.0.0.1:0", &address),
        ] {
            site.rewrite(&failing);
            let output = site.command("reload", &[]);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            said(&site, "/hello.php", 1);
            assert_eq!(site.status()["generation"].as_u64(), Some(1));
            eventually("what was tried has gone", || {
                let now = site.processes();
                if now == before { Ok(()) } else { Err((now, before.clone())) }
            });
        }
        site.rewrite(&Configured::text_with_threads(threads, tables));
        assert!(site.command("reload", &[]).status.success());
        said(&site, "/hello.php", 1);
    }
}

/// Neither for PHP to start, nor for pools that no thread has started.
#[test]
fn a_stop_does_not_wait_for_a_reload() {
    for threads in THREAD_COUNTS {
        let with = |tables: &str| {
            format!("drain_timeout = \"50s\"\n{}", Configured::text_with_threads(threads, tables))
        };
        let site = Configured::start(Docroot::of("supervision"), &with("[pool]\nmin = 2\nmax = 2"));
        site.docroot().beside().file("preload.php", "<?php sleep(50);\n");
        site.rewrite(&with("[php]\npreload = \"preload.php\""));
        let before = site.processes().len();
        site.child().signal(rustix::process::Signal::HUP);
        eventually("the successor starts", || site.processes().len() > before);
        let started = std::time::Instant::now();
        drop(site.into_stopped());
        assert!(started.elapsed().as_secs() < 20, "{threads} threads: {:?}", started.elapsed());
    }
}
