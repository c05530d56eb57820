//! What `outboard status` shows.

use crate::app::App;
use crate::counters::ReasonCount;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::memory::AccountStatus;
use crate::pool::PoolStatus;
use crate::tasks::TasksStatus;
use outboard_log::Wall;
use outboard_upstream::Client;
use serde::Serialize;

/// The whole server at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// The server's name, if it has one.
    pub name: Option<String>,
    /// `production` or `development`.
    pub environment: String,
    /// Version of Outboard.
    pub version: &'static str,
    /// Process id of the gateway.
    pub pid: u32,
    /// Seconds since start.
    pub uptime_s: u64,
    /// Counts up with each reload.
    pub generation: u32,
    /// How long requests may still run after a stop was asked for.
    pub drain_timeout_ms: u64,
    /// Whether every app has started; requests wait until then.
    pub ready: bool,
    /// Whether the server is stopping.
    pub draining: bool,
    /// Addresses that are listened on.
    pub listeners: Vec<String>,
    /// Open client connections.
    pub connections: u32,
    /// How many there may be, as far as the process may have descriptors.
    pub max_connections: u32,
    /// Open streams of HTTP/2: requests on these connections.
    pub streams: u32,
    /// Connections accepted since start.
    pub accepted: u64,
    /// Requests answered since start.
    pub requests: u64,
    /// Body bytes sent since start.
    pub body_bytes: u64,
    /// Answers by hundreds of the status; `0xx` are connections broken before an answer.
    pub answers: std::collections::BTreeMap<String, u64>,
    /// Why requests were refused or failed.
    pub reasons: Vec<ReasonCount>,
    /// What is held in memory for clients and workers.
    pub memory: Vec<AccountStatus>,
    /// Requests to other servers.
    pub upstream: UpstreamStatus,
    /// Log lines that could not be written.
    pub lost_log_lines: u64,
    /// The apps' pools, those of earlier generations that still drain among them.
    pub pools: Vec<PoolStatus>,
    /// What the task workers have to do.
    pub tasks: Vec<TasksStatus>,
    /// Page caches that are to share their pages and do not at the moment.
    pub unshared_page_caches: Vec<UnsharedPageCache>,
}

/// A page cache that goes on with its own memory.
#[derive(Debug, Serialize)]
pub(crate) struct UnsharedPageCache {
    /// Whose it is.
    pub app: String,
    /// Why.
    pub why: String,
}

/// Requests to other servers: of `fetch()`, of composed pages and of prefetches.
#[derive(Debug, Serialize)]
pub(crate) struct UpstreamStatus {
    /// Requests that were asked for.
    pub requests: u64,
    /// Those that are under way.
    pub under_way: usize,
    /// Those of them whose answer has begun and counts among `upstream.responses`.
    pub responses: usize,
    /// Connections that were made.
    pub connections: u64,
    /// Requests over a connection that was there already.
    pub reused: u64,
    /// Connections that wait for a request.
    pub idle: usize,
    /// Redirects that were followed.
    pub redirects: u64,
    /// Further attempts after a connection failed.
    pub retries: u64,
    /// Failures by kind.
    pub failures: std::collections::BTreeMap<&'static str, u64>,
}

impl UpstreamStatus {
    fn of(client: &Client) -> Self {
        let counters = client.counters();
        let gauges = client.gauges();
        let failures = counters.failures().filter(|(_, count)| *count > 0);
        Self {
            requests: counters.requests,
            under_way: gauges.under_way,
            responses: gauges.responses,
            connections: counters.connections,
            reused: counters.reused,
            idle: gauges.idle,
            redirects: counters.redirects,
            retries: counters.retries,
            failures: failures.map(|(kind, count)| (kind.word(), count)).collect(),
        }
    }
}

/// Takes a picture.
pub(crate) fn of(gateway: &Gateway) -> Status {
    let counters = gateway.counters.borrow();
    let generation = gateway.generation();
    let classes = counters.by_class.iter().enumerate().filter(|(_, count)| **count > 0);
    let listeners = gateway.listeners.borrow();
    Status {
        name: gateway.name.borrow().clone(),
        environment: generation.config.environment().to_string(),
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        uptime_s: Wall::now().unix_s().saturating_sub(gateway.started.unix_s()),
        generation: generation.number,
        drain_timeout_ms: generation.config.drain_timeout_ms,
        ready: gateway.ready.get(),
        draining: gateway.is_draining(),
        listeners: listeners.iter().map(|bound| bound.name()).collect(),
        connections: gateway.connections.connections(),
        max_connections: gateway.connections.most(&gateway.limits()),
        streams: gateway.connections.streams(),
        accepted: counters.connections,
        requests: counters.requests,
        body_bytes: counters.body_bytes,
        answers: classes.map(|(class, count)| (format!("{class}xx"), *count)).collect(),
        reasons: counters.reasons(),
        memory: gateway.memory.status(generation.apps.iter().map(|app| &app.memory)),
        upstream: UpstreamStatus::of(&generation.upstream),
        lost_log_lines: gateway.sinks.borrow().all().map(|sink| sink.lost_lines()).sum(),
        pools: gateway.pools.borrow().iter().map(|pool| pool.status()).collect(),
        tasks: generation.tasks().map(|tasks| tasks.status()).collect(),
        unshared_page_caches: unshared(&generation),
    }
}

fn unshared(generation: &Generation) -> Vec<UnsharedPageCache> {
    let why = |app: &App| app.page_cache.as_ref()?.unshared_because();
    let apps = generation.apps.iter();
    apps.filter_map(|app| Some(UnsharedPageCache { app: app.config.name.clone(), why: why(app)? }))
        .collect()
}
