//! What is left of requests of known durations: each has begun three seconds ago, and the head of its response
//! was written after the first of them.

use super::*;
use crate::latencies::Kind;
use crate::testing::{Site, in_loop};
use outboard_http_server::HeaderBlock;

const WHOLE: Written = Written::Complete { keep_alive: true };
const LOG: &str = "[log.access]\npath = \"access.log\"\nformat = \"json\"\n";

/// Ends a request of an app.
async fn ended(site: &Site, kind: Kind, written: Written, status: u16) {
    let (app, generation) = (site.app(), site.gateway.generation());
    site.handled("", async move |request, response| {
        let now = Wall::now();
        request.started = Wall { unix_us: now.unix_us - 3_000_000 };
        request.kind.set(kind);
        let head_written = Wall { unix_us: now.unix_us - 2_000_000 };
        let summary = ResponseSummary { written, status, body_bytes: 5 };
        end(request, Some(head_written), Some(&app), &generation, &summary, Wall::now());
        response.respond(204, &HeaderBlock::default(), b"").await
    })
    .await;
}

/// The series of an app that have a duration: the phase, the class, and the sum.
fn durations(site: &Site) -> Vec<(Phase, u8, u64)> {
    let app = site.app();
    let all = app.latencies.snapshots();
    let mut all: Vec<_> =
        all.map(|(series, found)| (series.phase, series.class, found.sum_us)).collect();
    all.sort_unstable();
    all
}

#[test]
fn histograms_and_the_access_log_have_the_same_duration() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        ended(&site, Kind::Script, WHOLE, 404).await;
        let log = site.log("access.log");
        let line: serde_json::Value = serde_json::from_str(log.trim_end()).expect("one line");
        let total_us = line["duration_us"].as_u64().unwrap();
        assert!((3_000_000..60_000_000).contains(&total_us), "{log}");
        let expected = [(Phase::Total, 4, total_us), (Phase::FirstByte, 4, 1_000_000)];
        assert_eq!(durations(&site), expected);
        assert_eq!((&line["status"], &line["body_bytes"]), (&404.into(), &5.into()));
        assert_eq!((&line["app"], &line["target"]), (&"site".into(), &"/a?b".into()));
    });
}

#[test]
fn a_broken_response_has_no_class() {
    in_loop(async {
        let site = Site::new(&[], "");
        ended(&site, Kind::Script, Written::Broken, 200).await;
        let classes: Vec<u8> = durations(&site).iter().map(|(_, class, _)| *class).collect();
        assert_eq!(classes, [0, 0]);
    });
}

#[test]
fn a_request_of_no_app_is_only_in_the_access_log() {
    in_loop(async {
        let keys = format!("{LOG}[log.slow]\npath = \"slow.log\"\nthreshold = \"1ms\"\n");
        let site = Site::new(&[], &keys);
        site.gateway.paths.watch(now_ms());
        let generation = site.gateway.generation();
        site.handled("", async move |request, response| {
            request.kind.set(Kind::Proxy);
            let summary = ResponseSummary { written: WHOLE, status: 404, body_bytes: 0 };
            end(request, None, None, &generation, &summary, Wall::now());
            response.respond(204, &HeaderBlock::default(), b"").await
        })
        .await;
        assert_eq!(site.log("access.log").lines().count(), 1);
        assert_eq!(durations(&site), []);
        assert!(site.gateway.slow_proxied.list().is_empty());
        assert!(site.gateway.paths.watch(now_ms()).is_empty());
    });
}

#[test]
fn a_proxied_response_that_begins_late_is_slow() {
    in_loop(async {
        let log = |threshold: &str| format!("[log.slow]\npath = \"slow.log\"\n{threshold}");
        let site = Site::new(&[], &log("threshold = \"1s\""));
        // PHP has a slow log of its own.
        ended(&site, Kind::Script, WHOLE, 200).await;
        assert!(site.gateway.slow_proxied.list().is_empty());
        ended(&site, Kind::Proxy, WHOLE, 200).await;
        let [slow] = &site.gateway.slow_proxied.list()[..] else { panic!("one is slow") };
        assert_eq!((&*slow.app, &*slow.request, slow.took_ms), ("site", "GET /a?b", 1_000));
        assert_eq!((slow.pid, &slow.server, &*slow.backtrace), (None, &None, ""));
        // Its end alone is late: the client reads slowly, or the response is a stream.
        for keys in [
            log("threshold = \"1001ms\""),
            "[log.slow]\npath = \"off\"\nthreshold = \"1ms\"".into(),
        ] {
            let site = Site::new(&[], &keys);
            ended(&site, Kind::Proxy, WHOLE, 200).await;
            assert!(site.gateway.slow_proxied.list().is_empty(), "{keys}");
        }
    });
}

#[test]
fn paths_are_counted_with_their_hits_and_failures() {
    in_loop(async {
        let site = Site::new(&[], "");
        ended(&site, Kind::Script, WHOLE, 200).await;
        assert!(site.gateway.paths.watch(now_ms()).is_empty(), "nobody has watched");
        ended(&site, Kind::Hit, WHOLE, 200).await;
        ended(&site, Kind::Script, WHOLE, 499).await;
        ended(&site, Kind::Script, WHOLE, 500).await;
        ended(&site, Kind::Script, Written::Broken, 200).await;
        let [path] = &site.gateway.paths.watch(now_ms())[..] else { panic!("one path") };
        assert_eq!((&*path.app, &*path.path), ("site", "/a"));
        assert_eq!((path.requests, path.hits, path.failed), (4, 1, 2));
        assert!(path.total_us >= 12_000_000, "{}", path.total_us);
    });
}

#[test]
fn attributes_are_bounded_and_text() {
    assert_eq!(text(b"/a\xff"), "/a\u{fffd}");
    let long = "ä".repeat(MAX_TEXT_BYTES);
    assert_eq!(text(long.as_bytes()), "ä".repeat(MAX_TEXT_BYTES / 2));
    let odd = format!("a{long}");
    let cut = text(odd.as_bytes());
    assert!(cut.ends_with("ä\u{fffd}") && cut.chars().count() == MAX_TEXT_BYTES / 2 + 1, "{cut}");
}
