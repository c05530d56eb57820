//! The table of tasks, without a loop around it.

use super::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::future::pending;

/// An executor whose loop belongs to no thread.
fn executor() -> Executor {
    let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
    Executor::new(Arc::new(RemoteQueue::new(doorbell, |_, _| false)))
}

fn spawn(executor: &mut Executor, rank: Rank) -> TaskId {
    executor.spawn(Box::pin(pending()), rank, false);
    let queue = if rank == Rank::Background { &executor.later } else { &executor.ready };
    *queue.back().unwrap()
}

/// Polls the next task of a queue, which stays pending.
fn poll(executor: &mut Executor, queue: Queue, is_long: bool) -> Option<TaskId> {
    let (id, polled) = executor.start_poll(queue)?;
    executor.finish_poll(id, Some((polled, is_long)));
    Some(id)
}

#[test]
fn a_task_is_queued_once_however_often_it_is_woken() {
    let mut executor = executor();
    let id = spawn(&mut executor, Rank::Foreground);
    executor.wake(id);
    executor.wake_later(id);
    executor.wake_all();
    assert_eq!((executor.ready_count(), executor.later_count()), (1, 0));
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(id));
    assert!(!executor.has_ready());
    executor.wake_later(id);
    executor.wake(id);
    assert_eq!((executor.ready_count(), executor.later_count()), (0, 1));
}

#[test]
fn a_task_that_is_woken_while_it_is_polled_is_polled_again() {
    let mut executor = executor();
    let id = spawn(&mut executor, Rank::Foreground);
    let (_, polled) = executor.start_poll(Queue::Ready).unwrap();
    executor.wake(id);
    executor.finish_poll(id, Some((polled, false)));
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(id));
    assert_eq!(poll(&mut executor, Queue::Ready, false), None);
}

#[test]
fn the_id_of_a_finished_task_does_nothing_to_its_successor() {
    let mut executor = executor();
    let finished = spawn(&mut executor, Rank::Foreground);
    executor.start_poll(Queue::Ready).unwrap();
    executor.finish_poll(finished, None);
    let successor = spawn(&mut executor, Rank::Foreground);
    assert_eq!(successor.index, finished.index, "the place is used again");
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(successor));

    executor.wake(finished);
    executor.wake_later(finished);
    executor.set_deadline(finished, 1);
    executor.finish_poll(finished, None);
    assert!(!executor.has_ready());
    assert_eq!(executor.deadline(finished), u64::MAX);
    assert_eq!(executor.earliest_deadline_ms(), u64::MAX);
    executor.wake(successor);
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(successor));
}

#[test]
fn a_task_that_ended_while_it_was_queued_is_skipped() {
    let mut executor = executor();
    let ended = spawn(&mut executor, Rank::Foreground);
    executor.start_poll(Queue::Ready).unwrap();
    executor.wake(ended);
    executor.finish_poll(ended, None);
    let next = spawn(&mut executor, Rank::Foreground);
    assert_eq!(executor.ready_count(), 2);
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(next));
}

#[test]
fn a_long_task_waits_apart_until_a_poll_of_it_is_short() {
    let mut executor = executor();
    let id = spawn(&mut executor, Rank::Foreground);
    assert_eq!(poll(&mut executor, Queue::Ready, true), Some(id));
    let sweep = |executor: &mut Executor| assert!(executor.sweep(0));
    for wakes in [Executor::wake_all, sweep] {
        executor.set_deadline(id, 0);
        wakes(&mut executor);
        assert_eq!(poll(&mut executor, Queue::Ready, true), None);
        assert_eq!(poll(&mut executor, Queue::Later, true), Some(id));
    }
    executor.wake(id);
    assert_eq!(poll(&mut executor, Queue::Later, false), Some(id));
    executor.wake(id);
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(id));
}

#[test]
fn a_background_task_waits_apart_however_short_its_polls_are() {
    let mut executor = executor();
    let id = spawn(&mut executor, Rank::Background);
    for _ in 0..2 {
        assert_eq!(poll(&mut executor, Queue::Ready, false), None);
        assert_eq!(poll(&mut executor, Queue::Later, false), Some(id));
        executor.wake(id);
    }
}

#[test]
fn a_sweep_wakes_exactly_the_tasks_whose_deadline_has_passed() {
    let mut executor = executor();
    let ids = [10, 20, u64::MAX].map(|at_ms| {
        let id = spawn(&mut executor, Rank::Foreground);
        executor.set_deadline(id, at_ms);
        poll(&mut executor, Queue::Ready, false);
        id
    });
    assert_eq!(executor.earliest_deadline_ms(), 10);
    assert!(!executor.sweep(9));
    assert!(!executor.has_ready());
    assert!(executor.sweep(10));
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(ids[0]));
    assert!(!executor.has_ready());
    // A deadline that is moved is found by the next sweep, which may be one too many.
    executor.set_deadline(ids[0], u64::MAX);
    assert_eq!(executor.earliest_deadline_ms(), 10);
    assert!(!executor.sweep(19));
    assert_eq!(executor.earliest_deadline_ms(), 20);
    assert!(executor.sweep(1_000));
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(ids[1]));
    assert!(!executor.has_ready());
}

#[test]
fn wakers_of_other_threads_ring_the_doorbell_once() {
    let mut executor = executor();
    let first = spawn(&mut executor, Rank::Foreground);
    let second = spawn(&mut executor, Rank::Foreground);
    let (_, polled) = executor.start_poll(Queue::Ready).unwrap();
    let wakers = [polled.waker.clone(), polled.waker.clone()];
    executor.finish_poll(first, Some((polled, false)));
    let (_, polled) = executor.start_poll(Queue::Ready).unwrap();
    let of_second = polled.waker.clone();
    executor.finish_poll(second, Some((polled, false)));

    let remote = executor.remote.clone();
    let wake = move || wakers.into_iter().chain([of_second]).for_each(Waker::wake);
    std::thread::spawn(wake).join().unwrap();
    assert!(!executor.has_ready(), "another thread does not touch the queues");
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&remote.doorbell, &mut count), Ok(8));
    assert_eq!(u64::from_ne_bytes(count), 1, "the loop is woken once");
    executor.collect_remote();
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(first));
    assert_eq!(poll(&mut executor, Queue::Ready, false), Some(second));
    executor.collect_remote();
    assert!(!executor.has_ready());
    assert_eq!(rustix::io::read(&remote.doorbell, &mut count), Err(Errno::AGAIN));
}

#[test]
fn taken_tasks_leave_empty_queues() {
    let mut executor = executor();
    let id = spawn(&mut executor, Rank::Foreground);
    spawn(&mut executor, Rank::Background);
    drop(executor.take_tasks());
    executor.wake(id);
    assert!(!executor.has_ready());
}

#[test]
fn a_contained_panic_is_returned_and_the_outer_code_goes_on() {
    let nested = contain(|| {
        assert_eq!(contain(|| panic!("in the test: a contained panic")), Err::<(), _>(Panicked));
        is_contained()
    });
    assert_eq!(nested, Ok(true), "the outer code is contained still");
    assert!(!is_contained());
}

#[test]
fn a_panic_within_a_poll_restores_the_outer_task() {
    let [outer, inner] = [1, 2].map(|index| TaskId { index, generation: 1 });
    let _ = as_current(outer, || {
        let panicked =
            contain(|| as_current(inner, || panic!("in the test: {:?}", current_task())));
        assert!(panicked.is_err());
        assert_eq!(current_task(), outer);
    });
    assert_eq!(CURRENT.get(), None);
}
