//! [`Share`]: the part of a limit that one of several event loops has.
//!
//! Used where loops have a number each instead of one for all together: processes. Invariant: the shares of all
//! loops add up to the total.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Of the loop, from 0.
    pub index: usize,
    /// The number of loops.
    pub count: usize,
}

impl Share {
    /// That of the only loop.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The share in a total. The first loops have one more if the total cannot be divided.
    pub fn of(self, total: usize) -> usize {
        debug_assert!(self.index < self.count, "{self:?} is no share");
        total / self.count + usize::from(self.index < total % self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_one_and_add_up() {
        for total in [0, 1, 3, 4, 7, 1024] {
            for count in 1..9 {
                let shares: Vec<usize> =
                    (0..count).map(|index| Share { index, count }.of(total)).collect();
                assert_eq!(shares.iter().sum::<usize>(), total);
                assert!(shares[0] - shares[count - 1] <= 1);
            }
        }
    }
}
