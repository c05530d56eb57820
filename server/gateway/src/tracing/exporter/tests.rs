//! Exports to a collector that accepts, refuses, or is gone.

use super::*;
use crate::testing::{Site, Upstream, in_loop, ok, wait_for};

const LOG: &str = "[log.error]\npath = \"error.log\"\n";

/// An exporter to this port, on whose site it logs. `keys` are those of `[tracing]`.
fn exporter(port: u16, keys: &str) -> (Site, Exporter) {
    exporter_after("10ms", port, keys)
}

/// The same, with spans that wait for so long.
fn exporter_after(delay: &str, port: u16, keys: &str) -> (Site, Exporter) {
    let text = format!(
        "{LOG}[tracing]\nendpoint = \"http://127.0.0.1:{port}\"\ndelay = \"{delay}\"\ncompression = \"none\"\n{keys}\n\
         [app.site]\nroot = \"www\"\n"
    );
    let site = Site::with_config(&[], &text);
    let generation = site.gateway.generation();
    let settings = generation.config.tracing.clone().expect("an endpoint");
    let app = site.app();
    let exporter = Exporter::start(&settings, &Rc::default(), &app.upstream, &app.logs.error, 1);
    (site, exporter)
}

fn response(status: u16, lines: &str, body: &str) -> String {
    ok(lines, body).replacen("200 OK", &format!("{status} Status"), 1)
}

/// Waits until the counts are such.
async fn counted(exporter: &Exporter, is_so: impl Fn(Exported) -> bool) -> Exported {
    wait_for("counts", || Some(exporter.counts()).filter(|counts| is_so(*counts))).await
}

#[test]
fn spans_are_sent_together_with_the_fields_of_the_configuration() {
    in_loop(async {
        let collector = Upstream::with_body("");
        let (_site, exporter) = exporter(collector.port, "headers = { x-key = \"secret\" }");
        exporter.add(b"one", 1);
        exporter.add(b"two", 2);
        let counts = counted(&exporter, |counts| counts.spans == 3 && counts.held_bytes == 0).await;
        assert_eq!((counts.dropped, counts.failures, counts.rejected), (0, 0, 0));
        let requests = collector.requests.borrow();
        assert_eq!(requests.len(), 1);
        let text = requests[0].to_ascii_lowercase();
        assert!(text.starts_with("post /v1/traces "), "{text}");
        assert!(text.contains("x-key: secret\r\n"), "{text}");
        assert!(text.contains("content-type: application/x-protobuf\r\n"), "{text}");
        assert!(text.contains("service.name") && text.contains("onetwo"), "{text:?}");
    });
}

#[test]
fn a_collector_that_refuses_costs_its_spans_and_one_line() {
    in_loop(async {
        let collector = Upstream::start(|_| response(400, "", ""));
        let (site, exporter) = exporter(collector.port, "");
        for attempt in 1..=2 {
            exporter.add(b"span", 1);
            counted(&exporter, |counts| counts.dropped == attempt).await;
        }
        let counts = exporter.counts();
        assert_eq!((counts.spans, counts.failures, counts.held_bytes), (0, 2, 0));
        assert_eq!(collector.requests.borrow().len(), 2, "the same request fails again");
        assert_eq!(site.log("error.log").matches("does not accept spans: status 400").count(), 1);
    });
}

#[test]
fn a_batch_is_repeated_until_the_collector_accepts_it() {
    in_loop(async {
        let count = Cell::new(0);
        let collector = Upstream::start(move |_| {
            count.set(count.get() + 1);
            if count.get() < 2 { response(503, "Retry-After: 0\r\n", "") } else { ok("", "") }
        });
        let (site, exporter) = exporter(collector.port, "");
        exporter.add(b"span", 1);
        let counts = counted(&exporter, |counts| counts.spans == 1).await;
        assert_eq!((counts.failures, counts.dropped), (1, 0));
        let requests = collector.requests.borrow();
        let bodies: Vec<_> = requests.iter().filter_map(|one| one.split_once("\r\n\r\n")).collect();
        assert!(bodies.len() == 2 && bodies[0].1 == bodies[1].1);
        let log = site.log("error.log");
        assert!(log.contains("accepts spans again"), "{log}");
    });
}

#[test]
fn spans_that_the_collector_rejects_are_counted_apart() {
    in_loop(async {
        // ExportTraceServiceResponse.partial_success: 2 rejected spans, and why.
        let collector = Upstream::with_body("\n\x08\x08\x02\x12\x04full");
        let (site, exporter) = exporter(collector.port, "");
        for round in 1..=2 {
            exporter.add(b"spans", 3);
            counted(&exporter, |counts| counts.rejected == 2 * round).await;
        }
        assert_eq!(exporter.counts().spans, 2);
        let log = site.log("error.log");
        assert_eq!(log.matches("has rejected 2 spans: full").count(), 1, "{log}");
    });
}

#[test]
fn memory_is_bounded_while_the_collector_is_gone() {
    in_loop(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let (_site, exporter) = exporter(port, "buffer = \"64 KiB\"");
        for _ in 0..100 {
            exporter.add(&[0; 1_000], 1);
        }
        let counts = counted(&exporter, |counts| counts.failures > 0).await;
        assert!(counts.held_bytes <= 64 << 10, "{counts:?}");
        assert!(counts.dropped >= 35, "{counts:?}");
        assert_eq!(counts.spans, 0);
        // The last attempt is not repeated when the server stops.
        exporter.finish().await;
        let counts = exporter.counts();
        assert_eq!((counts.held_bytes, counts.dropped), (0, 100));
    });
}

#[test]
fn what_waits_is_exported_when_the_server_stops() {
    in_loop(async {
        let collector = Upstream::with_body("");
        let (_site, exporter) = exporter_after("1m", collector.port, "");
        exporter.add(b"last", 1);
        exporter.finish().await;
        assert_eq!(exporter.counts().spans, 1);
        assert!(collector.last_request().contains("last"));
    });
}

#[test]
fn field_names_have_any_case() {
    let lines = b"Content-Length: 0\r\nRETRY-AFTER:  7 \r\nX: y\r\n";
    assert_eq!(field(lines, b"retry-after"), Some(&b"7"[..]));
    assert_eq!(field(lines, b"retry"), None);
}
