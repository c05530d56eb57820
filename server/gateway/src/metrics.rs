//! Metrics for Prometheus and for what reads its formats.
//!
//! Rendered for the admin socket, the metrics listener and the metrics path. Invariant: the number of
//! series depends on the configuration, and not on what clients request.

mod certificates;
mod format;
mod latency;
mod page;
mod processes;
mod protobuf;
mod rate_sharing;
mod snapshots;
mod text;
mod upstreams;

use crate::gateway::Gateway;
use crate::measured::Measured;
use crate::status;
pub(crate) use format::Format;
use outboard_admin_api::status::{MemoryAccount, Pool, Tasks, Tls, Turns, Upstream};
use outboard_supervisor::worker::lifecycle::State;
use page::Page;
use std::rc::Rc;

/// The metrics page.
pub(crate) async fn of(gateway: &Rc<Gateway>, format: Format) -> Vec<u8> {
    match gateway.shards.lead() {
        // The lead asks all others.
        Some(lead) => {
            let page = lead.run(async move |gateway| on_lead(&gateway, format).await);
            page.await.unwrap_or_default()
        }
        None => on_lead(gateway, format).await,
    }
}

async fn on_lead(gateway: &Gateway, format: Format) -> Vec<u8> {
    let status = status::of(gateway).await;
    let mut page = Page::default();
    page.single("outboard_uptime_seconds", "Seconds since start.", status.uptime_s);
    page.single("outboard_threads", "Threads of the gateway.", status.threads.into());
    let help = "Threads that new connections without TLS are spread over.";
    page.single("outboard_threads_active", help, status.active_threads.into());
    page.single("outboard_connections", "Open client connections.", status.connections.into());
    page.single("outboard_connections_total", "Accepted connections.", status.accepted);
    tls(&mut page, &status.tls);
    page.metric("outboard_responses_total", "Responses by class of status.");
    for (class, count) in &status.responses {
        page.sample(&[("class", class)], *count);
    }
    page.single("outboard_response_body_bytes_total", "Body bytes sent.", status.body_bytes);
    page.metric("outboard_refusals_total", "Refused or failed requests by reason.");
    for reason in &status.reasons {
        page.sample(&[("reason", &reason.reason)], reason.count);
    }
    certificates::write(&mut page, gateway);
    rate_sharing::write(&mut page, gateway);
    turns(&mut page, &status.turns);
    memory(&mut page, &status.memory);
    upstream(&mut page, &status.upstream);
    upstreams::write(&mut page, &status.upstreams);
    pools(&mut page, &status::by_app(status.pools));
    tasks(&mut page, &status.tasks);
    processes::write(&mut page, &status.processes);
    page_caches(&mut page, gateway);
    entities(&mut page, gateway);
    latency::write(&mut page, Measured::of(gateway).await);
    format.render(&page)
}

fn tls(page: &mut Page, tls: &Tls) {
    let name = "outboard_tls_handshakes_total";
    page.metric(name, "TLS handshakes with clients.");
    for (version, resumed, count) in [
        ("TLSv1.2", "no", tls.full_1_2),
        ("TLSv1.2", "yes", tls.resumed_1_2),
        ("TLSv1.3", "no", tls.full_1_3),
        ("TLSv1.3", "yes", tls.resumed_1_3),
    ] {
        page.sample(&[("version", version), ("resumed", resumed)], count);
    }
    page.single("outboard_tls_handshakes_failed_total", "Failed TLS handshakes.", tls.failed);
}

fn turns(page: &mut Page, turns: &Turns) {
    page.single("outboard_turns_total", "Turns of the event loop.", turns.count);
    let name = "outboard_slow_turns_total";
    page.metric(name, "Turns of the event loop that took longer.");
    let slow = [turns.over_1_ms, turns.over_5_ms, turns.over_20_ms, turns.over_100_ms];
    for (milliseconds, count) in ["1", "5", "20", "100"].into_iter().zip(slow) {
        page.sample(&[("milliseconds", milliseconds)], count);
    }
}

fn memory(page: &mut Page, accounts: &[MemoryAccount]) {
    let labels = |account: &MemoryAccount| {
        [("kind", account.kind.clone()), ("app", account.app.clone().unwrap_or_default())]
    };
    let accounts: Vec<_> = accounts.iter().map(|account| (labels(account), account)).collect();
    page.each(
        &accounts,
        &[
            ("outboard_memory_held_bytes", "Memory held for clients and workers.", |account| {
                account.held_bytes as u64
            }),
            ("outboard_memory_peak_bytes", "Highest held memory since start.", |account| {
                account.peak_bytes as u64
            }),
            ("outboard_memory_limit_bytes", "Limit of held memory.", |account| {
                account.limit_bytes as u64
            }),
            ("outboard_memory_refused_total", "Refusals of more memory.", |account| {
                account.refused
            }),
        ],
    );
}

