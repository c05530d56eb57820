//! [`ConditionSet`]: the conditions of an app that hold for a request; [`Requirement`]: those that a rule requires.
//!
//! Invariant: where the conditions are not known, a rule that requires any does not apply.

/// The conditions that hold for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConditionSet(u64);

/// What a rule requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    held: u64,
    not_held: u64,
}

impl ConditionSet {
    /// The most conditions of an app: the last bit is [`Self::UNKNOWN`].
    pub(crate) const MAX: usize = 63;

    /// For a response without a request whose conditions are known: no rule with a condition applies.
    pub const UNKNOWN: Self = Self(1 << Self::MAX);

    /// Adds the condition with that index.
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }
}

impl Requirement {
    /// Whether nothing is required.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether a request has what is required.
    pub fn holds(self, conditions: ConditionSet) -> bool {
        conditions.0 & self.held == self.held && conditions.0 & self.not_held == 0
    }

    /// What both require.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self { held: self.held | other.held, not_held: self.not_held | other.not_held }
    }

    /// The condition with that index, or that it does not hold.
    pub(crate) fn one(index: usize, is_negated: bool) -> Self {
        match is_negated {
            false => Self { held: 1 << index, not_held: 0 },
            true => Self { held: 0, not_held: 1 << index | ConditionSet::UNKNOWN.0 },
        }
    }
}
