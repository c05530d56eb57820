//! `[limits]`: limits on connections and requests.
//!
//! [`Limits`] has those of the server, and of an app those of its requests with the server's others.

use super::table::table;
use crate::scalar::{As, ByteSize, MemoryBudget, OrZero, Period};

/// Declares the keys of requests once, for both tables.
macro_rules! limits {
    (
        server { $($server:tt)+ }
        request { $($(#[$of_field:meta])* pub $field:ident: $kind:ty = $default:expr,)+ }
    ) => {
        table! {
            /// Limits on connections and requests.
            #[derive(PartialEq, Eq)]
            pub struct Limits {
                $($server)+
                $($(#[$of_field])* pub $field: $kind = $default,)+
            }
        }

        table! {
            /// Limits on the requests of an app.
            pub(crate) struct RequestLimits {
                $($(#[$of_field])* pub(crate) $field: $kind = $default,)+
            }
        }

        impl Limits {
            /// Those of an app.
            pub(crate) fn of_app(&self, app: &RequestLimits) -> Self {
                Self { $($field: app.$field,)+ ..self.clone() }.checked()
            }
        }
    };
}

impl Limits {
    /// No more of a body is in memory than the body has.
    pub(crate) fn checked(&self) -> Self {
        Self { body_memory_bytes: self.body_memory_bytes.min(self.body_bytes), ..self.clone() }
    }
}

limits! {
    server {
        /// Maximum open connections, at most half of the server's file descriptors. When few are left,
        /// the connections that have been idle longest are closed; if none is idle, new connections wait
        /// in the accept queue (`io.backlog`).
        #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["worker_connections", "MaxRequestWorkers"]))]
        #[serde(rename = "connections")]
        pub max_connections: u32 = 16_384,
        /// Maximum connections and HTTP/2 streams of one client address; an IPv6 /64 network counts as
        /// one address. A further connection replaces an idle one of the same address, or is closed if
        /// none is idle; a further stream is refused. 0: unlimited. Trusted proxies and Unix sockets
        /// are exempt.
        #[schemars(range(max = 1_000_000), extend("x-alias" = ["limit_conn", "MaxConnPerIP", "maxconn_per_ip", "server.max-connections-per-ip"]))]
        #[serde(with = "As::<OrZero<u32>>")]
        pub connections_per_ip: Option<u32> = Some(4_096),
        /// Maximum HTTP/2 streams (requests) of all connections; further streams are refused.
        #[schemars(range(min = 1, max = 1_000_000), extend("x-alias" = ["http2_max_concurrent_streams", "H2MaxSessionStreams"]))]
        #[serde(rename = "http2_streams")]
        pub max_http2_streams: u32 = 16_384,
        /// Treats a client that closes its sending side like one that reset the connection, and aborts
        /// its request. By default the response is still sent, and the client counts as gone once a
        /// write fails.
        #[schemars(extend("x-alias" = ["abortonclose", "fastcgi_ignore_client_abort", "proxy_ignore_client_abort"]))]
        #[serde(rename = "abort_on_close")]
        pub aborts_on_close: bool = false,
        /// Maximum length of the request line; longer lines get 414.
        #[schemars(extend("x-minimum" = "256 B", "x-maximum" = "1 MiB", "x-alias" = ["LimitRequestLine"]))]
        #[serde(rename = "request_line", with = "As::<ByteSize>")]
        pub request_line_bytes: u64 = 8 << 10,
        /// Maximum total size of the request headers; larger headers get 431.
        #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 MiB", "x-alias" = ["large_client_header_buffers", "LimitRequestFieldSize"]))]
        #[serde(rename = "header", with = "As::<ByteSize>")]
        pub header_bytes: u64 = 32 << 10,
        /// Maximum number of request header lines; more get 431.
        #[schemars(range(min = 8, max = 1000), extend("x-alias" = ["LimitRequestFields"]))]
        pub header_count: u32 = 100,
        /// Maximum time from the first byte of a request to the end of its headers; slower clients get
        /// 408.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_header_timeout", "RequestReadTimeout"]))]
        #[serde(rename = "header_timeout", with = "As::<Period>")]
        pub header_timeout_ms: u64 = 15_000,
        /// Maximum idle time of a keep-alive connection.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["keepalive_timeout", "KeepAliveTimeout"]))]
        #[serde(rename = "idle_timeout", with = "As::<Period>")]
        pub idle_timeout_ms: u64 = 60_000,
        /// Maximum requests per connection before it is closed. 0: unlimited.
        #[schemars(extend("x-alias" = ["MaxKeepAliveRequests"]))]
        #[serde(with = "As::<OrZero<u32>>")]
        pub keepalive_requests: Option<u32> = None,
        /// Maximum memory the gateway uses for clients and workers: responses and request bodies that
        /// are not on disk, connections, HTTP/2 streams, and operations of workers (`fetch()`, `KV`, tasks
        /// being queued). The workers of one app can use half of it, one worker or one HTTP/2 connection a
        /// quarter. Above the limit a worker's operation fails with `Busy`, a stream is refused, or a
        /// request gets 503. `"auto"`: an eighth of the memory of the machine or its cgroup, at most
        /// 256 MiB. Page cache, entity store and queued tasks have limits of their own.
        pub memory: MemoryBudget = MemoryBudget::Auto,
    }
    request {
        /// Maximum size of a request body; larger requests get 413.
        #[schemars(extend("x-alias" = ["client_max_body_size", "LimitRequestBody"]))]
        #[serde(rename = "body", with = "As::<ByteSize>")]
        pub body_bytes: u64 = 64 << 20,
        /// Bytes of a request body that are held in memory; the rest is written to a file in
        /// `io.temp_dir`.
        #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["client_body_buffer_size"]))]
        #[serde(rename = "body_memory", with = "As::<ByteSize>")]
        pub body_memory_bytes: u64 = 256 << 10,
        /// Maximum time between two reads of a request body; slower clients get 408.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["client_body_timeout"]))]
        #[serde(rename = "body_timeout", with = "As::<Period>")]
        pub body_timeout_ms: u64 = 30_000,
        /// Minimum average rate of a request body, in bytes per second, checked after `body_timeout`;
        /// slower clients get 408. Chunk framing does not count. 0: no minimum.
        #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinRate", "MinRequestBodyDataRate", "minBytesPerSecond"]))]
        #[serde(with = "As::<ByteSize>")]
        pub body_min_rate: u64 = 500,
        /// Maximum time without any progress while a response is sent; then the connection is closed.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["send_timeout", "Timeout"]))]
        #[serde(rename = "write_timeout", with = "As::<Period>")]
        pub write_timeout_ms: u64 = 30_000,
        /// Minimum average rate at which a client reads a response, in bytes per second. Only time
        /// spent waiting for the client counts, and the check starts after `write_timeout` of it;
        /// slower connections are closed. 0: no minimum.
        #[schemars(extend("x-maximum" = "1 GiB", "x-alias" = ["MinResponseDataRate"]))]
        #[serde(with = "As::<ByteSize>")]
        pub write_min_rate: u64 = 500,
        /// Maximum wall-clock time of PHP for a request. On expiry the request gets 504, a backtrace
        /// goes to the slow log, and the worker is replaced.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["timeout", "request_timeout", "request_terminate_timeout", "fastcgi_read_timeout", "max_execution_time", "ProxyTimeout"]))]
        #[serde(rename = "request_deadline", with = "As::<Period>")]
        pub request_deadline_ms: u64 = 60_000,
        /// Bytes of a response that are buffered for a slow client so that the worker is free: 64 KiB
        /// in memory, the rest in a file in `io.temp_dir`, up to `io.max_temp_size`.
        #[schemars(extend("x-minimum" = "4 KiB", "x-maximum" = "1 GiB", "x-alias" = ["fastcgi_buffers", "fastcgi_buffer_size"]))]
        #[serde(rename = "response_buffer", with = "As::<ByteSize>")]
        pub response_buffer_bytes: u64 = 1 << 20,
    }
}
