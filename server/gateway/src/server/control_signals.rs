//! [`ControlSignals`]: the signals that stop, reload or upgrade the server or reopen its logs.
//!
//! Awaited by the server. Invariant: a stop precedes all other commands.

use crate::gateway::Gateway;
use outboard_reactor::{self as reactor, Signals};
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// See the module. Requests of the admin socket and of changed files are in
/// [`ControlRequests`](crate::control::ControlRequests).
pub(super) struct ControlSignals {
    terminate: Signals,
    interrupt: Signals,
    reload: Signals,
    reopen: Signals,
    upgrade: Signals,
}

/// A command to the server.
pub(super) enum Command {
    Stop,
    Reload,
    ReopenLogs,
    Upgrade,
}

impl ControlSignals {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: Signals::catch(reactor::signals::TERMINATE)?,
            interrupt: Signals::catch(reactor::signals::INTERRUPT)?,
            reload: Signals::catch(reactor::signals::HANGUP)?,
            reopen: Signals::catch(reactor::signals::USER_1)?,
            upgrade: Signals::catch(reactor::signals::USER_2)?,
        })
    }

    /// Whether the server should stop; the current task is woken when it should.
    pub(super) fn should_stop(&self, gateway: &Gateway) -> bool {
        let requested = [self.terminate.poll(), self.interrupt.poll(), gateway.control.stop.poll()];
        requested.iter().any(Poll::is_ready)
    }

    pub(super) async fn next(&self, gateway: &Gateway) -> Command {
        poll_fn(|_| {
            if self.should_stop(gateway) {
                return Poll::Ready(Command::Stop);
            }
            if self.reload.poll().is_ready() || gateway.control.reload.poll().is_ready() {
                return Poll::Ready(Command::Reload);
            }
            if self.upgrade.poll().is_ready() || gateway.control.upgrade.poll().is_ready() {
                return Poll::Ready(Command::Upgrade);
            }
            self.reopen.poll().map(|()| Command::ReopenLogs)
        })
        .await
    }
}
