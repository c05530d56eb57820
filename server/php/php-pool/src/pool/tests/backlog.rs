//! Backlogs of quick workers with one request at a time.

use super::*;
use crate::rings::PolledRings;

#[test]
fn quick_sequential_workers_get_a_backlog() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            let tag = worker.start_next();
            worker.respond(tag, b"x");
            poll(&pool);
        }
        let all = [submit(&pool), submit(&pool), submit(&pool)];
        assert_eq!(pool.status().queue_length, 0);
        assert_eq!(pool.status().in_flight, 1);
        let first = worker.start_next();
        let second = worker.start_next();
        worker.respond(first, b"1");
        worker.respond(second, b"2");
        poll(&pool);
        reap(&pool, 1);
        assert_eq!(body_of(&all[1]), (b"2".to_vec(), COMPLETE));
        assert!(!all[2].has_ended(), "it was not started, so it waits for another");
    });
}

/// A pool with a worker that has processed enough quick requests for a backlog.
fn quick_pool() -> (Rc<Pool>, StandIn) {
    let pool = pool(1);
    let mut worker = StandIn::join(&pool, 1);
    for _ in 0..3 {
        submit(&pool);
        worker.process_next(&pool);
    }
    (pool, worker)
}

#[test]
fn requests_with_a_body_do_not_enter_a_backlog() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let _running = submit(&pool);
        let with_body = submit_with(&pool, b"body", 1 << 20);
        assert_eq!(pool.status().queue_length, 1);
        worker.process_next(&pool);
        let tag = worker.start_next();
        assert_eq!(worker.receive(), Some((FrameKind::RequestBody, tag)));
        worker.respond(tag, b"x");
        poll(&pool);
        assert_eq!(end_of(&with_body), COMPLETE);
    });
}

#[test]
fn a_backlog_grows_only_behind_a_quick_request() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let _running = submit(&pool);
        worker.start_next();
        let members = pool.core.members.borrow();
        let has_room =
            |after_ms| members.roster.all().all(|one| one.has_backlog_room(now_ms() + after_ms));
        assert_eq!([0, 1, 2].map(has_room), [true, true, false]);
    });
}

#[test]
fn a_backlog_that_is_stuck_is_moved_while_the_loop_sleeps() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let (_slow, _behind) = (submit(&pool), submit(&pool));
        worker.start_next();
        assert_eq!(pool.prepare_sleep(), 1);
        outboard_reactor::sleep(8).await;
        poll(&pool);
        assert_eq!(pool.status().queue_length, 1, "it waits for another worker");
    });
}

#[test]
fn the_backlog_of_a_slow_request_moves_to_other_workers() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let (slow, behind) = (submit(&pool), submit(&pool));
        worker.start_next();
        pool.dispatcher.redistribute_stuck_backlogs(now_ms());
        assert_eq!(pool.status().queue_length, 0, "the request is not slow yet");
        pool.dispatcher.redistribute_stuck_backlogs(now_ms() + 10);
        assert_eq!(pool.status().queue_length, 1);
        let mut other = StandIn::join(&pool, 2);
        other.process_next(&pool);
        assert_eq!(end_of(&behind), COMPLETE);
        assert!(!slow.has_ended());
        let (kind, withdrawn) = worker.receive().unwrap();
        assert_eq!(kind, FrameKind::Request);
        assert!(!worker.channel.start(withdrawn), "it belongs to the other worker");
    });
}

#[test]
fn a_started_request_of_a_backlog_is_not_withdrawn() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let (running, behind) = (submit(&pool), submit(&pool));
        let first = worker.start_next();
        // The worker has sent the response of the first one, which is not polled yet.
        worker.respond(first, b"x");
        let second = worker.start_next();
        pool.dispatcher.redistribute_stuck_backlogs(now_ms() + 10);
        worker.respond(second, b"y");
        poll(&pool);
        assert_eq!((end_of(&running), end_of(&behind)), (COMPLETE, COMPLETE));
    });
}

#[test]
fn a_sleep_with_a_backlog_is_short() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let _both = [submit(&pool), submit(&pool)];
        worker.start_next();
        assert_eq!(pool.prepare_sleep(), 1);
        pool.cancel_sleep();
    });
}

#[test]
fn a_slow_request_ends_the_backlog() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let _slow = submit(&pool);
        let tag = worker.start_next();
        {
            let mut members = pool.core.members.borrow_mut();
            let lease = members.roster.get_mut(0).unwrap().leases.get_mut(tag).unwrap();
            lease.timing.as_mut().unwrap().started_ms -= 100;
        }
        worker.respond(tag, b"x");
        poll(&pool);
        let _next = [submit(&pool), submit(&pool)];
        assert_eq!(pool.status().queue_length, 1);
    });
}

#[test]
fn a_response_before_its_turn_is_a_protocol_error() {
    in_loop(async {
        let (pool, mut worker) = quick_pool();
        let (running, behind) = (submit(&pool), submit(&pool));
        let first = worker.start_next();
        let second = worker.start_next();
        worker.finish(second, false);
        poll(&pool);
        assert_eq!(worker.state(&pool), Some(State::Killing));
        worker.finish(first, false);
        reap(&pool, 1);
        let expected = failed(Reason::WorkerProtocolError);
        assert_eq!((end_of(&running), end_of(&behind)), (expected, expected));
    });
}
