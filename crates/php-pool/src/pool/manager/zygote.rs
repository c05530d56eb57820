//! The zygote, which is not trusted: PHP code runs in it, and any process of its user can stop it.
//!
//! Called by the manager. Invariants: an order to the zygote is carried out within
//! [`RESPONSE_TIMEOUT_MS`], or it is killed with its workers; few of its events are handled at a time;
//! the loop never waits for its exit.

use super::super::Pool;
use super::reap::describe_exit;
use outboard_log::Level;
use outboard_reactor::{Source, blocking, contain, sleep, spawn};
use outboard_ring::control::Event;
use outboard_supervisor::worker::lifecycle::State;
use outboard_supervisor::zygote::{Received, Zygote};
use rustix::net::{Shutdown, shutdown};
use std::process::ExitStatus;
use std::rc::Rc;

/// For a fork, and to reap a killed worker. Both take milliseconds; a machine that swaps may need
/// seconds, and killing the zygote costs the requests of all of its workers.
const RESPONSE_TIMEOUT_MS: u64 = 5_000;
/// Events that are handled before other tasks run.
const EVENTS_PER_TURN: usize = 32;

/// A killed process is reaped at once, unless it blocks in the kernel.
const REAP_ATTEMPTS: usize = 100;
const REAP_PAUSE_MS: u64 = 5;
/// A Swoole program has callbacks for its shutdown.
const SHUTDOWN_ATTEMPTS: usize = 200;

/// How far the control socket was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadStatus {
    /// It is empty.
    Drained,
    /// It may have more.
    More,
    /// The zygote has closed it, or is to be killed.
    Closed,
}

impl Pool {
    /// Handles the events that the zygote has sent.
    pub(super) fn read_events(self: &Rc<Self>, control: &Source) -> ReadStatus {
        for _ in 0..EVENTS_PER_TURN {
            let received = match self.zygote.borrow().as_ref() {
                Some(zygote) => zygote.receive(),
                None => return ReadStatus::Closed,
            };
            match received {
                Ok(Received::Event(event)) => {
                    if contain(|| self.handle(event)).is_err() {
                        self.log(Level::Error, "an event of the zygote made the gateway panic");
                        return ReadStatus::Closed;
                    }
                }
                Ok(Received::Nothing) => {
                    control.clear_readable();
                    return ReadStatus::Drained;
                }
                Ok(Received::Closed) => return ReadStatus::Closed,
                Err(error) => {
                    self.log(Level::Error, &format!("cannot read the zygote's events: {error}"));
                    return ReadStatus::Closed;
                }
            }
        }
        ReadStatus::More
    }

    pub(in crate::pool) fn handle(self: &Rc<Self>, event: Event) {
        match event {
            Event::Started {
                php_version,
                opcache,
                ini_file,
                rewind,
                rewind_refused,
                request_reads,
                ..
            } => {
                if self.is_starting() {
                    let mut manager = self.manager.borrow_mut();
                    (manager.rewind, manager.rewind_refused) = (rewind, rewind_refused);
                    manager.request_reads = Some(request_reads.into());
                    drop(manager);
                    self.started(php_version, opcache, ini_file.as_deref());
                }
            }
            Event::BootRead { keys, is_complete, max_age_s } => {
                self.boot_read(keys, is_complete, max_age_s)
            }
            Event::StartFailed { message } if self.is_starting() => self.start_failed(&message),
            // It has reported its start already.
            Event::StartFailed { .. } => {}
            Event::Forked { worker, pid } => {
                self.shard.add_pid(pid);
                self.with_worker(worker, |worker| worker.process.forked(pid));
            }
            Event::ForkFailed { worker, message } => {
                if self.with_worker(worker, |_| ()).is_none() {
                    return;
                }
                self.log(Level::Error, &format!("cannot fork a worker: {message}"));
                self.reap(worker, None, &format!("could not be forked ({message})"));
            }
            // The sibling reports its start itself, and its end by its control socket.
            Event::Split { .. } | Event::SiblingExited { .. } => {}
            Event::SplitFailed { message, .. } => {
                self.log(Level::Error, &format!("cannot fork the zygote of a thread: {message}"));
            }
            Event::Exited { worker, code, signal } => {
                self.worker_exited(worker, code, &describe_exit(code, signal));
            }
        }
    }

    /// Whether the zygote has not carried out an order in time.
    pub(in crate::pool) fn is_zygote_unresponsive(&self, now_ms: u64) -> bool {
        let is_overdue = |since_ms: u64| now_ms.saturating_sub(since_ms) >= RESPONSE_TIMEOUT_MS;
        let members = self.members.borrow();
        let order = members.own().find_map(|worker| match worker.state() {
            State::Forking => {
                is_overdue(worker.process.lifecycle.ordered_ms()).then_some("fork a worker")
            }
            State::Killing => worker.killed_ms.is_some_and(is_overdue).then_some("end a worker"),
            _ => None,
        });
        let is_lent_overdue =
            members.lent.values().any(|loan| loan.killed_ms.is_some_and(is_overdue));
        let order = order.or(is_lent_overdue.then_some("end a worker"));
        drop(members);
        let Some(order) = order else { return false };
        let text = format!(
            "the zygote did not {order} within {RESPONSE_TIMEOUT_MS} ms: it is killed, and its \
             workers with it"
        );
        self.log(Level::Error, &text);
        true
    }
}

/// Ends a zygote, if it has not exited, and reaps it. A Swoole program may run its callbacks first. The
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
