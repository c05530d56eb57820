//! `[[app.NAME.proxy]]`: routes that are proxied to another server.

use super::condition::If;
use super::condition_set::Requirement;
use super::upstream::Mirror;
use crate::scalar::{As, PathPattern, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A route that is proxied to another server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Paths to proxy.
    pub path: PathPattern,
    /// Conditions that have to hold.
    #[serde(default, rename = "if")]
    #[schemars(extend("x-alias" = ["conditions", "matcher"]))]
    pub(crate) conditions: If,
    /// URL of the server, `http://HOST:PORT` or `https://HOST:PORT`, or the `NAME` of an
    /// `[upstream.NAME]`, with an optional path that is prepended to the path of the request.
    #[schemars(extend("x-alias" = ["proxy_pass", "ProxyPass", "to", "url"]))]
    #[serde(rename = "upstream", with = "As::<PlainText>")]
    pub(crate) written_upstream: String,
    /// Whether the route is reachable only through `X-Accel-Redirect`, not by clients.
    #[serde(default, rename = "internal")]
    pub is_internal: bool,
    /// Sends the client's `Host` header to the server, instead of the host in `upstream`.
    #[serde(default = "yes", rename = "preserve_host")]
    #[schemars(extend("x-alias" = ["ProxyPreserveHost"]))]
    pub preserves_host: bool,
    /// Maximum time to connect.
    #[serde(default = "five_seconds_ms", rename = "connect_timeout", with = "As::<Period>")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_connect_timeout"]))]
    pub connect_timeout_ms: u64,
    /// Maximum time between two reads from the server, before and within the response.
    #[serde(default = "one_minute_ms", rename = "timeout", with = "As::<Period>")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_read_timeout", "ProxyTimeout"]))]
    pub timeout_ms: u64,
    /// Reads the request body completely before contacting the server, so that a slow client does
    /// not occupy one of `upstream.requests`. Otherwise the body is streamed.
    #[serde(default = "yes", rename = "request_buffering")]
    #[schemars(extend("x-alias" = ["proxy_request_buffering"]))]
    pub buffers_request: bool,
    /// Buffers a response that arrives faster than the client reads it, in memory and then in
    /// `io.temp_dir`. Bytes that the client can accept are sent at once either way.
    /// `X-Accel-Buffering: no` in a response disables buffering for it.
    #[serde(default = "yes", rename = "response_buffering")]
    #[schemars(extend("x-alias" = ["proxy_buffering"]))]
    pub buffers_response: bool,
    /// Maximum idle time of a WebSocket connection; then it is closed.
    #[serde(default = "one_hour_ms", rename = "tunnel_timeout", with = "As::<Period>")]
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["timeout tunnel", "ProxyWebsocketIdleTimeout"]))]
    pub tunnel_timeout_ms: u64,
    /// Whether the certificate of an `https` server is verified.
    #[serde(default = "yes", rename = "verify")]
    #[schemars(extend("x-alias" = ["proxy_ssl_verify"]))]
    pub verifies: bool,
    /// Sends copies of requests to another server and discards its responses. The requests
    /// themselves do not wait for it. Requests whose body is streamed are not copied. Default: off.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["request_mirror_policies"]))]
    pub mirror: Option<Mirror>,
    /// Where its requests are sent.
    #[serde(skip)]
    pub upstream: ProxyTarget,
    /// The conditions.
    #[serde(skip)]
    pub requirement: Requirement,
}

/// Where the requests of a route are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyTarget {
    /// The URL that is prepended to the request's path: scheme, host, port and an optional path,
    /// without a trailing slash.
    Url(String),
    /// The servers of a group.
    Group {
        /// Its name.
        name: String,
        /// The path that is prepended, without a trailing slash.
        path: String,
    },
}

impl Default for ProxyTarget {
    fn default() -> Self {
        Self::Url(String::new())
    }
}

fn yes() -> bool {
    true
}

fn five_seconds_ms() -> u64 {
    5_000
}

fn one_hour_ms() -> u64 {
    3_600_000
}

fn one_minute_ms() -> u64 {
    60_000
}
