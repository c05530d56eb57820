//! Workers and zygotes that die.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

#[test]
fn a_death_fails_started_requests_and_reassigns_the_others() {
    in_loop(async {
        let pool = pool(3);
        let mut victim = StandIn::join(&pool, 1);
        let started = [submit(&pool), submit(&pool)];
        let unstarted = submit_with(&pool, b"the body", 1 << 20);
        let finished = victim.start_next();
        victim.start_next();
        victim.respond(finished, b"in time");
        reap(&pool, 1);
        assert_eq!(body_of(&started[0]), (b"in time".to_vec(), COMPLETE));
        assert_eq!(end_of(&started[1]), CRASHED);
        assert!(!unstarted.has_ended());
        let mut other = StandIn::join(&pool, 2);
        let tag = other.start_next();
        assert_eq!(other.receive(), Some((FrameKind::RequestBody, tag)));
        assert_eq!(other.frame, b"the body", "from its beginning, though it had been sent before");
        other.respond(tag, b"x");
        poll(&pool);
        assert_eq!(end_of(&unstarted), COMPLETE);
        assert_eq!(pool.status().crashes, 1);
    });
}

#[test]
fn a_death_during_the_start_is_reported_with_its_output() {
    in_loop(async {
        let pool = pool(1);
        let mut worker = StandIn::starting(&pool, 1);
        worker.send(FrameKind::Log, Tag::default(), b"\x03PHP Fatal error: no such class");
        pool.reap(1, Some(255), "exited with code 255");
        let error = pool.ready().await.unwrap_err();
        assert!(error.message.contains("exited with code 255 while starting"), "{error}");
        assert!(error.message.contains("no such class"), "{error}");
    });
}

#[test]
fn waits_of_exited_and_running_workers_are_added() {
    in_loop(async {
        let pool = pool(1);
        let waits = |call: WaitCall| {
            let all = pool.status().waits;
            let of = all.into_iter().find(|waits| waits.call == call.name());
            of.map(|waits| (waits.suspended, waits.blocked, waits.blocked_ms))
        };
        let (one, two) = (StandIn::join(&pool, 1), StandIn::join(&pool, 2));
        assert_eq!(waits(WaitCall::Sleep), None, "no worker has waited");
        one.channel.count_suspended(WaitCall::Sleep);
        one.channel.count_blocked(WaitCall::Sleep, 2_500);
        two.channel.count_blocked(WaitCall::Sleep, 2_500);
        two.channel.count_blocked(WaitCall::Lock, 7_000);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 2, 5)));
        assert_eq!(waits(WaitCall::Lock), Some((0, 1, 7)));
        reap(&pool, 2);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 2, 5)), "they are not forgotten");
        // The memory is a worker's own, and so are the numbers in it.
        one.channel.count_blocked(WaitCall::Sleep, u64::MAX - 2_500);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 3, u64::MAX / 1000)));
        reap(&pool, 1);
        assert_eq!(waits(WaitCall::Sleep), Some((1, 3, u64::MAX / 1000)));
    });
}

#[test]
fn crashes_are_logged_with_the_requests_of_the_worker() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(settings(3, Isolation::Reset));
        let _idle = StandIn::join(&pool, 1);
        pool.reap(1, Some(3), "exited with code 3");
        log.has("app=site a worker exited with code 3 while idle");
        let mut worker = StandIn::join(&pool, 2);
        let _both = [submit(&pool), submit(&pool)];
        worker.start_next();
        worker.start_next();
        pool.reap(2, None, "was killed by signal 11");
        log.has("reason=worker_crashed");
        log.has("a worker was killed by signal 11 while processing GET /a/b and 1 more");
        assert_eq!(pool.status().crashes, 2);
    });
}

#[test]
fn a_worker_script_that_returns_is_not_a_crash() {
    in_loop(async {
        let pool = pool(1);
        let _worker = StandIn::join(&pool, 1);
        pool.reap(1, Some(0), "exited with code 0");
        assert_eq!(pool.status().crashes, 0);
        let mut worker = StandIn::join(&pool, 2);
        submit(&pool);
        worker.start_next();
        pool.reap(2, Some(0), "exited with code 0");
        assert_eq!(pool.status().crashes, 1, "its request was not finished");
    });
}

#[test]
fn an_unknown_worker_number_is_ignored() {
    in_loop(async {
        let pool = pool(1);
        let worker = StandIn::join(&pool, 1);
        reap(&pool, 7);
        assert_eq!((pool.status().workers.len(), worker.state(&pool)), (1, Some(State::Idle)));
    });
}

#[test]
fn a_dead_zygote_fails_started_requests_and_queues_the_others() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(settings(2, Isolation::Reset));
        let mut worker = StandIn::join(&pool, 1);
        let (finished, started, waiting) = (submit(&pool), submit(&pool), submit(&pool));
        let (first, _) = (worker.start_next(), worker.start_next());
        worker.respond(first, b"in time");
        let phase = pool.zygote_exited();
        pool.report_zygote_exit(phase, Some(ExitStatus::from_raw(9)));
        assert_eq!(body_of(&finished), (b"in time".to_vec(), COMPLETE));
        assert_eq!(end_of(&started), CRASHED);
        assert!(!waiting.has_ended());
        let status = pool.status();
        assert_eq!((status.phase.as_str(), status.workers.len()), ("starting", 0));
        assert_eq!(status.queue_length, 1);
        log.has("the zygote was killed by signal 9 (SIGKILL); starting PHP again");
        assert!(status.start_failure.is_some_and(|failure| failure.contains("SIGKILL")));
    });
}

#[test]
fn a_crash_loop_refuses_requests_until_one_succeeds() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        for number in 1..=20 {
            assert_eq!(pool.status().phase, "serving");
            let mut worker = StandIn::join(&pool, number);
            submit(&pool);
            worker.start_next();
            pool.reap(number, None, "was killed by signal 11");
        }
        assert_eq!(pool.status().phase, "crashing");
        assert_eq!(pool.submit(exchange_with(b"", 1), None), Err(Reason::AppDown));
        assert_eq!(pool.status().rejected, 1);
        log.has("each of the last 20 requests has killed its worker");
        pool.core.record_response();
        assert_eq!(pool.status().phase, "serving");
        log.has("a request has succeeded: none are refused any more");
        assert!(pool.submit(exchange_with(b"", 1), None).is_ok());
    });
}
