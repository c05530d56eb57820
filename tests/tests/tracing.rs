//! Traces: the context of requests, their spans at a collector, and collectors that misbehave.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Collector, Configured, Docroot, MariaDb, Postgres, Request, THREAD_COUNTS, VISITORS,
    eventually,
};
use outboard_trace::testing::Received;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn text_of(collector: &Collector, tracing: &str, app: &str) -> String {
    let accept = if tracing.contains("accept") { "" } else { "accept = \"all\"" };
    format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[admin]\nmetrics = \"/metrics\"\n\
         [tracing]\nendpoint = \"{}\"\ndelay = \"10ms\"\n{accept}\n{tracing}\n\
         [app.site]\nroot = \"www\"\n{app}\n",
        collector.url()
    )
}

fn serving(collector: &Collector, tracing: &str, app: &str) -> Configured {
    Configured::start(Docroot::of("tracing"), &text_of(collector, tracing, app))
}

const WORKER: &str = "mode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"";
const ALL: &str = "sample = \"100%\"";

fn named<'a>(spans: &'a [Received], name: &str) -> &'a Received {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} in {spans:#?}"))
}

fn has(names: &[&str]) -> impl Fn(&[Received]) -> bool {
    move |spans| names.iter().all(|name| spans.iter().any(|span| span.name == *name))
}

#[test]
fn the_spans_of_a_request_are_part_of_its_callers_trace() {
    let collector = Collector::start();
    let site = serving(&collector, ALL, "");
    let request = Request::get("/index.php?secret=1")
        .header("traceparent", PARENT)
        .header("tracestate", "vendor=value");
    let response = site.client().send(&request).expect(200).text();
    let spans = collector.receives(has(&["GET", "queue", "php"]));
    let (own, queue, php) = (named(&spans, "GET"), named(&spans, "queue"), named(&spans, "php"));
    assert!(spans.iter().all(|span| span.trace_id == TRACE), "{spans:#?}");
    assert_eq!((own.parent.as_str(), own.kind, own.flags), ("00f067aa0ba902b7", 2, 0x301));
    assert_eq!((&queue.parent, &php.parent), (&own.span_id, &own.span_id));
    assert_eq!(response, format!("00-{TRACE}-{}-01 vendor=value", php.span_id));
    assert_eq!(own.state, "vendor=value");
    assert_eq!(own.resource["service.name"], "outboard");
    for (key, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("url.path", "/index.php"),
        ("outboard.app", "site"),
        ("outboard.kind", "script"),
    ] {
        assert_eq!(own.attributes[key], value);
    }
    assert!(!format!("{own:?}").contains("secret"), "a query is not exported");
    assert!(
        own.start_ns <= queue.start_ns && queue.end_ns <= php.end_ns && php.end_ns <= own.end_ns
    );
}

#[test]
fn an_invalid_context_or_state_is_ignored() {
    let collector = Collector::start();
    let site = serving(&collector, ALL, "");
    let twice = Request::get("/index.php").header("traceparent", PARENT);
    let twice = twice.header("traceparent", PARENT);
    let upper = Request::get("/index.php").header("traceparent", &PARENT.to_uppercase());
    for request in [twice, upper, Request::get("/index.php").header("tracestate", "a=1")] {
        let response = site.client().send(&request).expect(200).text();
        assert!(!response.contains(TRACE) && response.ends_with(" none"), "{response}");
    }
    let request = Request::get("/index.php").header("traceparent", PARENT);
    let response = site.client().send(&request.header("tracestate", "A=1")).expect(200).text();
    assert!(response.contains(TRACE) && response.ends_with(" none"), "{response}");
}

#[test]
fn the_context_of_untrusted_peers_is_ignored_if_configured() {
    let collector = Collector::start();
    let site = serving(&collector, &format!("{ALL}\naccept = \"trusted\""), "");
    let request = Request::get("/index.php").header("traceparent", PARENT);
    assert!(!site.client().send(&request).expect(200).text().contains(TRACE));
}

