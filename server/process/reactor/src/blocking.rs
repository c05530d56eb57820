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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, contain, on_cpu_thread, on_disk_thread, on_lookup_thread, run, spawn};
    use std::cell::Cell;
    use std::rc::Rc;

    /// Reports that its task is over, also by a panic.
    struct Ends(Rc<Event>);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.set();
        }
    }

    #[test]
    fn a_panic_of_work_on_a_thread_ends_the_task_that_waits_for_it() {
        const MESSAGE: &str = "in the test: work on a thread panics";
        run(async {
            let (ended, went_on) = (Rc::new(Event::default()), Rc::new(Cell::new(false)));
            for kind in 0..4 {
                let (end, goes_on) = (Ends(ended.clone()), went_on.clone());
                let waiting = async move {
                    let _end = end;
                    match kind {
                        0 => blocking(|| panic!("{MESSAGE}")).await,
                        1 => on_cpu_thread(|| panic!("{MESSAGE}")).await,
                        2 => on_disk_thread(|| panic!("{MESSAGE}")).await,
                        _ => on_lookup_thread(1, || panic!("{MESSAGE}")).await,
                    }
                    goes_on.set(true);
                };
                assert!(contain(|| spawn(waiting)).is_ok());
                ended.wait().await;
                assert!(!went_on.get());
            }
            assert_eq!(on_disk_thread(|| 7).await, 7, "the threads go on");
        })
        .unwrap();
    }
}
