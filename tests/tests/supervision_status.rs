//! What a running server tells about itself.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Process, Response, eventually};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

fn serving(tables: &str) -> Configured {
    let tables = format!("[pool]\nmin = 2\nmax = 2\n{tables}");
    Configured::serving("supervision", &tables)
}

/// The status once every worker has its process id: one can be at work before the report of its
/// fork has come.
#[track_caller]
fn once_reported(site: &Configured) -> Value {
    let is_reported = |status: &Value| {
        let workers = status["pools"][0]["workers"].as_array().expect("a list");
        workers.iter().all(|worker| worker["pid"].is_u64())
    };
    let status = std::iter::repeat_with(|| site.status()).take(1000).find(is_reported);
    status.expect("every worker gets its process id")
}

#[test]
fn status_names_the_request_of_each_worker() {
    let site = serving("");
    let held = site.hold();
    let status = once_reported(&site);
    let workers = status["pools"][0]["workers"].as_array().expect("a list");
    assert_eq!(workers.len(), 2, "{status:#}");
    let busy: Vec<_> = workers.iter().filter(|worker| worker["state"] == "busy").collect();
    let [busy] = busy[..] else { panic!("{status:#}") };
    assert_eq!(busy["pid"].as_u64(), Some(u64::from(held.pid())));
    let request = busy["request"].as_str().unwrap_or_default();
    assert!(request.starts_with("GET /gated.php?"), "{status:#}");
    assert!(workers.iter().any(|worker| worker["state"] == "idle"), "{status:#}");
    held.finishes();
}

