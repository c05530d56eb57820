//! Scheduled tasks.
//!
//! [`queue_when_due`] runs for each entry of `cron`, until its generation ends. Invariant: times that
//! were missed while the machine slept are not made up for.

use super::{MAX_SLEEP_MS, Tasks};
use outboard_config::Schedule;
use outboard_log::{Level, Wall};
use std::rc::Weak;

/// The data of a scheduled task: serialize(null).
const NULL: &[u8] = b"N;";

/// Queues a task whenever it is due.
pub(super) async fn queue_when_due(tasks: Weak<Tasks>, name: String, schedule: Schedule) {
    let mut last_ms = Wall::now().unix_us / 1000;
    while let Some(due_ms) = schedule.next_after(last_ms) {
        // The clock may be set meanwhile, so it is read repeatedly.
        loop {
            let wall_ms = Wall::now().unix_us / 1000;
            if wall_ms >= due_ms {
                break;
            }
            outboard_reactor::sleep((due_ms - wall_ms).min(MAX_SLEEP_MS)).await;
        }
        let Some(tasks) = tasks.upgrade().filter(|tasks| !tasks.is_finished()) else { return };
        if !tasks.enqueue(tasks.new_task(name.as_bytes(), NULL.to_vec(), None), 0) {
            tasks.log(Level::Warn, &format!("task {name} is due, but the queue is full"));
        }
        last_ms = due_ms.max(Wall::now().unix_us / 1000 - 1000);
    }
}
