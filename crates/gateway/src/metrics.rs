//! Metrics in the Prometheus text format (version 0.0.4).
//!
//! Rendered for the admin socket, the metrics listener and the metrics path.

use crate::gateway::Gateway;
use crate::status;
use outboard_admin_api::status::{MemoryAccount, Pool, Route, Tasks, Upstream};
use outboard_entity_store::Stats;
use outboard_supervisor::worker::lifecycle::State;
use std::fmt::{Display, Write};

/// `Content-Type` of the exposition format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics page.
pub(crate) fn of(gateway: &Gateway) -> Vec<u8> {
    let status = status::of(gateway);
    let mut page = Page::default();
    page.metric("outboard_uptime_seconds", "gauge", "Seconds since start.");
    page.sample("outboard_uptime_seconds", &[], status.uptime_s);
    page.metric("outboard_connections", "gauge", "Open client connections.");
    page.sample("outboard_connections", &[], status.connections);
    page.metric("outboard_connections_total", "counter", "Accepted connections.");
    page.sample("outboard_connections_total", &[], status.accepted);
    page.metric("outboard_responses_total", "counter", "Responses by class of status.");
    for (class, count) in &status.responses {
        page.sample("outboard_responses_total", &[("class", class)], *count);
    }
    page.metric("outboard_response_body_bytes_total", "counter", "Body bytes sent.");
    page.sample("outboard_response_body_bytes_total", &[], status.body_bytes);
    page.metric("outboard_refusals_total", "counter", "Refused or failed requests by reason.");
    for reason in &status.reasons {
        page.sample("outboard_refusals_total", &[("reason", &reason.reason)], reason.count);
    }
    memory(&mut page, &status.memory);
    upstream(&mut page, &status.upstream);
    pools(&mut page, &status.pools);
    tasks(&mut page, &status.tasks);
    page_caches(&mut page, gateway);
    entities(&mut page, gateway);
    page.text.into_bytes()
}

/// A figure of an account.
type AccountFigure = fn(&MemoryAccount) -> u64;

fn memory(page: &mut Page, accounts: &[MemoryAccount]) {
    let figures: [(&str, &str, &str, AccountFigure); 4] = [
        ("outboard_memory_held_bytes", "gauge", "Memory held for clients and workers.", |held| {
            held.held_bytes as u64
        }),
        ("outboard_memory_peak_bytes", "gauge", "Highest held memory since start.", |held| {
            held.peak_bytes as u64
        }),
        ("outboard_memory_limit_bytes", "gauge", "Limit of held memory.", |held| {
            held.limit_bytes as u64
        }),
        ("outboard_memory_refused_total", "counter", "Refusals of more memory.", |held| {
            held.refused
        }),
    ];
    for (name, kind, help, value) in figures {
        page.metric(name, kind, help);
        for account in accounts {
            let app = account.app.as_deref().unwrap_or("");
            page.sample(name, &[("kind", &account.kind), ("app", app)], value(account));
        }
    }
}

fn upstream(page: &mut Page, upstream: &Upstream) {
    let counters = [
        ("outboard_upstream_requests_total", "Requests to other servers.", upstream.requests),
        ("outboard_upstream_connections_total", "Connections opened.", upstream.connections),
        ("outboard_upstream_reused_total", "Requests over reused connections.", upstream.reused),
        ("outboard_upstream_redirects_total", "Redirects followed.", upstream.redirects),
        ("outboard_upstream_retries_total", "Retries of requests.", upstream.retries),
    ];
    for (name, help, value) in counters {
        page.metric(name, "counter", help);
        page.sample(name, &[], value);
    }
    page.metric("outboard_upstream_failures_total", "counter", "Failed requests by kind.");
    for (kind, count) in &upstream.failures {
        page.sample("outboard_upstream_failures_total", &[("kind", kind)], *count);
    }
    page.metric("outboard_upstream_under_way", "gauge", "Requests in progress.");
    page.sample("outboard_upstream_under_way", &[], upstream.under_way as u64);
    page.metric("outboard_upstream_responses", "gauge", "Requests whose response is arriving.");
    page.sample("outboard_upstream_responses", &[], upstream.responses as u64);
    page.metric("outboard_upstream_idle_connections", "gauge", "Idle connections.");
    page.sample("outboard_upstream_idle_connections", &[], upstream.idle as u64);
}

