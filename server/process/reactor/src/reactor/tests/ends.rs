//! How tasks and loops end, and what is left of them.

use crate::*;
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A task that owns a descriptor of the loop, and a flag that is set when it is dropped.
fn spawn_owner(is_dropped: &Rc<Cell<bool>>) {
    struct Drops(Source, Rc<Cell<bool>>);
    impl Drop for Drops {
        fn drop(&mut self) {
            // A destructor may call the loop.
            self.0.clear_readable();
            spawn(async {});
            self.1.set(true);
        }
    }
    let (own, _) = std::os::unix::net::UnixStream::pair().unwrap();
    own.set_nonblocking(true).unwrap();
    let owned = Drops(Source::new(own.into(), Interest::Read).unwrap(), is_dropped.clone());
    spawn(async move {
        let _owned = owned;
        pending().await
    });
}

#[test]
fn a_thread_has_one_loop_at_a_time() {
    let result = run(async {
        let nested = catch_unwind(|| run(async {}));
        assert!(nested.is_err());
        yield_now().await;
        7
    });
    assert_eq!(result.unwrap(), 7, "the outer loop goes on");
    assert_eq!(run(async { 8 }).unwrap(), 8, "the next one may begin");
}

#[test]
fn the_end_of_main_drops_all_tasks_with_their_descriptors() {
    let is_dropped = Rc::new(Cell::new(false));
    let of_task = is_dropped.clone();
    run(async move {
        spawn_owner(&of_task);
        yield_now().await;
        assert!(!of_task.get());
    })
    .unwrap();
    assert!(is_dropped.get());
}

#[test]
fn a_panic_of_main_ends_its_loop_and_the_thread_may_have_another() {
    let is_dropped = Rc::new(Cell::new(false));
    let of_task = is_dropped.clone();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        run(async move {
            spawn_owner(&of_task);
            yield_now().await;
            panic!("in the test: the main task panics");
        })
    }));
    assert!(panicked.is_err());
    assert!(is_dropped.get());
    assert_eq!(run(async { 9 }).unwrap(), 9);
}

#[test]
fn a_contained_task_ends_alone_with_what_it_has_spawned() {
    run(async {
        let polls = Rc::new(Cell::new(0));
        let of_task = polls.clone();
        let spawned = contain(|| {
            spawn(async move {
                spawn(async { panic!("in the test: a child of a contained task panics") });
                yield_now().await;
                of_task.set(of_task.get() + 1);
                panic!("in the test: a contained task panics");
            });
        });
        assert_eq!(spawned, Ok(()));
        while polls.get() == 0 {
            yield_now().await;
        }
        yield_now().await;
        assert_eq!(polls.get(), 1);
    })
    .unwrap();
}

#[test]
fn a_panic_of_a_destructor_of_a_contained_task_ends_that_task_only() {
    struct Panics(Rc<Cell<bool>>);
    impl Drop for Panics {
        fn drop(&mut self) {
            self.0.set(true);
            panic!("in the test: a destructor panics");
        }
    }
    /// Holds what is dropped after the poll has returned.
    struct Finished(#[allow(dead_code, reason = "it is dropped")] Panics);
    impl Future for Finished {
        type Output = ();
        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
    run(async {
        let is_dropped = Rc::new(Cell::new(false));
        let task = Finished(Panics(is_dropped.clone()));
        assert_eq!(contain(|| spawn(task)), Ok(()));
        while !is_dropped.get() {
            yield_now().await;
        }
        yield_now().await;
    })
    .unwrap();
}

async fn own_waker() -> Waker {
    poll_fn(|context| Poll::Ready(context.waker().clone())).await
}

#[test]
fn a_waker_of_an_ended_loop_wakes_no_task_of_the_next() {
    let stale = run(own_waker()).unwrap();
    stale.wake_by_ref();
    let of_thread = stale.clone();
    std::thread::spawn(move || of_thread.wake()).join().unwrap();
    run(async move {
        // This task has the place and the generation that the stale one had.
        let mut polls = 0;
        let counted = poll_fn(|_| {
            polls += 1;
            stale.wake_by_ref();
            if deadline_passed() { Poll::Ready(()) } else { Poll::Pending }
        });
        set_deadline(now_ms() + 30);
        counted.await;
        clear_deadline();
        assert_eq!(polls, 2, "the first one, and that of the deadline");
    })
    .unwrap();
}

#[test]
fn all_tasks_check_their_condition_after_a_change_for_all() {
    run(async {
        let is_over = Rc::new(Cell::new(false));
        let [polls, ended] = [0; 2].map(|count| Rc::new(Cell::new(count)));
        for number in 0..6 {
            let (is_over, polls, ended) = (is_over.clone(), polls.clone(), ended.clone());
            let task = async move {
                poll_fn(|_| {
                    polls.set(polls.get() + 1);
                    if is_over.get() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                ended.set(ended.get() + 1);
            };
            if number % 2 == 0 { spawn(task) } else { spawn_in_background(task) }
        }
        while polls.get() < 6 {
            yield_now().await;
        }
        is_over.set(true);
        yield_now().await;
        yield_now().await;
        assert_eq!(polls.get(), 6, "no task was woken");
        wake_all();
        while ended.get() < 6 {
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn a_signal_that_arrives_several_times_counts_once() {
    use signal_hook::{consts::SIGUSR2, low_level::raise};
    run(async {
        let signals = Signals::catch(SIGUSR2).unwrap();
        assert!(signals.poll().is_pending());
        (0..5).for_each(|_| raise(SIGUSR2).unwrap());
        poll_fn(|_| signals.poll()).await;
        assert!(signals.poll().is_pending());
        drop(signals);
        let again = Signals::catch(SIGUSR2).unwrap();
        assert!(again.poll().is_pending(), "what came before is not reported");
    })
    .unwrap();
}
