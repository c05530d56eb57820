//! `[limits]`: how much of everything.

use crate::scalar::{ByteSize, MemoryBudget, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of connections and of requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Limits {
    /// Open connections, at most half as many as the server may have descriptors. When few are left,
    /// those that have waited longest for a request are closed; when none waits, new ones do.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["worker_connections", "MaxRequestWorkers"]))]
    pub(crate) connections: u32,
    /// What one address may have open: connections, and streams of HTTP/2 beside them; of IPv6, a
    /// network of 64 bits counts as one. A further connection is closed, unless one of the address's
    /// own waits for a request, which is closed instead; a further stream is refused. 0: as many as
    /// come. Trusted proxies and Unix sockets have no such limit.
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["limit_conn", "MaxConnPerIP", "maxconn_per_ip", "server.max-connections-per-ip"]))]
    pub(crate) connections_per_ip: u32,
    /// Streams of HTTP/2, which are requests, of all connections; more are refused.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-former" = ["streams"], "x-alias" = ["http2_max_concurrent_streams", "H2MaxSessionStreams"]))]
    pub(crate) http2_streams: u32,
    /// Whether a client that closes its side of the connection is given up, as one that was reset is.
    /// Otherwise it is answered, and is gone when it can be sent nothing more.
    #[schemars(extend("x-alias" = ["abortonclose", "fastcgi_ignore_client_abort", "proxy_ignore_client_abort"]))]
    pub(crate) abort_on_close: bool,
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
    /// bodies that are not on disk, connections, HTTP/2 streams, and what workers ask for (`fetch()`, `KV`, tasks
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
    /// The part of a body that is kept in memory; the rest goes to a file in `io.temp_dir`.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["client_body_buffer_size"]))]
    pub(crate) body_memory: ByteSize,
    /// How long the client may send nothing in the middle of a body; longer: 408.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_body_timeout"]))]
    pub(crate) body_timeout: Period,
    /// Bytes a second of a body that the client has to send, on average, once `body_timeout` has
    /// passed; fewer: 408. Framing does not count. 0: any.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinRate", "MinRequestBodyDataRate", "minBytesPerSecond"]))]
    pub(crate) body_min_rate: ByteSize,
    /// How long the client may take nothing of a response; longer: the connection is closed.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["send_timeout", "Timeout"]))]
    pub(crate) write_timeout: Period,
    /// Bytes a second of a response that the client has to take, on average over the time for which it
    /// lets the server wait, once that is longer than `write_timeout`; fewer: the connection is
    /// closed. 0: any.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinResponseDataRate"]))]
    pub(crate) write_min_rate: ByteSize,
    /// How long PHP may work on a request, by the clock on the wall; longer: 504, a backtrace in
    /// the slow log, and the worker is replaced.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["request_timeout", "request_terminate_timeout", "fastcgi_read_timeout", "max_execution_time", "ProxyTimeout"]))]
    pub(crate) request_deadline: Period,
    /// The part of a response that is kept for a slow client, so that the worker is free: 64 KiB
    /// of it in memory, the rest in a file in `io.temp_dir`, as far as `io.max_temp_size` goes.
    #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB", "x-alias" = ["fastcgi_buffers", "fastcgi_buffer_size"]))]
    pub(crate) response_buffer: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 16_384,
            connections_per_ip: 4_096,
            http2_streams: 16_384,
            abort_on_close: false,
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
            body_min_rate: ByteSize(500),
            write_timeout: Period(30_000),
            write_min_rate: ByteSize(500),
            request_deadline: Period(60_000),
            response_buffer: ByteSize(1 << 20),
        }
    }
}
