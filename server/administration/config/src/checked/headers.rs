//! Rules that change the headers of responses.

use super::condition::Names;
use super::context::Context;
use crate::raw::{self, ConditionSet, Requirement, SecurityHeaders, StatusSet};
use crate::scalar::{AnyStatus, HeaderValue, PathPattern};
use std::collections::BTreeMap;

/// A rule that changes response headers. First `remove`, then `set`, `default` and `add`.
#[derive(Clone, Debug, Default)]
pub struct HeaderRule {
    /// Paths to which the rule applies; `None`: all.
    pub path: Option<PathPattern>,
    /// Conditions.
    pub requirement: Requirement,
    /// Statuses of the responses; `None`: all.
    pub status: Option<StatusSet>,
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
pub(super) fn rules(
    raw: &raw::App,
    names: &Names,
    place: &[&str],
    context: &mut Context<'_>,
) -> Vec<HeaderRule> {
    let preset: &[(&str, &str)] = match raw.security_headers {
        SecurityHeaders::Off => &[],
        SecurityHeaders::Basic => &BASIC,
        SecurityHeaders::Strict => &STRICT,
    };
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let preset = HeaderRule { default: preset.iter().map(own).collect(), ..HeaderRule::default() };
    let preset = (!preset.default.is_empty()).then_some(preset);
    let mut own = Vec::new();
    for (index, raw) in raw.headers.iter().enumerate() {
        let index = index.to_string();
        let place = [place, &[&index, "if"]].concat();
        let requirement = names.requirement(&raw.conditions, &place, context);
        own.extend(split(HeaderRule { requirement, ..rule(raw) }));
    }
    preset.into_iter().chain(own).collect()
}

/// A rule without `status` is two: what lets caches store a response is not for errors.
fn split(mut rule: HeaderRule) -> Vec<HeaderRule> {
    if rule.status.is_some() {
        return vec![rule];
    }
    let mut storing = HeaderRule {
        path: rule.path.clone(),
        requirement: rule.requirement,
        ..HeaderRule::default()
    };
    storing.status = Some(StatusSet::of(["2xx", "3xx"].into_iter()));
    for (from, to) in [
        (&mut rule.set, &mut storing.set),
        (&mut rule.default, &mut storing.default),
        (&mut rule.add, &mut storing.add),
    ] {
        let (storing, others) =
            std::mem::take(from).into_iter().partition(|(name, value)| lets_store(name, value));
        (*from, *to) = (others, storing);
    }
    vec![rule, storing].into_iter().filter(|rule| !rule.is_empty()).collect()
}

/// Whether a header lets caches store a response (RFC 9111 5.2.2).
fn lets_store(name: &str, value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let forbids = ["no-store", "no-cache", "max-age=0"].iter().any(|one| value.contains(one));
    name.eq_ignore_ascii_case("expires") || (name.eq_ignore_ascii_case("cache-control") && !forbids)
}

impl HeaderRule {
    /// Whether it applies to the responses for a path below the app's prefix, whatever their status.
    pub fn applies(&self, path: &[u8], conditions: ConditionSet) -> bool {
        self.requirement.holds(conditions)
            && self.path.as_ref().is_none_or(|pattern| pattern.matches(path))
    }

    fn is_empty(&self) -> bool {
        let all = [&self.set, &self.default, &self.add];
        self.remove.is_empty() && all.iter().all(|headers| headers.is_empty())
    }
}

fn rule(raw: &raw::HeaderRule) -> HeaderRule {
    let pairs = |map: &BTreeMap<String, HeaderValue>| {
        map.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    };
    HeaderRule {
        path: raw.path.clone(),
        requirement: Requirement::default(),
        status: Some(StatusSet::of(raw.status.iter().map(|AnyStatus(text)| &text[..])))
            .filter(|_| !raw.status.is_empty()),
        set: pairs(&raw.set),
        default: pairs(&raw.default),
        add: pairs(&raw.add),
        remove: raw.remove.iter().map(|name| name.0.clone()).collect(),
    }
}

#[cfg(test)]
mod tests;
