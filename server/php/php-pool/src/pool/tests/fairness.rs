//! Requests of different threads that wait for the same workers.

use super::threads::Threads;
use super::*;
use outboard_reactor::sleep;

/// More than a request may wait longer than those of other threads.
const LONG_MS: u64 = 25;

#[test]
fn a_busy_thread_gives_its_worker_to_a_request_that_waits_longer() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let [busy, other] = &threads.pools[..] else { unreachable!() };
        let mut worker = StandIn::join_forked(busy, 1);
        submit(busy);
        let waiting = submit(other);
        threads.settle().await;
        submit(busy);
        worker.process_next(busy);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0], "its own request has hardly waited less");
        sleep(LONG_MS).await;
        let next = submit(busy);
        worker.process_next(busy);
        threads.settle().await;
        worker.process_next(other);
        threads.settle().await;
        assert_eq!((end_of(&waiting), end_of(&next)), (COMPLETE, None));
        // The wish of the busy thread is granted, since no request waits here.
        worker.process_next(busy);
        assert_eq!(end_of(&next), COMPLETE);
    });
}

#[test]
fn backlogs_do_not_grow_while_a_request_elsewhere_waits_longer() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let [busy, other] = &threads.pools[..] else { unreachable!() };
        let mut worker = StandIn::join_forked(busy, 1);
        for _ in 0..4 {
            submit(busy);
            worker.process_next(busy);
        }
        let before = [submit(busy), submit(busy)];
        assert!(busy.core.members.borrow().queue.is_empty(), "one is in the backlog");
        let waiting = submit(other);
        threads.settle().await;
        sleep(LONG_MS).await;
        let late = submit(busy);
        assert_eq!(busy.core.members.borrow().queue.len(), 1);
        worker.process_next(busy);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0], "the one in the backlog was first");
        worker.process_next(busy);
        threads.settle().await;
        worker.process_next(other);
        assert!(before.iter().chain([&waiting]).all(|exchange| end_of(exchange) == COMPLETE));
        threads.settle().await;
        worker.process_next(busy);
        assert_eq!(end_of(&late), COMPLETE);
    });
}

#[test]
fn a_single_thread_overtakes_nobody() {
    in_loop(async {
        let pool = pool(1);
        submit(&pool);
        sleep(LONG_MS).await;
        assert!(!pool.dispatcher.is_overtaken(&pool.core.members.borrow()));
    });
}
