//! Workers that stay with their owner, or go back there, and what remains of those that leave.

use super::operations::forget;
use super::threads::Threads;
use super::*;
use crate::pool::operations::Operations;
use outboard_reactor::now_ms;
use outboard_ring::operation::Operation;

#[test]
fn a_worker_whose_fork_is_not_reported_yet_stays_with_its_owner() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let _worker = StandIn::join(&threads.pools[0], 1);
        let _exchange = submit(&threads.pools[1]);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0]);
    });
}

#[test]
fn a_worker_with_operations_is_not_lent() {
    #[derive(Debug, Default)]
    struct Busy(RefCell<Vec<Requester>>, Cell<bool>);
    impl Operations for Busy {
        fn begin(&self, requester: Requester, _: &Operation<'_>) {
            self.0.borrow_mut().push(requester);
            self.1.set(true);
        }
        fn forget(&self, _: WorkerId) {}

        fn has_any(&self, _: WorkerId) -> bool {
            self.1.get()
        }
    }
    in_loop(async {
        let threads = Threads::sequential(2);
        let operations = Rc::new(Busy::default());
        threads.pools[0].set_operations(operations.clone());
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let first = submit(&threads.pools[0]);
        let tag = worker.start_next();
        let second = submit(&threads.pools[1]);
        threads.settle().await;
        // It is not begun when the request ends.
        worker.send(FrameKind::Operation, Tag::default(), &forget());
        worker.respond(tag, b"x");
        threads.settle().await;
        assert_eq!((end_of(&first), threads.threads_of(1)), (COMPLETE, vec![0]));
        assert_eq!(operations.0.borrow().len(), 1);
        threads.pools[1].dispatcher.return_unneeded(now_ms());
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0]);
        operations.1.set(false);
        threads.pools[1].dispatcher.return_unneeded(now_ms());
        threads.settle().await;
        worker.process_next(&threads.pools[1]);
        assert_eq!(end_of(&second), COMPLETE);
    });
}

#[test]
fn the_operations_of_a_worker_that_is_lent_are_forgotten() {
    #[derive(Debug, Default)]
    struct Forgotten(RefCell<Vec<u64>>);
    impl Operations for Forgotten {
        fn begin(&self, _: Requester, _: &Operation<'_>) {}
        fn forget(&self, worker: WorkerId) {
            self.0.borrow_mut().push(worker.number);
        }

        fn has_any(&self, _: WorkerId) -> bool {
            false
        }
    }
    in_loop(async {
        let threads = Threads::sequential(2);
        let forgotten = Rc::new(Forgotten::default());
        threads.pools[0].set_operations(forgotten.clone());
        let _worker = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        threads.deliver(1).await;
        // It is back before they could be.
        threads.pools[1].dispatcher.lend_idle(0);
        threads.settle().await;
        assert!(forgotten.0.borrow().is_empty());
        threads.pools[0].dispatcher.lend_idle(1);
        threads.settle().await;
        assert_eq!(*forgotten.0.borrow(), [1]);
    });
}

#[test]
fn a_worker_that_is_due_goes_back_to_be_replaced() {
    in_loop(async {
        let recycle_requests = Some(1);
        let threads = Threads::new(2, || PoolSettings { recycle_requests, ..classic() });
        let mut worker = StandIn::join_forked(&threads.pools[0], 1);
        let exchanges = [submit(&threads.pools[1]), submit(&threads.pools[1])];
        threads.settle().await;
        worker.process_next(&threads.pools[1]);
        threads.settle().await;
        assert_eq!(threads.threads_of(1), [0], "although a request waits there");
        assert_eq!(worker.state(&threads.pools[0]), Some(State::Draining));
        assert_eq!(exchanges.map(|exchange| end_of(&exchange)), [COMPLETE, None]);
    });
}

#[test]
fn workers_that_are_being_replaced_stay_with_their_owner() {
    in_loop(async {
        let threads = Threads::sequential(2);
        let mut workers = [1, 3].map(|number| StandIn::join_forked(&threads.pools[0], number));
        begin_replacement(&threads.pools[0], 1, 3);
        let exchange = submit(&threads.pools[1]);
        threads.settle().await;
        assert_eq!((threads.threads_of(1), threads.threads_of(3)), (vec![0], vec![0]));
        threads.pools[0].dispatcher.replacements.remove_complete(&Default::default());
        threads.pools[1].dispatcher.return_unneeded(now_ms());
        threads.settle().await;
        assert_eq!(workers.iter_mut().filter_map(StandIn::receive).count(), 1);
        threads.pools[1].abandon(&exchange);
    });
}

#[test]
fn a_worker_beyond_the_maximum_is_drained_although_others_are_lent() {
    in_loop(async {
        let threads = Threads::new(2, || PoolSettings { max: Some(2), ..sequential() });
        let _lent = StandIn::join_forked(&threads.pools[0], 1);
        threads.pools[0].dispatcher.lend_idle(1);
        let extra = StandIn::join_forked(&threads.pools[0], 3);
        assert_eq!(extra.state(&threads.pools[0]), Some(State::Draining));
    });
}

#[test]
fn a_borrowed_worker_is_not_beyond_the_maximum() {
    in_loop(async {
        let threads = Threads::new(2, || PoolSettings { max: Some(2), ..sequential() });
        let borrowed = StandIn::join_forked(&threads.pools[0], 1);
        let mut own = StandIn::join_forked(&threads.pools[1], 2);
        let exchanges = [submit(&threads.pools[1]), submit(&threads.pools[1])];
        threads.settle().await;
        own.start_next();
        // A second own one is beyond the part of this thread.
        let _extra = StandIn::forked(&threads.pools[1], 4);
        let mut worker = borrowed;
        worker.process_next(&threads.pools[1]);
        assert_eq!(worker.state(&threads.pools[1]), Some(State::Idle));
        assert!(exchanges.iter().any(|exchange| end_of(exchange) == COMPLETE));
    });
}
