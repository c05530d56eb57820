//! A load that runs beside something that is done to its server: kills, reloads.
//!
//! The generator runs on a thread of its own and ends, with every answer collected, when the work
//! beside it has ended. The work can wait for the load to have gone on, so that it is paced by
//! requests and not by time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::generator::{self, Account, Task};

/// How long to wait for requests that are not sent: a server that answers nothing will be found
/// out by the account.
const PATIENCE: Duration = Duration::from_secs(30);

/// The view that the work has of the load.
#[derive(Default)]
pub struct Background {
    sent: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Background {
    /// Waits until that many more requests have been sent.
    pub fn await_requests(&self, count: u64) {
        let (goal, began) = (self.sent.load(Ordering::Relaxed) + count, Instant::now());
        while self.sent.load(Ordering::Relaxed) < goal && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Does `work` while the load runs; answers what became of both.
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
