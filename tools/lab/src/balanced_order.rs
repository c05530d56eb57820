//! The balanced order of stacks in rounds.
//!
//! Two stacks alternate as A B, B A, B A, A B. More stacks rotate and reverse, so that in every `2
//! × stacks` rounds each has each position twice, half of them in a reversed round. Drift of the
//! machine then affects all alike.

/// The stacks in the order of their slices in a round.
pub fn order(round: usize, stacks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..stacks).map(|at| (at + round / 2) % stacks).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_stacks_alternate_at_the_first_position() {
        let rounds: Vec<Vec<usize>> = (0..4).map(|round| order(round, 2)).collect();
        assert_eq!(rounds, [[0, 1], [1, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn every_stack_has_every_position_equally_often() {
        for stacks in 1..=8 {
            let mut count = vec![vec![0; stacks]; stacks];
            for round in 0..2 * stacks {
                for (place, stack) in order(round, stacks).into_iter().enumerate() {
                    count[stack][place] += 1;
                }
            }
            assert!(count.iter().flatten().all(|&times| times == 2), "{count:?}");
        }
    }

    proptest! {
        #[test]
        fn every_stack_is_in_every_round(round in 0..1_000_usize, stacks in 1..12_usize) {
            let mut order = order(round, stacks);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..stacks));
        }
    }
}
