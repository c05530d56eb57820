//! The assignment of requests, and polling of the rings.

use super::*;
use crate::budget::Budget;
use crate::rings::PolledRings;

#[test]
fn requests_go_to_the_worker_with_the_fewest() {
    in_loop(async {
        let pool = pool(3);
        let (mut one, mut two) = (StandIn::join(&pool, 1), StandIn::join(&pool, 2));
        let all: Vec<_> = (0..4).map(|_| submit(&pool)).collect();
        let first = [one.start_next(), one.start_next()];
        let second = [two.start_next(), two.start_next()];
        assert!(one.receive().is_none() && two.receive().is_none());
        for tag in first {
            one.respond(tag, b"one");
        }
        poll(&pool);
        let next = [submit(&pool), submit(&pool)];
        one.start_next();
        one.start_next();
        for tag in second {
            two.respond(tag, b"two");
        }
        poll(&pool);
        assert!(all.iter().all(|exchange| end_of(exchange) == COMPLETE));
        assert!(next.iter().all(|exchange| !exchange.has_ended()));
    });
}

#[test]
fn interleaved_frames_reach_the_request_with_their_tag() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let (a, b) = (submit(&pool), submit(&pool));
        let (first, second) = (worker.start_next(), worker.start_next());
        assert_ne!(first.slot, second.slot);
        for (tag, piece) in [(second, b"2a"), (first, b"1a"), (second, b"2b"), (first, b"1b")] {
            worker.send(FrameKind::Body, tag, piece);
        }
        worker.finish(second, false);
        let late = Tag { slot: first.slot, generation: first.generation + 7 };
        worker.send(FrameKind::Body, late, b"late");
        poll(&pool);
        assert_eq!(body_of(&b), (b"2a2b".to_vec(), COMPLETE));
        assert_eq!(body_of(&a), (b"1a1b".to_vec(), None));
        worker.finish(first, false);
        poll(&pool);
        assert_eq!(end_of(&a), COMPLETE);
        assert_eq!(worker.state(&pool), Some(State::Idle));
    });
}

#[test]
fn a_queued_request_gets_the_first_worker_with_room() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let _held = [submit(&pool), submit(&pool)];
        let waiting = submit(&pool);
        let (first, second) = (worker.start_next(), worker.start_next());
        assert!(worker.receive().is_none());
        assert_eq!(pool.status().queue_length, 1);
        worker.finish(second, false);
        poll(&pool);
        let third = worker.start_next();
        assert_eq!(third.slot, second.slot, "a lease is used again");
        assert_ne!(third.generation, second.generation);
        worker.respond(third, b"x");
        worker.finish(first, false);
        poll(&pool);
        assert_eq!(end_of(&waiting), COMPLETE);
    });
}

#[test]
fn a_full_queue_and_oversized_frames_are_refused() {
    in_loop(async {
        let pool = pool_of(PoolSettings { queue_length: 1, ..settings(1, Isolation::Reset) });
        let _one = StandIn::join(&pool, 1);
        let _taken = [submit(&pool), submit(&pool)];
        let refused = pool.submit(exchange_with(b"", 1), None);
        assert_eq!(refused, Err(Reason::QueueFull));
        let mut long = exchange_with(b"", 1);
        Rc::get_mut(&mut long).unwrap().frame = vec![0; crate::pool::dispatch::MAX_FRAME_BYTES + 1];
        assert_eq!(pool.submit(long, None), Err(Reason::HeadersTooLarge));
    });
}

#[test]
fn an_abandoned_request_is_withdrawn_or_aborted() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let (started, unstarted) = (submit(&pool), submit(&pool));
        let waiting = submit(&pool);
        let tag = worker.start_next();
        pool.abandon(&started);
        assert!(worker.channel.is_aborted(tag));
        pool.abandon(&unstarted);
        let (_, withdrawn) = worker.receive().unwrap();
        assert!(!worker.channel.start(withdrawn));
        let next = worker.start_next();
        worker.respond(next, b"x");
        poll(&pool);
        assert_eq!(end_of(&waiting), COMPLETE);
        assert_eq!(pool.status().in_flight, 1, "the aborted one is the worker's to end");
    });
}

#[test]
fn the_most_recently_used_idle_worker_is_preferred() {
    in_loop(async {
        let pool = pool(1);
        let (mut first, mut second) = (StandIn::join(&pool, 1), StandIn::join(&pool, 2));
        let _both = [submit(&pool), submit(&pool)];
        second.process_next(&pool);
        first.process_next(&pool);
        submit(&pool);
        first.process_next(&pool);
        submit(&pool);
        assert!(second.receive().is_none(), "the memory of the first one is in the caches");
        first.process_next(&pool);
    });
}

#[test]
fn the_queue_skips_requests_whose_clients_are_gone() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let _running = submit(&pool);
        let (abandoned, ended, waiting) = (submit(&pool), submit(&pool), submit(&pool));
        // Abandoned without the pool's knowledge, as between two polls.
        abandoned.abandon();
        ended.finish(End::Failed(Reason::ClientGone));
        worker.process_next(&pool);
        worker.process_next(&pool);
        assert_eq!(end_of(&waiting), COMPLETE);
        assert_eq!((pool.status().queue_length, worker.state(&pool)), (0, Some(State::Idle)));
    });
}

#[test]
fn the_gateway_sleeps_unless_a_frame_arrives() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        assert_eq!(pool.prepare_sleep(), u64::MAX);
        pool.cancel_sleep();
        submit(&pool);
        let tag = worker.start_next();
        worker.respond(tag, b"x");
        assert_eq!(pool.prepare_sleep(), 0);
        pool.cancel_sleep();
        poll(&pool);
        assert_eq!(pool.prepare_sleep(), u64::MAX);
    });
}

#[test]
fn polling_reports_whether_a_request_has_ended() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        assert!(!pool.poll_rings(&mut Budget::default()));
        submit(&pool);
        let tag = worker.start_next();
        worker.respond(tag, b"x");
        assert!(pool.poll_rings(&mut Budget::default()));
        assert!(!pool.poll_rings(&mut Budget::default()));
    });
}

#[test]
fn a_worker_with_many_frames_is_interrupted_after_its_share() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        let tag = worker.start_next();
        for _ in 0..300 {
            worker.send(FrameKind::Body, tag, b"1");
        }
        let poll_one = || {
            let (mut members, mut budget) = (pool.core.members.borrow_mut(), Budget::default());
            pool.poll_worker(&mut members, 0, crate::budget::Share::POLL, &mut budget)
        };
        assert!(poll_one(), "there are more");
        assert_eq!(body_of(&exchange).0.len(), 256);
        assert!(!poll_one());
        assert_eq!(body_of(&exchange).0.len(), 44);
    });
}
