//! `[[app.NAME.access]]`: which clients may request some paths, and how often; `[bans]`.

use super::condition::If;
use super::one_or_many::OneOrMany;
use super::rate_limit::RateLimitEntry;
use crate::scalar::{ByteSize, FilePath, HeaderName, PathPattern, Peer, Period, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which clients may request some paths, and how often. A request has to satisfy all rules whose paths it
/// matches.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Access {
    /// Paths that the rule protects, with everything below them, in any case. As with `deny`, the pattern is
    /// matched against the request path, the rewritten path, and the resulting file or script, and also
    /// against what follows a script in the path (`/index.php/admin`). Default: all requests.
    #[schemars(extend("x-alias" = ["location", "Location", "matcher"]))]
    pub(crate) path: Option<PathPattern>,
    /// Paths to which the rule does not apply.
    #[schemars(extend("x-alias" = ["exclude", "not"]))]
    pub(crate) except: Vec<PathPattern>,
    /// Conditions that have to hold for the rule to apply; none of them has a `path`. A client chooses what it sends: only
    /// methods, networks and countries are certain.
    #[serde(rename = "if")]
    #[schemars(extend("x-alias" = ["conditions"]))]
    pub(crate) conditions: If,
    /// Networks whose clients are admitted; all others get 403. `"unix"` stands for peers on a Unix socket.
    /// Default: all.
    #[schemars(extend("x-alias" = ["Require", "remote_ip", "whitelist"]))]
    pub(crate) allow: Vec<Peer>,
    /// Networks whose clients get 403, also if `allow` has them.
    #[schemars(extend("x-alias" = ["Deny", "blacklist"]))]
    pub(crate) deny: Vec<Peer>,
    /// How many requests a client may send; further requests get 429. A rate such as `"10/s"` or
    /// `"300/min"`, or a table.
    #[schemars(extend("x-alias" = ["limit_req", "throttle"]))]
    pub(crate) rate_limit: Option<RateLimitEntry>,
    /// Maximum size of a request body, if it is less than `limits.body`; larger requests get 413.
    #[schemars(extend("x-alias" = ["client_max_body_size", "LimitRequestBody"]))]
    pub(crate) body: Option<ByteSize>,
    /// Users and passwords (RFC 7617); clients without one of them get 401.
    #[schemars(extend("x-alias" = ["auth_basic", "AuthType", "basicauth"]))]
    pub(crate) basic_auth: Option<BasicAuth>,
    /// Another service that decides about each request.
    #[schemars(extend("x-alias" = ["auth_request", "ForwardAuth"]))]
    pub(crate) forward_auth: Option<ForwardAuth>,
    /// Origins whose pages may read responses (CORS). Preflight requests get their response from the gateway,
    /// and `Access-Control-…` fields of PHP and upstreams are removed. Of several rules the last one decides.
    pub(crate) cors: Option<Cors>,
}

/// Origins whose pages may read responses.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cors {
    /// Such as `https://app.example.org`, or `*` for all.
    #[schemars(extend("x-alias" = ["Access-Control-Allow-Origin"]))]
    pub(crate) origins: OneOrMany<PlainText>,
    /// Methods of requests with a preflight.
    #[serde(default = "methods")]
    pub(crate) methods: Vec<PlainText>,
    /// Header fields of requests with a preflight.
    #[serde(default)]
    pub(crate) headers: Vec<HeaderName>,
    /// Header fields of responses that pages can read, in addition to the usual ones.
    #[serde(default)]
    pub(crate) expose: Vec<HeaderName>,
    /// Whether requests can have cookies and passwords; the origins are named then.
    #[serde(default)]
    pub(crate) credentials: bool,
    /// How long browsers remember the response to a preflight.
    #[serde(default = "ten_minutes")]
    pub(crate) max_age: Period,
}

fn methods() -> Vec<PlainText> {
    ["GET", "HEAD", "POST"].map(|name| PlainText(name.to_owned())).to_vec()
}

fn ten_minutes() -> Period {
    Period(600_000)
}

/// Another service, or a script of the app, that decides about each request: it gets a GET with the request's
/// header fields and `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Forwarded-For`. A
/// status of 2xx admits the request; any other response is sent to the client. Without a response the client
/// gets 502 or 504.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwardAuth {
    /// URL of the service, with its path: `http://127.0.0.1:9091/api/verify`; or the name of an
    /// `[upstream.NAME]`, with a path: `"auth/api/verify"`.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["uri", "address", "auth_request"]))]
    pub(crate) upstream: Option<PlainText>,
    /// Script of the app that decides instead, as a path below the root such as `"/auth.php"`; in worker mode a
    /// path that the worker script handles. It has the variables of the request, whose method and target are
    /// `$_SERVER['OUTBOARD_AUTH_METHOD']` and `['OUTBOARD_AUTH_URI']`.
    #[serde(default)]
    pub(crate) script: Option<PlainText>,
    /// Fields of the service's response that the request gets. They are removed from every request that a
    /// client sends to the app.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["auth_request_set", "authResponseHeaders"]))]
    pub(crate) copy_headers: Vec<HeaderName>,
    /// Maximum time for the response.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-minimum" = "10ms"))]
    pub(crate) timeout: Period,
    /// Whether the certificate of an `https` service is verified.
    #[serde(default = "yes")]
    pub(crate) verify: bool,
}

fn five_seconds() -> Period {
    Period(5_000)
}

fn yes() -> bool {
    true
}

/// Users and passwords.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BasicAuth {
    /// Name that browsers show when they request the password.
    #[serde(default = "realm")]
    #[schemars(extend("x-alias" = ["AuthName"]))]
    pub(crate) realm: PlainText,
    /// File of `htpasswd` with lines `NAME:HASH`, relative to the configuration file; it is read at start
    /// and at each reload. Hashes are of bcrypt (`htpasswd -B`), Argon2, or SHA-2 of crypt (`$5$`, `$6$`). Those of
    /// MD5 (`$apr1$`, `$1$`) and SHA-1 (`{SHA}`) are accepted, with a warning of `outboard check`.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["auth_basic_user_file", "AuthUserFile"]))]
    pub(crate) file: Option<FilePath>,
    /// Hashes by user name, in addition to the file.
    #[serde(default)]
    pub(crate) users: BTreeMap<String, PlainText>,
}

fn realm() -> PlainText {
    PlainText("Restricted".to_owned())
}

/// Banned clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Bans {
    /// File in which the bans of `outboard ban` survive a restart; the gateway's user must be able to write
    /// to its directory. It is read at the start. Default: `bans` in the directory that systemd names in
    /// `STATE_DIRECTORY`, and otherwise none.
    pub(crate) file: Option<FilePath>,
}
