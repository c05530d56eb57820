//! Holm's correction of probabilities for several comparisons.
//!
//! Twenty comparisons of equals at 5 % each show a difference somewhere in two runs of three.
//! Holm's steps keep the chance of any false one in the family at the level, and are at least as
//! powerful as Bonferroni's (Holm, *A simple sequentially rejective multiple test procedure*,
//! 1979).

/// The probabilities, each adjusted by its rank in the family, in the order given.
pub fn adjust(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let (mut adjusted, mut least) = (vec![1.0; probabilities.len()], 0.0_f64);
    for (place, &index) in order.iter().enumerate() {
        let others = (probabilities.len() - place) as f64;
        least = least.max(probabilities[index] * others).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_step_asks_for_one_less() {
        let adjusted = adjust(&[0.01, 0.04, 0.03]);
        for (value, expected) in adjusted.iter().zip([0.03, 0.06, 0.06]) {
            assert!((value - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(adjust(&[0.02]), [0.02]);
        assert!(adjust(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn adjustment_keeps_order_and_only_raises(
            probabilities in vec(0.0..=1.0_f64, 1..20),
        ) {
            let adjusted = adjust(&probabilities);
            for (a, p) in adjusted.iter().zip(&probabilities) {
                let bonferroni = (p * probabilities.len() as f64).min(1.0);
                prop_assert!(a >= p && *a <= bonferroni + 1e-12);
            }
            for (a, p) in adjusted.iter().zip(&probabilities) {
                for (b, q) in adjusted.iter().zip(&probabilities) {
                    prop_assert!(p > q || a <= b);
                }
            }
        }
    }
}
