//! Who comes when: the balanced order of stacks in rounds.
//!
//! Two stacks go A B, B A, B A, A B; more of them rotate and turn round, so that in every
//! `2 × stacks` rounds each has had every place twice, half of them in a round that ran
//! backwards. Drift of the machine then hits all alike.

/// The stacks in the order in which they get their slices in a round.
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
    fn two_stacks_take_turns_at_being_first() {
        let rounds: Vec<Vec<usize>> = (0..4).map(|round| order(round, 2)).collect();
        assert_eq!(rounds, [[0, 1], [1, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn every_stack_comes_equally_often_at_every_place() {
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
        fn nobody_is_left_out_of_a_round(round in 0..1_000_usize, stacks in 1..12_usize) {
            let mut order = order(round, stacks);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..stacks));
        }
    }
}
