//! `[[app.NAME.compose]]`, `[[app.NAME.prefetch]]` and `[upstream]`: what the gateway fetches.

use crate::scalar::{
    ByteSize, FilePath, HeaderName, HeaderValue, PathPattern, Period, PlainText, PrefetchName,
    Scalar, UrlPath, UrlTemplate,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A page that is put together from parts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compose {
    /// The paths that are answered so.
    pub(crate) path: PathPattern,
    /// The parts, in the order in which they are sent.
    #[schemars(extend("x-alias" = ["parts", "include"]))]
    pub(crate) part: Vec<Part>,
}

/// A part of a page: one of `script`, `fetch`, `file` and `text`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Part {
    /// A script of the app, by its path below the root, with a query of its own or the request's.
    #[schemars(extend("x-alias" = ["virtual", "php"]))]
    pub(crate) script: Option<PlainText>,
    /// A URL. `{path}`, `{query}` and `{query:NAME}` stand for the request's path, its query and
    /// one value of that.
    #[schemars(extend("x-alias" = ["url", "proxy_pass"]))]
    pub(crate) fetch: Option<UrlTemplate>,
    /// A file below the root.
    pub(crate) file: Option<UrlPath>,
    /// Text as it is.
    pub(crate) text: Option<PlainText>,
    /// Headers of a `fetch`; nothing of the client's request goes along.
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }, "x-alias" = ["proxy_set_header"]))]
    pub(crate) headers: BTreeMap<String, HeaderValue>,
    /// How long the part may take.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["proxy_read_timeout"]))]
    pub(crate) timeout: Period,
    /// The largest body of a `fetch`.
    #[schemars(extend("x-minimum" = "1 KiB", "x-maximum" = "1 GiB"))]
    pub(crate) max_body: ByteSize,
    /// What is sent instead of the part when it fails.
    #[schemars(extend("x-alias" = ["stub"]))]
    pub(crate) fallback: Option<PlainText>,
    /// What happens when the part fails; absent: `"fallback"` if there is one, otherwise `"fail"`.
    pub(crate) on_error: Option<OnError>,
    /// Begin only when all parts before this one have been sent, and not with them.
    #[schemars(extend("x-former" = ["wait"]))]
    pub(crate) sequential: bool,
}

impl Default for Part {
    fn default() -> Self {
        Part {
            script: None,
            fetch: None,
            file: None,
            text: None,
            headers: BTreeMap::new(),
            timeout: Period(10_000),
            max_body: ByteSize(16 << 20),
            fallback: None,
            on_error: None,
            sequential: false,
        }
    }
}

/// What happens when a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OnError {
    /// Its `fallback` is sent.
    Fallback,
    /// The page goes on without it.
    Skip,
    /// The answer is 502 or 504; once a part of the page was sent, the connection breaks off.
    Fail,
}

/// Something that is fetched before a script runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prefetch {
    /// The paths whose scripts get it.
    pub(crate) path: PathPattern,
    /// Its name: the script finds `weather` in `$_SERVER["OUTBOARD_PREFETCH_WEATHER"]`, its status
    /// in `…_STATUS`.
    pub(crate) name: PrefetchName,
    /// The URL, with placeholders as in `compose`.
    pub(crate) fetch: UrlTemplate,
    /// Headers that are sent; nothing of the client's request goes along.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": HeaderName::NAME }))]
    pub(crate) headers: BTreeMap<String, HeaderValue>,
    /// How long it may take.
    #[serde(default = "one_second")]
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
    /// The largest body. All of a request, its headers included, has to fit into 120 KiB.
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

/// Requests to other servers: those of `compose`, of `prefetch` and of PHP's `fetch()`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Upstream {
    /// Requests that may be under way to one host.
    #[schemars(range(min = 1, max = 100_000), extend("x-alias" = ["max_conns"]))]
    pub(crate) requests: u32,
    /// Answers of one host that may be coming beside them: once an answer of a `proxy` has begun, it
    /// takes none of `requests`, as long as there are fewer. So there are at most `requests` and
    /// `responses` connections to a host that serves proxied routes.
    #[schemars(range(max = 100_000))]
    pub(crate) responses: u32,
    /// Requests that may wait for one of these to end.
    #[schemars(range(max = 100_000), extend("x-alias" = ["queue"]))]
    pub(crate) queue_length: u32,
    /// How long they wait.
    pub(crate) queue_timeout: Period,
    /// Requests of one app, to whichever hosts, that may be under way or wait; more fail at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) requests_per_app: u32,
    /// Connections to all hosts, at most a quarter of the server's descriptors. An app may have half
    /// of them in use. When there are as many, an idle one is closed; when none is idle, requests fail.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub(crate) connections: u32,
    /// Idle connections that are kept to one host.
    #[schemars(range(max = 100_000), extend("x-alias" = ["keepalive"]))]
    pub(crate) idle_connections: u32,
    /// How long a connection is kept without a request.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["keepalive_timeout"]))]
    pub(crate) idle_timeout: Period,
    /// A file of certificate authorities (PEM) that are trusted beside the system's.
    #[schemars(extend("x-alias" = ["proxy_ssl_trusted_certificate", "SSLProxyCACertificateFile", "openssl.cafile"]))]
    pub(crate) ca: Option<FilePath>,
}

impl Default for Upstream {
    fn default() -> Self {
        Upstream {
            requests: 1024,
            responses: 4096,
            queue_length: 1024,
            queue_timeout: Period(1_000),
            requests_per_app: 2048,
            connections: 16_384,
            idle_connections: 512,
            idle_timeout: Period(30_000),
            ca: None,
        }
    }
}
