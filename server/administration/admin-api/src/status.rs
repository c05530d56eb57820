//! The state of the whole server.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Get>()];

/// The state of the server, its apps and their workers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Get {}

impl Endpoint for Get {
    type Reply = Status;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/status";
}

/// The reply to [`Get`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The name of a named server.
    pub name: Option<String>,
    /// `production` or `development`.
    pub environment: String,
    /// Version of Outboard.
    pub version: String,
    /// Process id of the gateway.
    pub pid: u32,
    /// Threads of the gateway.
    pub threads: u32,
    /// Those that new connections without TLS are spread over: as many as the load needs.
    #[serde(default)]
    pub active_threads: u32,
    /// Seconds since start.
    pub uptime_s: u64,
    /// The number of the configuration; it counts up with each reload.
    pub generation: u32,
    /// Time that requests in progress get at a stop.
    pub drain_timeout_ms: u64,
    /// Whether every app has started; requests wait until then.
    pub ready: bool,
    /// Whether the server is stopping.
    pub draining: bool,
    /// Addresses of the listeners.
    pub listeners: Vec<String>,
    /// Open client connections.
    pub connections: u32,
    /// Limit of open connections: `limits.connections`, or what the descriptor limit allows.
    pub max_connections: u32,
    /// Open HTTP/2 streams.
    pub streams: u32,
    /// Connections accepted since start.
    pub accepted: u64,
    /// TLS handshakes with clients since start.
    pub tls: Tls,
    /// Requests since start.
    pub requests: u64,
    /// Body bytes sent since start.
    pub body_bytes: u64,
    /// Responses by status class; `0xx` are connections that broke before a response.
    pub responses: BTreeMap<String, u64>,
    /// Requests refused or failed, by reason.
    pub reasons: Vec<ReasonCount>,
    /// Memory held for clients and workers.
    pub memory: Vec<MemoryAccount>,
    /// Requests to other servers.
    pub upstream: Upstream,
    /// The servers of `[upstream.NAME]`.
    #[serde(default)]
    pub upstreams: Vec<UpstreamGroup>,
    /// Turns of the event loop.
    pub turns: Turns,
    /// Log lines dropped because no process reads the log.
    pub lost_log_lines: u64,
    /// The pools of the apps, those of earlier generations that still drain included.
    pub pools: Vec<Pool>,
    /// The task queues.
    pub tasks: Vec<Tasks>,
    /// The instances of processes.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Durations of requests.
    pub latencies: Vec<Latency>,
    /// Page caches whose shared tier is out of reach.
    pub unshared_page_caches: Vec<UnsharedPageCache>,
    /// Scripts in classic mode that call `Outboard\snapshot()`.
    #[serde(default)]
    pub snapshots: Vec<SnapshotScript>,
}

/// A script in classic mode that calls `Outboard\snapshot()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotScript {
    /// The app.
    pub app: String,
    /// `SCRIPT_NAME` of the script.
    pub script: String,
    /// The snapshots that requests are handled from, one for each combination of the values that it has read.
    pub snapshots: usize,
    /// Reason why the last snapshot has failed, if none has succeeded since.
    pub refused_because: Option<String>,
    /// Values of a request that the script reads before the call: a request is handled from a snapshot if it agrees.
    pub reads: Vec<RequestRead>,
}

/// Something of the request that a script reads before `Outboard\snapshot()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestRead {
    /// The variable, such as `_SERVER.HTTP_HOST`, `_COOKIE.lang` or `_GET`.
    pub name: String,
    /// The file that reads it.
    pub file: String,
    /// The line there.
    pub line: u32,
}

/// Servers that share requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamGroup {
    /// The name of the upstream.
    pub name: String,
    /// Whether the circuit breaker refuses requests.
    pub open: bool,
    /// The servers, in the order of the configuration.
    pub servers: Vec<UpstreamServer>,
}

/// A server of an upstream. Its counts are those since it was first configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamServer {
    /// URL or socket of the server, with the address that its name resolved to.
    pub server: String,
    /// `up`, `ejected` (its requests fail), `down` (its health checks fail) or `drained`.
    pub state: String,
    /// Share of the requests.
    pub weight: u32,
    /// Whether it gets requests only while no other server is up.
    pub backup: bool,
    /// Requests in progress.
    pub under_way: usize,
    /// Attempts.
    pub requests: u64,
    /// Failed attempts.
    pub failures: u64,
    /// Moving average of the time to the head of a response.
    pub recent_us: u64,
    /// Total of these times.
    pub total_us: u64,
}

