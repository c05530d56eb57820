//! When an export is repeated (OTLP specification, "OTLP/HTTP Response" and "OTLP/HTTP Throttling").
//!
//! Invariant: a collector that is overloaded gets fewer requests, and a batch is not retried for ever.

/// The pause after the first failure; each further one is twice as long.
const FIRST_MS: u64 = 500;
const LONGEST_MS: u64 = 30_000;
/// Time after which a batch is given up.
const MAX_TOTAL_MS: u64 = 300_000;

/// Whether a response with this status asks for the same request again.
pub fn is_retryable(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// The value of `Retry-After` in seconds; a date is not used by collectors.
pub fn retry_after_ms(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

/// The pauses between the attempts of one batch.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
    waited_ms: u64,
}

impl Backoff {
    /// The pause before the next attempt: exponential and by chance from a half to the whole, so that
    /// servers do not come together, but at least what the collector requires. `None`: give up.
    pub fn next_ms(&mut self, retry_after_ms: Option<u64>, random: u64) -> Option<u64> {
        let whole_ms = (FIRST_MS << self.failures.min(10)).min(LONGEST_MS);
        let half_ms = whole_ms / 2;
        let own_ms = half_ms + random % (half_ms + 1);
        let pause_ms = retry_after_ms.unwrap_or_default().max(own_ms);
        self.failures += 1;
        self.waited_ms = self.waited_ms.saturating_add(pause_ms);
        (self.waited_ms <= MAX_TOTAL_MS).then_some(pause_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_end() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> =
            std::iter::from_fn(|| backoff.next_ms(None, u64::MAX)).take(100).collect();
        assert!(pauses.iter().all(|pause| (FIRST_MS / 2..=LONGEST_MS).contains(pause)));
        assert!(pauses.len() > 10 && pauses.len() < 30, "{pauses:?}");
        assert!(pauses.iter().sum::<u64>() <= MAX_TOTAL_MS);
    }

    #[test]
    fn the_collector_decides_about_the_pause() {
        assert_eq!(retry_after_ms(b" 7 "), Some(7_000));
        assert_eq!(retry_after_ms(b"Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(retry_after_ms(b"99999999999999999999"), None);
        assert_eq!(Backoff::default().next_ms(Some(7_000), 0), Some(7_000));
        assert_eq!(Backoff::default().next_ms(Some(u64::MAX), 0), None, "it gives up");
        assert!(Backoff::default().next_ms(Some(0), 0) > Some(0), "zero is no endless loop");
    }

    #[test]
    fn only_the_listed_statuses_are_retried() {
        let retried: Vec<u16> = (100..600).filter(|status| is_retryable(*status)).collect();
        assert_eq!(retried, [429, 502, 503, 504]);
    }
}
