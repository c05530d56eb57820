//! Returns freed memory of the heap to the system.
//!
//! Spawned by the server. Invariant: the heap is trimmed only after the counted memory has fallen
//! to half, and by some mebibytes.

use crate::gateway::Gateway;
use outboard_reactor::{activity, sleep};
use outboard_ring::heap;
use std::rc::Rc;

/// The interval of checks.
const INTERVAL_MS: u64 = 1_000;
/// A smaller decline is not worth the time.
const MIN_BYTES: usize = 2 << 20;

/// Trims the heap for as long as the server runs.
pub(crate) async fn trim_regularly(gateway: Rc<Gateway>) {
    let mut peak_bytes = 0;
    loop {
        activity().await;
        sleep(INTERVAL_MS).await;
        let used_bytes = gateway.server.memory.held_bytes();
        // Memory that was used for less than an interval has grown the heap as well.
        peak_bytes = peak_bytes.max(gateway.server.memory.take_recent_peak_bytes());
        if is_worth_it(peak_bytes, used_bytes) {
            heap::trim();
            peak_bytes = used_bytes;
        }
    }
}

fn is_worth_it(peak_bytes: usize, used_bytes: usize) -> bool {
    used_bytes <= peak_bytes / 2 && peak_bytes - used_bytes >= MIN_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_decline_is_worth_trimming() {
        assert!(is_worth_it(100 << 20, 50 << 20));
        assert!(!is_worth_it(100 << 20, 51 << 20));
        assert!(!is_worth_it(3 << 20, 2 << 20));
        assert!(!is_worth_it(0, 0));
    }
}
