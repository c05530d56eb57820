//! A load that runs beside something that is done to its server: kills, reloads.
//!
//! The client runs on a thread of its own and ends, with every answer collected, when the work
//! beside it has ended. The work can wait for the load to have gone on, so that it is paced by
//! requests and not by time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{self, Account, Plan};
use crate::error::Result;

/// How long to wait for requests that are not sent: a server that answers nothing will be found
/// out by the account.
const PATIENCE: Duration = Duration::from_secs(30);

/// The view that the work has of the load.
#[derive(Default)]
pub struct Background {
    sent: AtomicU64,
    stop: AtomicBool,
}

impl Background {
    /// Waits until that many more requests have been sent.
    pub fn await_requests(&self, count: u64) {
        let (goal, began) = (self.sent.load(Ordering::Relaxed) + count, Instant::now());
        while self.sent.load(Ordering::Relaxed) < goal && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn go_on(&self, sent: u64) -> bool {
        self.sent.store(sent, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Does `work` while the load runs; answers what became of both.
pub fn load_while<T>(
    plan: &Plan,
    work: impl FnOnce(&Background) -> Result<T>,
) -> Result<(Account, T)> {
    let background = Background::default();
    thread::scope(|scope| {
        let load = scope.spawn(|| client::run(plan, |sent| background.go_on(sent)));
        let worked = work(&background);
        background.stop.store(true, Ordering::Relaxed);
        let account = load.join().expect("the client does not panic")?;
        Ok((account, worked?))
    })
}
