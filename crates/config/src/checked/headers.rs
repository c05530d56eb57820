//! Rules that change the headers of responses.

use crate::raw;
use crate::scalar::{HeaderValue, PathPattern};
use std::collections::BTreeMap;

/// A rule that changes response headers. First `remove`, then `set`, then `add`.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// The paths whose responses are meant; `None`: all.
    pub path: Option<PathPattern>,
    /// Names and the one value each gets.
    pub set: Vec<(String, String)>,
    /// Names and a value that is added to others.
    pub add: Vec<(String, String)>,
    /// Names that are taken away.
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
