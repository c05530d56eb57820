//! What was held and is not any more goes back to the system.
//!
//! Spawned by the server. Invariant: the heap is walked only after what is held has become half,
//! and by some mebibytes less.

use crate::gateway::Gateway;
use outboard_reactor::sleep;
use outboard_ring::heap;
use std::rc::Rc;

/// How often it is looked.
const LOOK_MS: u64 = 1_000;
/// Less is not worth the walk.
const LEAST_BYTES: usize = 2 << 20;

/// Gives memory back for as long as the server runs.
pub(crate) async fn give_back(gateway: Rc<Gateway>) {
    let mut most_bytes = 0;
    loop {
        sleep(LOOK_MS).await;
        let used_bytes = gateway.server.memory.held_bytes();
        // What was held for less than a look has grown the heap as well.
        most_bytes = most_bytes.max(gateway.server.memory.take_recent_peak_bytes());
        if is_worth_it(most_bytes, used_bytes) {
            heap::trim();
            most_bytes = used_bytes;
        }
    }
}

fn is_worth_it(most_bytes: usize, used_bytes: usize) -> bool {
    used_bytes <= most_bytes / 2 && most_bytes - used_bytes >= LEAST_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_decline_is_worth_a_walk() {
        assert!(is_worth_it(100 << 20, 50 << 20));
        assert!(!is_worth_it(100 << 20, 51 << 20));
        assert!(!is_worth_it(3 << 20, 2 << 20));
        assert!(!is_worth_it(0, 0));
    }
}
