//! Rate limits: of access rules, of scripts, and the server through which gateways share them.

use crate::scalar::{AppName, Period, PlainText, RateText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate limit: the rate alone, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum RateLimitEntry {
    /// The rate alone.
    Rate(RateText),
    /// A table.
    Table(Box<RateLimit>),
}

/// How many requests a client may send.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateLimit {
    /// Requests in a period, such as `"10/s"`, `"300/min"` or `"5/10s"`.
    pub(crate) rate: RateText,
    /// Requests that are admitted at once after a pause. Default: those of one period.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) burst: Option<u32>,
    /// The value that distinguishes clients: `"address"` (an IPv6 /64 network counts as one address),
    /// `"header:NAME"` or `"cookie:NAME"`. A request without that header or cookie counts by its address.
    #[serde(default = "address")]
    #[schemars(extend("x-alias" = ["zone", "$binary_remote_addr"]))]
    pub(crate) key: PlainText,
    /// Clients that are known at the same time, of 24 bytes each. With more active clients, some share a
    /// limit.
    #[serde(default = "default_clients")]
    #[schemars(range(min = 16, max = 10_000_000))]
    pub(crate) clients: u32,
    /// Whether refused requests get `RateLimit` and `RateLimit-Policy` fields in addition to `Retry-After`.
    #[serde(default)]
    pub(crate) headers: bool,
    /// Whether the limit is one for all gateways that have the server of `[rate_sharing]`; otherwise each
    /// gateway limits on its own.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["distributed", "redis"]))]
    pub(crate) shared: bool,
}

/// A rate limit by a key that scripts choose, with `Outboard\RateLimit`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptRate {
    /// Tokens in a period, such as `"5/min"`.
    pub(crate) rate: RateText,
    /// Tokens that a key has at once after a pause. Default: those of one period.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) burst: Option<u32>,
    /// Keys that are known at the same time, of 24 bytes each. With more active keys, some share a limit.
    #[serde(default = "default_clients")]
    #[schemars(range(min = 16, max = 10_000_000))]
    pub(crate) clients: u32,
    /// Whether the limit is one for all gateways that have the server of `[rate_sharing]`.
    #[serde(default)]
    pub(crate) shared: bool,
}

/// The server through which gateways share rate limits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateSharing {
    /// URL of a Redis or Valkey server, `redis://USER:PASSWORD@HOST:PORT/DATABASE`; everything but the host
    /// is optional. `rediss://` uses TLS. It is not a cluster.
    #[schemars(extend("x-alias" = ["url", "redis"]))]
    pub(crate) server: PlainText,
    /// Prefix of all keys; gateways with the same name share limits. Default: `rates`.
    #[serde(default)]
    pub(crate) name: Option<AppName>,
    /// Maximum time that a request waits for the server. On expiry, and until the server responds in time
    /// again, each gateway limits on its own.
    #[serde(default = "fifty_milliseconds")]
    #[schemars(extend("x-minimum" = "1ms", "x-maximum" = "1s"))]
    pub(crate) timeout: Period,
    /// Whether the certificate of a `rediss` server is verified.
    #[serde(default = "yes")]
    pub(crate) verify: bool,
}

fn fifty_milliseconds() -> Period {
    Period(50)
}

fn yes() -> bool {
    true
}

fn address() -> PlainText {
    PlainText("address".to_owned())
}

pub(crate) fn default_clients() -> u32 {
    65_536
}
