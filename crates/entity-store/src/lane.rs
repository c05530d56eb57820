//! Handing work to a thread and back, a batch at a time.
//!
//! Called by namespaces for whatever waits for a disk. While the thread works, what comes in is
//! gathered by the loop; when it is done, it gets all of that at once. So there is one hand-over a
//! batch instead of one a request, and each side touches a lock only when the other cannot: the
//! thread sleeps when work is given, and the loop looks when the thread has finished. Under load
//! batches grow and hand-overs become rarer.
//!
//! Invariants: one batch is with the thread at a time; a thread that panicked answers `None`.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;

/// The loop's end of a thread that turns `T` into `R`.
#[derive(Debug)]
pub(crate) struct Lane<T, R> {
    shared: Arc<Shared<T, R>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T, R> {
    hands: Mutex<Hands<T, R>>,
    given: Condvar,
}

#[derive(Debug)]
struct Hands<T, R> {
    work: Option<T>,
    done: Option<R>,
    waker: Option<Waker>,
    is_closed: bool,
    is_broken: bool,
}

impl<T, R> Shared<T, R> {
    fn lock(&self) -> MutexGuard<'_, Hands<T, R>> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the loop when the thread ends, by a panic as well.
struct Ending<T, R>(Arc<Shared<T, R>>);

impl<T, R> Drop for Ending<T, R> {
    fn drop(&mut self) {
        let mut hands = self.0.lock();
        hands.is_broken = true;
        if let Some(waker) = hands.waker.take() {
            waker.wake();
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> Lane<T, R> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(
        name: &str,
        mut work: impl FnMut(T) -> R + Send + 'static,
    ) -> std::io::Result<Self> {
        let hands =
            Hands { work: None, done: None, waker: None, is_closed: false, is_broken: false };
        let shared = Arc::new(Shared { hands: Mutex::new(hands), given: Condvar::new() });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let ending = Ending(theirs);
            while let Some(batch) = next(&ending.0) {
                let done = work(batch);
                let waker = {
                    let mut hands = ending.0.lock();
                    hands.done = Some(done);
                    hands.waker.take()
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has the thread do a batch, and waits for it. The lane must be free: whoever calls is its
    /// only user.
    pub(crate) async fn run(&self, batch: T) -> Option<R> {
        self.shared.lock().work = Some(batch);
        self.shared.given.notify_one();
        poll_fn(|context| {
            let mut hands = self.shared.lock();
            if let Some(done) = hands.done.take() {
                return Poll::Ready(Some(done));
            }
            if hands.is_broken {
                return Poll::Ready(None);
            }
            hands.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

fn next<T, R>(shared: &Shared<T, R>) -> Option<T> {
    let mut hands = shared.lock();
    loop {
        if let Some(batch) = hands.work.take() {
            return Some(batch);
        }
        if hands.is_closed {
            return None;
        }
        hands = shared.given.wait(hands).unwrap_or_else(PoisonError::into_inner);
    }
}

impl<T, R> Drop for Lane<T, R> {
    /// Waits for the batch that is with the thread.
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.given.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_in_order_and_a_panic_is_an_answer() {
        outboard_reactor::run(async {
            let lane = Lane::start("test", |number: u32| {
                assert!(number < 3, "the test's own panic");
                number * 2
            })
            .unwrap();
            for number in 0..3 {
                assert_eq!(lane.run(number).await, Some(number * 2));
            }
            assert_eq!(lane.run(3).await, None);
            assert_eq!(lane.run(1).await, None);
        })
        .unwrap();
    }
}