fn upstream(page: &mut Page, upstream: &Upstream) {
    page.each(
        &[([], upstream)],
        &[
            ("outboard_upstream_requests_total", "Requests to other servers.", |all| all.requests),
            ("outboard_upstream_connections_total", "Connections opened.", |all| all.connections),
            ("outboard_upstream_reused_total", "Requests over reused connections.", |all| {
                all.reused
            }),
            ("outboard_upstream_redirects_total", "Redirects followed.", |all| all.redirects),
            ("outboard_upstream_retries_total", "Retries of requests.", |all| all.retries),
        ],
    );
    page.metric("outboard_upstream_failures_total", "Failed requests by kind.");
    for (kind, count) in &upstream.failures {
        page.sample(&[("kind", kind)], *count);
    }
    page.each(
        &[([], upstream)],
        &[
            ("outboard_upstream_under_way", "Requests in progress.", |all| all.under_way as u64),
            ("outboard_upstream_responses", "Requests whose response is arriving.", |all| {
                all.responses as u64
            }),
            ("outboard_upstream_idle_connections", "Idle connections.", |all| all.idle as u64),
        ],
    );
}

fn page_caches(page: &mut Page, gateway: &Gateway) {
    let generation = gateway.generation();
    let caches = generation
        .apps
        .iter()
        .filter_map(|app| Some(([("app", app.config.name.clone())], app.page_cache.as_deref()?)));
    let caches: Vec<_> = caches.collect();
    let name = "outboard_page_cache_answers_total";
    page.metric(name, "Responses by outcome in the page cache.");
    for ([(_, app)], cache) in &caches {
        for (outcome, count) in cache.responses() {
            page.sample(&[("app", app), ("outcome", outcome)], count);
        }
    }
    page.each(
        &caches,
        &[
            ("outboard_page_cache_entries", "Stored responses.", |cache| {
                cache.memory().len() as u64
            }),
            ("outboard_page_cache_bytes", "Memory of stored responses.", |cache| {
                cache.memory().used_bytes() as u64
            }),
        ],
    );
}

fn entities(page: &mut Page, gateway: &Gateway) {
    let generation = gateway.generation();
    let Some(entities) = &generation.entities else { return };
    let namespaces = entities.namespaces().iter();
    let stats: Vec<_> = namespaces.map(|one| (one.name().to_owned(), one.stats())).collect();
    let stats = stats.iter().map(|(name, stats)| ([("namespace", name.clone())], stats));
    let stats: Vec<_> = stats.collect();
    page.each(
        &stats,
        &[
            ("outboard_entities_records", "Approximate number of records.", |one| one.records),
            ("outboard_entities_file_bytes", "Size of files.", |one| one.file_bytes),
            ("outboard_entities_writes_total", "Writes.", |one| one.writes),
            ("outboard_entities_commits_total", "Batches of writes.", |one| one.commits),
            ("outboard_entities_disk_reads_total", "Reads from disk.", |one| one.reads_from_disk),
            ("outboard_entities_refused_total", "Refused reads and writes.", |one| {
                one.reads_refused + one.writes_refused
            }),
            ("outboard_entities_waiting", "Waiting reads and writes.", |one| {
                one.reads_waiting + one.writes_waiting
            }),
            ("outboard_entities_damaged_files", "Damaged files.", |one| one.damaged.len() as u64),
        ],
    );
}

fn tasks(page: &mut Page, tasks: &[Tasks]) {
    let tasks = tasks.iter().map(|tasks| ([("app", tasks.app.clone())], tasks));
    let tasks: Vec<_> = tasks.collect();
    page.each(
        &tasks,
        &[
            ("outboard_tasks_waiting", "Waiting tasks.", |tasks| tasks.waiting as u64),
            ("outboard_tasks_running", "Running tasks.", |tasks| tasks.running as u64),
            ("outboard_tasks_bytes", "Memory of waiting and running tasks.", |tasks| tasks.bytes),
            ("outboard_tasks_accepted_total", "Accepted tasks.", |tasks| tasks.accepted),
            ("outboard_tasks_refused_total", "Refused tasks.", |tasks| tasks.refused),
            ("outboard_tasks_done_total", "Successful tasks.", |tasks| tasks.done),
            ("outboard_tasks_retried_total", "Retried attempts.", |tasks| tasks.retried),
            ("outboard_tasks_lost_total", "Attempts lost with their worker.", |tasks| tasks.lost),
            ("outboard_tasks_given_up_total", "Tasks that failed for good.", |tasks| {
                tasks.given_up
            }),
        ],
    );
}