#[test]
fn without_tracing_php_gets_the_context_of_the_client() {
    let text = "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(Docroot::of("tracing"), text);
    let request = Request::get("/index.php").header("traceparent", PARENT);
    let response = site.client().send(&request).expect(200).text();
    assert_eq!(response, format!("{PARENT} none"));
}

#[test]
fn fetches_and_proxied_requests_carry_their_own_span() {
    let (collector, backend) = (Collector::start(), Backend::start());
    let proxy =
        format!("{WORKER}\n[[app.site.proxy]]\npath = \"/echo\"\nupstream = \"{}\"", backend.url());
    let site = serving(&collector, ALL, &proxy);
    let request = |target: &str| Request::get(target).header("traceparent", PARENT);
    let target = format!("/index.php?fetch={}/echo", backend.url());
    let fetched = site.client().send(&request(&target)).expect(200).text();
    let proxied = site.client().send(&request("/echo")).expect(200).text();
    let spans = collector.receives(|spans| spans.iter().filter(|span| span.kind == 3).count() == 2);
    let clients: Vec<&Received> = spans.iter().filter(|span| span.kind == 3).collect();
    for head in [&fetched, &proxied] {
        let lines: Vec<&str> =
            head.lines().filter(|line| line.to_lowercase().starts_with("traceparent:")).collect();
        assert_eq!(lines.len(), 1, "{head}");
        assert!(
            clients.iter().any(|span| lines[0].contains(&span.span_id)),
            "{lines:?} {spans:#?}"
        );
    }
    let php = named(&spans, "php");
    assert_eq!(clients.iter().filter(|span| span.parent == php.span_id).count(), 1);
    assert!(clients.iter().all(|span| span.attributes["url.full"] == backend.url()));
}

