//! Admission to a queue, by its delay.
//!
//! Called for each read and write that has to wait for a disk, and by the gateway for requests that
//! wait for its loop. It follows CoDel (RFC 8289): a queue whose delay exceeds the target for a
//! whole interval is a standing queue, which delays everything and gains nothing. New work is
//! rejected until the first job has waited less than the target again, so a short burst passes.
//! Pure: times come as arguments, in microseconds.

/// How long the delay may exceed the target, so that a burst passes (RFC 8289 4.2).
const INTERVAL_US: u64 = 100_000;

/// The state of one queue.
#[derive(Debug)]
pub struct Admission {
    target_us: u64,
    capacity: usize,
    /// When the delay last rose above the target.
    above_since_us: Option<u64>,
    is_standing: bool,
}

impl Admission {
    /// The state of an empty queue with this capacity and target delay.
    pub fn new(target_ms: u64, capacity: usize) -> Self {
        let target_us = target_ms.saturating_mul(1000);
        Self { target_us, capacity, above_since_us: None, is_standing: false }
    }

    /// Notes that the first job waited for `waited_us`.
    pub fn observe(&mut self, now_us: u64, waited_us: u64) {
        if waited_us < self.target_us {
            self.above_since_us = None;
            self.is_standing = false;
            return;
        }
        let since = *self.above_since_us.get_or_insert(now_us);
        self.is_standing |= now_us.saturating_sub(since) >= INTERVAL_US;
    }

    /// Whether one more job is admitted behind `waiting` others, the first of which came at
    /// `first_us`.
    pub fn admits(&self, now_us: u64, waiting: usize, first_us: Option<u64>) -> bool {
        let waited_us = first_us.map_or(0, |first_us| now_us.saturating_sub(first_us));
        waiting < self.capacity && !(self.is_standing && waited_us >= self.target_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_standing_queue_does_not() {
        let mut admission = Admission::new(5, 1000);
        for now_us in (0..90_000).step_by(10_000) {
            admission.observe(now_us, 20_000);
            assert!(admission.admits(now_us, 500, Some(now_us.saturating_sub(20_000))));
        }
        admission.observe(100_000, 20_000);
        assert!(!admission.admits(100_000, 500, Some(80_000)));
    }

    #[test]
    fn a_standing_queue_drains_to_the_target_and_no_further() {
        let mut admission = Admission::new(5, 1000);
        admission.observe(0, 6_000);
        admission.observe(100_000, 6_000);
        assert!(!admission.admits(100_000, 9, Some(95_000)));
        assert!(admission.admits(100_000, 9, Some(96_000)));
        admission.observe(101_000, 4_999);
        assert!(admission.admits(110_000, 9, Some(100_000)));
    }

    #[test]
    fn the_capacity_is_never_exceeded() {
        let admission = Admission::new(5, 3);
        assert!(admission.admits(0, 2, Some(0)));
        assert!(!admission.admits(0, 3, Some(0)));
    }

    #[test]
    fn a_delay_that_falls_below_the_target_begins_a_new_interval() {
        let mut admission = Admission::new(5, 1000);
        admission.observe(0, 6_000);
        admission.observe(99_000, 4_999);
        admission.observe(100_000, 6_000);
        admission.observe(199_999, 6_000);
        assert!(admission.admits(199_999, 9, Some(0)));
        admission.observe(200_000, 5_000);
        assert!(!admission.admits(200_000, 9, Some(0)), "the target itself is too long");
        assert!(admission.admits(200_000, 0, None), "an empty queue has no delay");
    }

    #[test]
    fn times_that_run_backwards_or_have_no_end_are_no_delay() {
        let mut admission = Admission::new(u64::MAX, 2);
        admission.observe(100, u64::MAX - 1);
        admission.observe(0, u64::MAX);
        assert!(admission.admits(0, 1, Some(u64::MAX)));
        assert!(!Admission::new(0, 0).admits(0, 0, None));
    }
}
