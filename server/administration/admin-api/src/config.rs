//! The effective configuration.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Get>()];

/// The configuration of the active generation: each key with its value and its origin. Secrets are
/// replaced by `[redacted]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Get {}

/// The reply to [`Get`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// The configuration file, or the directory that is served without one.
    pub file: String,
    /// Included files, and files that values are read from.
    pub files: Vec<String>,
    /// Every key, sorted by name.
    pub settings: Vec<Setting>,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The key, such as `app.shop.rewrite.0.match`.
    pub key: String,
    /// Value, as in the file.
    pub value: serde_json::Value,
    /// `file`, `environment`, `secret-file`, `default` or `command-line`.
    pub origin: String,
    /// The file that has the key, unless the origin is `default` or `command-line`.
    pub file: Option<String>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// The environment variables and files that the value was read from.
    pub sources: Vec<String>,
}

impl Endpoint for Get {
    type Reply = Configuration;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/config";
}