#[test]
fn a_script_adds_spans_of_its_own() {
    for app in ["", WORKER] {
        let collector = Collector::start();
        let site = serving(&collector, ALL, app);
        let response = site.client().get("/index.php?span=1").expect(200).text();
        assert_eq!(response, "nothing3!");
        let names = ["sum", "refused", "moment", "leaves", "php"];
        let spans = collector.receives(has(&names));
        let php = named(&spans, "php");
        for name in &names[..4] {
            let span = named(&spans, name);
            assert_eq!((&span.parent, span.kind), (&php.span_id, 1));
            assert_eq!(span.error.is_some(), *name == "refused", "{span:?}");
        }
        let expected = [("rows", "3"), ("table", "orders"), ("ratio", "0.5"), ("cold", "true")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(named(&spans, "sum").attributes, expected.into());
        assert_eq!(named(&spans, "refused").error.as_deref(), Some("DomainException"));
    }
}

#[test]
fn queries_and_waits_for_locks_are_spans_within_those_around_them() {
    for (app, has_text) in [("", false), (WORKER, true)] {
        let collector = Collector::start();
        let tracing = if has_text { "sample = \"100%\"\nstatements = true" } else { ALL };
        let site = serving(&collector, tracing, app);
        let response = site.client().get("/database.php").expect(200).text();
        assert_eq!(response, "bound refused 7");
        let names = [
            "php", "outer", "inner", "CONNECT", "CREATE", "INSERT", "SELECT", "DROP", "VALUES",
            "flock",
        ];
        let spans = collector.receives(has(&names));
        let parent_of = |name: &str, parent: &str| {
            assert_eq!(named(&spans, name).parent, named(&spans, parent).span_id, "{name}");
        };
        ["CONNECT", "outer", "VALUES", "flock"].iter().for_each(|name| parent_of(name, "php"));
        ["CREATE", "inner", "SELECT", "DROP"].iter().for_each(|name| parent_of(name, "outer"));
        parent_of("INSERT", "inner");
        for span in &spans {
            assert_eq!(span.error.is_some(), span.name == "DROP", "{span:?}");
        }
        let select = &named(&spans, "SELECT").attributes;
        assert_eq!(select["db.system.name"], "sqlite");
        assert_eq!(select["db.operation.name"], "SELECT");
        let text = select.get("db.query.text").map(String::as_str);
        let statement = "  select owner FROM orders WHERE owner = 'bound'";
        assert_eq!(text, has_text.then_some(statement));
        assert_eq!(named(&spans, "INSERT").attributes["db.response.returned_rows"], "1");
    }
}

#[test]
fn entities_and_tasks_are_part_of_the_trace_that_asks_for_them() {
    for threads in THREAD_COUNTS {
        let collector = Collector::start();
        let tables = "[kv]\ndata_dir = \"entities\"\n[app.site.tasks]\nworkers = 1\nscript = \"www/tasks.php\"";
        let text = format!("threads = {threads}\n{}", text_of(&collector, ALL, tables));
        let site = Configured::start(Docroot::of("tracing"), &text);
        for mut visitor in site.visitors() {
            let response = visitor.get("/queue.php").expect(200).text();
            assert_eq!(response, "value");
        }
        let spans = collector.receives(|spans| {
            let of = |name: &str| spans.iter().filter(|span| span.name == name).count();
            ["GET", "mail", "within"].iter().all(|name| of(name) == VISITORS)
        });
        for own in spans.iter().filter(|span| span.name == "GET") {
            let trace: Vec<Received> =
                spans.iter().filter(|span| span.trace_id == own.trace_id).cloned().collect();
            let order = &named(&trace, "order").span_id;
            for name in ["WRITE", "READ", "mail"] {
                assert_eq!(&named(&trace, name).parent, order, "{name}");
            }
            let task = named(&trace, "mail");
            assert_eq!((task.kind, task.attributes["outboard.app"].as_str()), (5, "site"));
            assert_eq!(named(&trace, "within").parent, task.span_id);
            assert_eq!(named(&trace, "READ").attributes["db.system.name"], "outboard");
        }
    }
}

#[test]
fn a_fetch_is_part_of_the_span_that_begins_it() {
    let (collector, backend) = (Collector::start(), Backend::start());
    let site = serving(&collector, ALL, WORKER);
    let target = format!("/index.php?within={}/echo&concurrently=1", backend.url());
    let fetched = site.client().get(&target).expect(200).text();
    let clients = |spans: &[Received]| spans.iter().filter(|span| span.kind == 3).count();
    let spans = collector.receives(|spans| clients(spans) == 4 && has(&["php"])(spans));
    for parent in ["inner", "outer", "both", "php"] {
        let id = &named(&spans, parent).span_id;
        let within = spans.iter().filter(|span| span.kind == 3 && span.parent == *id);
        assert_eq!(within.count(), 1, "{parent} in {spans:#?}");
    }
    // What a coroutine does is part of the span that has begun it.
    assert_eq!(named(&spans, "moment").parent, named(&spans, "both").span_id);
    let within = spans.iter().filter(|span| span.kind == 3);
    let sent = within.filter(|span| fetched.contains(&span.span_id)).count();
    assert_eq!(sent, 2, "the backend gets the spans of its requests: {fetched}");
}

#[test]
fn many_and_large_spans_cost_a_bounded_memory() {
    let collector = Collector::start();
    let site = serving(&collector, ALL, WORKER);
    site.client().get("/index.php?many=100000").expect(200).saying("done");
    site.client().get("/index.php").expect(200);
    let spans = collector.receives(has(&["outer", "inner", "php", "GET"]));
    let own = named(&spans, "GET");
    let stored = spans.iter().filter(|span| span.trace_id == own.trace_id);
    let lost = own.attributes["outboard.lost_spans"].parse::<usize>().expect("a number");
    // The script's spans, with `outer`, the queue and PHP.
    assert_eq!(stored.clone().count() - 1 + lost, 100_003);
    assert!(stored.clone().count() < 300, "{}", stored.count());
    assert_eq!(named(&spans, "inner").parent, named(&spans, "outer").span_id);
    assert!(spans.iter().all(|span| span.name.len() <= 1 << 10));
}

#[test]
fn a_child_that_a_script_has_forked_sends_no_spans() {
    for app in ["", WORKER] {
        let collector = Collector::start();
        let site = serving(&collector, ALL, app);
        site.client().get("/index.php?forks=1").expect(200).saying("done");
        let spans = collector.receives(has(&["of the parent", "php", "GET"]));
        assert!(!has(&["of the child"])(&spans), "{spans:#?}");
        site.client().get("/index.php").expect(200);
    }
}

#[test]
fn rows_of_mysqli_and_pgsql_are_counted() {
    let (mariadb, postgres) = (MariaDb::start(), Postgres::start());
    mariadb.create("shop");
    let collector = Collector::start();
    let site = serving(&collector, ALL, "");
    let target = format!(
        "/rows.php?mysqli={}&pgsql={}",
        mariadb.socket().display(),
        postgres.socket().parent().expect("its folder").display()
    );
    site.client().get(&target).expect(200).saying("12 bound 2 refused");
    let spans = collector.receives(has(&["GET", "php", "VALUES", "FETCH"]));
    let rows = |name: &str, system: &str| -> Vec<Option<&str>> {
        let is_of = |span: &&Received| {
            let of = span.attributes.get("db.system.name");
            span.name == name && of.is_some_and(|of| of == system)
        };
        let found = spans.iter().filter(is_of);
        found
            .map(|span| span.attributes.get("db.response.returned_rows").map(String::as_str))
            .collect()
    };
    let mysql = |name: &str| rows(name, "mysql");
    assert_eq!(mysql("INSERT"), [Some("3"), Some("1")]);
    assert_eq!(mysql("UPDATE"), [Some("2"), Some("2")]);
    assert_eq!(mysql("SELECT"), [Some("2"), None, Some("4")], "the second is not buffered");
    assert_eq!(mysql("EXECUTE"), [None], "its rows were not fetched yet");
    assert_eq!(mysql("DROP"), [None]);
    assert_eq!(rows("VALUES", "postgresql"), [Some("2")]);
    assert_eq!(rows("FETCH", "postgresql"), [None]);
}

#[test]
fn an_applications_own_context_is_not_replaced() {
    let (collector, backend) = (Collector::start(), Backend::start());
    let site = serving(&collector, ALL, WORKER);
    let own = "00-11111111111111111111111111111111-2222222222222222-01";
    let target = format!("/index.php?fetch={}/echo&headers[traceparent]={own}", backend.url());
    assert!(site.client().get(&target).expect(200).text().contains(own));
}

#[test]
fn failed_and_slow_requests_are_exported_without_being_sampled() {
    let collector = Collector::start();
    let site = serving(&collector, "sample = \"0%\"\nslow = \"0\"", "");
    site.client().get("/index.php").expect(200);
    site.client().get("/index.php?fail=1").expect(500);
    let spans = collector.receives(has(&["GET", "php"]));
    let own = named(&spans, "GET");
    assert_eq!(own.attributes["http.response.status_code"], "500");
    assert_eq!((own.flags & 1, own.error.as_deref()), (0, Some("")), "it was not sampled");
    let site = serving(&collector, "sample = \"0%\"\nslow = \"1ms\"", "");
    site.docroot().put("slow.php", "<?php usleep(2000); echo 'slow';");
    site.client().get("/slow.php").expect(200);
    let is_slow =
        |span: &Received| span.attributes.get("url.path").is_some_and(|at| at == "/slow.php");
    collector.receives(|spans| spans.iter().any(is_slow));
    let statuses = collector.spans();
    let quick =
        |span: &&Received| span.attributes.get("url.path").is_some_and(|at| at == "/index.php");
    assert_eq!(statuses.iter().filter(quick).count(), 1, "only the failed one");
}

#[test]
fn a_collector_that_asks_for_a_pause_gets_the_spans_again() {
    let collector = Collector::start();
    collector.refuses_with(&["503 Busy", "429 Too Many\r\nRetry-After: 0", "502 Bad", "504 Late"]);
    let site = serving(&collector, ALL, "");
    site.client().get("/index.php").expect(200);
    collector.receives(has(&["GET", "queue", "php"]));
    assert_eq!(collector.hears(5).len(), 5);
    site.logs(&["tracing:", "does not accept spans", "status 503"]);
    site.logs(&["tracing:", "accepts spans again"]);
}

#[test]
fn spans_that_a_collector_rejects_are_dropped_and_counted() {
    let collector = Collector::start();
    collector.refuses_with(&["400 Bad Request"]);
    let site = serving(&collector, ALL, "");
    site.client().get("/index.php").expect(200);
    collector.hears(1);
    eventually("the spans are counted", || {
        let metrics = site.client().get("/metrics").expect(200).text();
        metrics.contains("\noutboard_trace_dropped_spans_total 3\n").then_some(())
    });
}

#[test]
fn spans_that_a_collector_rejects_in_part_are_counted() {
    let collector = Collector::start();
    collector.rejects(2, "a quota is used up");
    let site = serving(&collector, ALL, "");
    site.client().get("/index.php").expect(200);
    site.logs(&["tracing:", "has rejected 2 spans: a quota is used up"]);
    // A request for the metrics has a span itself, which may come before the next one.
    collector.rejects(0, "");
    let metric = |name: &str| {
        let metrics = site.client().get("/metrics").expect(200).text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or_default()
    };
    eventually("they are counted", || {
        (metric("outboard_trace_rejected_spans_total") == 2).then_some(())
    });
    eventually("the other one too", || (metric("outboard_trace_spans_total") > 0).then_some(()));
    let spans = collector.spans();
    let is_of_script = |span: &&Received| span.trace_id == spans[0].trace_id;
    assert_eq!(spans.iter().filter(is_of_script).count(), 3, "{spans:#?}");
    let mut ids: Vec<_> = spans.iter().map(|span| &span.span_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "none comes twice: {spans:#?}");
}

#[test]
fn exports_are_compressed_if_configured() {
    let collector = Collector::start();
    let site = serving(&collector, &format!("{ALL}\ncompression = \"gzip\""), "");
    site.client().get("/index.php").expect(200);
    collector.receives(has(&["GET", "queue", "php"]));
    assert!(collector.hears(1)[0].to_lowercase().contains("content-encoding: gzip\r\n"));
}

#[test]
fn a_collector_that_hangs_or_is_gone_costs_a_bounded_memory() {
    let collector = Collector::start();
    collector.falls_silent();
    let site = serving(&collector, &format!("{ALL}\nbuffer = \"64 KiB\""), "");
    let mut client = site.client();
    // About 600 bytes each.
    for _ in 0..300 {
        client.get("/index.php").expect(200);
    }
    let metrics = client.get("/metrics").expect(200).text();
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    };
    assert!(value("outboard_trace_dropped_spans_total") > 100);
    assert!((1..=64 << 10).contains(&value("outboard_trace_buffer_bytes")));
    assert_eq!(value("outboard_trace_spans_total"), 0);
    drop(client);
    let gone = text_of(&collector, ALL, "").replace(&collector.url(), "http://127.0.0.1:1");
    let site = Configured::start(Docroot::of("tracing"), &gone);
    site.client().get("/index.php").expect(200);
    site.logs(&["tracing:", "http://127.0.0.1:1/v1/traces does not accept spans"]);
    site.client().get("/index.php").expect(200);
}

#[test]
fn spans_that_wait_are_exported_when_the_server_stops() {
    let collector = Collector::start();
    let text = text_of(&collector, ALL, "").replace("10ms", "10m");
    let site = Configured::start(Docroot::of("tracing"), &text);
    site.client().get("/index.php").expect(200);
    drop(site.into_stopped());
    let spans = collector.spans();
    assert!(has(&["GET", "queue", "php"])(&spans), "{spans:#?}");
}

#[test]
fn a_reload_changes_the_collector() {
    let (first, second) = (Collector::start(), Collector::start());
    let site = serving(&first, ALL, "");
    site.client().get("/index.php").expect(200);
    first.receives(has(&["GET"]));
    site.rewrite(&text_of(&second, ALL, ""));
    assert!(site.command("reload", &[]).status.success());
    site.client().get("/index.php").expect(200);
    second.receives(has(&["GET"]));
}
