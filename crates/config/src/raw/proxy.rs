//! `[[app.NAME.proxy]]`: routes that another server answers.

use crate::scalar::{PathPattern, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A route that another server answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Proxy {
    /// The paths that it answers.
    pub(crate) path: PathPattern,
    /// The server: `http://HOST:PORT` or `https://HOST:PORT`, with a path that goes before the
    /// request's own if there is one.
    #[schemars(extend("x-alias" = ["proxy_pass", "ProxyPass", "to", "url"]))]
    pub(crate) upstream: PlainText,
    /// Whether only scripts lead there, by `X-Accel-Redirect`, and no URL of clients does.
    #[serde(default)]
    pub(crate) internal: bool,
    /// Whether the server is told the client's `Host`, or its own.
    #[serde(default = "yes")]
    #[schemars(extend("x-former" = ["keep_host"], "x-alias" = ["ProxyPreserveHost"]))]
    pub(crate) preserve_host: bool,
    /// How long a connection to it may take.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_connect_timeout"]))]
    pub(crate) connect_timeout: Period,
    /// How long it may be silent: before its answer, and within it.
    #[serde(default = "one_minute")]
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_read_timeout", "ProxyTimeout"]))]
    pub(crate) timeout: Period,
    /// Whether the request's body is taken whole before the server is asked, so that a slow client
    /// does not hold one of `upstream.requests`; otherwise it goes through while it comes.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_request_buffering"]))]
    pub(crate) request_buffering: bool,
    /// Whether what the server sends faster than the client takes it is kept, in memory and then in
    /// `io.temp_dir`. What the client takes goes through at once either way. `X-Accel-Buffering: no` of
    /// the server switches it off for an answer.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_buffering"]))]
    pub(crate) response_buffering: bool,
    /// How long both sides of a WebSocket may say nothing; longer: it is closed.
    #[serde(default = "one_hour")]
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["timeout tunnel", "ProxyWebsocketIdleTimeout"]))]
    pub(crate) tunnel_timeout: Period,
    /// Whether the certificate of an `https` server is checked.
    #[serde(default = "yes")]
    #[schemars(extend("x-alias" = ["proxy_ssl_verify"]))]
    pub(crate) verify: bool,
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
