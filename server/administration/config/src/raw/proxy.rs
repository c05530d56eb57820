//! `[[app.NAME.proxy]]`: routes that are proxied to another server.

use super::Mirror;
use crate::scalar::{PathPattern, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A route that is proxied to another server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Proxy {
    /// Paths to proxy.
    pub(crate) path: PathPattern,
    /// URL of the server, `http://HOST:PORT` or `https://HOST:PORT`, or the `NAME` of an
    /// `[upstream.NAME]`, with an optional path that is prepended to the path of the request.
    #[schemars(extend("x-alias" = ["proxy_pass", "ProxyPass", "to", "url"]))]
    pub(crate) upstream: PlainText,
    /// Whether the route is reachable only through `X-Accel-Redirect`, not by clients.
    #[serde(default)]
    pub(crate) internal: bool,
    /// Sends the client's `Host` header to the server, instead of the host in `upstream`.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["ProxyPreserveHost"]))]
    pub(crate) preserve_host: bool,
    /// Maximum time to connect.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_connect_timeout"]))]
    pub(crate) connect_timeout: Period,
    /// Maximum time between two reads from the server, before and within the response.
    #[serde(default = "one_minute")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_read_timeout", "ProxyTimeout"]))]
    pub(crate) timeout: Period,
    /// Reads the request body completely before contacting the server, so that a slow client does
    /// not occupy one of `upstream.requests`. Otherwise the body is streamed.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_request_buffering"]))]
    pub(crate) request_buffering: bool,
    /// Buffers a response that arrives faster than the client reads it, in memory and then in
    /// `io.temp_dir`. Bytes that the client can accept are sent at once either way.
    /// `X-Accel-Buffering: no` in a response disables buffering for it.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_buffering"]))]
    pub(crate) response_buffering: bool,
    /// Maximum idle time of a WebSocket connection; then it is closed.
    #[serde(default = "one_hour")]
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["timeout tunnel", "ProxyWebsocketIdleTimeout"]))]
    pub(crate) tunnel_timeout: Period,
    /// Whether the certificate of an `https` server is verified.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_ssl_verify"]))]
    pub(crate) verify: bool,
    /// Sends copies of requests to another server and discards its responses. The requests
    /// themselves do not wait for it. Requests whose body is streamed are not copied. Default: off.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["request_mirror_policies"]))]
    pub(crate) mirror: Option<Mirror>,
}

fn yes() -> bool {
    true
}

fn five_seconds() -> Period {
    Period(5_000)
}

fn one_hour() -> Period {
    Period(3_600_000)
}

fn one_minute() -> Period {
    Period(60_000)
}
