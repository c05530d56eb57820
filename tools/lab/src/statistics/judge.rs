//! From paired differences to a class: better, worse, equal, undecided, or invalid.
//!
//! Called by [`crate::comparison`]. Invariant: "equal" is demonstrated, never concluded from the
//! lack of a difference; what is neither shown different nor shown equal is undecided.

use serde::{Deserialize, Serialize};

use super::power::pairs_for;
use super::signed_rank::{estimate, fewest_pairs, p_value};

/// The class of a comparison, for its subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Class {
    /// The subject is better than the reference.
    Better,
    /// It is worse.
    Worse,
    /// Any difference lies within the margin that was fixed beforehand.
    Equal,
    /// The slices do not decide.
    Undecided {
        /// How many more pairs probably would; `None` for unrealistically many.
        more_pairs: Option<usize>,
    },
    /// The slices must not be compared.
    Invalid {
        /// The reason.
        why: String,
    },
}

impl Class {
    /// The word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equal => "equal",
            Self::Undecided { .. } => "undecided",
            Self::Invalid { .. } => "invalid",
        }
    }
}

/// The question about the differences.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Differences (of logarithms) up to this count as equal.
    pub theta: f64,
    /// Two-sided level.
    pub alpha: f64,
    /// Whether a smaller value is the better one.
    pub lower_is_better: bool,
}

impl Question {
    /// Judges differences by their own probability.
    pub fn judge(&self, differences: &[f64]) -> Class {
        self.judge_with(differences, p_value(differences))
    }

    /// Judges differences by a probability that was adjusted for the family.
    ///
    /// Equality is two one-sided tests (Schuirmann 1987): the interval of confidence `1 - 2 alpha`
    /// lies within `±theta`. A difference must be rare between equals and not lie within `theta`
    /// itself, so that an irrelevant difference is not reported only because much was measured.
    pub fn judge_with(&self, differences: &[f64], probability: f64) -> Class {
        let inner = estimate(differences, 1.0 - 2.0 * self.alpha);
        let Some(inner) = inner else { return Class::Undecided { more_pairs: None } };
        let sure = inner.confidence >= 1.0 - 2.0 * self.alpha;
        if sure && inner.low > -self.theta && inner.high < self.theta {
            return Class::Equal;
        }
        if probability <= self.alpha && inner.middle.abs() > self.theta {
            let lower = inner.middle < 0.0;
            return if lower == self.lower_is_better { Class::Better } else { Class::Worse };
        }
        // In a family, each level is divided as its probability was raised.
        let alpha = self.alpha * (p_value(differences) / probability).min(1.0);
        Class::Undecided { more_pairs: self.more_pairs(differences, alpha) }
    }

    /// Pairs until a difference of the present size would be detected or, within theta, equality
    /// would be shown.
    fn more_pairs(&self, differences: &[f64], alpha: f64) -> Option<usize> {
        let pairs = differences.len();
        let interval = estimate(differences, 1.0 - alpha)?;
        let size = interval.middle.abs();
        let needed = match size > self.theta {
            true => pairs_for(size, &interval, pairs, alpha)?,
            false => pairs_for(self.theta - size, &interval, pairs, self.alpha)?,
        };
        Some(needed.max(fewest_pairs(alpha)).saturating_sub(pairs).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Question = Question { theta: 0.02, alpha: 0.05, lower_is_better: true };

    fn around(center: f64, spread: f64) -> Vec<f64> {
        let steps = [-1.0, 0.9, -0.6, 0.55, -0.3, 0.25, -0.8, 0.85, -0.4, 0.45, 0.1, -0.15];
        steps.iter().map(|step| center + step * spread).collect()
    }

    #[test]
    fn a_clear_difference_is_better_or_worse_by_its_direction() {
        assert_eq!(CPU.judge(&around(-0.10, 0.02)), Class::Better);
        assert_eq!(CPU.judge(&around(0.10, 0.02)), Class::Worse);
        let rate = Question { lower_is_better: false, ..CPU };
        assert_eq!(rate.judge(&around(0.10, 0.02)), Class::Better);
    }

    #[test]
    fn a_difference_within_the_margin_is_none() {
        assert_eq!(CPU.judge(&around(0.005, 0.002)), Class::Equal);
    }

    #[test]
    fn a_certain_difference_within_the_margin_is_none() {
        // All on one side, which happens between equals in one of 2,048 cases, and reaching beyond
        // the margin.
        let differences = around(0.015, 0.0149);
        assert!(p_value(&differences) < 0.001);
        let class = CPU.judge(&differences);
        assert!(matches!(class, Class::Undecided { more_pairs: Some(_) }), "{class:?}");
    }

    #[test]
    fn noise_beyond_the_margin_is_undecided() {
        let Class::Undecided { more_pairs: Some(more) } = CPU.judge(&around(0.002, 0.1)) else {
            panic!("decided");
        };
        assert!(more > 12, "{more}");
    }

    #[test]
    fn too_few_pairs_decide_nothing_however_far_apart() {
        let class = CPU.judge(&[0.9, 0.91, 0.92, 0.93, 0.94]);
        assert_eq!(class, Class::Undecided { more_pairs: Some(1) });
        assert_eq!(CPU.judge(&[]), Class::Undecided { more_pairs: None });
    }

    #[test]
    fn an_adjusted_probability_is_the_one_that_counts() {
        let differences = around(-0.10, 0.02);
        assert!(matches!(CPU.judge_with(&differences, 0.2), Class::Undecided { .. }));
    }
}
