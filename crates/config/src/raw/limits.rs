//! `[limits]`: how much of everything.

use crate::scalar::{ByteSize, MemoryBudget, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of connections and of requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Limits {
    /// Open connections; beyond them new ones wait to be accepted.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["worker_connections", "MaxRequestWorkers"]))]
    pub(crate) connections: u32,
    /// The longest request line; longer: 414.
    #[schemars(extend("x-minimum" = "256 B", "x-maximum" = "1 MiB", "x-alias" = ["LimitRequestLine"]))]
    pub(crate) request_line: ByteSize,
    /// All header lines together; more: 431.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 MiB", "x-alias" = ["large_client_header_buffers", "LimitRequestFieldSize"]))]
    pub(crate) header: ByteSize,
    /// Header lines of a request; more: 431.
    #[schemars(range(min = 8, max = 1000), extend("x-alias" = ["LimitRequestFields"]))]
    pub(crate) header_count: u32,
    /// From the first byte of a request to the end of its header; longer: 408.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_header_timeout", "RequestReadTimeout"]))]
    pub(crate) header_timeout: Period,
    /// How long a connection may stay open between two requests.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["keepalive_timeout", "KeepAliveTimeout"]))]
    pub(crate) idle_timeout: Period,
    /// Requests on one connection before it is closed; 0: as many as come.
    #[schemars(extend("x-alias" = ["MaxKeepAliveRequests"]))]
    pub(crate) keepalive_requests: u32,
    /// What the gateway holds in memory for clients and workers at most: responses and request
    /// bodies that are not on disk, HTTP/2 streams, and what workers ask for (`fetch()`, `KV`, tasks
    /// on their way to the queue). Half of it is for one app's workers at most, a quarter for one worker or one
    /// HTTP/2 connection. Beyond it: `Busy` for the worker, a refused stream, or 503. `"auto"`: an eighth of the
    /// machine's memory (or its control group's), 256 MiB at most. Page cache, entity store and tasks
    /// in the queue have limits of their own.
    pub(crate) memory: MemoryBudget,
    /// What an app may set for itself.
    #[serde(flatten)]
    pub(crate) request: RequestLimits,
}

/// Limits of one app's requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RequestLimits {
    /// The largest request body; larger: 413.
    #[schemars(extend("x-alias" = ["client_max_body_size", "LimitRequestBody"]))]
    pub(crate) body: ByteSize,
    /// The part of a body that is kept in memory; the rest goes to a file in `io.spool`.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["client_body_buffer_size"]))]
    pub(crate) body_memory: ByteSize,
    /// How long the client may send nothing in the middle of a body; longer: 408.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_body_timeout"]))]
    pub(crate) body_timeout: Period,
    /// How long the client may take nothing of a response; longer: the connection is closed.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["send_timeout", "Timeout"]))]
    pub(crate) write_timeout: Period,
    /// How long PHP may work on a request, by the clock on the wall; longer: 504, a backtrace in
    /// the slow log, and the worker is replaced.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["request_timeout", "request_terminate_timeout", "fastcgi_read_timeout", "max_execution_time", "ProxyTimeout"]))]
    pub(crate) request_deadline: Period,
    /// The part of a response that is kept for a slow client, so that the worker is free: 64 KiB
    /// of it in memory, the rest in a file in `io.spool`.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB", "x-alias" = ["fastcgi_buffers", "fastcgi_buffer_size"]))]
    pub(crate) response_buffer: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 16_384,
            request_line: ByteSize(8 << 10),
            header: ByteSize(32 << 10),
            header_count: 100,
            header_timeout: Period(15_000),
            idle_timeout: Period(60_000),
            keepalive_requests: 0,
            memory: MemoryBudget::Auto,
            request: RequestLimits::default(),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            body: ByteSize(64 << 20),
            body_memory: ByteSize(256 << 10),
            body_timeout: Period(30_000),
            write_timeout: Period(30_000),
            request_deadline: Period(60_000),
            response_buffer: ByteSize(1 << 20),
        }
    }
}
