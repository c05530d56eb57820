//! `[upstream.NAME]`: servers that share the requests of proxied routes.

use crate::scalar::{Percent, Period, PlainText, StatusClass, UrlPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Servers that share the requests of the routes with `upstream = "NAME"`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamGroup {
    /// The servers: `"http://HOST:PORT"`, `"https://HOST:PORT"`, `"HOST:PORT"`, `"unix:/PATH"`, or
    /// tables with `url` and further keys. A name with several addresses is several servers.
    #[schemars(extend("x-alias" = ["server", "BalancerMember", "to", "reverse_proxy"]))]
    pub(crate) servers: Vec<ServerEntry>,
    /// Which server gets a request.
    #[schemars(extend("x-alias" = ["lb_policy", "least_conn", "ip_hash", "hash", "lbmethod"]))]
    pub(crate) balance: Balance,
    /// The value that `balance = "hash"` uses: `"client"` (the address), `"uri"`, `"path"`,
    /// `"header:NAME"` or `"cookie:NAME"`. A request without it is balanced by round robin.
    pub(crate) hash_key: PlainText,
    /// Binds a client to the server of its first request by a cookie. Default: off.
    #[schemars(extend("x-alias" = ["stickysession", "cookie"]))]
    pub(crate) sticky: Option<Sticky>,
    /// Maximum requests that all servers together process; further ones fail at once with 503
    /// (`upstream_busy`). 0: no limit.
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["max_pending", "max_pending_requests"]))]
    pub(crate) max_requests: u32,
    /// Failures within `fail_window` after which a server is ejected: it gets no requests for
    /// `fail_timeout`, then a single one as a trial. If no other server is left, ejected ones are
    /// used. 0: servers are not ejected.
    #[schemars(range(max = 10_000), extend("x-alias" = ["consecutive_5xx", "max-fails"]))]
    pub(crate) max_fails: u32,
    /// The time in which failures are counted.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) fail_window: Period,
    /// How long a server is ejected.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["fail_duration", "base_ejection_time"]))]
    pub(crate) fail_timeout: Period,
    /// Statuses that are failures of the server, such as `["502", "503"]`, in addition to failed
    /// connections, timeouts and invalid responses. They are retried like these.
    #[schemars(extend("x-alias" = ["unhealthy_status", "proxy_next_upstream"]))]
    pub(crate) failure_status: Vec<StatusClass>,
    /// Time in which the share of a server grows to its weight after it was down. Default: its share
    /// is complete at once.
    #[schemars(extend("x-alias" = ["slowstart"]))]
    pub(crate) slow_start: Period,
    /// Maximum further attempts of a request, each on another server: if nothing of it was sent, or
    /// if its method is idempotent and its body is in memory.
    #[schemars(range(max = 10), extend("x-alias" = ["proxy_next_upstream_tries", "lb_try_duration"]))]
    pub(crate) retries: u32,
    /// Retries as a share of requests, beyond a reserve of 100 retries. It bounds the additional
    /// load when many requests fail.
    pub(crate) retry_budget: Percent,
    /// Maximum time to the head of the response for an attempt that can be retried. Default: the
    /// route's `timeout`.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["per_try_timeout", "proxy_next_upstream_timeout"]))]
    pub(crate) try_timeout: Option<Period>,
    /// Refuses requests at once while too many fail. Default: off.
    #[schemars(extend("x-alias" = ["circuit_breaker", "outlier_detection"]))]
    pub(crate) breaker: Option<Breaker>,
    /// Requests that check each server. Default: off.
    #[schemars(extend("x-alias" = ["health_uri", "active_health", "option httpchk", "check"]))]
    pub(crate) health_check: Option<HealthCheck>,
    /// How often the names of servers are resolved again.
    #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["resolver", "dns_refresh_rate", "hold"]))]
    pub(crate) resolve_interval: Period,
    /// Starts each connection with a header of the PROXY protocol, which names the client. Such a
    /// connection serves a single request.
    #[schemars(extend("x-alias" = ["send-proxy", "send-proxy-v2"]))]
    pub(crate) proxy_protocol: SendProxy,
}

/// A server: its URL, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ServerEntry {
    /// A URL alone.
    Url(PlainText),
    /// A table.
    Table(Box<UpstreamServer>),
}

/// A server of an upstream.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamServer {
    /// `"http://HOST:PORT"`, `"https://HOST:PORT"`, `"HOST:PORT"` or `"unix:/PATH"`.
    #[schemars(extend("x-alias" = ["address", "server"]))]
    pub(crate) url: PlainText,
    /// Share of the requests, relative to the other servers.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256), extend("x-alias" = ["loadfactor"]))]
    pub(crate) weight: u32,
    /// Whether it gets requests only while no other server is up.
    #[serde(default)]
    pub(crate) backup: bool,
    /// Maximum requests that it processes at a time. 0: no limit.
    #[serde(default)]
    #[schemars(range(max = 100_000), extend("x-alias" = ["max_conns", "maxconn"]))]
    pub(crate) max_connections: u32,
}

