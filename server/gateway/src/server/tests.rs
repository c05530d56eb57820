//! The end of a server, and what it announces.

use super::*;
use crate::logs;
use crate::testing::{Site, in_loop, request_text, wait_for};
use std::cell::Cell;

/// Drains in a task of its own; true at the end.
fn start_drain(site: &Site) -> Rc<Cell<bool>> {
    let (gateway, has_ended) = (site.gateway.clone(), Rc::new(Cell::new(false)));
    let ended = has_ended.clone();
    spawn(async move {
        drain(&gateway, false).await;
        ended.set(true);
    });
    has_ended
}

#[test]
fn a_running_request_is_completed_before_the_server_ends() {
    in_loop(async {
        let site = Site::with_config(
            &[("a.php", "<?php")],
            "drain_timeout = \"10s\"\n[app.site]\nroot = \"www\"\n",
        );
        let client = site.connect();
        // The server ends the connection after it.
        client.send("GET /a.php HTTP/1.1\r\nHost: a\r\n\r\n");
        let php = site.next_php_request().await;
        // The pool has no processes that could end.
        site.gateway.pools.borrow_mut().clear();
        let has_ended = start_drain(&site);
        let is_draining = || site.gateway.server.is_draining().then_some(());
        wait_for("start of the drain", is_draining).await;
        assert!(!has_ended.get());
        php.respond(200, &[], "complete");
        let response = client.receive_to_end().await;
        assert!(response.contains("complete"), "{response}");
        wait_for("end", || has_ended.get().then_some(())).await;
    });
}

#[test]
fn a_request_without_end_delays_the_server_by_its_drain_timeout() {
    in_loop(async {
        let text = "drain_timeout = \"50ms\"\n[app.site]\nroot = \"www\"\n";
        let site = Site::with_config(&[("a.php", "<?php")], text);
        let client = site.connect();
        client.send(request_text("GET", "/a.php", "", ""));
        let php = site.next_php_request().await;
        site.gateway.pools.borrow_mut().clear();
        let has_ended = start_drain(&site);
        wait_for("end", || has_ended.get().then_some(())).await;
        assert!(!php.is_abandoned(), "the client still waits");
    });
}

#[test]
fn idle_connections_are_closed_at_once() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        let client = site.connect();
        client.send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        let server = site.gateway.server.clone();
        let mut response = String::new();
        while !response.ends_with('a') {
            response += &client.receive().await;
        }
        assert_eq!(server.shared.open_connections(), 1);
        site.gateway.pools.borrow_mut().clear();
        let has_ended = start_drain(&site);
        assert_eq!(client.receive_to_end().await, "");
        wait_for("end", || has_ended.get().then_some(())).await;
        assert_eq!(server.shared.open_connections(), 0);
    });
}

#[test]
fn logs_are_reopened_under_their_names() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "[log.access]\npath = \"access.log\"\n");
        site.get("/a.txt").await;
        assert_eq!(site.log("access.log").lines().count(), 1);
        let (log, old) =
            (site.directory().join("access.log"), site.directory().join("access.log.1"));
        std::fs::rename(&log, &old).unwrap();
        reopen_logs(site.gateway.clone()).await;
        site.get("/a.txt?2").await;
        assert!(site.log("access.log").contains("/a.txt?2"));
        assert_eq!(site.log("access.log.1").lines().count(), 1);
    });
}

#[test]
fn a_large_log_is_renamed_and_lines_go_on() {
    in_loop(async {
        let keys = "[log.access]\npath = \"access.log\"\n[log.rotate]\nsize = 100\nkeep = 2\n";
        let site = Site::new(&[("a.txt", "a")], keys);
        let rotate = || logs::rotate(site.gateway.sinks.borrow().all().cloned().collect());
        for number in 1..=4 {
            site.get(&format!("/a.txt?{number}")).await;
            site.get(&format!("/a.txt?{number}")).await;
            // Written by the housekeeping.
            site.log("access.log");
            rotate().await.unwrap();
            rotate().await.unwrap();
        }
        assert_eq!(site.log("access.log"), "");
        for (name, number) in [("access.log.1", 4), ("access.log.2", 3)] {
            assert_eq!(site.log(name).matches(&format!("?{number} ")).count(), 2, "{name}");
        }
        assert!(!site.directory().join("access.log.3").exists());
        // A directory in the way: lines go on in the old file.
        std::fs::remove_file(site.directory().join("access.log.1")).unwrap();
        std::fs::create_dir_all(site.directory().join("access.log.1/x")).unwrap();
        std::fs::remove_file(site.directory().join("access.log.2")).unwrap();
        std::fs::write(site.directory().join("access.log.2"), "").unwrap();
        site.get("/a.txt?5").await;
        site.get("/a.txt?5").await;
        site.log("access.log");
        assert!(rotate().await.is_err());
        site.get("/a.txt?6").await;
        let log = site.log("access.log");
        assert!(log.contains("?5 ") && log.contains("?6 "), "{log}");
    });
}

#[test]
fn the_announced_addresses_are_those_of_clients() {
    in_loop(async {
        let site = Site::with_config(
            &[],
            "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\n[kv]\ndata_dir = \"DIR/kv\"\n\
             listen = \"127.0.0.1:0\"\n",
        );
        let config = &site.gateway.generation().config;
        let configured = ConfiguredListener::of(config, &Opener::default()).unwrap();
        let admin = site.directory().join("admin.sock");
        let socket = Some(AdminSocket::Always(admin.clone()));
        let bound = listeners::listen_first(&site.gateway, configured, socket).unwrap();
        assert_eq!(bound.as_deref(), Some(&*admin));
        let ready = ready_facts(&site.gateway, bound);
        assert_eq!(ready.listeners.len(), 2, "{:?}", ready.listeners);
        assert!(ready.listeners.iter().all(|url| url.starts_with("http://127.0.0.1:")));
        assert_eq!(ready.apps[0].0, "site");
        listeners::stop(&site.gateway);
    });
}
