//! The zygote, which is not trusted: PHP code runs in it, and any process of its user can stop it.
//!
//! Called by the manager. Invariants: an order to the zygote is carried out within
//! [`RESPONSE_TIMEOUT_MS`], or it is killed with its workers; few of its events are handled at a time;
//! the loop never waits for its exit.

use super::core::PoolCore;
use outboard_reactor::{blocking, sleep, spawn};
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::Zygote;
use rustix::net::{Shutdown, shutdown};
use std::process::ExitStatus;

/// For a fork, and to reap a killed worker. Both take milliseconds; a machine that swaps may need
/// seconds, and killing the zygote costs the requests of all of its workers.
const RESPONSE_TIMEOUT_MS: u64 = 5_000;
/// Events that are handled before other tasks run.
pub(super) const EVENTS_PER_TURN: usize = 32;

/// A killed process is reaped at once, unless it blocks in the kernel.
const REAP_ATTEMPTS: usize = 100;
const REAP_PAUSE_MS: u64 = 5;
/// A program that starts a server has callbacks for its shutdown.
const SHUTDOWN_ATTEMPTS: usize = 200;
const _: () = assert!(
    (REAP_ATTEMPTS + SHUTDOWN_ATTEMPTS) as u64 * REAP_PAUSE_MS < RESPONSE_TIMEOUT_MS,
    "an end takes no longer than an order may"
);

/// Says which order the zygote has not carried out in time, if there is one.
pub(super) fn describe_overdue(core: &PoolCore, now_ms: u64) -> Option<String> {
    let is_overdue = |since_ms: u64| now_ms.saturating_sub(since_ms) >= RESPONSE_TIMEOUT_MS;
    let members = core.members.borrow();
    let order = members.roster.own().find_map(|worker| match worker.state() {
        State::Forking => {
            is_overdue(worker.process.lifecycle.ordered_ms()).then_some("fork a worker")
        }
        State::Killing => worker.killed_ms.is_some_and(is_overdue).then_some("end a worker"),
        _ => None,
    });
    let order =
        order.or_else(|| members.lent.kills_ms().any(is_overdue).then_some("end a worker"))?;
    Some(format!(
        "the zygote did not {order} within {RESPONSE_TIMEOUT_MS} ms: it is killed, and its workers with it"
    ))
}

/// Ends a zygote, if it has not exited, and reaps it. Such a program may run its callbacks first. The
/// spawner reaps those that it has started. Returns its status, if it is known.
pub(super) async fn end(mut zygote: Zygote, is_program: bool) -> Option<ExitStatus> {
    // The end of the control socket is the order to exit.
    let has_ended = is_program
        && shutdown(zygote.control_fd(), Shutdown::Both).is_ok()
        && has_exited(&mut zygote, SHUTDOWN_ATTEMPTS).await;
    if !has_ended {
        // It fails only for a process that was reaped. One that is exiting keeps its status.
        let _ = zygote.kill();
    }
    if has_ended || has_exited(&mut zygote, REAP_ATTEMPTS).await {
        return blocking(move || zygote.exit_status()).await;
    }
    spawn(async { blocking(move || drop(zygote)).await });
    None
}

async fn has_exited(zygote: &mut Zygote, attempts: usize) -> bool {
    for _ in 0..attempts {
        if zygote.has_exited() {
            return true;
        }
        sleep(REAP_PAUSE_MS).await;
    }
    false
}
