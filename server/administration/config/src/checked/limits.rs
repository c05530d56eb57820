//! Limits on connections and requests.

use crate::raw;
use crate::scalar::MemoryBudget;

/// Limits on connections and on the requests of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum open connections of the server.
    pub max_connections: u32,
    /// Maximum connections and HTTP/2 streams of one client address; `None`: unlimited.
    pub connections_per_ip: Option<u32>,
    /// Maximum HTTP/2 streams of the server.
    pub max_http2_streams: u32,
    /// Whether a client that closes its sending side counts as gone.
    pub aborts_on_close: bool,
    /// Maximum length of the request line; longer lines get 414.
    pub request_line_bytes: u64,
    /// Maximum total size of the request headers; larger headers get 431.
    pub header_bytes: u64,
    /// Maximum number of header lines; more get 431.
    pub header_count: u32,
    /// Maximum time from the first byte of a request to the end of its headers; then 408.
    pub header_timeout_ms: u64,
    /// Maximum idle time of a keep-alive connection.
    pub idle_timeout_ms: u64,
    /// Maximum requests per connection; `None`: unlimited.
    pub keepalive_requests: Option<u32>,
    /// Maximum memory the gateway uses for clients and workers.
    pub memory: MemoryBudget,
    /// Maximum size of a request body; larger requests get 413.
    pub body_bytes: u64,
    /// Bytes of a request body that are held in memory; the rest goes to disk. At most
    /// `body_bytes`.
    pub body_memory_bytes: u64,
    /// Maximum time between two reads of a request body; then 408.
    pub body_timeout_ms: u64,
    /// Minimum average rate of a request body, in bytes per second, checked after
    /// `body_timeout_ms`; 0: no minimum.
    pub body_min_rate: u64,
    /// Maximum time without progress while a response is sent; then the connection is closed.
    pub write_timeout_ms: u64,
    /// Minimum average rate at which a client reads a response, in bytes per second of time spent
    /// waiting for it, checked after `write_timeout_ms` of that; 0: no minimum.
    pub write_min_rate: u64,
    /// Maximum wall-clock time of PHP for a request; then 504.
    pub request_deadline_ms: u64,
    /// Bytes of a response that are buffered for a slow client before the worker has to wait.
    pub response_buffer_bytes: u64,
}

/// The server's limits of connections with the `request` limits of an app.
pub(super) fn merge(server: &raw::Limits, request: &raw::RequestLimits) -> Limits {
    Limits {
        max_connections: server.connections,
        connections_per_ip: Some(server.connections_per_ip).filter(|most| *most > 0),
        max_http2_streams: server.http2_streams,
        aborts_on_close: server.abort_on_close,
        request_line_bytes: server.request_line.0,
        header_bytes: server.header.0,
        header_count: server.header_count,
        header_timeout_ms: server.header_timeout.0,
        idle_timeout_ms: server.idle_timeout.0,
        keepalive_requests: Some(server.keepalive_requests).filter(|number| *number > 0),
        memory: server.memory,
        body_bytes: request.body.0,
        body_memory_bytes: request.body_memory.0.min(request.body.0),
        body_timeout_ms: request.body_timeout.0,
        body_min_rate: request.body_min_rate.0,
        write_timeout_ms: request.write_timeout.0,
        write_min_rate: request.write_min_rate.0,
        request_deadline_ms: request.request_deadline.0,
        response_buffer_bytes: request.response_buffer.0,
    }
}
