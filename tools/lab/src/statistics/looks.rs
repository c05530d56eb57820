//! When to look at a comparison in progress: after numbers of pairs that were fixed before.
//!
//! Looking after every pair and stopping at will eventually finds a difference between equals. Four
//! fixed looks with Pocock's level each are wrong in 5 % of cases together (Pocock, *Group
//! sequential methods in the design and analysis of clinical trials*, 1977, table 1).

/// Pocock's two-sided level per look for 5 % together, by the number of looks.
const POCOCK: [f64; 6] = [0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142];

/// The numbers of pairs at which to look, and the level of each look.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks {
    /// Ascending.
    pub pairs: Vec<usize>,
    /// Two-sided level at every one of them.
    pub alpha: f64,
}

impl Looks {
    /// One look, at the end.
    pub fn once(pairs: usize) -> Self {
        Self { pairs: vec![pairs], alpha: POCOCK[0] }
    }

    /// Four looks, the last after 32 pairs.
    pub fn sequential() -> Self {
        Self { pairs: vec![8, 16, 24, 32], alpha: POCOCK[3] }
    }

    /// The largest number of pairs.
    pub fn most(&self) -> usize {
        self.pairs.last().copied().unwrap_or(0)
    }

    /// Whether to look after this many pairs.
    pub fn at(&self, pairs: usize) -> bool {
        self.pairs.contains(&pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_looks_ask_for_more_at_each() {
        assert!(POCOCK.windows(2).all(|pair| pair[1] < pair[0]));
        // Never more than all of the 5 % at one look, never less than Bonferroni.
        for (at, level) in POCOCK.iter().enumerate() {
            assert!(*level <= 0.05 && *level >= 0.05 / (at + 1) as f64);
        }
    }

    #[test]
    fn looks_are_at_fixed_numbers_only() {
        let looks = Looks::sequential();
        let at: Vec<usize> = (0..=looks.most()).filter(|&pairs| looks.at(pairs)).collect();
        assert_eq!((at, looks.alpha), (vec![8, 16, 24, 32], 0.0182));
    }
}
