//! [`Doorbell`]: by which clients of other loops have a loop look for what they ask.
//!
//! One per client, rung by [`crate::sockets`]. Invariant: a ring is noticed, also one that came before the
//! wait for it.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Doorbell(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    was_rung: bool,
    waiting: Option<Waker>,
}

impl Doorbell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        let waiting = {
            let mut state = self.lock();
            state.was_rung = true;
            state.waiting.take()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until it was rung since the last time.
    pub(crate) async fn rung(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if std::mem::take(&mut state.was_rung) {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
