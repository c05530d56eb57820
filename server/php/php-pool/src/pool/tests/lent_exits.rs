//! Exits and signals of workers that other threads have.

use super::threads::Threads;
use super::*;
use crate::pool::threads::FORGET_TIMEOUT_MS;
use outboard_reactor::now_ms;

const KILLED: &str = "was killed by signal 9";

/// The crashes that all pools have counted.
fn crashes(threads: &Threads) -> u64 {
    threads.pools.iter().map(|pool| pool.status().crashes).sum()
}

fn lent(threads: &Threads) -> usize {
    threads.pools.iter().map(|pool| pool.core.members.borrow().lent.len()).sum()
}

#[test]
fn the_exit_of_a_borrowed_worker_fails_its_request() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let (exchange, next) = (submit(&threads.pools[1]), submit(&threads.pools[1]));
        threads.settle().await;
        worker.start_next();
        threads.pools[0].worker_exited(1, None, KILLED);
        threads.settle().await;
        assert_eq!((end_of(&exchange), end_of(&next)), (CRASHED, None));
        assert_eq!((threads.threads_of(1), lent(&threads), crashes(&threads)), (vec![], 0, 1));
        assert!(threads.pools[0].core.shard.all_pids().is_empty());
    });
}

/// Wherever a worker is, or which message about it is on its way.
#[test]
fn an_exit_is_handled_once_wherever_the_worker_is() {
    in_loop(async {
        for delivered in 0..6 {
            let threads = Threads::sequential(3);
            let _worker = StandIn::join_forked(&threads.pools[0], 1);
            // From the owner to the second, from there to the third, and back.
            threads.pools[0].dispatcher.lend_idle(1);
            if delivered > 0 {
                threads.deliver(1).await;
                threads.pools[1].dispatcher.lend_idle(2);
            }
            if delivered > 1 {
                threads.deliver(0).await;
            }
            if delivered > 2 {
                threads.deliver(2).await;
                threads.pools[2].dispatcher.lend_idle(0);
            }
            if delivered > 3 {
                threads.deliver(0).await;
            }
            if delivered > 4 {
                threads.pools[0].dispatcher.lend_idle(2);
            }
            threads.pools[0].worker_exited(1, None, KILLED);
            threads.settle().await;
            assert_eq!((threads.threads_of(1), lent(&threads)), (vec![], 0), "{delivered}");
            assert_eq!(crashes(&threads), 1, "{delivered}");
        }
    });
}

#[test]
fn an_exit_is_handled_once_in_any_order_of_delivery() {
    in_loop(async {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let threads = Threads::sequential(3);
            let _worker = StandIn::join_forked(&threads.pools[0], 1);
            threads.pools[0].dispatcher.lend_idle(1);
            threads.deliver(1).await;
            threads.pools[1].dispatcher.lend_idle(2);
            threads.pools[0].worker_exited(1, None, KILLED);
            for at in order.into_iter().cycle().take(12) {
                threads.deliver(at).await;
            }
            threads.settle().await;
            let left = (threads.threads_of(1), lent(&threads), crashes(&threads));
            assert_eq!(left, (vec![], 0, 1), "{order:?}");
        }
    });
}

/// Its last frames may be read when its exit is handled.
#[test]
fn a_worker_that_has_exited_is_not_lent() {
    in_loop(async {
        for zygote_dies in [false, true] {
            let threads = Threads::sequential(2);
            let mut worker = StandIn::join_forked(&threads.pools[0], 1);
            let (first, second) = (submit(&threads.pools[0]), submit(&threads.pools[1]));
            threads.settle().await;
            let tag = worker.start_next();
            worker.respond(tag, b"x");
            if zygote_dies {
                threads.pools[0].zygote_exited();
            } else {
                threads.pools[0].worker_exited(1, None, KILLED);
            }
            threads.settle().await;
            assert_eq!((end_of(&first), end_of(&second)), (COMPLETE, None));
            assert_eq!((threads.threads_of(1), lent(&threads)), (vec![], 0));
        }
    });
}

#[test]
fn an_exit_is_known_to_the_owner_although_its_borrower_has_ended() {
    in_loop(async {
        let mut threads = Threads::sequential(2);
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.end(1);
        threads.pools[0].worker_exited(1, None, KILLED);
        assert_eq!(lent(&threads), 0);
    });
}

#[test]
fn the_death_of_a_zygote_fails_requests_of_its_workers_elsewhere() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let mut workers = [1, 4].map(|number| StandIn::join_forked(&threads.pools[0], number));
        let mut of_another = StandIn::join_forked(&threads.pools[1], 2);
        let exchanges = [submit(&threads.pools[1]), submit(&threads.pools[2])];
        threads.settle().await;
        of_another.process_next(&threads.pools[1]);
        let on_third = workers.iter_mut().find_map(|worker| worker.receive()).unwrap();
        assert_eq!(on_third.0, FrameKind::Request);
        workers.iter_mut().for_each(|worker| {
            worker.channel.start(on_third.1);
        });
        threads.pools[0].zygote_exited();
        threads.settle().await;
        assert_eq!(exchanges.map(|exchange| end_of(&exchange)), [COMPLETE, CRASHED]);
        assert_eq!((threads.threads_of(1), threads.threads_of(4)), (vec![], vec![]));
        assert_eq!((threads.threads_of(2), lent(&threads)), (vec![1], 0));
    });
}

#[test]
fn signals_reach_a_borrowed_worker_by_its_owner() {
    in_loop(async {
        let threads = Threads::sequential(3);
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let _exchange = submit(&threads.pools[1]);
        threads.settle().await;
        worker.start_next();
        enforce_deadlines(&threads.pools[1], now_ms() + DEADLINE_MS);
        assert!(matches!(threads.next_message(0).await, Some(Message::Signal { number: 1, .. })));
        assert!(!threads.pools[0].is_zygote_unresponsive(u64::MAX), "it was not killed");
        for later in 2..9 {
            enforce_deadlines(&threads.pools[1], now_ms() + later * DEADLINE_MS);
        }
        threads.settle().await;
        assert_eq!(worker.state(&threads.pools[1]), Some(State::Killing));
        assert!(!threads.pools[0].is_zygote_unresponsive(now_ms()));
        assert!(!threads.pools[1].is_zygote_unresponsive(u64::MAX), "it is not its worker");
        assert!(threads.pools[0].is_zygote_unresponsive(now_ms() + 60_000));
        threads.pools[0].worker_exited(1, None, KILLED);
        threads.settle().await;
        assert!(!threads.pools[0].is_zygote_unresponsive(u64::MAX));
    });
}

#[test]
fn a_pool_at_its_end_waits_for_the_borrowers_of_its_workers() {
    in_loop(async {
        let threads = Rc::new(Threads::sequential(2));
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.settle().await;
        threads.pools[0].zygote_exited();
        let others = threads.clone();
        outboard_reactor::spawn(async move { others.settle().await });
        let before_ms = now_ms();
        threads.pools[0].lent_workers_forgotten().await;
        assert_eq!(lent(&threads), 0);
        assert!(now_ms() - before_ms < FORGET_TIMEOUT_MS);
    });
}

#[test]
fn a_blocked_thread_delays_the_end_of_a_pool_for_some_time() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.pools[0].zygote_exited();
        threads.pools[0].lent_workers_forgotten().await;
        assert_eq!(lent(&threads), 1);
    });
}
