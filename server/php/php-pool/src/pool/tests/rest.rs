//! When a pool without requests may sleep.

use super::super::rest;
use super::threads::Threads;
use super::*;
use outboard_reactor::{now_ms, sleep};

const IDLE_MS: u64 = 20;

fn sleeping() -> PoolSettings {
    PoolSettings { min: Some(0), idle_timeout_ms: IDLE_MS, ..sequential() }
}

fn may_rest(pool: &Pool) -> bool {
    rest::may_begin(&pool.core, &pool.siblings, now_ms())
}

#[test]
fn a_pool_rests_once_its_workers_were_idle_for_long() {
    in_loop(async {
        let pool = forking_pool(sleeping());
        let mut worker = StandIn::join(&pool, 1);
        assert!(!may_rest(&pool));
        sleep(2 * IDLE_MS).await;
        assert!(may_rest(&pool));
        let expected = pool.expect_request();
        assert!(!may_rest(&pool), "a body is being received");
        drop(expected);
        submit(&pool);
        sleep(2 * IDLE_MS).await;
        assert!(!may_rest(&pool), "a request runs");
        worker.process_next(&pool);
        assert!(!may_rest(&pool), "it has just ended");
        sleep(2 * IDLE_MS).await;
        assert!(may_rest(&pool));
    });
}

#[test]
fn the_first_pool_rests_after_those_of_other_threads() {
    in_loop(async {
        let threads = Threads::new(2, sleeping);
        sleep(2 * IDLE_MS).await;
        assert!(!may_rest(&threads.pools[0]) && may_rest(&threads.pools[1]));
        threads.pools[1].core.shard.publish_asleep(true);
        assert!(may_rest(&threads.pools[0]));
    });
}

#[test]
fn only_a_pool_with_a_minimum_of_none_rests() {
    in_loop(async {
        let pool = forking_pool(PoolSettings { min: Some(1), ..sleeping() });
        let _worker = StandIn::join(&pool, 1);
        sleep(2 * IDLE_MS).await;
        assert!(!may_rest(&pool));
    });
}

/// Where there are fewer workers than threads.
#[test]
fn a_pool_without_workers_ticks_when_it_may_rest() {
    in_loop(async {
        let pool = forking_pool(sleeping());
        pool.core.lifecycle.wake();
        let woken_ms = now_ms();
        assert_eq!(next_tick_ms(&pool, woken_ms + 1), woken_ms + IDLE_MS);
        assert!(!may_rest(&pool));
        sleep(2 * IDLE_MS).await;
        assert!(may_rest(&pool));
    });
}
