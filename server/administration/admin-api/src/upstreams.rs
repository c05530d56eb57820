//! The servers that share requests: `[upstream.NAME]`.

use crate::endpoint::{Description, Endpoint, Method, describe};
use crate::status::UpstreamGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] =
    &[describe::<List>(), describe::<Drain>(), describe::<Enable>()];

/// The servers of all upstreams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct List {}

/// The reply to [`List`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Upstreams {
    /// By name.
    pub upstreams: Vec<UpstreamGroup>,
}

/// A server gets no new requests; those in progress finish. A reload does not change that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drain {
    /// The name of the upstream.
    pub upstream: String,
    /// The server as configured, or as [`List`] names it.
    pub server: String,
}

/// A drained server gets requests again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enable {
    /// The name of the upstream.
    pub upstream: String,
    /// The server as configured, or as [`List`] names it.
    pub server: String,
}

/// The reply to [`Drain`] and [`Enable`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The servers; a name with several addresses is several.
    pub servers: Vec<String>,
    /// Whether all were drained before.
    pub was_drained: bool,
    /// Their requests in progress.
    pub under_way: usize,
}

impl Endpoint for List {
    type Reply = Upstreams;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/upstreams";
}

impl Endpoint for Drain {
    type Reply = Changed;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/upstreams/drain";
}

impl Endpoint for Enable {
    type Reply = Changed;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/upstreams/enable";
}