fn page_caches(page: &mut Page, gateway: &Gateway) {
    let generation = gateway.generation();
    let apps = generation.apps.iter();
    let caches: Vec<_> =
        apps.filter_map(|app| Some((app.config.name.as_str(), app.page_cache.as_ref()?))).collect();
    let name = "outboard_page_cache_answers_total";
    page.metric(name, "counter", "Responses by outcome in the page cache.");
    for (app, cache) in &caches {
        for (outcome, count) in cache.responses() {
            page.sample(name, &[("app", app), ("outcome", outcome)], count);
        }
    }
    page.metric("outboard_page_cache_entries", "gauge", "Stored responses.");
    for (app, cache) in &caches {
        page.sample("outboard_page_cache_entries", &[("app", app)], cache.memory().len() as u64);
    }
    page.metric("outboard_page_cache_bytes", "gauge", "Memory of stored responses.");
    for (app, cache) in &caches {
        page.sample(
            "outboard_page_cache_bytes",
            &[("app", app)],
            cache.memory().used_bytes() as u64,
        );
    }
}

/// A figure of a namespace.
type NamespaceFigure = fn(&Stats) -> u64;

fn entities(page: &mut Page, gateway: &Gateway) {
    let generation = gateway.generation();
    let Some(entities) = &generation.entities else { return };
    let namespaces: Vec<_> = entities
        .namespaces()
        .iter()
        .map(|namespace| (namespace.name(), namespace.stats()))
        .collect();
    let figures: [(&str, &str, &str, NamespaceFigure); 8] = [
        ("outboard_entities_records", "gauge", "Approximate number of records.", |stats| {
            stats.records
        }),
        ("outboard_entities_file_bytes", "gauge", "Size of files.", |stats| stats.file_bytes),
        ("outboard_entities_writes_total", "counter", "Writes.", |stats| stats.writes),
        ("outboard_entities_commits_total", "counter", "Batches of writes.", |stats| stats.commits),
        ("outboard_entities_disk_reads_total", "counter", "Reads from disk.", |stats| {
            stats.reads_from_disk
        }),
        ("outboard_entities_refused_total", "counter", "Refused reads and writes.", |stats| {
            stats.reads_refused + stats.writes_refused
        }),
        ("outboard_entities_waiting", "gauge", "Waiting reads and writes.", |stats| {
            stats.reads_waiting + stats.writes_waiting
        }),
        ("outboard_entities_damaged_files", "gauge", "Damaged files.", |stats| {
            stats.damaged.len() as u64
        }),
    ];
    for (name, kind, help, value) in figures {
        page.metric(name, kind, help);
        for (namespace, stats) in &namespaces {
            page.sample(name, &[("namespace", namespace)], value(stats));
        }
    }
}

/// A figure of an app's tasks.
type TaskFigure = fn(&Tasks) -> u64;

fn tasks(page: &mut Page, tasks: &[Tasks]) {
    let figures: [(&str, &str, &str, TaskFigure); 9] = [
        ("outboard_tasks_waiting", "gauge", "Waiting tasks.", |tasks| tasks.waiting as u64),
        ("outboard_tasks_running", "gauge", "Running tasks.", |tasks| tasks.running as u64),
        ("outboard_tasks_bytes", "gauge", "Memory of waiting and running tasks.", |tasks| {
            tasks.bytes
        }),
        ("outboard_tasks_accepted_total", "counter", "Accepted tasks.", |tasks| tasks.accepted),
        ("outboard_tasks_refused_total", "counter", "Refused tasks.", |tasks| tasks.refused),
        ("outboard_tasks_done_total", "counter", "Successful tasks.", |tasks| tasks.done),
        ("outboard_tasks_retried_total", "counter", "Retried attempts.", |tasks| tasks.retried),
        ("outboard_tasks_lost_total", "counter", "Attempts lost with their worker.", |tasks| {
            tasks.lost
        }),
        ("outboard_tasks_given_up_total", "counter", "Tasks that failed for good.", |tasks| {
            tasks.given_up
        }),
    ];
    for (name, kind, help, value) in figures {
        page.metric(name, kind, help);
        for of_app in tasks {
            page.sample(name, &[("app", &of_app.app)], value(of_app));
        }
    }
}

/// A figure of a pool.
type Figure = fn(&Pool) -> u64;

