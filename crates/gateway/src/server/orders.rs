//! What a server is told to do while it runs, by signals and by wishes.
//!
//! Invariant: an order to stop comes before all others.

use crate::gateway::Gateway;
use outboard_reactor::{self as reactor, Signals};
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// The signals that a server acts on; orders of the admin socket and of changed files are the
/// gateway's `wishes`.
pub(super) struct Orders {
    terminate: Signals,
    interrupt: Signals,
    reload: Signals,
    reopen: Signals,
}

/// What the server is to do.
pub(super) enum Order {
    Stop,
    Reload,
    ReopenLogs,
}

impl Orders {
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: Signals::catch(reactor::signals::TERMINATE)?,
            interrupt: Signals::catch(reactor::signals::INTERRUPT)?,
            reload: Signals::catch(reactor::signals::HANGUP)?,
            reopen: Signals::catch(reactor::signals::USER_1)?,
        })
    }

    /// Whether the server is to stop; the current task is woken when it is.
    pub(super) fn want_stop(&self, gateway: &Gateway) -> bool {
        let asked = [self.terminate.poll(), self.interrupt.poll(), gateway.control.stop.poll()];
        asked.iter().any(Poll::is_ready)
    }

    pub(super) async fn next(&self, gateway: &Gateway) -> Order {
        poll_fn(|_| {
            if self.want_stop(gateway) {
                return Poll::Ready(Order::Stop);
            }
            if self.reload.poll().is_ready() || gateway.control.reload.poll().is_ready() {
                return Poll::Ready(Order::Reload);
            }
            self.reopen.poll().map(|()| Order::ReopenLogs)
        })
        .await
    }
}
