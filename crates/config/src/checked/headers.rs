//! Rules that change the headers of responses.

use crate::raw::{self, SecurityHeaders};
use crate::scalar::{HeaderValue, PathPattern};
use std::collections::BTreeMap;

/// A rule that changes response headers. First `remove`, then `set`, `default` and `add`.
#[derive(Clone, Debug, Default)]
pub struct HeaderRule {
    /// Paths to which the rule applies; `None`: all.
    pub path: Option<PathPattern>,
    /// Headers to set, each with its only value.
    pub set: Vec<(String, String)>,
    /// Headers to set unless they are there.
    pub default: Vec<(String, String)>,
    /// Headers to add.
    pub add: Vec<(String, String)>,
    /// Headers to remove.
    pub remove: Vec<String>,
}

/// Those of [`SecurityHeaders::Basic`].
const BASIC: [(&str, &str); 3] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Frame-Options", "SAMEORIGIN"),
];
/// Those of [`SecurityHeaders::Strict`].
const STRICT: [(&str, &str); 7] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
    ("X-Frame-Options", "DENY"),
    (
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
];

/// The preset of an app, and its rules.
pub(super) fn rules(raw: &raw::App) -> Vec<HeaderRule> {
    let preset: &[(&str, &str)] = match raw.security_headers {
        SecurityHeaders::Off => &[],
        SecurityHeaders::Basic => &BASIC,
        SecurityHeaders::Strict => &STRICT,
    };
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let preset = HeaderRule { default: preset.iter().map(own).collect(), ..HeaderRule::default() };
    let preset = (!preset.default.is_empty()).then_some(preset);
    preset.into_iter().chain(raw.headers.iter().map(rule)).collect()
}

fn rule(raw: &raw::HeaderRule) -> HeaderRule {
    let pairs = |map: &BTreeMap<String, HeaderValue>| {
        map.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    };
    HeaderRule {
        path: raw.path.clone(),
        set: pairs(&raw.set),
        default: pairs(&raw.default),
        add: pairs(&raw.add),
        remove: raw.remove.iter().map(|name| name.0.clone()).collect(),
    }
}
