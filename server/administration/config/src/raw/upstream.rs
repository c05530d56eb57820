//! `[upstream.NAME]`: servers that share the requests of proxied routes.

use super::status_set::{ErrorStatuses, StatusSet};
use super::table::table;
use crate::scalar::{As, OrZero, Percent, Period, PlainText, Secret, UrlPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

table! {
    /// Servers that share the requests of the routes with `upstream = "NAME"`.
    #[derive(PartialEq, Eq)]
    pub struct UpstreamGroup {
        /// The servers: `"http://HOST:PORT"`, `"https://HOST:PORT"`, `"HOST:PORT"`, `"unix:/PATH"`, or
        /// tables with `url` and further keys. A name with several addresses is several servers.
        #[schemars(extend("x-alias" = ["server", "BalancerMember", "to", "reverse_proxy"]))]
        #[serde(rename = "servers")]
        pub(crate) written_servers: Vec<ServerEntry> = Vec::new(),
        /// Which server gets a request.
        #[schemars(extend("x-alias" = ["lb_policy", "least_conn", "ip_hash", "hash", "lbmethod"]))]
        pub balance: Balance = Balance::RoundRobin,
        /// The value that `balance = "hash"` uses: `"client"` (the address), `"uri"`, `"path"`,
        /// `"header:NAME"` or `"cookie:NAME"`. A request without it is balanced by round robin.
        #[serde(rename = "hash_key", with = "As::<PlainText>")]
        pub(crate) written_hash_key: String = "client".to_owned(),
        /// Binds a client to the server of its first request by a cookie. Default: off.
        #[schemars(extend("x-alias" = ["stickysession", "cookie"]))]
        pub sticky: Option<Sticky> = None,
        /// Maximum requests that all servers together process; further ones fail at once with 503
        /// (`upstream_busy`). 0: no limit.
        #[schemars(range(max = 1_000_000), extend("x-alias" = ["max_pending", "max_pending_requests"]))]
        #[serde(with = "As::<OrZero<u32>>")]
        pub max_requests: Option<u32> = None,
        /// Failures within `fail_window` after which a server is ejected: it gets no requests for
        /// `fail_timeout`, then a single one as a trial. If no other server is left, ejected ones are
        /// used. 0: servers are not ejected.
        #[schemars(range(max = 10_000), extend("x-alias" = ["consecutive_5xx", "max-fails"]))]
        #[serde(with = "As::<OrZero<u32>>")]
        pub max_fails: Option<u32> = Some(3),
        /// The time in which failures are counted.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "fail_window", with = "As::<Period>")]
        pub fail_window_ms: u64 = 10_000,
        /// How long a server is ejected.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["fail_duration", "base_ejection_time"]))]
        #[serde(rename = "fail_timeout", with = "As::<Period>")]
        pub fail_timeout_ms: u64 = 10_000,
        /// Statuses that are failures of the server, such as `["502", "503"]`, in addition to failed
        /// connections, timeouts and invalid responses. They are retried like these.
        #[schemars(extend("x-alias" = ["unhealthy_status", "proxy_next_upstream"]))]
        #[serde(with = "As::<ErrorStatuses>")]
        pub failure_status: StatusSet = StatusSet::default(),
        /// Time in which the share of a server grows to its weight after it was down. Default: its share
        /// is complete at once.
        #[schemars(extend("x-alias" = ["slowstart"]))]
        #[serde(rename = "slow_start", with = "As::<Period>")]
        pub slow_start_ms: u64 = 0,
        /// Maximum further attempts of a request, each on another server: if nothing of it was sent, or
        /// if its method is idempotent and its body is in memory.
        #[schemars(range(max = 10), extend("x-alias" = ["proxy_next_upstream_tries", "lb_try_duration"]))]
        pub retries: u32 = 2,
        /// Retries as a share of requests, beyond a reserve of 100 retries. It bounds the additional
        /// load when many requests fail.
        #[serde(rename = "retry_budget", with = "As::<Percent>")]
        pub retry_percent: u32 = 20,
        /// Maximum time to the head of the response for an attempt that can be retried. Default: the
        /// route's `timeout`.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["per_try_timeout", "proxy_next_upstream_timeout"]))]
        #[serde(rename = "try_timeout", with = "As::<Option<Period>>")]
        pub try_timeout_ms: Option<u64> = None,
        /// Refuses requests at once while too many fail. Default: off.
        #[schemars(extend("x-alias" = ["circuit_breaker", "outlier_detection"]))]
        pub breaker: Option<Breaker> = None,
        /// Requests that check each server. Default: off.
        #[schemars(extend("x-alias" = ["health_uri", "active_health", "option httpchk", "check"]))]
        pub health_check: Option<HealthCheck> = None,
        /// How often the names of servers are resolved again.
        #[schemars(extend("x-minimum" = "100ms", "x-alias" = ["resolver", "dns_refresh_rate", "hold"]))]
        #[serde(rename = "resolve_interval", with = "As::<Period>")]
        pub resolve_interval_ms: u64 = 10_000,
        /// Starts each connection with a header of the PROXY protocol, which names the client. Such a
        /// connection serves a single request.
        #[schemars(extend("x-alias" = ["send-proxy", "send-proxy-v2"]))]
        pub proxy_protocol: SendProxy = SendProxy::Off,
        /// Its name.
        #[serde(skip)]
        pub name: String = String::new(),
        /// The servers, at least one.
        #[serde(skip)]
        pub servers: Vec<UpstreamServer> = Vec::new(),
        /// What the hash is computed from.
        #[serde(skip)]
        pub hash_key: HashKey = HashKey::Client,
    }
}

/// A server: its URL, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ServerEntry {
    /// A URL alone.
    Url(PlainText),
    /// A table.
    Table(Box<UpstreamServer>),
}

