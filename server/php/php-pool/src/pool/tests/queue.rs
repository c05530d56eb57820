//! Queue time-outs and loopback requests.

use super::*;
use std::net::SocketAddr;

fn submit_local(pool: &Pool) -> Rc<Exchange> {
    let peer: SocketAddr = "127.0.0.1:4000".parse().unwrap();
    let exchange = exchange_with(b"", 1 << 20);
    pool.submit(exchange.clone(), Some(peer)).unwrap();
    exchange
}

fn is_suspect(pool: &Pool, exchange: &Rc<Exchange>, now_ms: u64) -> bool {
    pool.core
        .members
        .borrow_mut()
        .queue
        .take_suspect(now_ms)
        .is_some_and(|(suspect, ..)| Rc::ptr_eq(&suspect, exchange))
}

#[test]
fn queued_requests_time_out_one_by_one() {
    in_loop(async {
        let pool = pool(1);
        let old = submit(&pool);
        let young = Exchange::new(frame("/"), RequestBody::empty(), 2, now_ms() + 100, 1_000);
        let young = Rc::new(young);
        pool.submit(young.clone(), None).unwrap();
        let timeout_ms = pool.core.settings.queue_timeout_ms;
        pool.core.expire_queue(now_ms());
        assert_eq!(pool.status().queue_length, 2);
        pool.core.expire_queue(old.submitted_ms + timeout_ms);
        assert_eq!(end_of(&old), failed(Reason::QueueTimeout));
        assert_eq!((end_of(&young), pool.status().queue_length), (None, 1));
        pool.core.expire_queue(young.submitted_ms + timeout_ms);
        assert_eq!(end_of(&young), failed(Reason::QueueTimeout));
    });
}

#[test]
fn a_queued_request_wakes_a_slow_manager() {
    in_loop(async {
        let pool = pool(1);
        pool.core.lifecycle.sleep(true, false);
        submit(&pool);
        assert!(pool.core.lifecycle.demand().poll().is_ready());
        submit(&pool);
        assert!(pool.core.lifecycle.demand().poll().is_pending(), "one event is enough");
    });
}

#[test]
fn only_local_requests_that_wait_are_checked_for_loopback() {
    in_loop(async {
        let pool = pool(1);
        let remote = submit(&pool);
        let local = submit_local(&pool);
        assert!(!is_suspect(&pool, &local, local.submitted_ms + 49), "it may be assigned soon");
        assert!(is_suspect(&pool, &local, local.submitted_ms + 50));
        assert!(!is_suspect(&pool, &remote, remote.submitted_ms + 1_000));
    });
}

#[test]
fn a_check_for_loopback_is_repeated_after_twice_the_time() {
    in_loop(async {
        let pool = pool(1);
        let (first, second) = (submit_local(&pool), submit_local(&pool));
        let began_ms = second.submitted_ms;
        assert!(is_suspect(&pool, &first, began_ms + 50));
        assert!(is_suspect(&pool, &second, began_ms + 100), "it never was");
        assert!(is_suspect(&pool, &first, began_ms + 100), "the check may have missed its socket");
        assert!(is_suspect(&pool, &second, began_ms + 199));
        assert!(!is_suspect(&pool, &first, first.submitted_ms + 199));
        assert!(is_suspect(&pool, &first, began_ms + 200));
    });
}

#[test]
fn a_loopback_request_gets_a_worker_beyond_the_maximum() {
    in_loop(async {
        let limits = PoolSettings { max: Some(1), loopback_slots: 1, ..sequential() };
        let pool = forking_pool(limits);
        let mut worker = StandIn::join(&pool, 1);
        let _running = submit(&pool);
        worker.start_next();
        let (other, own) = (submit(&pool), submit_local(&pool));
        pool.prioritize(&own);
        assert!(pool.core.members.borrow().queue.begins_with_own_worker());
        assert_eq!(pool.status().forks, 1);
        pool.prioritize(&own);
        assert_eq!(pool.status().forks, 1, "one slot beyond the maximum");
        // In place of the fork, which does not run here.
        let forking = pool.core.members.borrow().roster.slot_of(1).map_or(0, |slot| 1 - slot);
        pool.core.members.borrow_mut().roster.remove(forking);
        let mut extra = StandIn::join(&pool, 9);
        let tag = extra.start_next();
        extra.respond(tag, b"own");
        poll(&pool);
        assert_eq!(body_of(&own), (b"own".to_vec(), COMPLETE));
        assert!(!other.has_ended(), "the worker beyond the maximum does not take it");
        assert_eq!(extra.state(&pool), Some(State::Draining));
        assert_eq!(extra.receive().map(|(kind, _)| kind), Some(FrameKind::Stop));
    });
}

#[test]
fn a_full_queue_is_reported_as_down_while_php_does_not_start() {
    in_loop(async {
        let pool = pool_of(PoolSettings { queue_length: 1, ..sequential() });
        pool.core.lifecycle.enter(Phase::Starting);
        submit(&pool);
        assert_eq!(pool.submit(exchange_with(b"", 1), None), Err(Reason::QueueFull));
        pool.start_failed("for this test");
        let queued = submit(&pool);
        assert_eq!(pool.submit(exchange_with(b"", 1), None), Err(Reason::AppDown));
        pool.core.lifecycle.enter(Phase::Gone);
        assert_eq!(pool.submit(exchange_with(b"", 1), None), Err(Reason::AppDown));
        pool.core.fail_queue(Reason::Draining);
        assert_eq!(end_of(&queued), failed(Reason::Draining));
    });
}

#[test]
fn a_local_request_that_was_in_a_backlog_is_checked_for_loopback() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            worker.process_next(&pool);
        }
        submit(&pool);
        worker.start_next();
        // The running request waits for this one.
        let own = submit_local(&pool);
        assert_eq!(pool.status().queue_length, 0, "it is in the backlog");
        let later_ms = own.submitted_ms + 1_000;
        pool.dispatcher.redistribute_stuck_backlogs(later_ms);
        assert!(is_suspect(&pool, &own, later_ms));
    });
}
