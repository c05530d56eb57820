//! Snapshots: the memory of booted scripts, of which workers are forks.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Retire>()];

/// Requests that begin after the reply are served by new snapshots. Those in progress finish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retire {
    /// Only those of this app.
    pub app: Option<String>,
    /// Only those that depend on this key.
    pub key: Option<String>,
}

/// The reply to [`Retire`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retired {
    /// Number of retired snapshots, by app.
    pub apps: BTreeMap<String, usize>,
}

impl Endpoint for Retire {
    type Reply = Retired;
    const METHOD: Method = Method::Post;
    const PATH: &'static str = "/snapshot/retire";
}
