//! `[[redirect]]`: hosts whose requests are redirected to another host.

use super::one_or_many::OneOrMany;
use crate::scalar::{HostPattern, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts whose requests are redirected to another host, with their path and query.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redirect {
    /// Host names, such as `www.example.org` or `*.example.net`; no app has them.
    #[schemars(extend("x-alias" = ["server_name", "ServerName", "ServerAlias", "host", "from"]))]
    pub(crate) hosts: OneOrMany<HostPattern>,
    /// Scheme and host, such as `https://example.org`; the path and the query of the request are added.
    #[schemars(extend("x-alias" = ["return", "target", "location"]))]
    pub(crate) to: PlainText,
    /// Status of the response: 301, 302, 307 or 308. With 307 and 308 clients repeat the method and the body.
    #[serde(default = "moved_permanently")]
    #[schemars(range(min = 301, max = 308), extend("x-alias" = ["code"]))]
    pub(crate) status: u16,
}

fn moved_permanently() -> u16 {
    301
}
