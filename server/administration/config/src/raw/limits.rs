//! `[limits]`: limits on connections and requests.

use crate::scalar::{ByteSize, MemoryBudget, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on connections and requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Limits {
    /// Maximum open connections, at most half of the server's file descriptors. When few are left,
    /// the connections that have been idle longest are closed; if none is idle, new connections wait
    /// in the accept queue (`io.backlog`).
    #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["worker_connections", "MaxRequestWorkers"]))]
    pub(crate) connections: u32,
    /// Maximum connections and HTTP/2 streams of one client address; an IPv6 /64 network counts as
    /// one address. A further connection replaces an idle one of the same address, or is closed if
    /// none is idle; a further stream is refused. 0: unlimited. Trusted proxies and Unix sockets
    /// are exempt.
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["limit_conn", "MaxConnPerIP", "maxconn_per_ip", "server.max-connections-per-ip"]))]
    pub(crate) connections_per_ip: u32,
    /// Maximum HTTP/2 streams (requests) of all connections; further streams are refused.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["http2_max_concurrent_streams", "H2MaxSessionStreams"]))]
    pub(crate) http2_streams: u32,
    /// Treats a client that closes its sending side like one that reset the connection, and aborts
    /// its request. By default the response is still sent, and the client counts as gone once a
    /// write fails.
    #[schemars(extend("x-alias" = ["abortonclose", "fastcgi_ignore_client_abort", "proxy_ignore_client_abort"]))]
    pub(crate) abort_on_close: bool,
    /// Maximum length of the request line; longer lines get 414.
    #[schemars(extend("x-minimum" = "256 B", "x-maximum" = "1 MiB", "x-alias" = ["LimitRequestLine"]))]
    pub(crate) request_line: ByteSize,
    /// Maximum total size of the request headers; larger headers get 431.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 MiB", "x-alias" = ["large_client_header_buffers", "LimitRequestFieldSize"]))]
    pub(crate) header: ByteSize,
    /// Maximum number of request header lines; more get 431.
    #[schemars(range(min = 8, max = 1000), extend("x-alias" = ["LimitRequestFields"]))]
    pub(crate) header_count: u32,
    /// Maximum time from the first byte of a request to the end of its headers; slower clients get
    /// 408.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_header_timeout", "RequestReadTimeout"]))]
    pub(crate) header_timeout: Period,
    /// Maximum idle time of a keep-alive connection.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["keepalive_timeout", "KeepAliveTimeout"]))]
    pub(crate) idle_timeout: Period,
    /// Maximum requests per connection before it is closed. 0: unlimited.
    #[schemars(extend("x-alias" = ["MaxKeepAliveRequests"]))]
    pub(crate) keepalive_requests: u32,
    /// Maximum memory the gateway uses for clients and workers: responses and request bodies that
    /// are not on disk, connections, HTTP/2 streams, and operations of workers (`fetch()`, `KV`, tasks
    /// being queued). The workers of one app can use half of it, one worker or one HTTP/2 connection a
    /// quarter. Above the limit a worker's operation fails with `Busy`, a stream is refused, or a
    /// request gets 503. `"auto"`: an eighth of the memory of the machine or its cgroup, at most
    /// 256 MiB. Page cache, entity store and queued tasks have limits of their own.
    pub(crate) memory: MemoryBudget,
    /// Limits that an app can override.
    #[serde(flatten)]
    pub(crate) request: RequestLimits,
}

/// Limits on the requests of an app.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RequestLimits {
    /// Maximum size of a request body; larger requests get 413.
    #[schemars(extend("x-alias" = ["client_max_body_size", "LimitRequestBody"]))]
    pub(crate) body: ByteSize,
    /// Bytes of a request body that are held in memory; the rest is written to a file in
    /// `io.temp_dir`.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["client_body_buffer_size"]))]
    pub(crate) body_memory: ByteSize,
    /// Maximum time between two reads of a request body; slower clients get 408.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_body_timeout"]))]
    pub(crate) body_timeout: Period,
    /// Minimum average rate of a request body, in bytes per second, checked after `body_timeout`;
    /// slower clients get 408. Chunk framing does not count. 0: no minimum.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinRate", "MinRequestBodyDataRate", "minBytesPerSecond"]))]
    pub(crate) body_min_rate: ByteSize,
    /// Maximum time without any progress while a response is sent; then the connection is closed.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["send_timeout", "Timeout"]))]
    pub(crate) write_timeout: Period,
    /// Minimum average rate at which a client reads a response, in bytes per second. Only time
    /// spent waiting for the client counts, and the check starts after `write_timeout` of it;
    /// slower connections are closed. 0: no minimum.
    #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinResponseDataRate"]))]
    pub(crate) write_min_rate: ByteSize,
    /// Maximum wall-clock time of PHP for a request. On expiry the request gets 504, a backtrace
    /// goes to the slow log, and the worker is replaced.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["timeout", "request_timeout", "request_terminate_timeout", "fastcgi_read_timeout", "max_execution_time", "ProxyTimeout"]))]
    pub(crate) request_deadline: Period,
    /// Bytes of a response that are buffered for a slow client so that the worker is free: 64 KiB
    /// in memory, the rest in a file in `io.temp_dir`, up to `io.max_temp_size`.
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
