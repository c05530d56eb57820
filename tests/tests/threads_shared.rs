//! What all threads of a server have in common: limits, the page cache, tasks, records, logs, metrics.
//!
//! Each test runs with 1, 2 and 4 threads, also where there are fewer cores.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Client, Configured, Connection, Docroot, Fifo, Request, THREAD_COUNTS, VISITORS, Wire,
    eventually, repeating,
};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Posts half of a body: such a connection is not idle.
fn half_a_post(site: &Configured) -> Wire {
    let mut wire = site.wire();
    wire.send("POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n");
    wire.send("Expect: 100-continue\r\n\r\n");
    wire
}

#[test]
fn an_address_has_so_many_connections_on_all_threads_together() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("limits", threads, "[limits]\nconnections_per_ip = 4");
        let busy: Vec<Wire> = (0..4)
            .map(|_| {
                let mut wire = half_a_post(&site);
                assert_eq!(wire.head(), "HTTP/1.1 100 Continue\r\n\r\n");
                wire
            })
            .collect();
        let _more: Vec<Wire> = (0..VISITORS).map(|_| site.wire()).collect();
        // One connection to each other thread may be in the place of one that seemed to be idle, and that
        // of the status counts as well.
        eventually("the others are closed", || {
            let open = site.status()["connections"].as_u64();
            if open <= Some(4 + threads as u64) { Ok(()) } else { Err(open) }
        });
        for mut wire in busy {
            wire.send("helloworld");
            assert!(wire.to_end().starts_with("HTTP/1.1 200 OK\r\n"));
        }
        eventually("there is room again", || {
            let mut wire = half_a_post(&site);
            wire.send("helloworld");
            String::from_utf8_lossy(&wire.to_any_end()).contains(" 200 OK\r\n")
        });
    }
}

#[test]
fn idle_connections_of_any_thread_make_room_for_others() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads(
            "limits",
            threads,
            "[limits]\nconnections = 8\nidle_timeout = \"10m\"",
        );
        let mut kept: Vec<Client> = Vec::new();
        for _ in 0..3 {
            for mut visitor in site.visitors() {
                visitor.get("/hello.php").expect(200).saying("Hello, world\n");
                kept.push(visitor);
            }
            // That of the status counts as well; each thread may close its own ones a bit later.
            eventually("the connections are limited", || {
                let open = site.status()["connections"].as_u64();
                if open <= Some(9) { Ok(()) } else { Err(open) }
            });
        }
    }
}

#[test]
fn connections_beyond_the_limit_wait_and_are_served_on_every_thread() {
    for threads in THREAD_COUNTS {
        let site = Configured::with_threads("limits", threads, "[limits]\nconnections = 4");
        let inside: Vec<Wire> = (0..4)
            .map(|_| {
                let mut wire = half_a_post(&site);
                assert_eq!(wire.head(), "HTTP/1.1 100 Continue\r\n\r\n");
                wire
            })
            .collect();
        let mut waiting: Vec<Wire> = (0..8).map(|_| site.wire()).collect();
        for wire in &mut waiting {
            wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        // Those inside are not disturbed by those that wait.
        for mut wire in inside {
            wire.send("helloworld");
            assert!(wire.to_end().starts_with("HTTP/1.1 200 OK\r\n"));
        }
        for mut wire in waiting {
            let transcript = wire.to_end();
            assert!(transcript.ends_with("\r\n\r\nHello, world\n"), "{transcript}");
        }
    }
}

#[test]
fn tasks_of_all_threads_are_done() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 2\nmax = 2\nmin_idle = 0\n[app.site.tasks]\n\
                      workers = 2\nscript = \"www/worker.php\"\nqueue_length = 1000";
        let site = Configured::with_threads("tasks", threads, tables);
        for (number, visitor) in site.visitors().iter_mut().enumerate() {
            let said = visitor.get(&format!("/index.php?dispatch={number:02}")).expect(200).text();
            assert!(said.contains("\"id\""), "{said}");
            let length = (number + 1) * 20_000;
            let said = visitor.get(&format!("/index.php?large={length}")).expect(200).text();
            assert!(!said.is_empty() && !said.contains("exception"), "{said}");
        }
        let mut client = site.client();
        eventually("all are done", || {
            let text = client.get("/index.php?name=ticked").expect(200).text();
            let done: HashSet<&str> = text.lines().filter(|line| line.starts_with('\'')).collect();
            if done.len() == VISITORS { Ok(()) } else { Err(text) }
        });
        let status = site.status();
        let tasks = status["tasks"].as_array().expect("a list");
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0]["accepted"].as_u64(), Some(2 * VISITORS as u64), "{tasks:?}");
        assert_eq!(status["pools"].as_array().map(Vec::len), Some(2), "{status:#}");
    }
}

#[test]
fn php_of_every_thread_has_the_same_records() {
    for threads in THREAD_COUNTS {
        let tables = "[pool]\nmin = 4\nmax = 4\n[kv]\ndata_dir = \"entities\"\n\
                      [kv.namespace.memory]\ndurability = \"memory\"";
        let site = Configured::with_threads("entities", threads, tables);
        for namespace in ["default", "memory"] {
            for visitor in &mut site.visitors()[..16] {
                let target = format!("/classic.php?namespace={namespace}");
                let said = visitor.get(&target).expect(200);
                let said: Value = serde_json::from_slice(&said.body).expect("it is JSON");
                assert_eq!(said[1].as_u64(), Some(500_000), "{threads} threads: {said}");
                assert_eq!(said[5], false);
                assert_eq!(said[9], "no_namespace");
            }
        }
        // All have incremented the same record, twice and by three together.
        site.docroot().put("count.php", "<?php echo (new Outboard\\KV('memory'))->get('n');");
        site.client().get("/count.php").expect(200).saying("48");
    }
}

