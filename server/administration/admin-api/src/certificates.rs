//! The certificates that the server obtains itself.

use crate::endpoint::{Description, Endpoint, Method, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its endpoints.
pub(crate) const ENDPOINTS: &[Description] = &[describe::<Get>()];

/// The certificates that the server obtains itself (`tls = "auto"`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Get {}

/// The reply to [`Get`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificates {
    /// By name.
    pub certificates: Vec<Certificate>,
}

/// The certificate of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// The name.
    pub name: String,
    /// Whether it is `valid`, `expired` or `missing`.
    pub state: String,
    /// Who has issued it.
    pub issuer: Option<String>,
    /// Until when it is valid, in seconds since 1970.
    pub not_after_s: Option<u64>,
    /// When the server obtains the next one, or tries again, in seconds since 1970.
    pub next_attempt_s: Option<u64>,
    /// Error of the last attempt.
    pub last_error: Option<String>,
}

impl Endpoint for Get {
    type Reply = Certificates;
    const METHOD: Method = Method::Get;
    const PATH: &'static str = "/certificates";
}
