//! How much of everything.

use crate::raw;
use crate::scalar::MemoryBudget;

/// Limits of connections and of one app's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of the whole server.
    pub max_connections: u32,
    /// Open connections and streams of one address; `None`: as many as come.
    pub connections_per_ip: Option<u32>,
    /// Open streams of HTTP/2 of the whole server.
    pub max_http2_streams: u32,
    /// Whether a client that closes its side is given up.
    pub aborts_on_close: bool,
    /// The longest request line; longer: 414.
    pub request_line_bytes: u64,
    /// All header lines together; more: 431.
    pub header_bytes: u64,
    /// Header lines; more: 431.
    pub header_count: u32,
    /// From the first byte of a request to the end of its header; longer: 408.
    pub header_timeout_ms: u64,
    /// Between two requests of a connection.
    pub idle_timeout_ms: u64,
    /// Requests on one connection; `None`: as many as come.
    pub keepalive_requests: Option<u32>,
    /// What the gateway of the whole server holds in memory for clients and workers.
    pub memory: MemoryBudget,
    /// The largest request body; larger: 413.
    pub body_bytes: u64,
    /// The part of a body kept in memory; beyond it the body goes to disk. At most `body_bytes`.
    pub body_memory_bytes: u64,
    /// Between two pieces of a body; longer: 408.
    pub body_timeout_ms: u64,
    /// Bytes a second of a body, on average, after `body_timeout_ms`; 0: any.
    pub body_min_rate: u64,
    /// Between two pieces of a response that the client takes; longer: close.
    pub write_timeout_ms: u64,
    /// Bytes a second of a response, on average over the time for which the client lets it wait, after
    /// `write_timeout_ms` of that; 0: any.
    pub write_min_rate: u64,
    /// Wall-clock time of PHP's work on a request; longer: 504.
    pub request_deadline_ms: u64,
    /// The part of a response kept for a slow client before the worker has to wait.
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
