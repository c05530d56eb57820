//! The objects of ACME (RFC 8555 7.1), as far as they are used.

use super::problem::Problem;
use serde::Deserialize;

/// The directory of an authority (RFC 8555 7.1.1).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directory {
    pub(crate) new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    /// RFC 9773.
    pub(crate) renewal_info: Option<String>,
}

/// An order (RFC 8555 7.1.3).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OrderObject {
    pub(crate) status: OrderStatus,
    #[serde(default)]
    pub(crate) authorizations: Vec<String>,
    pub(crate) finalize: String,
    pub(crate) certificate: Option<String>,
    pub(crate) error: Option<Problem>,
}

/// RFC 8555 7.1.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OrderStatus {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
}

/// An authorization (RFC 8555 7.1.4).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Authorization {
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) challenges: Vec<Challenge>,
}

/// A challenge (RFC 8555 8).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Challenge {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) token: String,
    pub(crate) error: Option<Problem>,
}

/// When to renew a certificate (RFC 9773 4.2).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenewalInfo {
    pub(crate) suggested_window: SuggestedWindow,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SuggestedWindow {
    pub(crate) start: String,
    pub(crate) end: String,
}

impl Authorization {
    pub(crate) fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.status == "valid"
    }

    /// Why it is not valid.
    pub(crate) fn problem(&self) -> Problem {
        self.challenges.iter().find_map(|challenge| challenge.error.clone()).unwrap_or_default()
    }
}
