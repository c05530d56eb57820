//! [`RateLimits`]: the tables of an app's rate limits.
//!
//! Opened with a generation.

use super::SharedAccess;
use outboard_access::RateTable;
use outboard_config::App;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct RateLimits(
    /// By the index of their rule.
    Vec<Option<Arc<RateTable>>>,
);

impl RateLimits {
    /// Those of an app.
    pub(crate) fn open(app: &App, shared: &SharedAccess) -> Self {
        let mut seen: HashMap<_, usize> = HashMap::new();
        let tables = app.access.rules.iter().map(|rule| {
            let limit = rule.rate_limit.as_ref()?;
            let path = rule.path.as_ref().map(|(path, _)| path.as_str());
            let number = seen.entry((path, limit)).or_default();
            *number += 1;
            Some(shared.table((&app.name, path.unwrap_or_default(), *number), limit))
        });
        Self(tables.collect())
    }

    /// That of a rule.
    pub(crate) fn get(&self, rule: usize) -> Option<&RateTable> {
        self.0.get(rule)?.as_deref()
    }
}
