//! From paired differences to a class: better, worse, equal, undecided, or invalid.
//!
//! Called by [`crate::comparison`]. Invariant: "equal" is shown, never concluded from nothing
//! having been found; what is neither shown different nor shown equal is undecided.

use serde::{Deserialize, Serialize};

use super::power::pairs_for;
use super::signed_rank::{estimate, fewest_pairs, p_value};

/// What a comparison came to, from the subject's side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Class {
    /// The subject is better than the reference.
    Better,
    /// It is worse.
    Worse,
    /// Whatever difference there is lies within what was called equal beforehand.
    Equal,
    /// The slices do not tell.
    Undecided {
        /// How many more pairs probably would; `None` when it is more than anybody takes.
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

/// What is asked of the differences.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Differences (of logarithms) up to this count as none.
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

    /// Judges differences by a probability that was adjusted for the company they are in.
    ///
    /// Equality is two one-sided tests (Schuirmann 1987): the interval of confidence
    /// `1 - 2 alpha` lies within `±theta`. A difference is one when it is rare between equals and
    /// not within `theta` itself: what is too small to matter is not called one because much was
    /// measured, nor because noise happened to point one way.
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
        // In company, each has to be as much rarer as its probability was raised.
        let alpha = self.alpha * (p_value(differences) / probability).min(1.0);
        Class::Undecided { more_pairs: self.more_pairs(differences, alpha) }
    }

    /// Pairs until a difference of the present size would be detected, or, within theta, shown to
    /// be as small as that.
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
    fn a_difference_too_small_to_matter_is_none() {
        assert_eq!(CPU.judge(&around(0.005, 0.002)), Class::Equal);
    }

    #[test]
    fn a_difference_too_small_to_matter_is_none_however_sure() {
        // All on one side, which equals are in one of 2,048 cases, and reaching beyond the margin.
        let differences = around(0.015, 0.0149);
        assert!(p_value(&differences) < 0.001);
        let class = CPU.judge(&differences);
        assert!(matches!(class, Class::Undecided { more_pairs: Some(_) }), "{class:?}");
    }

    #[test]
    fn noise_wider_than_the_margin_decides_nothing_and_says_what_would() {
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
