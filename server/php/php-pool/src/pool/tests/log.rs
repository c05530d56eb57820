//! The logs and the status of a pool.

use super::*;

#[test]
fn log_lines_of_a_request_have_its_id_and_are_stored_with_it() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(settings(2, Isolation::Reset));
        let mut worker = StandIn::join(&pool, 1);
        let (exchange, other) = (submit(&pool), submit(&pool));
        let (first, _) = (worker.start_next(), worker.start_next());
        worker.send(FrameKind::Log, first, b"\x03PHP Warning: careful");
        poll(&pool);
        log.has("request=0000000000000001 PHP Warning: careful");
        assert_eq!(exchange.log_lines(), "PHP Warning: careful\n");
        assert_eq!(other.log_lines(), "");
        worker.send(FrameKind::Log, Tag::default(), b"\x03without a request");
        poll(&pool);
        assert!(!log.text().contains("request=0000000000000001 without"), "two requests run");
    });
}

#[test]
fn log_lines_beyond_the_allowance_are_dropped_but_stored() {
    in_loop(async {
        let log = LogFile::new();
        let log_rate = crate::allowance::LogRate { lines: 5, bytes: 1 << 20 };
        let pool = log.pool_of(PoolSettings { log_rate, ..sequential() });
        let mut worker = StandIn::join(&pool, 1);
        let exchange = submit(&pool);
        let tag = worker.start_next();
        for _ in 0..50 {
            worker.send(FrameKind::Log, tag, b"\x03again");
        }
        poll(&pool);
        assert_eq!(log.text().matches(" again\n").count(), 10);
        assert_eq!(exchange.log_lines().matches("again\n").count(), 50);
    });
}

#[test]
fn slow_requests_are_written_with_their_target() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(PoolSettings { slow_ms: Some(100), ..sequential() });
        let mut worker = StandIn::join(&pool, 1);
        submit(&pool);
        worker.process_next(&pool);
        assert!(!log.text().contains("took"));
        submit(&pool);
        let tag = worker.start_next();
        pool.core.with_worker(1, |worker| {
            worker.leases.get_mut(tag).unwrap().timing.as_mut().unwrap().started_ms -= 200;
        });
        worker.respond(tag, b"x");
        poll(&pool);
        log.has("request=0000000000000001 GET /a/b took 20");
    });
}

#[test]
fn the_status_shows_workers_requests_and_routes() {
    in_loop(async {
        let pool = pool(2);
        let mut worker = StandIn::join(&pool, 1);
        submit(&pool);
        worker.process_next(&pool);
        submit(&pool);
        worker.start_next();
        let status = pool.status();
        assert_eq!((status.requests, status.in_flight, status.queued), (2, 1, 0));
        let shown = &status.workers[0];
        assert_eq!((shown.state.as_str(), shown.in_flight, shown.served), ("busy", 1, 1));
        assert_eq!(shown.request.as_deref(), Some("GET /a/b"));
        assert_eq!((status.routes[0].requests, status.routes[0].max_peak_bytes), (1, 7));
        assert_eq!((status.mode.as_str(), status.concurrency), ("worker", 2));
        let status = pool_of(classic()).status();
        assert_eq!((status.mode.as_str(), status.isolation), ("classic", None));
    });
}
