//! Threads whose work waits.

use super::jobs::SCAN_AT_LEAST;
use super::*;
use crate::{run, spawn, yield_now};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What jobs wait for, in place of a disk.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        drop(self.opened.wait_while(lock(&self.is_open), |is_open| !*is_open));
    }

    fn open(&self) {
        *lock(&self.is_open) = true;
        self.opened.notify_all();
    }
}

/// Starts so many jobs of an owner that wait for the gate; the number of those that are done.
fn start(threads: &'static Threads, owner: u64, count: usize, gate: &Arc<Gate>) -> Rc<Cell<usize>> {
    let done = Rc::new(Cell::new(0));
    for _ in 0..count {
        let (gate, done) = (gate.clone(), done.clone());
        spawn(async move {
            threads.run(owner, move || gate.wait()).await;
            done.set(done.get() + 1);
        });
    }
    done
}

#[test]
fn more_work_than_threads_waits_and_is_done() {
    static FEW: Threads = Threads::new(THREADS);
    run(async {
        let gate = Arc::new(Gate::default());
        let done = start(&FEW, 0, 2 * THREADS, &gate);
        while lock(&FEW.state).jobs.waiting() != THREADS {
            yield_now().await;
        }
        assert_eq!((done.get(), lock(&FEW.state).threads), (0, THREADS));
        gate.open();
        while done.get() < 2 * THREADS {
            yield_now().await;
        }
        assert!(lock(&FEW.state).threads <= THREADS);
    })
    .unwrap();
}

const SHARE: usize = 8;

#[test]
fn an_owner_on_a_hanging_disk_leaves_threads_for_others() {
    static SHARED: Threads = Threads::new(SHARE);
    run(async {
        let gate = Arc::new(Gate::default());
        let hanging = start(&SHARED, 1, 2 * THREADS, &gate);
        while lock(&SHARED.state).jobs.waiting() != 2 * THREADS - SHARE {
            yield_now().await;
        }
        assert_eq!(SHARED.run(2, || 7).await, 7);
        assert_eq!(hanging.get(), 0);
        gate.open();
        while hanging.get() < 2 * THREADS {
            yield_now().await;
        }
        while lock(&SHARED.state).jobs.running() > 0 {
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn work_without_a_requester_is_neither_done_nor_stored() {
    static HUNG: Threads = Threads::new(1);
    static DONE: AtomicUsize = AtomicUsize::new(0);
    run(async {
        let gate = Arc::new(Gate::default());
        let first = start(&HUNG, 1, 1, &gate);
        while lock(&HUNG.state).jobs.running() == 0 {
            yield_now().await;
        }
        for _ in 0..10 * SCAN_AT_LEAST {
            let mut left = Box::pin(HUNG.run(1, || DONE.fetch_add(1, Ordering::Relaxed)));
            let begun = poll_fn(|context| Poll::Ready(left.as_mut().poll(context)));
            assert!(begun.await.is_pending());
        }
        assert!(lock(&HUNG.state).jobs.waiting() <= SCAN_AT_LEAST);
        gate.open();
        while first.get() == 0 || lock(&HUNG.state).jobs.waiting() > 0 {
            yield_now().await;
        }
        assert_eq!(DONE.load(Ordering::Relaxed), 0);
    })
    .unwrap();
}
