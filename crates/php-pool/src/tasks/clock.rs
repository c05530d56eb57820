//! Tasks that the clock queues.
//!
//! One task of the loop for each entry of `cron`, which ends with the generation that it is of.

use super::{LONGEST_SLEEP_MS, Tasks};
use outboard_config::Schedule;
use outboard_log::{Level, Wall};
use std::rc::Weak;

/// The data of such a task: serialize(null).
const NULL: &[u8] = b"N;";

/// Queues a task whenever its time has come.
pub(super) async fn queue_when_due(tasks: Weak<Tasks>, name: String, schedule: Schedule) {
    let mut last_ms = Wall::now().unix_us / 1000;
    while let Some(due_ms) = schedule.next_after(last_ms) {
        // The clock may be set meanwhile, so it is asked again and again.
        loop {
            let wall_ms = Wall::now().unix_us / 1000;
            if wall_ms >= due_ms {
                break;
            }
            outboard_reactor::sleep((due_ms - wall_ms).min(LONGEST_SLEEP_MS)).await;
        }
        let Some(tasks) = tasks.upgrade().filter(|tasks| !tasks.is_over()) else { return };
        if !tasks.push(tasks.make(name.as_bytes(), NULL.to_vec(), None), 0) {
            tasks.say(Level::Warn, &format!("task {name} is due and finds the queue full"));
        }
        // What was missed while the machine slept is not made up for.
        last_ms = due_ms.max(Wall::now().unix_us / 1000 - 1000);
    }
}
