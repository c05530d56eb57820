//! A load that runs while something is done to its server: kills, reloads.
//!
//! The generator runs in its own thread and ends, after all responses, when the work has ended. The
//! work can wait until more requests have been sent, so that it is paced by requests and not by
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::generator::{self, Account, Task};

/// Timeout for requests to be sent; a server that does not respond shows in the result.
const PATIENCE: Duration = Duration::from_secs(30);

/// The view that the work has of the load.
#[derive(Default)]
pub struct Background {
    sent: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Background {
    /// Waits until this many more requests have been sent.
    pub fn await_requests(&self, count: u64) {
        let (goal, began) = (self.sent.load(Ordering::Relaxed) + count, Instant::now());
        while self.sent.load(Ordering::Relaxed) < goal && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs `work` while the load runs; returns the results of both.
pub fn load_while<T>(
    task: &Task,
    work: impl FnOnce(&Background) -> Result<T>,
) -> Result<(Account, T)> {
    let background = Background::default();
    thread::scope(|scope| {
        let seen = &background;
        let sent = move |more| {
            seen.sent.fetch_add(more, Ordering::Relaxed);
        };
        let stop = Arc::clone(&background.stop);
        let load = scope.spawn(move || generator::run_until(task, stop, sent));
        let worked = work(&background);
        background.stop.store(true, Ordering::Relaxed);
        let account = load.join().expect("the generator does not panic")?;
        Ok((account, worked?))
    })
}
