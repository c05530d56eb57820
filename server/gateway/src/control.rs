//! Requests of the admin socket to the server's main task: reload and stop.

use outboard_reactor::Event;
use std::cell::RefCell;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ControlRequests {
    pub(crate) reload: Event,
    pub(crate) stop: Event,
    pub(crate) upgrade: Event,
    reload_waiters: RefCell<Vec<Rc<ReloadWaiter>>>,
    upgrade_waiters: RefCell<Vec<Rc<ReloadWaiter>>>,
    /// Why there are no more reloads and upgrades.
    ended: RefCell<Option<String>>,
}

/// The generation that is active, or why the reload failed.
pub(crate) type ReloadOutcome = Result<u32, String>;

/// A client of the admin socket that waits for a reload, or an upgrade, which starts after its request.
#[derive(Debug, Default)]
pub(crate) struct ReloadWaiter {
    completed: Event,
    outcome: RefCell<Option<ReloadOutcome>>,
}

impl ReloadWaiter {
    /// Passes the outcome to the client.
    pub(crate) fn complete(&self, outcome: ReloadOutcome) {
        self.outcome.replace(Some(outcome));
        self.completed.set();
    }

    async fn wait(&self) -> ReloadOutcome {
        loop {
            if let Some(outcome) = self.outcome.take() {
                return outcome;
            }
            self.completed.wait().await;
        }
    }
}

impl ControlRequests {
    /// Requests a reload and waits for its outcome.
    pub(crate) async fn reload_and_wait(&self) -> ReloadOutcome {
        if let Some(why) = self.ended.borrow().clone() {
            return Err(why);
        }
        let waiter = Rc::new(ReloadWaiter::default());
        self.reload_waiters.borrow_mut().push(waiter.clone());
        self.reload.set();
        waiter.wait().await
    }

    /// Requests an upgrade and waits for its outcome: the process id of the new server.
    pub(crate) async fn upgrade_and_wait(&self) -> ReloadOutcome {
        if let Some(why) = self.ended.borrow().clone() {
            return Err(why);
        }
        let waiter = Rc::new(ReloadWaiter::default());
        self.upgrade_waiters.borrow_mut().push(waiter.clone());
        self.upgrade.set();
        waiter.wait().await
    }

    /// The clients that wait for the upgrade that starts now.
    pub(crate) fn take_upgrade_waiters(&self) -> Vec<Rc<ReloadWaiter>> {
        self.upgrade_waiters.take()
    }

    /// The server stops, or has a successor: clients that wait, or will, get an error.
    pub(crate) fn end(&self, why: &str) {
        self.ended.replace(Some(why.to_owned()));
        let waiters = self.take_reload_waiters().into_iter().chain(self.take_upgrade_waiters());
        waiters.for_each(|waiter| waiter.complete(Err(why.to_owned())));
    }

    /// The clients that wait for the reload that starts now.
    pub(crate) fn take_reload_waiters(&self) -> Vec<Rc<ReloadWaiter>> {
        self.reload_waiters.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_loop;
    use outboard_reactor::{spawn, yield_now};
    use std::cell::Cell;

    #[test]
    fn clients_of_a_server_that_ends_receive_an_error() {
        in_loop(async {
            let requests = Rc::new(ControlRequests::default());
            let (waiting, outcome) = (requests.clone(), Rc::new(RefCell::new(None)));
            let received = outcome.clone();
            spawn(async move {
                let upgraded = waiting.upgrade_and_wait().await;
                received.replace(Some(upgraded));
            });
            yield_now().await;
            requests.end("it stops");
            while outcome.borrow().is_none() {
                yield_now().await;
            }
            assert_eq!(outcome.take(), Some(Err("it stops".to_owned())));
            assert_eq!(requests.reload_and_wait().await, Err("it stops".to_owned()));
        });
    }

    #[test]
    fn each_client_receives_the_outcome_of_its_reload() {
        in_loop(async {
            let requests = Rc::new(ControlRequests::default());
            let outcomes = Rc::new(RefCell::new(Vec::new()));
            let pending = Rc::new(Cell::new(2));
            for _ in 0..2 {
                let (requests, outcomes) = (requests.clone(), outcomes.clone());
                let pending = pending.clone();
                spawn(async move {
                    let outcome = requests.reload_and_wait().await;
                    outcomes.borrow_mut().push(outcome);
                    pending.set(pending.get() - 1);
                });
            }
            yield_now().await;
            requests.reload.wait().await;
            let waiters = requests.take_reload_waiters();
            assert_eq!(waiters.len(), 2);
            waiters.iter().for_each(|waiter| waiter.complete(Ok(2)));
            while pending.get() > 0 {
                yield_now().await;
            }
            assert_eq!(*outcomes.borrow(), [Ok(2), Ok(2)]);
            assert!(requests.take_reload_waiters().is_empty());
        });
    }
}