fn pools(page: &mut Page, pools: &[Pool]) {
    let by_app = pools.iter().map(|pool| ([("app", pool.app.clone())], pool));
    let by_app: Vec<_> = by_app.collect();
    page.each(
        &by_app,
        &[
            ("outboard_php_requests_total", "Requests sent to PHP.", |pool| pool.requests),
            ("outboard_php_direct_total", "Requests that workers answered themselves.", |pool| {
                pool.direct_requests
            }),
            ("outboard_php_queued_total", "Requests that waited for a worker.", |pool| pool.queued),
            ("outboard_php_rejected_total", "Requests refused by a full queue.", |pool| {
                pool.rejected
            }),
            ("outboard_php_crashes_total", "Workers that exited unexpectedly.", |pool| {
                pool.crashes
            }),
            ("outboard_php_deadlines_total", "Requests that exceeded their deadline.", |pool| {
                pool.deadlines
            }),
            ("outboard_php_recycled_total", "Workers replaced as planned.", |pool| pool.recycled),
            ("outboard_php_queue_length", "Waiting requests.", |pool| pool.queue_length),
            ("outboard_php_in_flight", "Requests that workers process.", |pool| {
                pool.in_flight as u64
            }),
            ("outboard_php_worker_memory_bytes", "Private memory of all workers.", |pool| {
                pool.workers.iter().map(|worker| worker.memory_bytes).sum()
            }),
        ],
    );
    page.metric("outboard_php_workers", "Workers by state.");
    for pool in pools {
        for state in State::ALL {
            let state_name = state.to_string();
            let count = pool.workers.iter().filter(|worker| worker.state == state_name).count();
            let labels = [("app", pool.app.as_str()), ("state", &state_name)];
            page.sample(&labels, count as u64);
        }
    }
    waits(page, pools);
    routes(page, pools);
    snapshots::write(page, pools);
}

fn waits(page: &mut Page, pools: &[Pool]) {
    page.metric("outboard_php_waits_total", "Waits of coroutines or of whole workers.");
    for pool in pools {
        for wait in &pool.waits {
            for (waiter, count) in [("coroutine", wait.suspended), ("worker", wait.blocked)] {
                let labels = [("app", pool.app.as_str()), ("call", &wait.call), ("who", waiter)];
                page.sample(&labels, count);
            }
        }
    }
    let waits = pools.iter().flat_map(|pool| {
        let labels = |call: &String| [("app", pool.app.clone()), ("call", call.clone())];
        pool.waits.iter().map(move |wait| (labels(&wait.call), wait))
    });
    page.each(
        &waits.collect::<Vec<_>>(),
        &[(
            "outboard_php_blocked_milliseconds_total",
            "Time that whole workers have waited.",
            |wait| wait.blocked_ms,
        )],
    );
}

fn routes(page: &mut Page, pools: &[Pool]) {
    let routes = pools.iter().flat_map(|pool| {
        let labels = |route: &String| [("app", pool.app.clone()), ("route", route.clone())];
        pool.routes.iter().map(move |route| (labels(&route.route), route))
    });
    let routes: Vec<_> = routes.collect();
    page.each(
        &routes,
        &[
            ("outboard_php_route_requests_total", "Requests by route.", |route| route.requests),
            ("outboard_php_route_peak_bytes_mean", "Mean peak of PHP's heap.", |route| {
                route.mean_peak_bytes
            }),
            ("outboard_php_route_peak_bytes_max", "Highest peak of PHP's heap.", |route| {
                route.max_peak_bytes
            }),
        ],
    );
    let name = "outboard_php_route_growth_bytes";
    page.metric(name, "Growth of workers by requests of a route.");
    for ([(_, app), (_, route)], figures) in &routes {
        page.sample(&[("app", app), ("route", route)], figures.growth_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_an_app_have_its_name() {
        let mut page = Page::default();
        let of_app = Tasks {
            app: "site".to_owned(),
            waiting: 2,
            running: 0,
            bytes: 0,
            accepted: 0,
            refused: 0,
            done: 0,
            retried: 0,
            lost: 0,
            given_up: 0,
        };
        tasks(&mut page, &[of_app]);
        let text = text::render(&page, text::Dialect::Prometheus);
        assert!(text.contains("outboard_tasks_waiting{app=\"site\"} 2\n"), "{text}");
        assert_eq!(text.lines().count(), 3 * 9);
    }
}
