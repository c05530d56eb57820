//! The ban list.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] =
    &[describe::<List>(), describe::<Add>(), describe::<Remove>()];

/// The banned networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct List {}

/// The reply to [`List`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bans {
    /// Sorted by network.
    pub bans: Vec<Entry>,
}

/// A ban.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// An address, or a network such as `10.0.0.0/8`.
    pub network: String,
    /// Unix time at which the ban ends. Missing if it is permanent.
    pub until_s: Option<u64>,
    /// The reason of the ban.
    pub reason: String,
}

/// Refuses the clients of a network: connections are closed before TLS, and requests get 403. An earlier ban
/// of the same network is replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Add {
    /// An address, or a network such as `10.0.0.0/8`.
    pub network: String,
    /// Time until the ban ends, in seconds. Default: it does not end.
    pub for_s: Option<u64>,
    /// The reason, in a line of at most 200 bytes.
    pub reason: Option<String>,
}

/// Removes the ban of a network. Bans of larger or smaller networks remain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remove {
    /// The network as it was banned.
    pub network: String,
}

/// The reply to [`Add`] and [`Remove`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The network.
    pub network: String,
    /// Whether it was banned before [`Remove`]; true for [`Add`].
    pub was_banned: bool,
}

impl Endpoint for List {
    type Reply = Bans;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/bans";
}

impl Endpoint for Add {
    type Reply = Changed;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/bans/add";
}

impl Endpoint for Remove {
    type Reply = Changed;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/bans/remove";
}
