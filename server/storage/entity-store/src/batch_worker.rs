//! [`BatchWorker`]: a thread that gets one batch of work at a time.
//!
//! Used by [`crate::thread_pool`] and by the writes of a disk. The loop gathers work while the thread is
//! busy and hands all of it over at once, so under load batches grow and hand-overs become rarer. Each
//! side locks only while the other is idle: the thread sleeps when the loop hands over, and the loop
//! looks after the thread has finished.
//!
//! Invariants: the thread has one batch at a time; a batch of a thread that panicked returns `None`.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;

/// The loop's handle of a thread that turns `T` into `R`.
#[derive(Debug)]
pub(crate) struct BatchWorker<T, R> {
    shared: Arc<Shared<T, R>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<T, R> {
    slot: Mutex<Slot<T, R>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Slot<T, R> {
    work: Option<T>,
    done: Option<R>,
    waker: Option<Waker>,
    is_closed: bool,
    is_broken: bool,
}

impl<T, R> Shared<T, R> {
    fn lock(&self) -> MutexGuard<'_, Slot<T, R>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the loop when the thread ends, also by a panic.
struct Ending<T, R>(Arc<Shared<T, R>>);

impl<T, R> Drop for Ending<T, R> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_broken = true;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

impl<T: Send + 'static, R: Send + 'static> BatchWorker<T, R> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start(
        name: &str,
        mut work: impl FnMut(T) -> R + Send + 'static,
    ) -> std::io::Result<Self> {
        let slot = Slot { work: None, done: None, waker: None, is_closed: false, is_broken: false };
        let shared = Arc::new(Shared { slot: Mutex::new(slot), changed: Condvar::new() });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let ending = Ending(of_thread);
            while let Some(batch) = next(&ending.0) {
                let done = work(batch);
                let waker = {
                    let mut slot = ending.0.lock();
                    slot.done = Some(done);
                    slot.waker.take()
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs a batch on the thread. `None` if the thread has panicked. The caller must not start a batch
    /// before the previous one is back.
    pub(crate) async fn run(&self, batch: T) -> Option<R> {
        self.shared.lock().work = Some(batch);
        self.shared.changed.notify_one();
        poll_fn(|context| {
            let mut slot = self.shared.lock();
            if let Some(done) = slot.done.take() {
                return Poll::Ready(Some(done));
            }
            if slot.is_broken {
                return Poll::Ready(None);
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

fn next<T, R>(shared: &Shared<T, R>) -> Option<T> {
    let mut slot = shared.lock();
    loop {
        if let Some(batch) = slot.work.take() {
            return Some(batch);
        }
        if slot.is_closed {
            return None;
        }
        slot = shared.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
    }
}

impl<T, R> Drop for BatchWorker<T, R> {
    /// Waits for the current batch.
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_return_in_order_and_a_panic_returns_nothing() {
        outboard_reactor::run(async {
            let worker = BatchWorker::start("test", |number: u32| {
                assert!(number < 3, "the test's own panic");
                number * 2
            })
            .unwrap();
            for number in 0..3 {
                assert_eq!(worker.run(number).await, Some(number * 2));
            }
            assert_eq!(worker.run(3).await, None);
            assert_eq!(worker.run(1).await, None);
        })
        .unwrap();
    }
}
