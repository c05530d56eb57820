//! `[[app.NAME.compose]]`, `[[app.NAME.prefetch]]` and `[upstream]`: requests that the gateway
//! sends.

use super::table::table;
use super::upstream::UpstreamGroup;
use crate::scalar::{
    AppName, As, ByteSize, FilePath, HeaderName, HeaderValue, PathPattern, Period, PlainText,
    PrefetchName, Scalar, UrlPath, UrlTemplate,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A page composed of parts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compose {
    /// Paths of the composed pages.
    pub(crate) path: PathPattern,
    /// The parts, in the order in which they are sent.
    #[schemars(extend("x-alias" = ["parts", "include"]))]
    pub(crate) part: Vec<Part>,
}

table! {
    /// A part of a page: one of `script`, `fetch`, `file` and `text`.
    pub(crate) struct Part {
        /// Script of the app: its path below the root, optionally with a query string. Default query
        /// string: that of the request.
        #[schemars(extend("x-alias" = ["virtual", "php"]))]
        pub(crate) script: Option<PlainText> = None,
        /// URL to fetch. `{path}`, `{query}` and `{query:NAME}` insert the path, the query string and
        /// one query parameter of the request.
        #[schemars(extend("x-alias" = ["url", "proxy_pass"]))]
        pub(crate) fetch: Option<UrlTemplate> = None,
        /// File below the root.
        pub(crate) file: Option<UrlPath> = None,
        /// Literal text.
        pub(crate) text: Option<PlainText> = None,
        /// Request headers of a `fetch`. No headers of the client's request are forwarded.
        #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }, "x-alias" = ["proxy_set_header"]))]
        pub(crate) headers: BTreeMap<String, HeaderValue> = BTreeMap::new(),
        /// Maximum time for the part.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_read_timeout"]))]
        pub(crate) timeout: Period = Period(10_000),
        /// Maximum size of the body of a `fetch`.
        #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 GiB"))]
        pub(crate) max_body: ByteSize = ByteSize(16 << 20),
        /// Text sent in place of the part if it fails.
        #[schemars(extend("x-alias" = ["stub"]))]
        pub(crate) fallback: Option<PlainText> = None,
        /// Behaviour if the part fails. Default: `"fallback"` if `fallback` is set, else `"fail"`.
        pub(crate) on_error: Option<OnError> = None,
        /// Starts the part only after all parts before it have been sent, instead of at once.
        pub(crate) sequential: bool = false,
    }
}

/// Behaviour if a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OnError {
    /// Sends its `fallback`.
    Fallback,
    /// Leaves the part out.
    Skip,
    /// Responds with 502 or 504, or closes the connection if part of the page has been sent.
    Fail,
}

/// An upstream request that is sent before a script runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prefetch {
    /// Paths whose scripts receive the result.
    pub(crate) path: PathPattern,
    /// Name of the result: `weather` is available in `$_SERVER["OUTBOARD_PREFETCH_WEATHER"]`, its
    /// status in `…_STATUS`.
    pub(crate) name: PrefetchName,
    /// URL, with the placeholders of `compose`.
    pub(crate) fetch: UrlTemplate,
    /// Request headers. No headers of the client's request are forwarded.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) headers: BTreeMap<String, HeaderValue>,
    /// Maximum time for the request.
    #[serde(default = "one_second")]
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
    /// Maximum size of the body. The results of a request, with its headers, must fit into 120 KiB.
    #[serde(default = "prefetch_body")]
    #[schemars(extend("x-minimum" = "16 B", "x-maximum" = "64 KiB"))]
    pub(crate) max_body: ByteSize,
}

fn one_second() -> Period {
    Period(1_000)
}

fn prefetch_body() -> ByteSize {
    ByteSize(32 << 10)
}

/// Requests to other servers, by `compose`, `prefetch`, `proxy` and PHP's `fetch()`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("propertyNames" = { "format": AppName::NAME }))]
pub struct Upstream {
    /// Maximum concurrent requests per host.
    #[schemars(range(min = 1, max = 100_000), extend("x-alias" = ["max_conns"]))]
    pub requests: u32,
    /// Maximum responses per host that are being received in addition to these. Once the response of
    /// a `proxy` route has begun, it counts here instead of in `requests`, unless this limit is
    /// reached. So a proxied host gets at most `requests` + `responses` connections.
    #[schemars(range(max = 100_000))]
    pub responses: u32,
    /// Maximum number of requests waiting per host.
    #[schemars(range(max = 100_000), extend("x-alias" = ["queue"]))]
    pub queue_length: u32,
    /// Maximum time a request waits in this queue.
    #[serde(rename = "queue_timeout", with = "As::<Period>")]
    pub queue_timeout_ms: u64,
    /// Maximum concurrent and waiting requests of one app to all hosts; further requests fail at
    /// once.
    #[schemars(range(min = 1, max = 100_000))]
    pub requests_per_app: u32,
    /// Maximum connections to all hosts, at most a quarter of the server's file descriptors. One
    /// app can use half of them. At the limit an idle connection is closed; if none is idle,
    /// requests fail.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub connections: u32,
    /// Maximum idle connections per host.
    #[schemars(range(max = 100_000), extend("x-alias" = ["keepalive"]))]
    pub idle_connections: u32,
    /// Maximum idle time of a connection.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["keepalive_timeout"]))]
    #[serde(rename = "idle_timeout", with = "As::<Period>")]
    pub idle_timeout_ms: u64,
    /// File of certificate authorities (PEM) to trust in addition to those of the system.
    #[schemars(extend("x-alias" = ["proxy_ssl_trusted_certificate", "SSLProxyCACertificateFile", "openssl.cafile"]))]
    #[serde(rename = "ca", with = "As::<Option<FilePath>>")]
    pub ca_file: Option<PathBuf>,
    /// Servers that share the requests of routes, by name.
    #[serde(flatten)]
    pub(crate) named: BTreeMap<String, UpstreamGroup>,
}

impl Default for Upstream {
    fn default() -> Self {
        Upstream {
            requests: 1024,
            responses: 4096,
            queue_length: 1024,
            queue_timeout_ms: 1_000,
            requests_per_app: 2048,
            connections: 16_384,
            idle_connections: 512,
            idle_timeout_ms: 30_000,
            ca_file: None,
            named: BTreeMap::new(),
        }
    }
}
