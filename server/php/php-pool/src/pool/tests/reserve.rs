//! A worker in reserve.

use super::*;
use outboard_ring::control::{Rewind, WritesBy};
use std::sync::atomic::Ordering;

/// A pool of so many workers, which are rewound.
fn rewinding_pool(max: usize) -> Rc<Pool> {
    let pool = forking_pool(PoolSettings { min: Some(1), max: Some(max), ..sequential() });
    pool.core.php.borrow_mut().boot.rewind =
        Some(Rewind { writes_by: WritesBy::PageMap, snapshot_bytes: 1 });
    pool
}

/// A worker in reserve that is ready.
fn reserve(pool: &Rc<Pool>, number: u64) -> StandIn {
    let mut worker = StandIn::starting(pool, number);
    pool.core.with_worker(number, |worker| worker.is_reserve = true);
    worker.send(FrameKind::Ready, Tag::default(), &[]);
    poll(pool);
    worker
}

/// A pool of one worker, which has begun the first of two requests, with one in reserve.
fn busy_pool() -> (Rc<Pool>, StandIn, StandIn, [Rc<Exchange>; 2], Tag) {
    let pool = rewinding_pool(1);
    let mut worker = StandIn::join(&pool, 100);
    let reserve = reserve(&pool, 101);
    let requests = [submit(&pool), submit(&pool)];
    let first = worker.start_next();
    (pool, worker, reserve, requests, first)
}

fn states(pool: &Pool) -> Vec<String> {
    pool.status().workers.into_iter().map(|worker| worker.state).collect()
}

#[test]
fn a_pool_that_may_not_grow_keeps_one() {
    in_loop(async {
        let pool = rewinding_pool(1);
        pool.keep_reserve();
        assert_eq!(states(&pool), [""; 0], "a worker comes first");
        let _worker = StandIn::join(&pool, 100);
        for _ in 0..3 {
            pool.keep_reserve();
            assert_eq!(states(&pool), ["idle", "reserve"]);
            assert_eq!(pool.core.members.borrow().active(), 1);
        }
    });
}

#[test]
fn a_pool_whose_workers_are_not_rewound_keeps_none() {
    in_loop(async {
        let pool = rewinding_pool(1);
        pool.core.php.borrow_mut().boot.rewind = None;
        let _worker = StandIn::join(&pool, 100);
        pool.keep_reserve();
        assert_eq!(states(&pool), ["idle"]);
    });
}

#[test]
fn it_gets_no_request_until_a_worker_dies() {
    in_loop(async {
        let (pool, _worker, mut reserve, requests, _) = busy_pool();
        poll(&pool);
        assert_eq!(reserve.receive(), None);
        reap(&pool, 100);
        assert_eq!(end_of(&requests[0]), CRASHED);
        reserve.process_next(&pool);
        assert_eq!(end_of(&requests[1]), COMPLETE);
        pool.keep_reserve();
        assert_eq!(states(&pool).iter().filter(|state| *state == "reserve").count(), 1);
    });
}

#[test]
fn it_takes_the_place_of_a_worker_that_announces_its_death() {
    in_loop(async {
        let (pool, worker, mut reserve, requests, _) = busy_pool();
        worker.channel.dying_mark().store(1, Ordering::Release);
        poll(&pool);
        reserve.process_next(&pool);
        assert_eq!(end_of(&requests[1]), COMPLETE);
        assert_eq!(worker.state(&pool), Some(State::Draining));
        reap(&pool, 100);
        assert_eq!(end_of(&requests[0]), CRASHED);
        assert_eq!(pool.status().crashes, 1);
    });
}

#[test]
fn a_worker_that_only_announces_its_death_is_killed() {
    in_loop(async {
        let pool = rewinding_pool(1);
        let mut worker = StandIn::join(&pool, 100);
        let _request = submit(&pool);
        worker.start_next();
        worker.channel.dying_mark().store(1, Ordering::Release);
        poll(&pool);
        assert_eq!(worker.state(&pool), Some(State::Draining));
        for seconds in 1..20 {
            enforce_deadlines(&pool, now_ms() + 1000 * seconds);
        }
        assert_eq!(worker.state(&pool), Some(State::Killing));
    });
}

#[test]
fn it_follows_a_worker_that_leaves() {
    in_loop(async {
        let (pool, mut worker, mut reserve, requests, tag) = busy_pool();
        worker.finish(tag, true);
        poll(&pool);
        reserve.process_next(&pool);
        assert_eq!(end_of(&requests[1]), COMPLETE);
    });
}

#[test]
fn one_that_starts_is_the_successor_as_well() {
    in_loop(async {
        let pool = rewinding_pool(1);
        let _worker = StandIn::join(&pool, 100);
        let mut starting = StandIn::starting(&pool, 101);
        pool.core.with_worker(101, |worker| worker.is_reserve = true);
        reap(&pool, 100);
        let request = submit(&pool);
        starting.send(FrameKind::Ready, Tag::default(), &[]);
        poll(&pool);
        starting.process_next(&pool);
        assert_eq!(end_of(&request), COMPLETE);
    });
}

#[test]
fn a_pool_that_shrinks_has_none() {
    in_loop(async {
        let pool = rewinding_pool(2);
        let mut workers = vec![StandIn::join(&pool, 100), StandIn::join(&pool, 101)];
        workers.push(reserve(&pool, 102));
        pool.resize(now_ms() + 60_000);
        let is_draining = |worker: &&StandIn| worker.state(&pool) == Some(State::Draining);
        let draining: Vec<u64> =
            workers.iter().filter(is_draining).map(|worker| worker.number).collect();
        assert_eq!(draining, [100, 102]);
        draining.into_iter().for_each(|number| reap(&pool, number));
        pool.keep_reserve();
        assert_eq!(states(&pool), ["idle"]);
    });
}

#[test]
fn a_pool_that_retires_ends_it() {
    in_loop(async {
        let pool = rewinding_pool(1);
        let worker = StandIn::join(&pool, 100);
        let reserve = reserve(&pool, 101);
        pool.retire(1_000);
        assert_eq!([worker.state(&pool), reserve.state(&pool)], [Some(State::Draining); 2]);
    });
}
