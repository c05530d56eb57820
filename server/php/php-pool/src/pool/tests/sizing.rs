//! The size of pools.

use super::*;
use outboard_supervisor::cpu::Sample;

fn forks(pool: &Pool) -> u64 {
    pool.status().forks
}

#[test]
fn the_minimum_is_forked_at_once() {
    in_loop(async {
        let pool = forking_pool(PoolSettings { min: Some(3), ..sequential() });
        pool.resize(now_ms());
        assert_eq!((forks(&pool), pool.status().workers.len()), (3, 3));
        assert!(pool.status().sizing.starts_with("grows by 3"), "{}", pool.status().sizing);
        pool.resize(now_ms());
        assert_eq!(forks(&pool), 3);
    });
}

#[test]
fn nothing_is_forked_during_the_back_off() {
    in_loop(async {
        let pool = forking_pool(sequential());
        let _starting = StandIn::starting(&pool, 100);
        pool.reap(100, Some(255), "exited with code 255");
        pool.resize(now_ms());
        assert_eq!(forks(&pool), 0);
        pool.resize(now_ms() + 60_000);
        assert_eq!(forks(&pool), 1);
    });
}

#[test]
fn a_failed_fork_begins_a_back_off() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        pool.resize(now_ms());
        assert_eq!(forks(&pool), 0);
        log.has("cannot create a worker");
        assert!(!pool.core.php.borrow().may_fork(now_ms()));
    });
}

#[test]
fn a_pool_that_does_not_serve_is_not_resized() {
    in_loop(async {
        let pool = forking_pool(sequential());
        for phase in [Phase::Starting, Phase::Retiring, Phase::Gone] {
            pool.core.lifecycle.enter(phase);
            pool.resize(now_ms());
        }
        assert_eq!(forks(&pool), 0);
    });
}

#[test]
fn queued_requests_grow_the_pool_up_to_the_maximum() {
    in_loop(async {
        let pool = forking_pool(PoolSettings { max: Some(3), ..sequential() });
        let mut worker = StandIn::join(&pool, 100);
        let _all: Vec<_> = (0..20).map(|_| submit(&pool)).collect();
        worker.start_next();
        pool.resize(now_ms() + 10);
        assert_eq!(pool.status().workers.len(), 2, "the processors are not measured yet");
        {
            let sizing = &mut pool.dispatcher.sizing.borrow_mut();
            sizing.cpu = Sample::take(now_ms()).map(|sample| (now_ms() + 80, sample));
            sizing.cpu_busy_percent = Some(0);
        }
        pool.resize(now_ms() + 80);
        assert_eq!(pool.status().workers.len(), 3);
        pool.resize(now_ms() + 200);
        assert_eq!(pool.status().workers.len(), 3);
    });
}

#[test]
fn workers_that_were_idle_for_long_are_drained_down_to_the_minimum() {
    in_loop(async {
        let pool = pool(1);
        let workers: Vec<_> = (1..=4).map(|number| StandIn::join(&pool, number)).collect();
        pool.resize(now_ms());
        assert_eq!(pool.core.members.borrow().active(), 4, "they were not idle for long");
        for group in 1..=10 {
            pool.resize(now_ms() + 10_000 * group);
        }
        assert_eq!(pool.core.members.borrow().active(), 1);
        assert_eq!(
            workers[3].state(&pool),
            Some(State::Idle),
            "the most recently used one remains"
        );
    });
}

#[test]
fn the_measured_memory_limits_the_pool_and_is_charged_to_routes() {
    in_loop(async {
        let pool =
            pool_of(PoolSettings { max: None, memory_budget_bytes: 64 << 20, ..sequential() });
        let bounds_before = pool.status().max;
        let mut worker = StandIn::join(&pool, 1);
        let own_pid = std::process::id() as i32;
        pool.core.with_worker(1, |worker| worker.process.pid = Some(own_pid));
        submit(&pool);
        worker.process_next(&pool);
        // The smallest size before the measurement: all of the memory counts as growth.
        pool.core.with_worker(1, |worker| worker.process.own_bytes = 1);
        pool.resize(now_ms() + 2_000);
        let status = pool.status();
        assert!(status.workers[0].memory_bytes > 1 << 16, "{status:?}");
        assert_ne!(status.max, 0);
        assert_eq!(status.routes[0].route, "/a/b");
        assert_eq!(status.routes[0].growth_bytes as u64, status.workers[0].memory_bytes - 1);
        assert!(bounds_before >= 1);
    });
}
