//! Workers on the core of the loop. A machine with one core has nothing to test.

use super::*;
use crate::rings::PolledRings;
use outboard_reactor::{CoreBinding, sleep};
use outboard_supervisor::cpu;
use outboard_supervisor::plan::placement::{INTERVAL_MS, Interval, Load};
use outboard_supervisor::thread_times::ThreadTimes;
use rustix::thread::gettid;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two threads cannot have the same core: one test at a time is bound.
fn alone() -> MutexGuard<'static, ()> {
    static BOUND: Mutex<()> = Mutex::new(());
    BOUND.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_loop_of_several_cores(test: impl AsyncFnOnce() + 'static) {
    let _guard = alone();
    if cpu::cores() > 1 {
        in_loop(async move { test().await });
    }
}

/// A ready worker whose process is this thread.
fn join(pool: &Rc<Pool>, number: u64) -> StandIn {
    let worker = StandIn::join(pool, number);
    pool.core
        .with_worker(number, |worker| worker.process.pid = Some(gettid().as_raw_nonzero().get()));
    worker
}

/// What the pool measures depends on what else the machine does: the plan gets other figures.
fn place(pool: &Pool) {
    pool.dispatcher.placement.record_request();
    pool.dispatcher.placement.measure(now_ms(), pool.core.members.borrow().roster.own());
    let quick = Interval { elapsed_ms: 100, requests: 100, load: Some(Load::default()) };
    for at in 1..=100 {
        pool.dispatcher.placement.plan.borrow_mut().decide(at * 100, &quick);
    }
    pool.dispatcher.placement.place_ready_workers(&pool.core);
}

fn placed(pool: &Pool) -> Vec<u64> {
    let workers = pool.dispatcher.placement.workers.borrow();
    workers.iter().filter(|worker| worker.is_placed).map(|worker| worker.number).collect()
}

/// Uses a processor for this long, as a request does that computes.
fn compute(ms: u64) {
    let mut times = ThreadTimes::of_this_thread().unwrap();
    let mut used_ns = 0;
    while used_ns < ms * 1_000_000 {
        std::thread::yield_now();
        used_ns += times.advance().unwrap().run_ns;
    }
}

#[test]
fn a_long_computation_lets_all_workers_go_at_once() {
    in_loop_of_several_cores(async || {
        let pool = forking_pool(sequential());
        let (_first, mut second) = (join(&pool, 1), join(&pool, 2));
        assert_eq!(pool.prepare_sleep(), u64::MAX);
        place(&pool);
        assert_eq!(placed(&pool), [1, 2]);
        submit(&pool);
        second.start_next();
        assert_eq!(pool.prepare_sleep(), u64::MAX, "an event of the loop is soon enough");
        compute(2);
        pool.dispatcher.placement.watch_requests(&pool.core, now_ms() + 2);
        pool.dispatcher.placement.watch_requests(&pool.core, now_ms() + 3);
        assert_eq!(placed(&pool), [1, 2], "it is long from now on");
        compute(2);
        pool.dispatcher.placement.watch_requests(&pool.core, now_ms() + 5);
        assert!(placed(&pool).is_empty());
        assert!(!pool.dispatcher.placement.plan.borrow().is_placed());
        assert_eq!(pool.prepare_sleep(), u64::MAX);
        assert!(!pool.dispatcher.placement.is_active() && CoreBinding::bind().is_some());
    });
}

#[test]
fn workers_are_placed_once_they_are_ready() {
    in_loop_of_several_cores(async || {
        let pool = forking_pool(sequential());
        let _first = join(&pool, 1);
        let mut second = StandIn::starting(&pool, 2);
        pool.core.with_worker(2, |worker| worker.process.forked(std::process::id() as i32));
        place(&pool);
        assert_eq!(placed(&pool), [1]);
        second.send(FrameKind::Ready, Tag::default(), &[]);
        poll(&pool);
        place(&pool);
        assert_eq!(placed(&pool), [1, 2]);
        pool.dispatcher.placement.let_worker_go(&pool.core, 1);
        assert_eq!(placed(&pool), [2], "another thread gets it");
    });
}

#[test]
fn a_placement_ends_without_requests_and_before_the_manager_rests() {
    in_loop_of_several_cores(async || {
        let pool = forking_pool(sequential());
        let _worker = join(&pool, 1);
        pool.resize(now_ms());
        let at_ms = now_ms() + 1_000;
        assert_eq!(next_tick_ms(&pool, at_ms), u64::MAX);
        place(&pool);
        assert_eq!(next_tick_ms(&pool, at_ms), at_ms + 100);
        pool.dispatcher.placement.place_workers(&pool.core, at_ms);
        assert!(placed(&pool).is_empty());
        assert_eq!(next_tick_ms(&pool, at_ms), u64::MAX);
    });
}

#[test]
fn a_pool_that_retires_or_has_no_zygote_has_no_placed_workers() {
    in_loop_of_several_cores(async || {
        let pool = forking_pool(sequential());
        let _worker = join(&pool, 1);
        place(&pool);
        pool.zygote_exited();
        assert!(!pool.dispatcher.placement.is_active());
        let pool = forking_pool(sequential());
        let _worker = join(&pool, 1);
        place(&pool);
        pool.core.lifecycle.enter(Phase::Retiring);
        pool.dispatcher.placement.place_workers(&pool.core, now_ms());
        assert!(!pool.dispatcher.placement.is_active());
    });
}

#[test]
fn quick_requests_have_their_workers_placed() {
    in_loop_of_several_cores(async || {
        let pool = forking_pool(sequential());
        let mut worker = join(&pool, 1);
        // A busy machine lets this thread wait: the core counts as full then.
        let began_ms = now_ms();
        while placed(&pool).is_empty() {
            sleep(INTERVAL_MS).await;
            for _ in 0..10 {
                submit(&pool);
                worker.process_next(&pool);
            }
            pool.dispatcher.placement.place_workers(&pool.core, now_ms());
            assert!(now_ms() < began_ms + 120_000);
        }
    });
}

#[test]
fn tasks_and_large_pools_are_not_placed() {
    in_loop_of_several_cores(async || {
        let of_tasks = PoolSettings { may_share_core: false, ..sequential() };
        let pool = forking_pool(of_tasks);
        let mut worker = StandIn::join(&pool, 1);
        for interval in 1..=20 {
            (0..10).for_each(|_| pool.dispatcher.placement.record_request());
            pool.dispatcher.placement.place_workers(&pool.core, now_ms() + interval * 100);
        }
        assert!(!pool.dispatcher.placement.is_active());
        assert!(worker.receive().is_none());
        let pool = forking_pool(PoolSettings { max: Some(20), ..sequential() });
        let mut workers: Vec<_> = (1..=17).map(|number| join(&pool, number)).collect();
        let load = || {
            pool.dispatcher.placement.record_request();
            let members = pool.core.members.borrow();
            pool.dispatcher.placement.measure(now_ms(), members.roster.own()).load
        };
        sleep(20).await;
        assert_eq!(load(), None);
        // Those that a burst has left behind are not counted.
        sleep(20).await;
        submit(&pool);
        workers[16].process_next(&pool);
        assert!(load().is_some());
    });
}