fn with_cache(threads: usize, tables: &str) -> Configured {
    let cache = "[app.site.page_cache]\nmode = \"on\"\npurge_from = [\"127.0.0.1\"]\n";
    Configured::with_threads("page_cache", threads, &format!("{cache}{tables}"))
}

#[test]
fn a_page_is_cached_and_purged_for_all_threads_at_once() {
    for threads in THREAD_COUNTS {
        let site = with_cache(threads, "");
        let target = "/page.php?header[]=Cache-Control:max-age=600";
        for run in 1..4 {
            for visitor in &mut site.visitors() {
                let page = visitor.get(target).expect(200);
                assert_eq!(page.text(), format!("run {run} for visitor\n"), "{threads} threads");
            }
            // By any thread, and for all at once.
            match run {
                1 => {
                    let purge = Request::new("PURGE", target);
                    site.client().send(&purge).expect(200).saying("{\"purged\":1}\n");
                }
                _ => {
                    let output = site.command("cache", &["purge", "--all"]);
                    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 purged\n");
                }
            }
        }
    }
}

#[test]
fn a_page_is_rendered_once_for_the_clients_of_all_threads() {
    for threads in THREAD_COUNTS {
        let site = with_cache(threads, "lock_timeout = \"60s\"");
        let state = site.root().join("state");
        let mut gate = Fifo::at(state.join("gate-1"));
        let mut running = Fifo::at(state.join("running-1"));
        let start = || {
            let mut connection = Connection::open(site.address());
            let request = Request::get("/page.php?header[]=Cache-Control:max-age=600");
            connection.send(&request.to_bytes("a")).expect("the server reads");
            connection
        };
        let mut clients: Vec<Connection> = (0..VISITORS).map(|_| start()).collect();
        running.hear();
        eventually("the others wait", || {
            let output = site.command("cache", &["stats", "--json"]);
            let stats: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            let waiting = stats["apps"]["site"]["waiting"].as_u64();
            if waiting == Some(VISITORS as u64 - 1) { Ok(()) } else { Err(waiting) }
        });
        gate.open();
        for client in &mut clients {
            let page = client.response().expect("a response").expect(200);
            assert_eq!(page.text(), "run 1 for visitor\n", "{threads} threads");
        }
    }
}

/// The numbers of the requests in an access log, each of whose lines has to be whole.
fn logged(path: &Path) -> Vec<usize> {
    let text = fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is not whole");
    let number = |line: &str| {
        let rest = line.split("/hello.php?number=").nth(1);
        let digits = rest.and_then(|rest| rest.get(..6)).unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!(line.matches("/hello.php").count(), 1, "{line:?}");
        digits.parse().unwrap_or_else(|_| panic!("{line:?}"))
    };
    text.lines().map(number).collect()
}

#[test]
fn the_access_log_has_a_line_for_each_request_also_after_a_rotation() {
    for threads in THREAD_COUNTS {
        let with_log = Configured::text_with_threads(threads, "[pool]\nmin = 2\nmax = 2")
            .replace("path = \"off\"", "path = \"log/access.log\"");
        let docroot = Docroot::of("supervision");
        fs::create_dir_all(docroot.beside().path().join("log")).expect("it is ours");
        let site = Configured::start(docroot, &with_log);
        let log = site.docroot().beside().path().join("log/access.log");
        let next = AtomicUsize::new(0);
        let client = |is_over: &dyn Fn() -> bool| {
            let mut client = site.client();
            while !is_over() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                client.get(&format!("/hello.php?number={number:06}")).expect(200);
            }
        };
        let rotated = |at: usize| log.with_extension(format!("log.{at}"));
        repeating(8, client, || {
            for at in 0..3 {
                eventually("the log is written to", || {
                    fs::metadata(&log).is_ok_and(|file| file.len() > 10_000)
                });
                fs::rename(&log, rotated(at)).expect("it is there");
                site.child().signal(Signal::USR1);
                eventually("it is made anew", || log.exists());
            }
        });
        let folder = site.docroot().beside().path().join("log");
        let _stopped = site.into_stopped();
        let files = fs::read_dir(folder).expect("it is there");
        let mut numbers: Vec<usize> =
            files.flat_map(|file| logged(&file.expect("a file").path())).collect();
        numbers.sort_unstable();
        let expected: Vec<usize> = (0..next.into_inner()).collect();
        assert!(numbers == expected, "{threads} threads: {} of {}", numbers.len(), expected.len());
    }
}

#[test]
fn the_metrics_are_those_of_all_threads() {
    for threads in THREAD_COUNTS {
        let tables = "[admin]\nmetrics = \"/metrics\"\n[pool]\nmin = 4\nmax = 4";
        let site = Configured::with_threads("supervision", threads, tables);
        for visitor in &mut site.visitors() {
            visitor.get("/hello.php").expect(200);
        }
        // Each connection may be one of another thread.
        for (earlier, visitor) in site.visitors().iter_mut().enumerate() {
            let page = visitor.get("/metrics").expect(200).text();
            let sample = |series: &str| {
                let mut lines = page.lines();
                let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
                value.unwrap_or_else(|| panic!("no {series} in\n{page}")).to_owned()
            };
            let count = (VISITORS + earlier).to_string();
            assert_eq!(
                sample("outboard_responses_total{class=\"2xx\"}"),
                count,
                "{threads} threads"
            );
            let php = VISITORS.to_string();
            assert_eq!(sample("outboard_php_requests_total{app=\"site\"}"), php);
        }
    }
}
