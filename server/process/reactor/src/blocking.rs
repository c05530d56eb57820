//! Blocking work on a thread of its own.
//!
//! Used for rare work (reading a configuration, reading `/proc`), never per request.

use crate::core_binding::unbound;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

struct Shared<T> {
    result: Option<std::thread::Result<T>>,
    waker: Option<Waker>,
}

/// Runs `work` on a thread and waits for its result without blocking the loop. A panic of `work`
/// continues in the waiting task.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let shared = Arc::new(Mutex::new(Shared { result: None, waker: None }));
    let of_thread = shared.clone();
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let mut shared = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
        shared.result = Some(result);
        if let Some(waker) = shared.waker.take() {
            waker.wake();
        }
    };
    unbound(|| std::thread::spawn(run));
    let result = poll_fn(|context| {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                shared.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await;
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
