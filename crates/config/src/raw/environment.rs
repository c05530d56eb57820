//! `environment`: what the server is for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a server is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Environment {
    /// To serve visitors.
    #[default]
    Production,
    /// To write code against: one worker an app, changes seen at once, errors shown.
    Development,
}
