//! Pools that are replaced by a successor.

use super::threads::Threads;
use super::*;
use outboard_reactor::testing::wait_for;
use outboard_reactor::yield_now;

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
        pool.core.lifecycle.demand().clear();
        pool.continue_retiring();
        assert_eq!(states().iter().filter(|state| **state == State::Idle).count(), 1);
        drop(second);
        assert!(pool.core.lifecycle.demand().poll().is_ready(), "the manager is woken");
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
        assert!(!pool.core.lifecycle.expects_requests());
        assert_eq!(end_of(&queued), failed(Reason::Draining));
        assert_eq!(pool.status().forks, 0);
    });
}

#[test]
fn borrowed_workers_finish_queued_requests_when_all_retire() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let (running, queued) = (submit(&threads.pools[2]), submit(&threads.pools[2]));
        threads.settle().await;
        threads.pools.iter().for_each(|pool| pool.retire(5_000));
        threads.settle().await;
        assert!(!threads.pools[0].core.members.borrow().is_empty(), "its worker is lent");
        worker.process_next(&threads.pools[2]);
        worker.process_next(&threads.pools[2]);
        assert_eq!((end_of(&running), end_of(&queued)), (COMPLETE, COMPLETE));
        assert_eq!(worker.state(&threads.pools[2]), Some(State::Draining));
        threads.pools[0].worker_exited(1, Some(0), "exited with code 0");
        threads.settle().await;
        assert!(threads.pools.iter().all(|pool| pool.core.members.borrow().is_empty()));
        assert_eq!(threads.pools.iter().map(|pool| pool.status().forks).sum::<u64>(), 0);
    });
}

#[test]
fn a_retiring_thread_without_a_worker_forks_one_for_its_queue() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _queued = submit(&threads.pools[1]);
        threads.settle().await;
        threads.pools.iter().for_each(|pool| pool.retire(5_000));
        threads.settle().await;
        assert_eq!(threads.pools[1].status().forks, 1);
    });
}

#[test]
fn a_worker_on_its_way_to_a_retiring_pool_ends_there() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.pools.iter().for_each(|pool| pool.retire(5_000));
        threads.settle().await;
        assert_eq!(worker.state(&threads.pools[1]), Some(State::Draining));
        threads.pools[0].worker_exited(1, Some(0), "exited with code 0");
        threads.settle().await;
        assert!(threads.pools.iter().all(|pool| pool.core.members.borrow().is_empty()));
    });
}

#[test]
fn the_first_pool_remains_until_those_of_all_threads_have_ended() {
    in_loop(async {
        let threads = Threads::sequential(3);
        threads.pools.iter().for_each(|pool| pool.retire(0));
        let is_done = || threads.pools[0].is_done();
        assert!(!is_done() && threads.pools[1].is_done());
        threads.pools[1].core.shard.close();
        threads.settle().await;
        assert!(!is_done());
        threads.pools[2].core.shard.close();
        threads.settle().await;
        assert!(is_done());
    });
}

#[test]
fn the_first_pool_does_not_wait_for_pools_that_are_never_started() {
    in_loop(async {
        let shards = PoolShards::new(3);
        let first = pool_of_shard(sequential(), shards.place(0), Target::Off);
        follow_messages(&first);
        let second = pool_of_shard(sequential(), shards.place(1), Target::Off);
        follow_messages(&second);
        first.retire(0);
        second.retire(0);
        shards.give_up();
        yield_now().await;
        yield_now().await;
        assert!(!first.is_done(), "the second was started");
        second.core.lifecycle.enter(Phase::Gone);
        second.core.shard.close();
        wait_for("the end", || first.is_done().then_some(())).await;
    });
}

#[test]
fn a_pool_at_its_end_handles_what_was_sent_to_it() {
    in_loop(async {
        let shards = PoolShards::new(2);
        let pools = [0, 1].map(|at| pool_of_shard(sequential(), shards.place(at), Target::Off));
        let [owner, other] = &pools;
        let _worker = StandIn::join_forked(owner, 1);
        other.core.lifecycle.enter(Phase::Gone);
        other.core.shard.close();
        // Its mailbox is open until its task has run.
        owner.dispatcher.lend_idle(1);
        assert_eq!(owner.core.members.borrow().lent.len(), 1);
        pools.iter().for_each(follow_messages);
        wait_for("the worker", || owner.core.members.borrow().roster.slot_of(1)).await;
        assert!(owner.core.members.borrow().lent.is_empty());
        owner.dispatcher.lend_idle(1);
        assert_eq!(
            owner.core.members.borrow().roster.slot_of(1),
            Some(0),
            "it accepts none any more"
        );
    });
}
