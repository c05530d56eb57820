//! The zygote under suspicion: PHP's own code runs in it, and any process of the same user can stop
//! it.
//!
//! Called by the manager. Invariants: what a zygote is ordered to do is done within
//! [`ANSWER_MS`], or it is killed and its workers with it; it is heard a few events at a time; the
//! loop never waits for its end.

use super::super::Pool;
use outboard_log::Level;
use outboard_reactor::{blocking, sleep, spawn};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::Zygote;
use rustix::net::{Shutdown, shutdown};

/// For a fork, and for a killed worker to be reaped. Both take milliseconds; a machine that swaps
/// may need seconds, and killing a zygote costs the requests of all of its workers.
const ANSWER_MS: u64 = 5_000;
/// Events that are heard before others have their turn.
pub(super) const EVENTS_A_TURN: usize = 32;

/// A killed process is reaped at once, unless it sits in the kernel.
const REAP_TRIES: usize = 100;
const REAP_PAUSE_MS: u64 = 5;
/// So often a zygote whose program has callbacks for its end is looked after before it is killed.
const FAREWELL_TRIES: usize = 200;

impl Pool {
    /// Whether the zygote has not done what it was told to: it is killed then.
    pub(super) fn kill_mute_zygote(&self, now_ms: u64) -> bool {
        let is_overdue = |since_ms: u64| now_ms.saturating_sub(since_ms) >= ANSWER_MS;
        let what = self.members.borrow().all().find_map(|worker| match worker.state() {
            State::Forking => {
                is_overdue(worker.process.lifecycle.ordered_ms()).then_some("fork a worker")
            }
            State::Killing => worker.killed_ms.is_some_and(is_overdue).then_some("end a worker"),
            _ => None,
        });
        let Some(what) = what else { return false };
        let text = format!(
            "the zygote was told to {what} {ANSWER_MS} ms ago and has not: it is killed, and its \
             workers with it"
        );
        self.say(Level::Error, &text);
        true
    }
}

/// Ends a zygote, whether it has exited by itself or not. With `is_program` it may run callbacks first.
pub(super) async fn end(mut zygote: Zygote, is_program: bool) {
    // The end of its orders is the order to exit; a zygote that has exited has nothing to hear.
    if is_program
        && shutdown(zygote.control_fd(), Shutdown::Both).is_ok()
        && has_exited(&mut zygote, FAREWELL_TRIES).await
    {
        return;
    }
    // It fails only for one that was reaped.
    let _ = zygote.kill();
    if !has_exited(&mut zygote, REAP_TRIES).await {
        spawn(async { blocking(move || drop(zygote)).await });
    }
}

async fn has_exited(zygote: &mut Zygote, tries: usize) -> bool {
    for _ in 0..tries {
        if zygote.reap().is_some() {
            return true;
        }
        sleep(REAP_PAUSE_MS).await;
    }
    false
}
