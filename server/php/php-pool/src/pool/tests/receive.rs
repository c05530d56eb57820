//! Frames from workers: slow clients and protocol errors.

use super::*;

#[test]
fn a_slow_client_does_not_delay_others_of_its_worker() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let slow = submit_with(&pool, b"", 1_000);
        let quick = submit(&pool);
        let (first, second) = (worker.start_next(), worker.start_next());
        for _ in 0..20 {
            worker.send(FrameKind::Body, first, &[b'x'; 1_000]);
        }
        worker.respond(second, b"quick");
        poll(&pool);
        assert_eq!(body_of(&quick), (b"quick".to_vec(), COMPLETE));
        assert_eq!(body_of(&slow).0.len(), 20_000);
    });
}

#[test]
fn an_untaken_response_stays_in_the_ring_of_a_sequential_worker() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let slow = submit_with(&pool, b"", 1_000);
        let tag = worker.start_next();
        for _ in 0..20 {
            worker.send(FrameKind::Body, tag, &[b'x'; 600]);
        }
        poll(&pool);
        assert_eq!(body_of(&slow).0.len(), 1_200);
        poll(&pool);
        assert_eq!(body_of(&slow).0.len(), 1_200);
    });
}

#[test]
fn a_paused_request_resumes_once_its_client_has_read() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        let (slow, _other) = (submit_with(&pool, b"", 1_000), submit(&pool));
        let (first, _) = (worker.start_next(), worker.start_next());
        worker.send(FrameKind::Body, first, &[b'x'; 1_000]);
        poll(&pool);
        assert!(worker.channel.is_paused(first));
        poll(&pool);
        assert!(worker.receive().is_none(), "the client has not read");
        assert_eq!(body_of(&slow).0.len(), 1_000);
        poll(&pool);
        assert_eq!(worker.receive(), Some((FrameKind::Resume, first)));
        assert!(!worker.channel.is_paused(first));
    });
}

#[test]
fn a_spooled_response_counts_as_unread() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit_with(&pool, b"", 1_000);
        let tag = worker.start_next();
        exchange.set_spooled(1_000);
        for _ in 0..3 {
            worker.send(FrameKind::Body, tag, b"x");
        }
        poll(&pool);
        assert_eq!(body_of(&exchange).0.len(), 1, "the first frame finds the buffer full");
        exchange.set_spooled(0);
        poll(&pool);
        assert_eq!(body_of(&exchange).0.len(), 2);
    });
}

#[test]
fn a_worker_that_does_not_pause_may_fill_only_some_buffers() {
    in_loop(async {
        let pool = pool(64);
        let mut worker = StandIn::join(&pool, 1);
        let exchanges: Vec<_> = (0..64).map(|_| submit_with(&pool, b"", 1_000)).collect();
        let tags: Vec<Tag> = exchanges.iter().map(|_| worker.start_next()).collect();
        for _ in 0..20 {
            worker.send(FrameKind::Body, tags[0], &[b'x'; 1_000]);
        }
        poll(&pool);
        assert_eq!(body_of(&exchanges[0]).0.len(), 4_000, "four buffers for each of many requests");
        poll(&pool);
        assert_eq!(body_of(&exchanges[0]).0.len(), 4_000, "the rest stayed in the ring");
    });
}

#[test]
fn frames_that_only_the_gateway_sends_are_a_protocol_error() {
    for kind in [FrameKind::Request, FrameKind::Cancel, FrameKind::Completion] {
        in_loop(async move {
            let log = LogFile::new();
            let pool = log.pool_of(sequential());
            let mut worker = StandIn::join(&pool, 1);
            let exchange = submit(&pool);
            let tag = worker.start_next();
            worker.send(kind, tag, b"anything");
            poll(&pool);
            assert_eq!(worker.state(&pool), Some(State::Killing));
            log.has("reason=worker_protocol_error");
            log.has("a frame that only the gateway sends");
            reap(&pool, 1);
            assert_eq!(end_of(&exchange), failed(Reason::WorkerProtocolError));
        });
    }
}

#[test]
fn frames_of_a_broken_worker_are_not_read() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        let tag = worker.start_next();
        worker.send(FrameKind::Done, tag, b"short");
        worker.send(FrameKind::Body, tag, b"too late");
        poll(&pool);
        poll(&pool);
        reap(&pool, 1);
        assert_eq!(body_of(&exchange), (Vec::new(), failed(Reason::WorkerProtocolError)));
    });
}

#[test]
fn a_second_ready_frame_changes_nothing() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        let tag = worker.start_next();
        worker.send(FrameKind::Ready, Tag::default(), &[]);
        poll(&pool);
        assert_eq!(worker.state(&pool), Some(State::Busy));
        worker.respond(tag, b"x");
        poll(&pool);
        assert_eq!(end_of(&exchange), COMPLETE);
    });
}