fn pools(page: &mut Page, pools: &[Pool]) {
    let counters: [(&str, &str, Figure); 6] = [
        ("outboard_php_requests_total", "Requests sent to PHP.", |pool| pool.requests),
        ("outboard_php_queued_total", "Requests that waited for a worker.", |pool| pool.queued),
        ("outboard_php_rejected_total", "Requests refused by a full queue.", |pool| pool.rejected),
        ("outboard_php_crashes_total", "Workers that exited unexpectedly.", |pool| pool.crashes),
        ("outboard_php_deadlines_total", "Requests that exceeded their deadline.", |pool| {
            pool.deadlines
        }),
        ("outboard_php_recycled_total", "Workers replaced as planned.", |pool| pool.recycled),
    ];
    for (name, help, value) in counters {
        page.metric(name, "counter", help);
        for pool in pools {
            page.sample(name, &[("app", &pool.app)], value(pool));
        }
    }
    page.metric("outboard_php_queue_length", "gauge", "Waiting requests.");
    for pool in pools {
        page.sample("outboard_php_queue_length", &[("app", &pool.app)], pool.queue_length);
    }
    page.metric("outboard_php_workers", "gauge", "Workers by state.");
    for pool in pools {
        for state in State::ALL {
            let state_name = state.to_string();
            let count = pool.workers.iter().filter(|worker| worker.state == state_name).count();
            let labels = [("app", pool.app.as_str()), ("state", &state_name)];
            page.sample("outboard_php_workers", &labels, count as u64);
        }
    }
    page.metric("outboard_php_in_flight", "gauge", "Requests that workers process.");
    for pool in pools {
        page.sample("outboard_php_in_flight", &[("app", &pool.app)], pool.in_flight as u64);
    }
    waits(page, pools);
    routes(page, pools);
    page.metric("outboard_php_worker_memory_bytes", "gauge", "Private memory of all workers.");
    for pool in pools {
        let bytes: u64 = pool.workers.iter().map(|worker| worker.memory_bytes).sum();
        page.sample("outboard_php_worker_memory_bytes", &[("app", &pool.app)], bytes);
    }
}

fn waits(page: &mut Page, pools: &[Pool]) {
    page.metric("outboard_php_waits_total", "counter", "Waits of coroutines or of whole workers.");
    for pool in pools {
        for wait in &pool.waits {
            for (waiter, count) in [("coroutine", wait.suspended), ("worker", wait.blocked)] {
                let labels = [("app", pool.app.as_str()), ("call", &wait.call), ("who", waiter)];
                page.sample("outboard_php_waits_total", &labels, count);
            }
        }
    }
    let name = "outboard_php_blocked_milliseconds_total";
    page.metric(name, "counter", "Time that whole workers have waited.");
    for pool in pools {
        for wait in &pool.waits {
            let labels = [("app", pool.app.as_str()), ("call", &wait.call)];
            page.sample(name, &labels, wait.blocked_ms);
        }
    }
}

/// A figure of a route.
type RouteFigure = fn(&Route) -> u64;

fn routes(page: &mut Page, pools: &[Pool]) {
    let figures: [(&str, &str, &str, RouteFigure); 3] = [
        ("outboard_php_route_requests_total", "counter", "Requests by route.", |route| {
            route.requests
        }),
        ("outboard_php_route_peak_bytes_mean", "gauge", "Mean peak of PHP's heap.", |route| {
            route.mean_peak_bytes
        }),
        ("outboard_php_route_peak_bytes_max", "gauge", "Highest peak of PHP's heap.", |route| {
            route.max_peak_bytes
        }),
    ];
    for (name, kind, help, value) in figures {
        page.metric(name, kind, help);
        for pool in pools {
            for route in &pool.routes {
                let labels = [("app", pool.app.as_str()), ("route", route.route.as_str())];
                page.sample(name, &labels, value(route));
            }
        }
    }
    let name = "outboard_php_route_growth_bytes";
    page.metric(name, "gauge", "Growth of workers by requests of a route.");
    for pool in pools {
        for route in &pool.routes {
            let labels = [("app", pool.app.as_str()), ("route", route.route.as_str())];
            page.sample(name, &labels, route.growth_bytes);
        }
    }
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, text)| format!("{key}=\"{}\"", text.escape_default()))
            .collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{}}} {value}", labels.join(",")),
        };
    }
}
