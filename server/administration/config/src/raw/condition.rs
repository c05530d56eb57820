//! `[app.NAME.condition.CONDITION]`: what a request has; rules refer to it by `if`.

use super::one_or_many::OneOrMany;
use super::table::table;
use crate::scalar::{
    ConditionName, CountryCode, HeaderName, HostPattern, MethodName, PathPattern, Peer, PlainText,
    Scalar,
};
use std::collections::BTreeMap;

/// Values of which a request has one.
type Values = OneOrMany<PlainText>;

table! {
    /// What a request has. All keys that are written have to hold; of the values of a key, one. In values of `header`,
    /// `cookie` and `query`, `*` stands for any characters: `"*"` is any value, so that the condition is whether there is one.
    #[schemars(extend(
        "x-hint" = "a condition has a name: write [app.NAME.condition.CONDITION] and its keys below it",
    ))]
    pub(crate) struct Condition {
        /// Methods, such as `"POST"`.
        #[schemars(extend("x-alias" = ["limit_except", "Limit", "methods", "request_method"]))]
        pub(crate) method: OneOrMany<MethodName> = OneOrMany::default(),
        /// Hosts, such as `"m.example.org"` or `"*.example.org"`.
        #[schemars(extend("x-alias" = ["hosts", "http_host"]))]
        pub(crate) host: OneOrMany<HostPattern> = OneOrMany::default(),
        /// Requested paths, below the app's prefix.
        #[schemars(extend("x-alias" = ["paths", "location", "request_uri"]))]
        pub(crate) path: OneOrMany<PathPattern> = OneOrMany::default(),
        /// Header fields and their values; case does not matter: `{ User-Agent = "*bot*" }`.
        #[schemars(extend(
            "propertyNames" = { "format": HeaderName::NAME },
            "x-alias" = ["headers", "BrowserMatch", "SetEnvIf", "valid_referers", "http_user_agent"],
        ))]
        pub(crate) header: BTreeMap<String, Values> = BTreeMap::new(),
        /// Cookies and their values: `{ beta = "1" }`.
        #[schemars(extend("x-alias" = ["cookies", "http_cookie"]))]
        pub(crate) cookie: BTreeMap<String, Values> = BTreeMap::new(),
        /// Parameters of the query and their values, decoded: `{ preview = "*" }`.
        #[schemars(extend("x-alias" = ["args", "query_string"]))]
        pub(crate) query: BTreeMap<String, Values> = BTreeMap::new(),
        /// Networks of clients.
        #[schemars(extend("x-alias" = ["geo", "remote_addr", "remote_ip", "address"]))]
        pub(crate) client: OneOrMany<Peer> = OneOrMany::default(),
        /// Countries of clients, by `country_database`: `["DE", "AT"]`. A client whose country is not known is in none.
        #[schemars(extend("x-alias" = ["geoip_country", "GeoIP", "countries"]))]
        pub(crate) country: OneOrMany<CountryCode> = OneOrMany::default(),
        /// Other conditions that have to hold as well; `"!NAME"`: must not.
        #[serde(rename = "if")]
        #[schemars(extend("x-alias" = ["and", "all", "not"]))]
        pub(crate) all: OneOrMany<ConditionName> = OneOrMany::default(),
        /// Other conditions of which one has to hold; `"!NAME"`: one that does not.
        #[schemars(extend("x-alias" = ["or"]))]
        pub(crate) any: OneOrMany<ConditionName> = OneOrMany::default(),
    }
}

/// Names of conditions, as rules refer to them.
pub(crate) type If = OneOrMany<ConditionName>;
