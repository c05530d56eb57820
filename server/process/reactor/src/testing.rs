//! Unit tests of what waits: each runs on an event loop of its own.
//!
//! Compiled with the feature `testing` only, for the tests of other crates.

use crate::{run, sleep};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Poll;

/// The bound of waiting for an event.
const MAX_WAIT_MS: u64 = 10_000;

/// Runs a test on an event loop. A failure ends the loop before it is reported, since sources can be
/// dropped only while it exists.
///
/// # Panics
/// The test does, or the process has no descriptor left.
pub fn in_loop(test: impl Future<Output = ()> + 'static) {
    let mut test = Box::pin(test);
    let main = poll_fn(move |context| {
        let outcome = catch_unwind(AssertUnwindSafe(|| test.as_mut().poll(context)));
        outcome.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    });
    if let Err(panic) = run(main).expect("an event loop") {
        resume_unwind(panic);
    }
}

/// Waits until `poll` has a result.
///
/// # Panics
/// It has none within ten seconds.
pub async fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..MAX_WAIT_MS {
        if let Some(found) = poll() {
            return found;
        }
        sleep(1).await;
    }
    panic!("no {what} within {MAX_WAIT_MS} ms");
}
