//! Rules that change the headers of responses.

use crate::raw;
use crate::scalar::{HeaderValue, PathPattern};
use std::collections::BTreeMap;

/// A rule that changes response headers. First `remove`, then `set`, then `add`.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// Paths to which the rule applies; `None`: all.
    pub path: Option<PathPattern>,
    /// Headers to set, each with its only value.
    pub set: Vec<(String, String)>,
    /// Headers to add.
    pub add: Vec<(String, String)>,
    /// Headers to remove.
    pub remove: Vec<String>,
}

pub(super) fn rule(raw: &raw::HeaderRule) -> HeaderRule {
    let pairs = |map: &BTreeMap<String, HeaderValue>| {
        map.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
    };
    HeaderRule {
        path: raw.path.clone(),
        set: pairs(&raw.set),
        add: pairs(&raw.add),
        remove: raw.remove.iter().map(|name| name.0.clone()).collect(),
    }
}
