//! What the dashboard shows.

use crate::bans::Entry;
use crate::cache::AppStats;
use crate::certificates::Certificate;
use crate::endpoint::{Description, Endpoint, Method, describe};
use crate::status::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Get>()];

/// Everything that the dashboard shows. Paths are counted for half a minute after each such request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Get {
    /// Only points of the history that are later, in milliseconds since 1970.
    pub since_ms: u64,
    /// The app whose history is part of the reply; default: none.
    pub app: String,
}

impl Endpoint for Get {
    type Reply = Dashboard;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/dashboard/state";
}

/// The reply to [`Get`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dashboard {
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// When the server started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The name of the machine.
    pub host: String,
    /// The processors that the server may use.
    pub cores: u32,
    /// The memory that it may use.
    pub machine_bytes: u64,
    /// The status of the server.
    pub status: Status,
    /// Rates and durations of the last hour, one point each five seconds in which something happened.
    pub history: Vec<Point>,
    /// The apps that have a history of their own: the first 32 that had requests.
    pub apps: Vec<String>,
    /// The same of the app that was requested.
    pub app_history: Vec<AppPoint>,
    /// What each of these apps did in its last interval.
    pub loads: Vec<AppLoad>,
    /// The latest errors of PHP, the latest first.
    pub errors: Vec<PhpError>,
    /// The latest requests that took PHP or another server longer than `log.slow.threshold`, the latest first.
    pub slow: Vec<SlowRequest>,
    /// The shortest threshold of an app. Missing if no app has a slow log.
    pub slow_after_ms: Option<u64>,
    /// The most requested paths of the last one to two minutes, while the dashboard is open.
    pub paths: Vec<Path>,
    /// Page caches, by the name of the app.
    pub caches: BTreeMap<String, AppStats>,
    /// Certificates that the server obtains itself.
    pub certificates: Vec<Certificate>,
    /// Banned networks, at most 100.
    pub bans: Vec<Entry>,
    /// The number of banned networks.
    pub banned: usize,
}

/// What happened between the previous point and this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The end of the interval, in milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the interval.
    pub for_ms: u64,
    /// Responses by the first digit of the status; the first: connections that broke before a response.
    pub classes: Vec<u64>,
    /// Body bytes sent.
    pub body_bytes: u64,
    /// Requests served from page caches, stale responses included.
    pub hits: u64,
    /// Requests whose response was not in the page cache.
    pub misses: u64,
    /// Open connections, at its end.
    pub connections: u32,
    /// Requests that PHP handles, at its end.
    pub in_flight: u64,
    /// Requests that wait for a worker, at its end.
    pub waiting: u64,
    /// Processor time.
    pub processor: Processor,
    /// Memory, at its end.
    pub memory: MemoryUse,
    /// Durations of requests by phase: `total`, `first_byte`, `queue`, `php`, `upstream`. A phase without
    /// requests is absent.
    pub phases: BTreeMap<String, Quantiles>,
}

/// What happened in an app between the previous point and this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppPoint {
    /// The end of the interval, in milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the interval.
    pub for_ms: u64,
    /// As in [`Point::classes`].
    pub classes: Vec<u64>,
    /// As in [`Point::phases`].
    pub phases: BTreeMap<String, Quantiles>,
}

/// Processor time in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Processor {
    /// Of all programs of the machine, in microseconds.
    pub machine_us: u64,
    /// Of the gateway.
    pub gateway_us: u64,
    /// Of the workers of all apps. What a worker has used in the interval in which it has ended is missing.
    pub php_us: u64,
}

/// Memory at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// What programs of the machine can still have without swapping.
    pub available_bytes: u64,
    /// Of the gateway.
    pub gateway_bytes: u64,
    /// What the workers do not share.
    pub php_bytes: u64,
}

/// What an app did in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppLoad {
    /// Its name.
    pub app: String,
    /// The end of the interval, in milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the interval.
    pub for_ms: u64,
    /// Responses.
    pub requests: u64,
    /// Responses with status 500 or higher, and requests without one.
    pub failed: u64,
    /// Half of its requests took no longer; 0 without any.
    pub p50_us: u64,
    /// Processor time of its workers.
    pub php_us: u64,
    /// Memory that its workers do not share, at its end.
    pub php_bytes: u64,
}

/// An error of PHP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhpError {
    /// When it last occurred, in milliseconds since 1970.
    pub at_ms: u64,
    /// The app.
    pub app: String,
    /// Its first line, at most 512 bytes.
    pub text: String,
    /// How often it has occurred.
    pub count: u64,
}

/// Quantiles of durations, each with an error of at most 9 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Requests.
    pub count: u64,
    /// Half of them took no longer, in microseconds.
    pub p50_us: u64,
    /// Nine of ten took no longer.
    pub p90_us: u64,
    /// 99 of a hundred took no longer.
    pub p99_us: u64,
}

/// A request that took long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequest {
    /// When it ended or exceeded its deadline, in milliseconds since 1970.
    pub at_ms: u64,
    /// Name of the app.
    pub app: String,
    /// Method and target, at most 512 bytes.
    pub request: String,
    /// Time that PHP took; of a proxied request, until the head of the response.
    pub took_ms: u64,
    /// Process id of the worker.
    pub pid: Option<i32>,
    /// The server that a request was proxied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The functions of PHP that were running at the threshold, the innermost first; at most 4 KiB.
    pub backtrace: String,
}

/// Requests of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// The app.
    pub app: String,
    /// The path without its query, at most 256 bytes.
    pub path: String,
    /// Requests.
    pub requests: u64,
    /// Requests served from the page cache.
    pub hits: u64,
    /// Requests with status 500 or higher, or without a response.
    pub failed: u64,
    /// The sum of their durations, in microseconds.
    pub total_us: u64,
    /// The time that PHP worked for them, in microseconds.
    #[serde(default)]
    pub php_us: u64,
}
