//! The clock of scheduled tasks.
//!
//! Asked by [`Tasks`](super::Tasks) for each entry of `cron`. Invariant: times that were missed while the machine
//! slept are not made up for.

use outboard_config::{Schedule, TimeZone};
use outboard_log::Wall;
use outboard_reactor::sleep;

/// The longest sleep until the clock is read again.
const MAX_SLEEP_MS: u64 = 60_000;

/// Waits until a task is due after `last_ms` (Unix ms). Returns when that was; `None` if it never is again.
pub(super) async fn until_due(schedule: &Schedule, zone: &TimeZone, last_ms: u64) -> Option<u64> {
    let due_ms = schedule.next_after(last_ms, zone)?;
    debug_assert!(due_ms > last_ms, "the task would be queued again at once");
    // The clock may be set meanwhile, so it is read repeatedly.
    loop {
        let wall_ms = unix_ms();
        if wall_ms >= due_ms {
            return Some(due_ms);
        }
        sleep((due_ms - wall_ms).min(MAX_SLEEP_MS)).await;
    }
}

/// From when the next time counts after a task that was due at `due_ms`.
pub(super) fn after(due_ms: u64) -> u64 {
    due_ms.max(unix_ms() - 1000)
}

pub(super) fn unix_ms() -> u64 {
    Wall::now().unix_us / 1000
}