#[test]
fn status_for_people_has_the_same() {
    let site = serving("");
    let held = site.hold();
    once_reported(&site);
    let output = site.command("status", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    for word in
        ["RUNNING", "app site", "PHP 8", "busy", "idle", "GET /gated.php", &held.pid().to_string()]
    {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    held.finishes();
}

#[test]
fn status_counts_answers_and_reasons() {
    let site = serving("");
    site.client().get("/hello.php").expect(200);
    site.client().get("/missing.php").expect(404);
    site.client().get("/crash.php").expect(502);
    let status = site.status();
    assert_eq!(status["responses"]["2xx"].as_u64(), Some(1), "{status:#}");
    assert_eq!(status["responses"]["4xx"].as_u64(), Some(1), "{status:#}");
    assert_eq!(status["responses"]["5xx"].as_u64(), Some(1), "{status:#}");
    let reasons = status["reasons"].as_array().expect("a list");
    let crashed = reasons.iter().find(|reason| reason["reason"] == "worker_crashed");
    assert_eq!(crashed.and_then(|reason| reason["count"].as_u64()), Some(1), "{status:#}");
    assert_eq!(status["pools"][0]["crashes"].as_u64(), Some(1), "{status:#}");
}

/// The page at the metrics address, which is found by `status`.
fn metrics(site: &Configured, target: &str) -> Response {
    let app = site.served_at().to_string();
    let status = site.status();
    let listeners = status["listeners"].as_array().expect("a list");
    let found = listeners
        .iter()
        .filter_map(|name| name.as_str())
        .find(|name| !name.starts_with("unix:") && *name != app);
    let address = found.unwrap_or_else(|| panic!("{status:#}")).parse().unwrap();
    Client::new(address).get(target)
}

/// The value of a sample, by its name and labels.
fn sample(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{page}")).parse().expect("a number")
}

#[test]
fn metrics_are_well_formed() {
    let site = serving("[admin]\nmetrics = \"127.0.0.1:0\"");
    site.client().get("/hello.php").expect(200);
    site.client().get("/crash.php").expect(502);
    let response = metrics(&site, "/metrics").expect(200);
    let content_type = response.header("content-type").unwrap_or_default();
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    let page = response.text();
    assert!(page.ends_with('\n'));
    let help = Regex::new("^# HELP ([a-z_]+) .+$").unwrap();
    let kind = Regex::new("^# TYPE ([a-z_]+) (counter|gauge|histogram)$").unwrap();
    let sample =
        Regex::new(r#"^([a-z_]+)(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? [0-9.e+-]+$"#)
            .unwrap();
    let (mut family, mut families, mut series) = (String::new(), BTreeSet::new(), BTreeSet::new());
    let mut is_histogram = false;
    for line in page.lines() {
        if let Some(found) = help.captures(line) {
            family = found[1].to_owned();
            assert!(families.insert(family.clone()), "{family} comes twice");
        } else if let Some(found) = kind.captures(line) {
            assert_eq!(found[1], family, "TYPE follows HELP");
            assert_eq!(&found[2] == "counter", family.ends_with("_total"), "{family}");
            is_histogram = &found[2] == "histogram";
        } else {
            let found = sample.captures(line).unwrap_or_else(|| panic!("not a line: {line:?}"));
            let of_family = found[1].strip_prefix(&family).expect("samples follow their family");
            let kinds = if is_histogram { &["_bucket", "_sum", "_count"][..] } else { &[""] };
            assert!(kinds.contains(&of_family), "{line}");
            let name = line.rsplit_once(' ').expect("it has a value").0;
            assert!(series.insert(name.to_owned()), "{name} comes twice");
        }
    }
}

#[test]
fn metrics_count_what_happened() {
    let site = serving("[admin]\nmetrics = \"127.0.0.1:0\"");
    for _ in 0..3 {
        site.client().get("/hello.php").expect(200);
    }
    site.client().get("/crash.php").expect(502);
    let held = site.hold();
    let page = metrics(&site, "/metrics").expect(200).text();
    for (series, value) in [
        ("outboard_responses_total{class=\"2xx\"}", 3.0),
        ("outboard_responses_total{class=\"5xx\"}", 1.0),
        ("outboard_refusals_total{reason=\"worker_crashed\"}", 1.0),
        ("outboard_php_crashes_total{app=\"site\"}", 1.0),
        ("outboard_php_requests_total{app=\"site\"}", 5.0),
        ("outboard_php_workers{app=\"site\",state=\"busy\"}", 1.0),
        ("outboard_php_queue_length{app=\"site\"}", 0.0),
    ] {
        assert_eq!(sample(&page, series), value, "{series}\n{page}");
    }
    held.finishes();
}

#[test]
fn the_metrics_address_tells_nothing_else_and_takes_no_orders() {
    let site = serving("[admin]\nmetrics = \"127.0.0.1:0\"");
    for target in ["/", "/status", "/stop", "/reload", "/hello.php"] {
        let response = metrics(&site, target);
        assert!(response.status >= 400, "{target}: {response:?}");
    }
    site.client().get("/hello.php").expect(200);
    assert_eq!(site.status()["generation"].as_u64(), Some(1));
}

#[test]
fn metrics_may_have_a_path_of_the_apps() {
    let site = serving("[admin]\nmetrics = \"/-/metrics\"");
    let page = site.client().get("/-/metrics").expect(200).text();
    assert_eq!(sample(&page, "outboard_php_queue_length{app=\"site\"}"), 0.0);
}

#[test]
fn status_says_why_php_does_not_start_again() {
    let docroot = Docroot::of("supervision");
    docroot.put(
        "front.php",
        "<?php if (is_file(__DIR__ . '/broken')) { file_put_contents('php://stderr', \"no compass\\n\");
         posix_kill(posix_getpid(), 11); } Outboard\\serve(fn () => 'up');",
    );
    let text = "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\nmode = \"worker\"\n\
                worker = { script = \"www/front.php\", isolation = \"rewind\" }\n";
    let site = Configured::start(docroot, text);
    let pool = || site.status()["pools"][0].clone();
    assert_eq!(pool()["start_failure"], Value::Null);
    site.docroot().put("broken", "");
    let zygote = pool()["zygote_pid"].as_u64().and_then(|pid| pid.try_into().ok());
    Process::of(zygote.expect("a zygote")).kill();
    let how = "was killed by signal 11 (SIGSEGV) while starting: no compass";
    eventually("the failure is reported", || {
        pool()["start_failure"].as_str().is_some_and(|failure| failure.contains(how))
    });
    site.logs(&["PHP did not start: ", how]);
    site.logs(&["the zygote was killed by signal 9 (SIGKILL); starting PHP again"]);
    let page = site.command("status", &[]).stdout;
    assert!(String::from_utf8_lossy(&page).contains("  PHP does not start: "));
    std::fs::remove_file(site.root().join("broken")).unwrap();
    eventually("PHP has started", || pool()["start_failure"] == Value::Null);
    site.client().get("/").expect(200).saying("up");
}
