//! [`Findings`]: what the search for a route is told of the request, and tells of it.
//!
//! Made by [`crate::dispatch`] for each search.

use outboard_config::{Access, ConditionSet, Requirement, RuleSet};
use std::cell::Cell;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The access rules that the request has to satisfy, as far as they are known.
    pub(crate) rules: Cell<RuleSet>,
    /// Whether a rule with a condition has applied, so that another request for the path has another route.
    pub(crate) is_conditional: Cell<bool>,
    /// The conditions that hold for the request.
    pub(super) conditions: ConditionSet,
}

impl Findings {
    /// `rules` are those of the requested path.
    pub(crate) fn new(rules: RuleSet, conditions: ConditionSet) -> Self {
        Self { rules: Cell::new(rules), conditions, ..Self::default() }
    }

    /// Adds the rules of a path that the request leads to.
    pub(super) fn add_rules(&self, access: &Access, path: &[u8]) {
        self.rules.set(self.rules.get().and(access.of_result(path, self.conditions)));
    }

    /// Whether the request has what a rule requires that otherwise applies to it.
    pub(super) fn meets(&self, requirement: Requirement) -> bool {
        let holds = requirement.holds(self.conditions);
        if holds && !requirement.is_empty() {
            self.is_conditional.set(true);
        }
        holds
    }
}
