//! [`Pace`]: the minimum rate at which a client sends a body or reads a response.
//!
//! Invariants: a client that is silent for longer than the timeout, or slower than the rate on average, is
//! dropped; only time spent waiting for the client counts.

use outboard_config::Limits;
use outboard_reactor::{Elapsed, now_ms, with_deadline};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    timeout_ms: u64,
    /// Bytes per second; 0: unlimited.
    min_rate: u64,
    bytes: u64,
    waited_ms: u64,
}

impl Pace {
    pub(crate) fn new(timeout_ms: u64, min_rate: u64) -> Self {
        Self { timeout_ms, min_rate, bytes: 0, waited_ms: 0 }
    }

    /// For a request body.
    pub(crate) fn of_body(limits: &Limits) -> Self {
        Self::new(limits.body_timeout_ms, limits.body_min_rate)
    }

    /// For a response.
    pub(crate) fn of_response(limits: &Limits) -> Self {
        Self::new(limits.write_timeout_ms, limits.write_min_rate)
    }

    /// Counts transferred bytes.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Waits for the client.
    ///
    /// # Errors
    /// The client is too slow.
    pub(crate) async fn wait<T>(&mut self, client: impl Future<Output = T>) -> Result<T, Elapsed> {
        let began_ms = now_ms();
        let outcome = with_deadline(began_ms + self.max_wait_ms(), client).await;
        self.waited_ms += now_ms() - began_ms;
        outcome
    }

    /// The maximum of the next wait.
    fn max_wait_ms(&self) -> u64 {
        let Some(earned_ms) = self.bytes.saturating_mul(1000).checked_div(self.min_rate) else {
            return self.timeout_ms;
        };
        let left_ms = self.timeout_ms.saturating_add(earned_ms).saturating_sub(self.waited_ms);
        left_ms.min(self.timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_earn_time_up_to_the_timeout() {
        let mut pace = Pace::new(10_000, 500);
        assert_eq!(pace.max_wait_ms(), 10_000);
        pace.waited_ms = 9_000;
        assert_eq!(pace.max_wait_ms(), 1_000);
        pace.count(1_000);
        assert_eq!(pace.max_wait_ms(), 3_000);
        pace.count(1_000_000);
        assert_eq!(pace.max_wait_ms(), 10_000);
        pace.waited_ms = u64::MAX;
        assert_eq!(pace.max_wait_ms(), 0);
    }

    #[test]
    fn without_a_rate_only_the_timeout_applies() {
        let mut pace = Pace::new(10_000, 0);
        pace.waited_ms = 100_000;
        assert_eq!(pace.max_wait_ms(), 10_000);
    }
}