/// TLS handshakes with clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// New sessions of TLS 1.2.
    pub full_1_2: u64,
    /// Resumed sessions of TLS 1.2.
    pub resumed_1_2: u64,
    /// New sessions of TLS 1.3.
    pub full_1_3: u64,
    /// Resumed sessions of TLS 1.3.
    pub resumed_1_3: u64,
    /// Handshakes that failed, also because they took too long or the client did not use TLS.
    pub failed: u64,
}

/// How often requests were refused or failed for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonCount {
    /// The reason's code.
    pub reason: String,
    /// The status that clients got.
    pub status: u16,
    /// How often.
    pub count: u64,
}

/// An account of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryAccount {
    /// Contents of the account.
    pub kind: String,
    /// The app, if the account is that of an app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Bytes held now.
    pub held_bytes: usize,
    /// Most bytes held since start.
    pub peak_bytes: usize,
    /// Limit.
    pub limit_bytes: usize,
    /// How often more was refused.
    pub refused: u64,
}

/// Requests to other servers: `fetch()`, composed pages, prefetches and proxy routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Upstream {
    /// Requests since start.
    pub requests: u64,
    /// Requests in progress.
    pub under_way: usize,
    /// Requests whose response has begun; `upstream.responses` limits them.
    pub responses: usize,
    /// Connections opened.
    pub connections: u64,
    /// Requests over a connection that was open already.
    pub reused: u64,
    /// Idle connections.
    pub idle: usize,
    /// Redirects followed.
    pub redirects: u64,
    /// Attempts after a connection failed.
    pub retries: u64,
    /// Failures by kind.
    pub failures: BTreeMap<String, u64>,
}

/// Turns of the event loop: what it does between two waits for sockets, by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// All since start.
    pub count: u64,
    /// The longest since start, in microseconds.
    pub longest_us: u64,
    /// Longer than 1 ms.
    pub over_1_ms: u64,
    /// Longer than 5 ms.
    pub over_5_ms: u64,
    /// Longer than 20 ms.
    pub over_20_ms: u64,
    /// Longer than 100 ms.
    pub over_100_ms: u64,
}

/// How workers are rewound, and what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rewind {
    /// How the pages are found that a request has written: `write protection`, or `page map`, which takes
    /// longer.
    pub writes_by: String,
    /// The memory that a rewind covers.
    pub snapshot_bytes: u64,
    /// Requests that were undone.
    pub rewinds: u64,
    /// The mean time of a rewind.
    pub mean_us: u64,
    /// Mean number of pages of 4 KiB that a rewind copies back.
    pub mean_pages: u64,
}

/// The memory of a booted script, of which the workers of an app are forks. It is renewed when something has
/// changed that the start of the script had read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// How often it was retired.
    pub retired: u64,
    /// How often no new one could be started, so that the retired one went on serving.
    pub failures: u64,
    /// Cause of the last retirement: a file, a key, a script, an administrator.
    pub last_cause: Option<String>,
    /// When, in seconds since 1970.
    pub last_at_s: Option<u64>,
    /// Files and directories that its start has read.
    pub files: u64,
    /// Watched directories (inotify).
    pub watched_directories: u64,
    /// Number of files whose changes the kernel cannot report, and which are compared every two seconds.
    pub compared_files: u64,
    /// Number of files that the server's user cannot see, so that their changes are not noticed.
    pub unseen_files: u64,
    /// Keys of other data that its start has read.
    pub keys: Vec<String>,
    /// Requests that wait for a new one.
    pub held: u64,
}

/// The workers of an app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pool {
    /// The app.
    pub app: String,
    /// `classic` or `worker`.
    pub mode: String,
    /// In worker mode: `reset` or `rewind`.
    pub isolation: Option<String>,
    /// How workers are rewound. Without it, a worker with isolation `rewind` handles one request, since the
    /// system permits nothing else.
    pub rewind: Option<Rewind>,
    /// With isolation `rewind`: how its snapshot is updated.
    #[serde(default)]
    pub snapshot: Option<Snapshot>,
    /// Reason why workers with isolation `rewind` are not rewound: each request is handled by a fork.
    pub rewind_refused: Option<String>,
    /// Error of the last failed start of PHP or of a worker, until a start succeeds.
    #[serde(default)]
    pub start_failure: Option<String>,
    /// Requests that a worker may handle at a time.
    pub concurrency: usize,
    /// `asleep` when no process is there until a request comes, `starting`, `serving`, `crashing` when every request
    /// kills its worker, `retiring` or `gone`.
    pub phase: String,
    /// Version of PHP, once started.
    pub php_version: String,
    /// Process id of the zygote, once there is one.
    pub zygote_pid: Option<u32>,
    /// Minimum of workers.
    pub min: usize,
    /// Maximum of workers, as decided now.
    pub max: usize,
    /// Reason for the size of the pool.
    pub sizing: String,
    /// Requests in the queue.
    pub queue_length: u64,
    /// Requests that workers handle now.
    pub in_flight: usize,
    /// Requests since start.
    pub requests: u64,
    /// Client connections that workers have, to respond on them without the gateway.
    #[serde(default)]
    pub direct_connections: usize,
    /// Requests to which workers have responded so.
    #[serde(default)]
    pub direct_requests: u64,
    /// Requests that have come so and whose responses the gateway has sent: they were not plain, or took long.
    #[serde(default)]
    pub adopted_requests: u64,
    /// Requests that waited in the queue.
    pub queued: u64,
    /// Requests that found the queue full.
    pub rejected: u64,
    /// Workers that crashed.
    pub crashes: u64,
    /// Requests that exceeded their deadline.
    pub deadlines: u64,
    /// Workers replaced by plan.
    pub recycled: u64,
    /// Workers forked.
    pub forks: u64,
    /// The mean time until a forked worker was ready: what each request costs that has a fork of its own.
    pub mean_start_us: u64,
    /// Time that PHP has waited, by function.
    pub waits: Vec<Wait>,
    /// Memory by route.
    pub routes: Vec<Route>,
    /// Each worker.
    pub workers: Vec<Worker>,
}