impl ServerEntry {
    /// The table of the server.
    pub(crate) fn table(&self) -> UpstreamServer {
        match self {
            Self::Table(table) => UpstreamServer::clone(table),
            Self::Url(url) => UpstreamServer {
                url: url.0.clone(),
                weight: one(),
                is_backup: false,
                max_connections: None,
                origin: String::new(),
                socket: None,
            },
        }
    }
}

/// A server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamServer {
    /// `"http://HOST:PORT"`, `"https://HOST:PORT"`, `"HOST:PORT"` or `"unix:/PATH"`.
    #[schemars(extend("x-alias" = ["address", "server"]))]
    #[serde(with = "As::<PlainText>")]
    pub(crate) url: String,
    /// Share of the requests, relative to the other servers.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256), extend("x-alias" = ["loadfactor"]))]
    pub weight: u32,
    /// Whether it gets requests only while no other server is up.
    #[serde(default, rename = "backup")]
    pub is_backup: bool,
    /// Maximum requests that it processes at a time. 0: no limit.
    #[serde(default, with = "As::<OrZero<u32>>")]
    #[schemars(range(max = 100_000), extend("x-alias" = ["max_conns", "maxconn"]))]
    pub max_connections: Option<u32>,
    /// Scheme, host and port, as the URL of a request begins; for a Unix socket `http://localhost`.
    #[serde(skip)]
    pub origin: String,
    /// Its Unix socket.
    #[serde(skip)]
    pub socket: Option<PathBuf>,
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

/// What the hash of a request is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    Client,
    /// Path and query.
    Uri,
    /// The path.
    Path,
    /// A header field.
    Header(String),
    /// A cookie.
    Cookie(String),
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

