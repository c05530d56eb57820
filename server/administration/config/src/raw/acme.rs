//! `[acme]`: certificates that the server obtains itself.

use super::one_or_many::OneOrMany;
use super::table::table;
use crate::scalar::{AppName, As, FilePath, HostPattern, PlainText, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

table! {
    /// Certificates for listeners with `tls = "auto"`: the server obtains them from certificate authorities
    /// by ACME (RFC 8555), and renews them.
    pub(crate) struct Acme {
        /// Agrees to the terms of service of the authorities. Required, unless all certificates come from
        /// the local authority.
        #[schemars(extend("x-alias" = ["agree", "accept_terms_of_service"]))]
        pub(crate) terms_agreed: bool = false,
        /// The address that an authority may write to. Default: none.
        #[schemars(extend("x-alias" = ["contact"]))]
        pub(crate) email: Option<PlainText> = None,
        /// Names that get a certificate. A wildcard such as `"*.example.org"` needs `dns_hook`. Default:
        /// the `hosts` of all apps and redirects.
        #[schemars(extend("x-alias" = ["domain", "names"]))]
        pub(crate) domains: Option<Vec<HostPattern>> = None,
        /// URLs of the directories of ACME authorities; a further one is used when those before it fail.
        /// `"local"` is the local authority for development. Names of `localhost` always have certificates
        /// of the local authority.
        #[schemars(extend("x-alias" = ["ca_url", "server"]))]
        pub(crate) directory: OneOrMany<PlainText> = OneOrMany::One(PlainText(LETS_ENCRYPT.to_owned())),
        /// Directory of accounts, keys and certificates. Gateways of one machine can share it. Default:
        /// `/var/lib/outboard/certificates` for root, otherwise `outboard/certificates` in
        /// `$XDG_DATA_HOME` or `~/.local/share`.
        pub(crate) storage: Option<FilePath> = None,
        /// Additional authorities (PEM) that are trusted for the connection to a `directory`, such as that
        /// of a company or of a test server.
        #[schemars(extend("x-alias" = ["ca_root", "root_certificates"]))]
        pub(crate) ca: Option<FilePath> = None,
        /// Credentials of an account that exists at the authority already, as some authorities require.
        /// They are for the first `directory`.
        #[schemars(extend("x-alias" = ["eab"]))]
        pub(crate) external_account: Option<ExternalAccount> = None,
        /// How an authority checks names, the preferred way first; after a failure the next one is used.
        /// Default: those that the listeners permit.
        pub(crate) challenges: Option<Vec<Challenge>> = None,
        /// A program that publishes DNS records for wildcards: it is called with `present` or `cleanup`, the
        /// name of the record and its value, and returns when the record is published or removed.
        pub(crate) dns_hook: Option<FilePath> = None,
        /// URL that decides on names that no app lists: it is requested with `?domain=NAME` when a client
        /// connects for one, and approves it with status 200. Default: none, such names are refused.
        #[schemars(extend("x-alias" = ["on_demand", "on_demand_tls"]))]
        pub(crate) ask: Option<PlainText> = None,
        /// A profile of the authority, such as `"shortlived"`. Default: the authority's own default.
        pub(crate) profile: Option<PlainText> = None,
        /// Maximum number of orders at one authority within 3 hours, over all names.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub(crate) max_orders: u32 = 300,
        /// Maximum number of orders for one name within a week, over all authorities.
        #[schemars(range(min = 1, max = 1000))]
        pub(crate) max_orders_per_name: u32 = 5,
        /// Redis or Valkey server through which several gateways share certificates: one orders, all serve.
        /// Default: none.
        pub(crate) shared: Option<AcmeShared> = None,
    }
}

/// Credentials of an account that exists at an authority (RFC 8555 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalAccount {
    /// The key identifier.
    #[schemars(extend("x-alias" = ["kid", "key_id"]))]
    #[serde(with = "As::<PlainText>")]
    pub id: String,
    /// The key, in base64url.
    #[schemars(extend("x-alias" = ["hmac_key", "mac_key"]))]
    pub key: Secret,
}

/// How an authority checks a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Challenge {
    /// By HTTP on port 80 (RFC 8555 8.3).
    #[serde(rename = "http-01")]
    Http01,
    /// By TLS on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    /// By a record in the DNS (RFC 8555 8.4), through `dns_hook`.
    #[serde(rename = "dns-01")]
    Dns01,
}

/// Certificates that several gateways share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcmeShared {
    /// URL of the server, `redis://USER:PASSWORD@HOST:PORT/DATABASE`; everything but the host is
    /// optional. `rediss://` uses TLS.
    #[schemars(extend("x-alias" = ["url", "redis"]))]
    pub(crate) server: PlainText,
    /// Prefix of all keys; gateways with the same name share certificates. Default: `certificates`.
    #[serde(default)]
    pub(crate) name: Option<AppName>,
}