/// How often PHP has waited in a function of the C library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The function.
    pub call: String,
    /// Calls in which only a coroutine waited.
    pub suspended: u64,
    /// Calls in which the whole worker waited.
    pub blocked: u64,
    /// Total time of the latter.
    pub blocked_ms: u64,
}

/// Memory that requests of a route take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The script, or the beginning of the path.
    pub route: String,
    /// Requests that PHP has finished.
    pub requests: u64,
    /// Mean of their peaks of PHP's heap.
    pub mean_peak_bytes: u64,
    /// The highest of their peaks.
    pub max_peak_bytes: u64,
    /// Growth of the workers that handled such requests; negative: they shrank. Requests between two
    /// measurements share the growth equally.
    pub growth_bytes: i64,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// Process id.
    pub pid: Option<i32>,
    /// State: `booting`, `idle`, `busy`, …; `reserve` of one that replaces the next one that dies.
    pub state: String,
    /// Requests that it handles.
    pub in_flight: usize,
    /// Method and target of the oldest of them.
    pub request: Option<String>,
    /// Time in this state.
    pub for_ms: u64,
    /// Completed requests.
    pub served: u64,
    /// Resident memory that it shares with no other process.
    pub memory_bytes: u64,
}

/// The task queue of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    /// The app.
    pub app: String,
    /// Tasks that wait, delayed ones included.
    pub waiting: usize,
    /// Tasks that run.
    pub running: usize,
    /// Memory of both.
    pub bytes: u64,
    /// Tasks accepted since start.
    pub accepted: u64,
    /// Tasks refused because the queue was full.
    pub refused: u64,
    /// Tasks that succeeded.
    pub done: u64,
    /// Failed attempts that are retried.
    pub retried: u64,
    /// Attempts cut short by the end of their worker.
    pub lost: u64,
    /// Tasks whose retries are used up.
    pub given_up: u64,
}

/// An instance of a process of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// The app.
    pub app: String,
    /// The process.
    pub name: String,
    /// Its number among the instances of the process, from 0.
    pub instance: u32,
    /// `starting`, `running`, `stopping`; `waiting` for its next start after an early end; `held` until the server that
    /// this one takes over from has ended its own.
    pub state: String,
    /// Process id of the program.
    pub pid: Option<i32>,
    /// Time in this state.
    pub for_ms: u64,
    /// Starts of the program since the start of the server.
    pub starts: u64,
    /// Resident memory of the program and everything that it has started, which they share with no file.
    pub memory_bytes: u64,
    /// Processes of it, the program and the monitor of its sandbox included.
    pub processes: usize,
    /// How the program has ended the last time.
    pub last_end: Option<String>,
}

/// Quantiles of the durations of an app's requests since start, each with an error of at most 9 %.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The app.
    pub app: String,
    /// Source of the responses: `file`, `hit` for the page cache, `script`, `worker`, `proxy`, `composed` or
    /// `other`; `all`: all of them together.
    pub kind: String,
    /// Requests.
    pub count: u64,
    /// Half of them took no longer, in microseconds.
    pub p50_us: u64,
    /// Nine of ten took no longer.
    pub p90_us: u64,
    /// 99 of a hundred took no longer.
    pub p99_us: u64,
}

/// A page cache whose shared tier is out of reach; it goes on with its own memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsharedPageCache {
    /// Name of the app.
    pub app: String,
    /// Why.
    pub why: String,
}
