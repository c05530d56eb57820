//! Tests of the queue, with the time as a parameter.

use super::*;
use proptest::prelude::*;

fn queue(length: usize) -> Queue {
    Queue::new(Limits { length, bytes: 10_000, backoff_ms: 100 })
}

fn task(id: u64, retries: u8) -> Task {
    Task::new(id, b"mail", vec![7; 100], retries)
}

#[test]
fn due_tasks_start_in_the_order_of_acceptance() {
    let mut queue = queue(10);
    for (id, due_ms) in [(1, 50), (2, 10), (3, 10), (4, 0)] {
        queue.accept(task(id, 0), due_ms).unwrap();
    }
    assert_eq!(queue.due_ms(), Some(0));
    let begun: Vec<u64> = std::iter::from_fn(|| queue.begin(10)).map(|task| task.id).collect();
    assert_eq!((begun, queue.due_ms()), (vec![4, 2, 3], Some(50)));
}

#[test]
fn the_back_off_doubles_until_the_retries_are_used_up() {
    let mut queue = queue(10);
    queue.accept(task(1, 2), 0).unwrap();
    let mut settlements = Vec::new();
    while let Some(task) = queue.begin(10_000) {
        settlements.push(queue.settle(task.id, Attempt::Failed, 0));
    }
    assert_eq!(settlements, [Settlement::Retry(100), Settlement::Retry(200), Settlement::GivenUp]);
    assert_eq!((queue.len(), queue.bytes()), (0, 0));
}

#[test]
fn a_lost_worker_costs_no_retry_but_losses_are_limited() {
    let mut queue = queue(10);
    queue.accept(task(1, 0), 0).unwrap();
    let mut attempts = 0;
    while let Some(task) = queue.begin(0) {
        attempts += 1;
        let _ = queue.settle(task.id, Attempt::Lost, 0);
    }
    assert_eq!(attempts, MAX_LOSSES);
}

#[test]
fn what_no_worker_has_begun_is_no_attempt() {
    let mut queue = queue(10);
    queue.accept(task(1, 0), 0).unwrap();
    for now_ms in [0, 100, 200] {
        let task = queue.begin(now_ms).unwrap();
        assert_eq!(task.attempts, 1);
        assert_eq!(queue.settle(task.id, Attempt::NotBegun, now_ms), Settlement::Retry(100));
    }
}

#[test]
fn the_queue_is_limited_by_number_and_by_memory() {
    let mut by_number = queue(2);
    by_number.accept(task(1, 0), 0).unwrap();
    by_number.accept(task(2, 0), 0).unwrap();
    by_number.begin(0).unwrap();
    assert_eq!(by_number.accept(task(3, 0), 0), Err(Full));
    let mut by_memory = queue(100);
    let large = Task::new(1, b"large", vec![0; 9_000], 0);
    by_memory.accept(large.clone(), 0).unwrap();
    assert_eq!(by_memory.accept(large, 0), Err(Full));
    by_memory.accept(task(2, 0), 0).unwrap();
}

#[test]
fn a_successor_takes_over_waiting_tasks_before_its_own() {
    let (mut old, mut new) = (queue(10), queue(1));
    (1..4).for_each(|id| old.accept(task(id, 0), 0).unwrap());
    let running = old.begin(0).unwrap();
    new.accept(task(9, 0), 0).unwrap();
    new.take_over(&mut old);
    assert_eq!((old.len(), new.waiting()), (1, 3));
    assert_eq!(old.settle(running.id, Attempt::Done, 0), Settlement::Done);
    assert_eq!(old.bytes(), 0);
    let begun: Vec<u64> = std::iter::from_fn(|| new.begin(0)).map(|task| task.id).collect();
    assert_eq!(begun, [2, 3, 9]);
    begun.iter().for_each(|id| assert_eq!(new.settle(*id, Attempt::Done, 0), Settlement::Done));
    assert_eq!(new.bytes(), 0);
}

proptest! {
    #[test]
    fn each_accepted_task_ends_and_its_memory_is_released(
        steps in prop::collection::vec(0_u8..5, 1..200),
    ) {
        let mut queue = queue(20);
        let (mut now_ms, mut accepted, mut over) = (0, 0_u64, 0_u64);
        let mut running = Vec::new();
        let mut end = |queue: &mut Queue, id, attempt, now_ms| {
            match queue.settle(id, attempt, now_ms) {
                Settlement::Retry(_) => {}
                Settlement::Done | Settlement::GivenUp => over += 1,
            }
        };
        for step in steps {
            now_ms += 50;
            match step {
                0 | 1 => accepted += u64::from(queue.accept(task(now_ms, 1), now_ms).is_ok()),
                2 => running.extend(queue.begin(now_ms).map(|task| task.id)),
                3 => if let Some(id) = running.pop() { end(&mut queue, id, Attempt::Failed, now_ms) },
                _ => if let Some(id) = running.pop() { end(&mut queue, id, Attempt::Lost, now_ms) },
            }
            prop_assert!(queue.len() <= 20 && queue.bytes() <= 10_000);
        }
        running.into_iter().for_each(|id| end(&mut queue, id, Attempt::Done, now_ms));
        while let Some(task) = queue.begin(u64::MAX) {
            end(&mut queue, task.id, Attempt::Done, now_ms);
        }
        prop_assert_eq!((accepted, queue.bytes()), (over, 0));
    }
}
