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

/// How often it is seen whether another process has left its tasks to this one.
const HELD_PAUSE_MS: u64 = 10;

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
        // Another process may still queue it.
        while tasks.upgrade().is_some_and(|tasks| tasks.is_held.get() && !tasks.is_finished()) {
            outboard_reactor::sleep(HELD_PAUSE_MS).await;
        }
        let Some(tasks) = tasks.upgrade().filter(|tasks| !tasks.is_finished()) else { return };
        let (left_at_ms, is_left) = (tasks.left_at_ms.get(), tasks.heir.borrow().is_some());
        let is_own = if is_left { due_ms <= left_at_ms } else { due_ms > left_at_ms };
        if is_own && !tasks.enqueue(tasks.new_task(name.as_bytes(), NULL.to_vec(), None), 0) {
            tasks.log(Level::Warn, &format!("task {name} is due, but the queue is full"));
        }
        if is_left {
            return tasks.pass_on();
        }
        last_ms = due_ms.max(Wall::now().unix_us / 1000 - 1000);
    }
}
