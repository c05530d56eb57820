//! `docs/reference/metrics.md`: the metrics of a server that has everything configured which has metrics.

use crate::{assert_generated, cell, read, renewed};
use outboard_e2e::page::{repository, trees};
use outboard_e2e::{Configured, Docroot, Request, eventually};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Ports of no server, so that a failed request, its reason and its kind are on the page.
const CONFIGURATION: &str = r#"
threads = 1
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "127.0.0.1:0"
tls = "auto"
[acme]
terms_agreed = true
directory = "local"
storage = "certificates"
[admin]
metrics = "/metrics"
[log.access]
path = "off"
[tracing]
endpoint = "http://127.0.0.1:9"
sample = "100%"
[rate_sharing]
server = "redis://127.0.0.1:9"
[kv]
data_dir = "records"
[upstream.api]
servers = ["http://127.0.0.1:9"]
breaker = {}
[app.site]
root = "www"
hosts = ["site.localhost"]
[app.site.tasks]
workers = 1
script = "www/tasks.php"
[app.site.process.sleep]
command = ["sleep", "600"]
[app.site.page_cache]
mode = "on"
[[app.site.proxy]]
path = "/api/**"
upstream = "api"
[app.booted]
root = "www"
hosts = ["booted.localhost"]
mode = "worker"
worker = { script = "www/booted.php", isolation = "rewind" }
"#;

#[derive(Default)]
struct Metric {
    kind: String,
    help: String,
    labels: Vec<String>,
}

/// The metrics of a page in the format of Prometheus.
fn parsed(page: &str) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::<String, Metric>::new();
    let mut last = String::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            last = name.to_owned();
            metrics.entry(last.clone()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            metrics.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((_, labels)) = line.split_once('{') {
            let names = labels.split('"').step_by(2).filter_map(|it| it.strip_suffix('='));
            let names = names.map(|it| it.trim_matches(',').to_owned()).filter(|it| it != "le");
            metrics.entry(last.clone()).or_default().labels = names.collect();
        }
    }
    metrics
}

/// The metrics of a server on which each label has occurred.
fn exported() -> BTreeMap<String, Metric> {
    let docroot = Docroot::of("routing");
    docroot.put("wait.php", "<?php usleep(2000); echo 'waited';");
    docroot.put("tasks.php", "<?php Outboard\\serve(fn () => 'task');");
    docroot.put("booted.php", "<?php Outboard\\serve(fn () => 'booted');");
    let site = Configured::start(docroot, CONFIGURATION);
    let mut client = site.client();
    let to = |host: &str, path: &str| Request::get(path).header("Host", host);
    client.send(&to("booted.localhost", "/")).expect(200);
    client.send(&to("site.localhost", "/wait.php")).expect(200);
    client.send(&to("site.localhost", "/nothing.html"));
    client.send(&to("site.localhost", "/api/x"));
    let mut page = String::new();
    eventually("every metric has a sample", || {
        page = client.get("/metrics").expect(200).text();
        let has = |sample: &str| page.lines().any(|line| line.starts_with(sample));
        [
            "outboard_php_waits_total{",
            "outboard_php_route_requests_total{",
            "outboard_upstream_failures_total{",
            "outboard_certificate_expiry_timestamp_seconds{",
            "outboard_php_duration_seconds_count{",
            "outboard_upstream_duration_seconds_count{",
        ]
        .iter()
        .all(|sample| has(sample))
    });
    parsed(&page)
}

/// The names in the source of the gateway.
fn in_source() -> BTreeSet<String> {
    let name = Regex::new(r#""(outboard_[a-z0-9_]+)""#).expect("a pattern");
    let mut names = BTreeSet::new();
    let mut folders = trees();
    folders.push(repository().join("server"));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_of_metrics(&path) {
                let text = fs::read_to_string(&path).expect("a source file");
                let text = text.split("#[cfg(test)]").next().expect("its first part");
                names.extend(name.captures_iter(text).map(|found| found[1].to_owned()));
            }
        }
    }
    names
}

fn is_of_metrics(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.contains("/src/") && text.contains("/metrics") && text.ends_with(".rs")
}

#[test]
fn the_reference_of_metrics_is_up_to_date() {
    let exported = exported();
    let names: BTreeSet<_> = exported.keys().cloned().collect();
    assert_eq!(names, in_source(), "exported by the server, and in its source");
    let mut shown = Vec::new();
    let page = renewed(&read("metrics.md"), "metrics", |prefixes| {
        let mut table = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
        for (name, metric) in &exported {
            if !prefixes.split_whitespace().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            shown.push(name.clone());
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (kind, labels) = (&metric.kind, labels.join(", "));
            let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {} |", cell(&metric.help));
        }
        table
    });
    shown.sort();
    assert_eq!(shown, names.into_iter().collect::<Vec<_>>(), "each metric is in one table");
    assert_generated("metrics.md", &page);
}