/// Which server gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Balance {
    /// In turn, by weight.
    RoundRobin,
    /// The one with the fewest requests in progress, relative to its weight.
    LeastConnections,
    /// The same one for the same `hash_key`, by weight. If a server is added or is down, only its
    /// share of the keys moves.
    Hash,
}

/// Whether connections to servers start with a header of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SendProxy {
    /// Without a header.
    Off,
    /// Version 1, in text.
    V1,
    /// Version 2, binary.
    V2,
}

/// A cookie that binds a client to a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sticky {
    /// Name of the cookie. It is HttpOnly and, over HTTPS, Secure.
    pub(crate) cookie: PlainText,
    /// Key of the cookie's values, which are opaque. With a secret, clients cannot compute the value
    /// of another server; the gateways of a site need the same one.
    pub(crate) secret: PlainText,
    /// The attribute `SameSite`.
    pub(crate) same_site: SameSite,
    /// Lifetime of the cookie. Default: until the browser is closed.
    pub(crate) max_age: Option<Period>,
}

/// The attribute `SameSite` of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SameSite {
    /// Sent with links from other sites, too.
    Lax,
    /// Sent with requests of the same site only.
    Strict,
    /// Always sent, over HTTPS only.
    None,
}

/// When requests are refused because too many fail.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Breaker {
    /// The share of attempts within `window` that have to fail.
    #[schemars(extend("x-minimum" = "1%"))]
    pub(crate) failure_rate: Percent,
    /// The time in which attempts are counted.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) window: Period,
    /// Fewer attempts within `window` never open it.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) min_requests: u32,
    /// How long requests are refused with 503 (`upstream_open`); then a single one is a trial.
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) open: Period,
}

/// Requests that check whether a server is up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HealthCheck {
    /// Path of the request, a GET.
    #[schemars(extend("x-alias" = ["uri", "health_uri"]))]
    pub(crate) path: UrlPath,
    /// Time between two checks of a server.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["health_interval", "inter"]))]
    pub(crate) interval: Period,
    /// Maximum time of a check.
    #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["health_timeout"]))]
    pub(crate) timeout: Period,
    /// Statuses of a server that is up, such as `"200"` or `"2xx"`.
    #[schemars(extend("x-alias" = ["match", "health_status", "expected_statuses", "http-check expect"]))]
    pub(crate) status: Vec<PlainText>,
    /// Successful checks in sequence after which a server is up again.
    #[schemars(range(min = 1, max = 100), extend("x-alias" = ["passes", "rise", "healthy_threshold"]))]
    pub(crate) healthy: u32,
    /// Failed checks in sequence after which a server is down.
    #[schemars(range(min = 1, max = 100), extend("x-alias" = ["fails", "fall", "unhealthy_threshold"]))]
    pub(crate) unhealthy: u32,
    /// The `Host` of the request. Default: the host in the server's URL.
    pub(crate) host: Option<PlainText>,
}

/// A copy of each request, whose response is discarded.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mirror {
    /// URL of the server that gets the copies, with an optional path that is prepended.
    #[schemars(extend("x-alias" = ["url", "to"]))]
    pub(crate) upstream: PlainText,
    /// The share of requests that are copied.
    #[serde(default = "all")]
    #[schemars(extend("x-minimum" = "1%", "x-alias" = ["runtime_fraction", "percentage"]))]
    pub(crate) share: Percent,
    /// Maximum copies in progress for each thread; further requests are not copied.
    #[serde(default = "sixty_four")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) max_requests: u32,
    /// Maximum time of a copy.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
}

fn one() -> u32 {
    1
}

fn all() -> Percent {
    Percent(100)
}

fn sixty_four() -> u32 {
    64
}

fn five_seconds() -> Period {
    Period(5_000)
}

impl Default for UpstreamGroup {
    fn default() -> Self {
        UpstreamGroup {
            servers: Vec::new(),
            balance: Balance::RoundRobin,
            hash_key: PlainText("client".to_owned()),
            sticky: None,
            max_requests: 0,
            max_fails: 3,
            fail_window: Period(10_000),
            fail_timeout: Period(10_000),
            failure_status: Vec::new(),
            slow_start: Period(0),
            retries: 2,
            retry_budget: Percent(20),
            try_timeout: None,
            breaker: None,
            health_check: None,
            resolve_interval: Period(10_000),
            proxy_protocol: SendProxy::Off,
        }
    }
}

impl Default for Sticky {
    fn default() -> Self {
        Sticky {
            cookie: PlainText("outboard_server".to_owned()),
            secret: PlainText(String::new()),
            same_site: SameSite::Lax,
            max_age: None,
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker {
            failure_rate: Percent(50),
            window: Period(10_000),
            min_requests: 20,
            open: Period(5_000),
        }
    }
}

impl Default for HealthCheck {
    fn default() -> Self {
        HealthCheck {
            path: UrlPath("/".to_owned()),
            interval: Period(5_000),
            timeout: Period(2_000),
            status: vec![PlainText("2xx".to_owned()), PlainText("3xx".to_owned())],
            healthy: 2,
            unhealthy: 2,
            host: None,
        }
    }
}
