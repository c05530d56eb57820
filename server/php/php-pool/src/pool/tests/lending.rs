//! Workers that are lent to other threads, and come back.

use super::threads::Threads;
use super::*;
use crate::pool::lending::BORROWED_IDLE_MS;
use crate::pool::lending::messages::WorkerTransfer;
use outboard_reactor::{now_ms, sleep};
use outboard_ring::doorbell::Doorbell;
use outboard_supervisor::worker::WorkerProcess;

#[test]
fn a_request_without_a_worker_borrows_an_idle_one() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let exchange = submit(&threads.pools[1]);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [1]);
        assert_eq!(threads.known_borrower(0, 1), Some(1));
        worker.process_next(&threads.pools[1]);
        assert_eq!(end_of(&exchange), COMPLETE);
        let next = submit(&threads.pools[1]);
        worker.process_next(&threads.pools[1]);
        assert_eq!(end_of(&next), COMPLETE, "it has stayed");
    });
}

#[test]
fn the_next_idle_worker_is_lent_if_none_is_idle() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let [lender, _, borrower] = &threads.pools[..] else { unreachable!() };
        let mut worker = StandIn::join_forked(lender, 1);
        let first = submit(lender);
        let second = submit(borrower);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0]);
        worker.process_next(lender);
        threads.settle().await;
        worker.process_next(borrower);
        assert_eq!((end_of(&first), end_of(&second)), (COMPLETE, COMPLETE));
    });
}

#[test]
fn a_wish_ends_with_its_request() {
    in_loop(async {
        for is_abandoned in [true, false] {
            let threads = Threads::new(2, || PoolSettings { queue_timeout_ms: 0, ..sequential() });
            let exchange = submit(&threads.pools[1]);
            assert_eq!(threads.pools[0].core.shard.queued_elsewhere(), 1);
            if is_abandoned {
                threads.pools[1].abandon(&exchange);
            } else {
                threads.pools[1].core.expire_queue(now_ms());
            }
            assert_eq!(threads.pools[0].core.shard.queued_elsewhere(), 0);
            let _worker = StandIn::join_forked(&threads.pools[0], 1);
            threads.settle().await;
            assert_eq!(threads.threads_of(1), [0]);
        }
    });
}

#[test]
fn an_outdated_hint_leaves_no_request_beside_an_idle_worker() {
    in_loop(async {
        let threads = Threads::sequential(3);
        // Each seems to have an idle worker, and has none.
        threads.pools[..2].iter().for_each(|pool| pool.core.shard.publish(1, 0));
        let exchange = submit(&threads.pools[2]);
        threads.settle().await;
        let mut worker = StandIn::join_forked(&threads.pools[1], 2);
        threads.settle().await;
        worker.process_next(&threads.pools[2]);
        assert_eq!(end_of(&exchange), COMPLETE);
    });
}

#[test]
fn a_borrowed_worker_that_is_idle_goes_back() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let exchange = submit(&threads.pools[1]);
        threads.settle().await;
        threads.pools[1].core.lifecycle.demand().clear();
        assert!(next_tick_ms(&threads.pools[1], now_ms()) < u64::MAX);
        threads.pools[1].core.lifecycle.sleep(false, true);
        worker.process_next(&threads.pools[1]);
        assert!(threads.pools[1].core.lifecycle.demand().poll().is_ready(), "its manager is woken");
        threads.pools[1].dispatcher.return_unneeded(now_ms() + BORROWED_IDLE_MS - 1);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [1]);
        threads.pools[1].dispatcher.return_unneeded(now_ms() + BORROWED_IDLE_MS);
        threads.settle().await;
        assert_eq!((threads.threads_of(1), threads.known_borrower(0, 1)), (vec![0], None));
        let next = submit(&threads.pools[0]);
        worker.process_next(&threads.pools[0]);
        assert_eq!((end_of(&exchange), end_of(&next)), (COMPLETE, COMPLETE));
    });
}

#[test]
fn a_worker_that_is_lent_on_is_known_to_its_owner() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let mut ends = Vec::new();
        for at in [1, 2, 1, 0, 2] {
            ends.push(submit(&threads.pools[at]));
            threads.settle().await;
            assert_eq!(threads.threads_of(1), [at]);
            assert_eq!(threads.known_borrower(0, 1), (at != 0).then_some(at));
            worker.process_next(&threads.pools[at]);
        }
        assert!(ends.iter().all(|exchange| end_of(exchange) == COMPLETE));
    });
}

/// The thread that lends a worker on may be interrupted, and the worker be back with its owner and lent again before.
#[test]
fn the_owner_knows_of_a_move_before_the_worker_arrives() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.deliver(1).await;
        threads.pools[1].dispatcher.lend_idle(2);
        assert!(matches!(threads.next_message(0).await, Some(Message::Moved { borrower: 2, .. })));
    });
}

