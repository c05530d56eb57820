//! Threads for computations that take longer than a fraction of a millisecond, such as compression.
//!
//! Invariants: there are at most [`CPU_THREADS`]; they do not take the processors from the loop.

use crate::threads::{THREADS, Threads};

/// More would only take the processors from each other.
const CPU_THREADS: usize = 4;
const NICENESS: i32 = 10;
const _: () = assert!(CPU_THREADS <= THREADS && NICENESS > 0);
/// With more waiting computations, further ones should be left out.
const MAX_WAITING: usize = 64;

static COMPUTATIONS: Threads = Threads::nice(CPU_THREADS, NICENESS);

/// Runs `work` on one of a few threads and waits for its result without blocking the loop. A panic of
/// `work` continues in the waiting task.
pub async fn on_cpu_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    COMPUTATIONS.run(0, work).await
}

/// Whether so many computations wait for a thread that one that can be left out should be.
pub fn are_cpu_threads_busy() -> bool {
    is_busy(&COMPUTATIONS)
}

fn is_busy(threads: &Threads) -> bool {
    threads.waiting() >= MAX_WAITING
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{run, spawn, yield_now};
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn threads_with_a_long_queue_are_busy() {
        static ONE: Threads = Threads::nice(1, NICENESS);
        static IS_OPEN: Mutex<bool> = Mutex::new(false);
        static OPENED: Condvar = Condvar::new();
        let wait = || drop(OPENED.wait_while(IS_OPEN.lock().unwrap(), |is_open| !*is_open));
        run(async move {
            let done = Rc::new(Cell::new(0));
            for number in 0..=MAX_WAITING {
                let done = done.clone();
                spawn(async move {
                    ONE.run(0, wait).await;
                    done.set(done.get() + 1);
                });
                // One of them is in work.
                while ONE.waiting() != number {
                    yield_now().await;
                }
                assert_eq!(is_busy(&ONE), number == MAX_WAITING);
            }
            *IS_OPEN.lock().unwrap() = true;
            OPENED.notify_all();
            while done.get() <= MAX_WAITING {
                yield_now().await;
            }
            assert!(!is_busy(&ONE));
        })
        .unwrap();
    }
}
