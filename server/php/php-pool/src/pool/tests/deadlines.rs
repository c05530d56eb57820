//! Deadlines of requests, starts and drains, with the time as a parameter.

use super::*;

#[test]
fn an_overdue_request_is_cancelled_and_its_neighbours_continue() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let (late, neighbour) = (submit(&pool), submit(&pool));
        let (first, second) = (worker.start_next(), worker.start_next());
        let began_ms = now_ms();
        worker.finish(second, false);
        poll(&pool);
        assert_eq!(end_of(&neighbour), COMPLETE);
        for after_ms in [0, 60, 270] {
            enforce_deadlines(&pool, began_ms + DEADLINE_MS + after_ms);
        }
        assert_eq!(end_of(&late), failed(Reason::Deadline));
        assert_eq!(worker.receive(), Some((FrameKind::Cancel, first)));
        worker.finish(first, false);
        poll(&pool);
        enforce_deadlines(&pool, began_ms + DEADLINE_MS + 1_000);
        assert_eq!(worker.state(&pool), Some(State::Idle));
        assert_eq!(pool.status().deadlines, 1);
    });
}

#[test]
fn a_worker_that_does_not_end_a_cancelled_request_is_killed() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let late = submit(&pool);
        worker.start_next();
        let began_ms = now_ms();
        for after_ms in [0, 60, 270, 500] {
            enforce_deadlines(&pool, began_ms + DEADLINE_MS + after_ms);
        }
        assert_eq!(worker.state(&pool), Some(State::Busy));
        enforce_deadlines(&pool, began_ms + DEADLINE_MS + 530);
        assert_eq!(worker.state(&pool), Some(State::Killing));
        assert_eq!(end_of(&late), failed(Reason::Deadline));
        assert!(pool.submit(exchange_with(b"", 1), None).is_ok(), "it waits for a successor");
        assert_eq!(pool.status().queue_length, 1);
    });
}

#[test]
fn an_overdue_unstarted_request_does_not_affect_the_worker() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let (_busy, late) = (submit(&pool), submit(&pool));
        let first = worker.start_next();
        worker.finish(first, false);
        let began_ms = now_ms();
        poll(&pool);
        enforce_deadlines(&pool, began_ms + DEADLINE_MS + 1);
        assert_eq!(end_of(&late), failed(Reason::Deadline));
        assert_eq!(worker.state(&pool), Some(State::Idle));
        let (_, tag) = worker.receive().unwrap();
        assert!(!worker.channel.start(tag));
    });
}

#[test]
fn a_sequential_worker_is_killed_with_its_overdue_request() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(PoolSettings { slow_ms: Some(1_000_000), ..sequential() });
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        worker.start_next();
        let began_ms = now_ms();
        for after_ms in [0, 60, 270] {
            assert_eq!(worker.state(&pool), Some(State::Busy));
            enforce_deadlines(&pool, began_ms + DEADLINE_MS + after_ms);
        }
        assert_eq!(worker.state(&pool), Some(State::Killing));
        assert_eq!(end_of(&exchange), failed(Reason::Deadline));
        log.has("a worker is killed, its request took longer than the deadline: it was in (no backtrace)");
        log.has("GET /a/b took");
        assert!(worker.receive().is_none(), "a sequential worker cannot cancel");
        reap(&pool, 1);
        assert_eq!(pool.status().crashes, 0, "the exit was expected");
    });
}

#[test]
fn a_worker_that_does_not_become_ready_is_killed() {
    in_loop(async {
        let pool = pool(1);
        let starting = StandIn::starting(&pool, 1);
        let timeout_ms = pool.core.settings.start_timeout_ms;
        enforce_deadlines(&pool, now_ms() + timeout_ms / 2);
        assert_eq!(starting.state(&pool), Some(State::Forking));
        enforce_deadlines(&pool, now_ms() + timeout_ms + 1);
        assert_eq!(starting.state(&pool), Some(State::Killing));
    });
}

#[test]
fn a_drained_worker_that_does_not_exit_is_killed() {
    in_loop(async {
        let pool = pool(1);
        let worker = StandIn::join(&pool, 1);
        pool.core.drain_slot(&mut pool.core.members.borrow_mut(), 0);
        enforce_deadlines(&pool, now_ms());
        assert_eq!(worker.state(&pool), Some(State::Draining));
        enforce_deadlines(&pool, now_ms() + 60_000);
        assert_eq!(worker.state(&pool), Some(State::Killing));
    });
}

#[test]
fn a_request_beyond_the_drain_timeout_fails_with_its_own_reason() {
    // A worker with room for more requests is drained at once, and has a later deadline of its own.
    for concurrency in [1, 4] {
        in_loop(async move {
            let pool = pool(concurrency);
            let mut worker = StandIn::join(&pool, 1);
            let exchange = submit(&pool);
            worker.start_next();
            pool.retire(0);
            enforce_deadlines(&pool, now_ms());
            assert_eq!(end_of(&exchange), failed(Reason::Draining), "{concurrency} at a time");
            assert_eq!(pool.status().deadlines, 1);
        });
    }
}

#[test]
fn the_time_in_a_backlog_does_not_count() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        for _ in 0..3 {
            submit(&pool);
            worker.process_next(&pool);
        }
        let (running, behind) = (submit(&pool), submit(&pool));
        worker.start_next();
        enforce_deadlines(&pool, now_ms() + DEADLINE_MS + 1);
        assert_eq!(end_of(&running), failed(Reason::Deadline));
        assert_eq!(end_of(&behind), None);
    });
}

/// A manager whose next tick is always due would never yield.
#[test]
fn the_next_tick_is_later_than_now_before_and_after_a_deadline() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        submit(&pool);
        worker.start_next();
        for later_ms in [0, DEADLINE_MS - 1, DEADLINE_MS, DEADLINE_MS * 9] {
            let at_ms = now_ms() + later_ms;
            assert!(next_tick_ms(&pool, at_ms) > at_ms, "{later_ms}");
            enforce_deadlines(&pool, at_ms);
            assert!(next_tick_ms(&pool, at_ms) > at_ms, "{later_ms}, after its steps");
        }
    });
}