table! {
    /// A cookie that binds a client to a server.
    #[derive(PartialEq, Eq)]
    pub struct Sticky {
        /// Name of the cookie. It is HttpOnly and, over HTTPS, Secure.
        #[serde(with = "As::<PlainText>")]
        pub cookie: String = "outboard_server".to_owned(),
        /// Key of the cookie's values, which are opaque. With a secret, clients cannot compute the value
        /// of another server; the gateways of a site need the same one.
        pub secret: Secret = Secret::default(),
        /// The attribute `SameSite`.
        pub same_site: SameSite = SameSite::Lax,
        /// Lifetime of the cookie. Default: until the browser is closed.
        #[serde(rename = "max_age", with = "As::<Option<Period>>")]
        pub max_age_ms: Option<u64> = None,
    }
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

table! {
    /// When requests are refused because too many fail.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Breaker {
        /// The share of attempts within `window` that have to fail.
        #[schemars(extend("x-minimum" = "1%"))]
        #[serde(rename = "failure_rate", with = "As::<Percent>")]
        pub failure_percent: u32 = 50,
        /// The time in which attempts are counted.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "window", with = "As::<Period>")]
        pub window_ms: u64 = 10_000,
        /// Fewer attempts within `window` never open it.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub min_requests: u32 = 20,
        /// How long requests are refused with 503 (`upstream_open`); then a single one is a trial.
        #[schemars(extend("x-minimum" = "10ms"))]
        #[serde(rename = "open", with = "As::<Period>")]
        pub open_ms: u64 = 5_000,
    }
}

table! {
    /// Requests that check whether a server is up.
    #[derive(PartialEq, Eq)]
    pub struct HealthCheck {
        /// Path of the request, a GET.
        #[schemars(extend("x-alias" = ["uri", "health_uri"]))]
        #[serde(with = "As::<UrlPath>")]
        pub path: String = "/".to_owned(),
        /// Time between two checks of a server.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["health_interval", "inter"]))]
        #[serde(rename = "interval", with = "As::<Period>")]
        pub interval_ms: u64 = 5_000,
        /// Maximum time of a check.
        #[schemars(extend("x-minimum" = "10ms", "x-alias" = ["health_timeout"]))]
        #[serde(rename = "timeout", with = "As::<Period>")]
        pub timeout_ms: u64 = 2_000,
        /// Statuses of a server that is up, such as `"200"` or `"2xx"`.
        #[schemars(extend("x-alias" = ["match", "health_status", "expected_statuses", "http-check expect"]))]
        #[serde(rename = "status", with = "As::<Vec<PlainText>>")]
        pub(crate) written_status: Vec<String> = vec!["2xx".to_owned(), "3xx".to_owned()],
        /// Successful checks in sequence after which a server is up again.
        #[schemars(range(min = 1, max = 100), extend("x-alias" = ["passes", "rise", "healthy_threshold"]))]
        pub healthy: u32 = 2,
        /// Failed checks in sequence after which a server is down.
        #[schemars(range(min = 1, max = 100), extend("x-alias" = ["fails", "fall", "unhealthy_threshold"]))]
        pub unhealthy: u32 = 2,
        /// The `Host` of the request. Default: the host in the server's URL.
        #[serde(with = "As::<Option<PlainText>>")]
        pub host: Option<String> = None,
        /// Statuses of a server that is up.
        #[serde(skip)]
        pub status: StatusSet = StatusSet::default(),
    }
}

/// A copy of each request, whose response is discarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// URL of the server that gets the copies, with an optional path that is prepended.
    #[schemars(extend("x-alias" = ["url", "to"]))]
    #[serde(with = "As::<PlainText>")]
    pub upstream: String,
    /// The share of requests that are copied.
    #[serde(default = "all", rename = "share", with = "As::<Percent>")]
    #[schemars(extend("x-minimum" = "1%", "x-alias" = ["runtime_fraction", "percentage"]))]
    pub percent: u32,
    /// Maximum copies in progress for each thread; further requests are not copied.
    #[serde(default = "sixty_four")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_requests: u32,
    /// Maximum time of a copy.
    #[serde(default = "five_seconds_ms", rename = "timeout", with = "As::<Period>")]
    #[schemars(extend("x-minimum" = "10ms"))]
    pub timeout_ms: u64,
}

fn one() -> u32 {
    1
}

fn all() -> u32 {
    100
}

fn sixty_four() -> u32 {
    64
}

fn five_seconds_ms() -> u64 {
    5_000
}
