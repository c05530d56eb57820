//! Smooth weighted round robin: the servers in turn, each as often as its weight, and not in a row.
//!
//! Called by the group with the servers that can get a request. Each gains its weight, the one with the most
//! is chosen and pays the sum. Invariant: what a server has gained is bounded by the sum of all weights.

/// Chooses among `candidates`, pairs of a position in `gains` and a weight.
pub(crate) fn choose(
    gains: &mut [i64],
    candidates: impl Iterator<Item = (usize, u64)>,
) -> Option<usize> {
    let (mut best, mut sum) = (None, 0);
    for (position, weight) in candidates {
        let weight = i64::try_from(weight).unwrap_or(i64::MAX);
        sum += weight;
        gains[position] += weight;
        if best.is_none_or(|best: usize| gains[position] > gains[best]) {
            best = Some(position);
        }
    }
    if let Some(best) = best {
        gains[best] -= sum;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(weights: &[u64], count: usize) -> Vec<usize> {
        let mut gains = vec![0; weights.len()];
        let candidates = || weights.iter().copied().enumerate();
        (0..count).map(|_| choose(&mut gains, candidates()).unwrap()).collect()
    }

    #[test]
    fn servers_are_chosen_by_weight_and_not_in_a_row() {
        assert_eq!(turns(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&[5, 1, 1], 7), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(choose(&mut [], std::iter::empty()), None);
    }

    proptest! {
        #[test]
        fn a_round_gives_each_server_its_weight(weights in prop::collection::vec(1u64..20, 1..8)) {
            let sum: u64 = weights.iter().sum();
            let turns = turns(&weights, sum as usize);
            for (position, weight) in weights.iter().enumerate() {
                let count = turns.iter().filter(|turn| **turn == position).count();
                prop_assert_eq!(count as u64, *weight);
            }
        }
    }
}
