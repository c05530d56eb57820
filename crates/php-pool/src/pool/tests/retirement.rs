//! Pools that are replaced by a successor.

use super::*;

#[test]
fn a_retiring_pool_finishes_queued_and_running_requests() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let (running, queued) = (submit(&pool), submit(&pool));
        pool.retire(5_000);
        assert!(pool.is_retired() && !pool.is_gone());
        worker.process_next(&pool);
        worker.process_next(&pool);
        assert_eq!((end_of(&running), end_of(&queued)), (COMPLETE, COMPLETE));
        assert_eq!(worker.state(&pool), Some(State::Draining));
        assert_eq!(worker.receive().map(|(kind, _)| kind), Some(FrameKind::Stop));
    });
}

#[test]
fn idle_workers_of_a_retiring_pool_are_drained_at_once() {
    in_loop(async {
        let pool = pool(1);
        let workers = [StandIn::join(&pool, 1), StandIn::join(&pool, 2)];
        pool.retire(5_000);
        for worker in &workers {
            assert_eq!(worker.state(&pool), Some(State::Draining));
        }
    });
}

#[test]
fn one_worker_remains_for_pending_requests() {
    in_loop(async {
        let pool = pool(1);
        let workers = [StandIn::join(&pool, 1), StandIn::join(&pool, 2)];
        let pending = [pool.expect_request(), pool.expect_request()];
        pool.retire(5_000);
        let states = || workers.each_ref().map(|worker| worker.state(&pool).unwrap());
        assert_eq!(states().iter().filter(|state| **state == State::Idle).count(), 1);
        let [first, second] = pending;
        drop(first);
        pool.demand.clear();
        pool.continue_retiring();
        assert_eq!(states().iter().filter(|state| **state == State::Idle).count(), 1);
        drop(second);
        assert!(pool.demand.poll().is_ready(), "the manager is woken");
        pool.continue_retiring();
        assert_eq!(states(), [State::Draining; 2]);
    });
}

#[test]
fn a_worker_is_forked_for_pending_requests_if_all_have_exited() {
    in_loop(async {
        let pool = forking_pool(sequential());
        let pending = pool.expect_request();
        pool.retire(5_000);
        assert_eq!(pool.status().forks, 1);
        pool.continue_retiring();
        assert_eq!(pool.status().forks, 1, "one is on the way");
        drop(pending);
    });
}

#[test]
fn pending_requests_are_not_expected_after_the_drain_timeout() {
    in_loop(async {
        let pool = forking_pool(sequential());
        let _pending = pool.expect_request();
        let queued = submit(&pool);
        pool.retire(0);
        assert!(!pool.expects_requests());
        assert_eq!(end_of(&queued), failed(Reason::Draining));
        assert_eq!(pool.status().forks, 0);
    });
}