#[test]
fn a_worker_stays_if_the_other_thread_has_ended() {
    in_loop(async {
        let mut threads = Threads::sequential(3);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.end(2);
        threads.pools[0].dispatcher.lend_idle(2);
        assert_eq!((threads.threads_of(1), threads.known_borrower(0, 1)), (vec![0], None));
        threads.pools[0].dispatcher.lend_idle(1);
        threads.settle().await;
        threads.pools[1].dispatcher.lend_idle(2);
        threads.settle().await;
        assert_eq!((threads.threads_of(1), threads.known_borrower(0, 1)), (vec![1], Some(1)));
        let exchange = submit(&threads.pools[1]);
        worker.process_next(&threads.pools[1]);
        assert_eq!(end_of(&exchange), COMPLETE);
    });
}

#[test]
fn a_worker_that_arrives_at_a_pool_that_is_gone_goes_back() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.pools[1].core.lifecycle.enter(Phase::Gone);
        threads.settle().await;
        assert_eq!((threads.threads_of(1), threads.known_borrower(0, 1)), (vec![0], None));
    });
}

#[test]
fn a_worker_that_cannot_be_taken_over_is_killed_and_not_lent() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        assert!(matches!(threads.next_message(1).await, Some(Message::Worker(_))));
        // A file cannot be watched: epoll_ctl(2) fails with EPERM.
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let (mut process, _) =
            WorkerProcess::prepare(1, outboard_ring::channel::Capacities::DEFAULT, 0).unwrap();
        process.forked(-1);
        let doorbell = Doorbell::from_fd(file.into());
        threads.pools[1].dispatcher.receive_worker(WorkerTransfer { process, doorbell });
        assert!(matches!(
            threads.next_message(0).await,
            Some(Message::Signal { number: 1, signal: 9 })
        ));
        threads.settle().await;
        assert_eq!((threads.threads_of(1), threads.known_borrower(0, 1)), (vec![], None));
        assert!(threads.pools[0].core.shard.all_pids().is_empty());
        threads.pools[0].worker_exited(1, None, "was killed by signal 9");
        threads.settle().await;
    });
}

#[test]
fn a_pool_is_ready_although_its_workers_are_lent() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _worker = StandIn::join_forked(&threads.pools[1], 2);
        threads.pools[1].dispatcher.sizing.borrow_mut().bounds =
            pool(1).dispatcher.sizing.borrow().bounds;
        threads.pools[1].dispatcher.lend_idle(0);
        assert_eq!(threads.pools[1].ready().await, Ok(()));
    });
}

#[test]
fn forks_for_one_request_are_lent_and_replaced_by_their_owner() {
    in_loop(async {
        let threads = Threads::new(2, || PoolSettings {
            min: Some(1),
            max: Some(1),
            ..settings(1, Isolation::Rewind)
        });
        let mut fork = StandIn::join_forked(&threads.pools[0], 1);
        let exchange = submit(&threads.pools[1]);
        threads.settle().await;
        let tag = fork.start_next();
        fork.send(FrameKind::Body, tag, b"x");
        fork.finish(tag, true);
        threads.settle().await;
        assert_eq!(end_of(&exchange), COMPLETE);
        threads.pools[0].worker_exited(1, Some(0), "exited with code 0");
        threads.settle().await;
        let forks = |at: usize| threads.pools[at].status().forks;
        assert_eq!((forks(0), forks(1)), (1, 0));
        assert_eq!(threads.known_borrower(0, 1), None);
    });
}

#[test]
fn a_lent_worker_counts_for_its_owner_and_is_sized_there() {
    in_loop(async {
        let threads = Threads::new(2, || PoolSettings { min: Some(2), ..sequential() });
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.settle().await;
        threads.pools[0].resize(now_ms());
        assert_eq!(threads.pools[0].status().forks, 0, "it has its minimum");
        threads.pools[1].resize(now_ms());
        assert_eq!(threads.pools[1].status().forks, 1, "a borrowed one does not count");
    });
}

#[test]
fn pools_of_two_loops_lend_to_each_other() {
    let shards = PoolShards::new(2);
    let (other, is_over) = (shards.place(1), std::sync::Arc::new(AtomicU64::new(0)));
    let ended = is_over.clone();
    let thread = std::thread::spawn(move || {
        in_loop(async move {
            let pool = pool_of_shard(sequential(), other, Target::Off);
            follow_messages(&pool);
            let exchange = submit(&pool);
            while end_of(&exchange).is_none() {
                poll(&pool);
                pool.dispatcher.return_unneeded(now_ms());
                sleep(1).await;
            }
            ended.store(1, Ordering::SeqCst);
            while pool.core.members.borrow().roster.all().next().is_some() {
                pool.dispatcher.return_unneeded(now_ms() + BORROWED_IDLE_MS);
                sleep(1).await;
            }
            pool.core.lifecycle.enter(Phase::Gone);
            pool.core.shard.close();
        });
    });
    in_loop(async move {
        let pool = pool_of_shard(sequential(), shards.place(0), Target::Off);
        follow_messages(&pool);
        let mut worker = StandIn::join_forked(&pool, 1);
        while is_over.load(Ordering::SeqCst) == 0 {
            poll(&pool);
            if let Some((FrameKind::Request, tag)) = worker.receive() {
                assert!(worker.channel.start(tag));
                worker.respond(tag, b"x");
            }
            sleep(1).await;
        }
        while worker.state(&pool).is_none() {
            sleep(1).await;
        }
        assert!(pool.core.members.borrow().lent.is_empty());
    });
    thread.join().unwrap();
}
