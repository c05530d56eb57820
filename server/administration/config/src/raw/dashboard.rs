//! `[admin.dashboard]`: the dashboard on an address of its own.

use super::access::BasicAuth;
use super::one_or_many::OneOrMany;
use crate::scalar::{Address, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The dashboard on an address, for users with a password. `outboard dashboard` needs none of this.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dashboard {
    /// Address of the dashboard, on the loopback interface or a Unix socket: it is served by HTTP without TLS. Other machines reach it
    /// by an app with TLS whose `proxy` leads there.
    pub(crate) listen: Address,
    /// Names by which browsers may request it, in addition to `localhost` and IP addresses. Requests with
    /// other names are refused, because a site could have one that resolves to this address.
    #[serde(default = "no_hosts")]
    pub(crate) hosts: OneOrMany<PlainText>,
    /// Users of the dashboard. A client has ten attempts per minute.
    pub(crate) basic_auth: BasicAuth,
}

fn no_hosts() -> OneOrMany<PlainText> {
    OneOrMany::Many(Vec::new())
}
