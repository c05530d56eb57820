//! What a server promises does not depend on the number of its threads.
//!
//! Each test runs with 1, 2 and 4 threads, also where there are fewer cores.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Client, Configured, Process, Request, THREAD_COUNTS, VISITORS, eventually, repeating,
};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

fn pool(site: &Configured) -> Value {
    site.status()["pools"][0].clone()
}

#[test]
fn the_status_is_that_of_all_threads() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("supervision", threads, "[pool]\nmin = 4\nmax = 4");
        let mut visitors = site.visitors();
        for visitor in &mut visitors {
            visitor.get("/hello.php").expect(200).saying("Hello, world\n");
        }
        let status = site.status();
        assert_eq!(status["threads"].as_u64(), Some(threads as u64));
        assert_eq!(status["requests"].as_u64(), Some(VISITORS as u64), "{status:#}");
        let open = status["connections"].as_u64().unwrap();
        assert!(open >= VISITORS as u64, "{open}");
        let pool = pool(&site);
        assert_eq!(pool["requests"].as_u64(), Some(VISITORS as u64));
        assert_eq!(pool["workers"].as_array().unwrap().len(), 4, "{pool:#}");
        assert_eq!((pool["min"].as_u64(), pool["max"].as_u64()), (Some(4), Some(4)));
    }
}

#[test]
fn one_worker_serves_the_clients_of_all_threads() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("supervision", threads, "[pool]\nmin = 1\nmax = 1");
        let mut pids = HashSet::new();
        for visitor in &mut site.visitors() {
            pids.insert(visitor.get("/pid.php").expect(200).text());
        }
        assert_eq!(pids.len(), 1, "{threads} threads: {pids:?}");
    }
}

/// A thread whose workers are busy has the idle ones of the others.
#[test]
fn no_request_waits_while_a_worker_is_idle() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("supervision", threads, "[pool]\nmin = 4\nmax = 4");
        for _ in 0..3 {
            let held: Vec<_> = (0..4).map(|_| site.hold()).collect();
            let pids: HashSet<u32> = held.iter().map(|one| one.pid()).collect();
            assert_eq!(pids.len(), 4, "each has a worker of its own");
            assert_eq!(pool(&site)["in_flight"].as_u64(), Some(4));
            held.into_iter().for_each(|one| one.finishes());
        }
        eventually("all workers are idle", || {
            let workers = pool(&site)["workers"].clone();
            let idle = workers.as_array().unwrap().iter().filter(|one| one["state"] == "idle");
            if idle.count() == 4 { Ok(()) } else { Err(workers) }
        });
    }
}

#[test]
fn a_full_queue_is_full_for_all_threads() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 1\nmax = 1\nqueue_length = 3\nloopback_slots = 0";
        let site = Configured::with_threads("supervision", threads, tables);
        let held = site.hold();
        let address = site.address();
        let refused = AtomicUsize::new(0);
        let served = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..VISITORS {
                scope.spawn(|| {
                    let counter = match Client::new(address).get("/hello.php").status {
                        200 => &served,
                        503 => &refused,
                        other => panic!("{other}"),
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                });
            }
            eventually("the others are refused", || {
                let count = refused.load(Ordering::Relaxed);
                if count >= VISITORS - 3 - (threads - 1) { Ok(()) } else { Err(count) }
            });
            held.finishes();
        });
        let served = served.into_inner();
        assert!((1..=3 + threads - 1).contains(&served), "{threads} threads: {served}");
    }
}

#[test]
fn killed_workers_and_zygotes_are_replaced_on_every_thread() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("supervision", threads, "[pool]\nmin = 4\nmax = 4");
        let before = site.processes();
        assert_eq!(before.len(), threads + 4, "a zygote for each thread, and the workers");
        // The zygotes of the other threads and some workers; then the first zygote, and with it all.
        for killed in [&before[1..threads + 2], &before[..1]] {
            // A worker may have ended with its zygote already.
            killed.iter().filter_map(|pid| Process::find(*pid)).for_each(|one| one.kill());
            eventually("all are replaced", || {
                let now = site.processes();
                let is_new = killed.iter().all(|pid| !now.contains(pid));
                let idle = pool(&site)["workers"].as_array().unwrap().len();
                if is_new && now.len() == threads + 4 && idle == 4 { Ok(()) } else { Err(now) }
            });
            for visitor in &mut site.visitors() {
                visitor.get("/hello.php").expect(200);
            }
        }
    }
}

#[test]
fn reloads_cost_no_request_on_any_thread() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 2\nmax = 2";
        let site = Configured::with_threads("supervision", threads, tables);
        let served = AtomicUsize::new(0);
        let client = |is_over: &dyn Fn() -> bool| {
            let mut client = site.client();
            while !is_over() {
                client.get("/hello.php").expect(200).saying("Hello, world\n");
                served.fetch_add(1, Ordering::Relaxed);
            }
        };
        repeating(8, client, || {
            for generation in 2..7 {
                site.rewrite(&Configured::text_with_threads(threads, tables));
                let output = site.command("reload", &[]);
                assert!(output.status.success(), "{output:?}\n{}", site.child().output());
                assert_eq!(site.status()["generation"].as_u64(), Some(generation));
            }
        });
        assert!(served.into_inner() > 0);
        eventually("the old processes have gone", || {
            let count = site.processes().len();
            if count == threads + 2 { Ok(()) } else { Err(count) }
        });
    }
}

#[test]
fn a_stop_completes_the_requests_of_all_threads() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("supervision", threads, "[pool]\nmin = 4\nmax = 4");
        let held: Vec<_> = (0..4).map(|_| site.hold()).collect();
        site.child().signal(rustix::process::Signal::TERM);
        site.logs(&["stopping: completing running requests"]);
        held.into_iter().for_each(|one| one.finishes());
        let processes = site.processes();
        drop(site.into_stopped());
        processes
            .iter()
            .filter_map(|pid| Process::find(*pid))
            .for_each(|one| one.wait_until_gone());
    }
}

#[test]
fn records_are_the_same_on_every_thread() {
    for threads in THREAD_COUNTS {
        let tables = "[kv]\ndata_dir = \"kv\"\npath = \"/kv\"\ntrusted_clients = [\"127.0.0.1\"]";
        let site = Configured::with_threads("supervision", threads, tables);
        for (number, visitor) in site.visitors().iter_mut().enumerate() {
            let put = Request::new("PUT", &format!("/kv/entity?id={number:02}")).body("value");
            visitor.send(&put).expect(201);
        }
        let mut visitors = site.visitors();
        for visitor in &mut visitors {
            visitor.get("/kv/entity?id=07").expect(200).saying("value");
            visitor.get("/kv/entity?id=x").expect(404);
            let all = visitor.get("/kv/entities?start=00").expect(200).text();
            assert_eq!(all.matches("value").count(), VISITORS, "{all}");
        }
    }
}
