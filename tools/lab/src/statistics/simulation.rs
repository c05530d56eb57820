//! The whole procedure on a simulated shared machine: how often equals are distinguished.
//!
//! The machine drifts (an AR(1) process of 6 %), its slices vary (2 %), and one in twenty has a
//! dip, as in shared virtual machines. The seed is fixed, so the outcome is always the same.

use super::judge::{Class, Question};
use super::looks::Looks;
use crate::balanced_order::order;

const EXPERIMENTS: usize = 1_000;

/// A small generator of uniform numbers (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Twelve uniform numbers give an approximately normal one.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A machine whose speed drifts.
struct Machine {
    random: Random,
    drift: f64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self { random: Random(0x9E37_79B9_7F4A_7C15 ^ (seed + 1)), drift: 0.0 }
    }

    /// The logarithm of the throughput of one slice.
    fn slice(&mut self, effect: f64) -> f64 {
        let step = 0.06 * (1.0 - 0.95_f64.powi(2)).sqrt();
        self.drift = 0.95 * self.drift + step * self.random.normal();
        let dip = if self.random.uniform() < 0.05 { 0.1 } else { 0.0 };
        effect + self.drift + 0.02 * self.random.normal() - dip
    }

    /// One round of two stacks in balanced order; the difference of the first from the second.
    fn pair(&mut self, round: usize, effect: f64) -> f64 {
        let mut slices = [0.0; 2];
        for stack in order(round, 2) {
            slices[stack] = self.slice(if stack == 0 { effect } else { 0.0 });
        }
        slices[0] - slices[1]
    }

    /// A comparison with fixed looks.
    fn compare(&mut self, effect: f64, looks: &Looks) -> Class {
        let question = Question { theta: 0.01, alpha: looks.alpha, lower_is_better: false };
        let mut differences = Vec::new();
        let mut class = Class::Undecided { more_pairs: None };
        for round in 0..looks.most() {
            differences.push(self.pair(round, effect));
            if looks.at(differences.len()) {
                class = question.judge(&differences);
                if !matches!(class, Class::Undecided { .. }) {
                    break;
                }
            }
        }
        class
    }
}

/// The share of experiments in which a difference was found.
fn seen(effect: f64, looks: &Looks) -> f64 {
    let differs = |seed: &u64| {
        let class = Machine::new(*seed * 7919).compare(effect, looks);
        matches!(class, Class::Better | Class::Worse)
    };
    (0..EXPERIMENTS as u64).filter(differs).count() as f64 / EXPERIMENTS as f64
}

#[test]
fn equals_differ_in_one_of_twenty_at_most() {
    for looks in [Looks::once(8), Looks::once(12), Looks::sequential()] {
        let share = seen(0.0, &looks);
        assert!(share <= 0.05, "{looks:?}: {share}");
    }
}

#[test]
fn a_real_difference_is_seen() {
    assert!(seen(0.05, &Looks::once(12)) > 0.8);
    assert!(seen(0.05, &Looks::sequential()) > 0.9);
}
