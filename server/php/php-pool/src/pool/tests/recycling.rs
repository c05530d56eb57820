//! Recycled, drained and used-up workers.

use super::*;

#[test]
fn a_draining_worker_finishes_its_requests_and_gets_no_others() {
    in_loop(async {
        let pool = pool(3);
        let mut leaver = StandIn::join(&pool, 1);
        let (a, b, unstarted) = (submit(&pool), submit(&pool), submit(&pool));
        let (first, second) = (leaver.start_next(), leaver.start_next());
        leaver.finish(first, true);
        poll(&pool);
        assert_eq!(end_of(&a), COMPLETE);
        assert_eq!(leaver.state(&pool), Some(State::Draining));
        let mut other = StandIn::join(&pool, 2);
        let tag = other.start_next();
        other.respond(tag, b"x");
        leaver.respond(second, b"y");
        poll(&pool);
        assert_eq!((end_of(&unstarted), end_of(&b)), (COMPLETE, COMPLETE));
        submit(&pool);
        other.start_next();
        pool.reap(1, Some(0), "exited with code 0");
        assert_eq!(pool.status().crashes, 0);
    });
}

#[test]
fn a_used_fork_counts_neither_as_crashed_nor_as_recycled() {
    in_loop(async {
        let pool = pool_of(settings(1, Isolation::Rewind));
        let (mut one, mut two) = (StandIn::join(&pool, 1), StandIn::join(&pool, 2));
        let (a, b) = (submit(&pool), submit(&pool));
        let tag = two.start_next();
        two.respond(tag, b"x");
        let tag = one.start_next();
        one.send(FrameKind::Body, tag, b"y");
        one.finish(tag, true);
        poll(&pool);
        assert_eq!((end_of(&a), end_of(&b)), (COMPLETE, COMPLETE));
        assert_eq!(one.state(&pool), Some(State::Draining));
        pool.reap(1, Some(0), "exited with code 0");
        let status = pool.status();
        assert_eq!((status.crashes, status.recycled, status.workers.len()), (0, 0, 1));
        assert_eq!((status.mode.as_str(), status.isolation.as_deref()), ("worker", Some("rewind")));
    });
}

#[test]
fn a_worker_is_recycled_once_its_successor_is_ready() {
    in_loop(async {
        let recycle_requests = Some(2);
        let pool = pool_of(PoolSettings { recycle_requests, ..settings(1, Isolation::Reset) });
        let mut old = StandIn::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            let tag = old.start_next();
            old.respond(tag, b"x");
            poll(&pool);
        }
        assert_eq!(old.state(&pool), Some(State::Idle));
        submit(&pool);
        let tag = old.start_next();
        begin_replacement(&pool, 1, 2);
        let _successor = StandIn::join(&pool, 2);
        old.respond(tag, b"x");
        poll(&pool);
        assert_eq!(old.state(&pool), Some(State::Draining));
        assert_eq!(old.receive().map(|(kind, _)| kind), Some(FrameKind::Stop));
        assert_eq!((pool.dispatcher.replacements.len(), pool.status().recycled), (0, 1));
    });
}

#[test]
fn a_classic_worker_is_recycled_without_a_successor() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(PoolSettings { recycle_requests: Some(2), ..classic() });
        let mut worker = StandIn::join(&pool, 1);
        submit(&pool);
        worker.process_next(&pool);
        assert_eq!(worker.state(&pool), Some(State::Idle));
        submit(&pool);
        worker.process_next(&pool);
        assert_eq!(worker.state(&pool), Some(State::Draining));
        assert_eq!(pool.status().recycled, 1);
        log.has("a worker is replaced: it has served 2 requests");
    });
}

#[test]
fn only_a_quarter_of_the_workers_is_recycled_at_a_time() {
    in_loop(async {
        let pool = pool_of(PoolSettings { recycle_memory_bytes: Some(1 << 20), ..classic() });
        let workers: Vec<_> = (1..=8).map(|number| StandIn::join(&pool, number)).collect();
        pool.core
            .members
            .borrow_mut()
            .roster
            .all_mut()
            .for_each(|worker| worker.process.own_bytes = 2 << 20);
        pool.dispatcher.recycle_idle();
        let is_draining = |worker: &&StandIn| worker.state(&pool) == Some(State::Draining);
        assert_eq!(workers.iter().filter(is_draining).count(), 2);
        pool.dispatcher.recycle_idle();
        assert_eq!(workers.iter().filter(is_draining).count(), 2);
        assert_eq!(pool.status().recycled, 2);
    });
}

#[test]
fn a_successor_is_forked_before_a_resident_worker_is_drained() {
    in_loop(async {
        let recycle = PoolSettings { recycle_requests: Some(1), ..sequential() };
        let pool = forking_pool(recycle);
        let mut old = StandIn::join(&pool, 100);
        submit(&pool);
        old.process_next(&pool);
        assert_eq!(old.state(&pool), Some(State::Idle), "it serves until the successor is ready");
        let replacements = &pool.dispatcher.replacements;
        assert!(replacements.is_replaced(100) && replacements.concerns(1));
        assert_eq!((pool.status().forks, pool.dispatcher.replacements.len()), (1, 1));
        pool.dispatcher.recycle_idle();
        pool.fork_successors();
        assert_eq!(
            (pool.status().forks, pool.dispatcher.replacements.len()),
            (1, 1),
            "one successor is enough"
        );
        assert_eq!(old.state(&pool), Some(State::Idle));
    });
}

#[test]
fn a_worker_stays_if_its_successor_dies_while_it_starts() {
    in_loop(async {
        let recycle = PoolSettings { recycle_requests: Some(1), ..sequential() };
        let pool = forking_pool(recycle);
        let mut old = StandIn::join(&pool, 100);
        submit(&pool);
        old.process_next(&pool);
        pool.reap(1, Some(255), "exited with code 255");
        pool.fork_successors();
        assert_eq!(pool.dispatcher.replacements.len(), 0);
        assert_eq!(old.state(&pool), Some(State::Idle));
        pool.dispatcher.recycle_idle();
        pool.fork_successors();
        assert_eq!(
            (pool.status().forks, pool.dispatcher.replacements.len()),
            (1, 0),
            "not during the back-off"
        );
    });
}

#[test]
fn used_forks_are_replaced_up_to_the_maximum() {
    in_loop(async {
        let limits = PoolSettings { max: Some(2), ..settings(1, Isolation::Rewind) };
        let pool = forking_pool(limits);
        let (mut one, mut two) = (StandIn::join(&pool, 100), StandIn::join(&pool, 101));
        let _both = [submit(&pool), submit(&pool)];
        for worker in [&mut one, &mut two] {
            let tag = worker.start_next();
            worker.finish(tag, true);
        }
        poll(&pool);
        assert_eq!((one.state(&pool), pool.status().forks), (Some(State::Draining), 2));
        poll(&pool);
        assert_eq!(pool.status().forks, 2);
    });
}

#[test]
fn a_busy_worker_is_drained_after_its_request() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        let tag = worker.start_next();
        pool.core.drain_slot(&mut pool.core.members.borrow_mut(), 0);
        let waiting = submit(&pool);
        assert!(worker.receive().is_none());
        worker.respond(tag, b"x");
        poll(&pool);
        assert_eq!((end_of(&exchange), end_of(&waiting)), (COMPLETE, None));
        assert_eq!(worker.receive().map(|(kind, _)| kind), Some(FrameKind::Stop));
    });
}
