//! A flag that any shard sets and one task of a shard waits for.
//!
//! Used by the pages of a cache to call the shards. Invariant: a bell that rings between two waits ends
//! the second one.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rings: bool,
    waiting: Option<Waker>,
}

impl Doorbell {
    /// Calls the task that waits, or will.
    pub(crate) fn ring(&self) {
        let mut state = self.state();
        state.rings = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until it rings.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| {
            let mut state = self.state();
            if std::mem::take(&mut state.rings) {
                return Poll::Ready(());
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_reactor::run;
    use std::sync::Arc;

    #[test]
    fn another_thread_ends_a_wait() {
        let bell = Arc::new(Doorbell::default());
        bell.ring();
        let other = bell.clone();
        run(async move {
            bell.wait().await;
            let ringing = std::thread::spawn(move || other.ring());
            bell.wait().await;
            ringing.join().unwrap();
        })
        .unwrap();
    }
}
