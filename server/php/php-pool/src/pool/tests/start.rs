//! The start of PHP, and events of the zygote.

use super::*;
use outboard_ring::control::Event;

fn started() -> Event {
    Event::Started {
        pid: 1,
        php_version: "8.2.0".into(),
        opcache: true,
        ini_file: Some("/etc/php.ini".into()),
        post_max_bytes: 0,
        rewind: None,
        request_reads: Vec::new(),
        rewind_refused: None,
    }
}

/// A pool whose zygote has not reported its start. It reads its orders and prints nothing, which would be in the report
/// of a failure.
fn starting_pool(log: &LogFile) -> Rc<Pool> {
    let pool = log.pool_of(PoolSettings { host_binary: "/usr/bin/wc".into(), ..sequential() });
    pool.core.lifecycle.enter(Phase::Starting);
    start_zygote(&pool);
    pool
}

#[test]
fn a_started_pool_serves_and_forks_its_minimum() {
    in_loop(async {
        let log = LogFile::new();
        let pool = starting_pool(&log);
        pool.handle(started());
        let status = pool.status();
        assert_eq!((status.phase.as_str(), status.php_version.as_str()), ("serving", "8.2.0"));
        log.has("PHP 8.2.0 started (/etc/php.ini, opcache on)");
        assert_eq!(status.forks, 1, "the minimum is forked at once");
        let worker = StandIn::join(&pool, 100);
        pool.ready().await.unwrap();
        assert_eq!(worker.state(&pool), Some(State::Idle));
    });
}

#[test]
fn a_failed_start_fails_queued_requests() {
    in_loop(async {
        let log = LogFile::new();
        let pool = starting_pool(&log);
        let queued = submit(&pool);
        pool.handle(Event::StartFailed { message: "no memory".into() });
        assert_eq!(end_of(&queued), failed(Reason::AppDown));
        let error = pool.ready().await.unwrap_err();
        assert_eq!(error.to_string(), "PHP of app site did not start: no memory");
        log.has("PHP did not start: no memory");
        pool.handle(started());
        assert_eq!(pool.status().phase, "starting", "a second report is ignored");
    });
}

#[test]
fn a_failure_is_forgotten_when_a_worker_becomes_ready() {
    in_loop(async {
        let pool = pool(1);
        pool.start_failed("no memory");
        assert_eq!(pool.status().start_failure.as_deref(), Some("no memory"));
        let _worker = StandIn::join(&pool, 1);
        pool.ready().await.unwrap();
        assert_eq!(pool.status().start_failure, None);
    });
}

#[test]
fn a_start_without_a_report_ends_with_the_time_out() {
    in_loop(async {
        let pool = pool_of(PoolSettings { start_timeout_ms: 20, ..sequential() });
        let error = pool.ready().await.unwrap_err();
        assert_eq!(error.message, "it was not ready after 20 ms");
    });
}

#[test]
fn a_host_that_exits_at_once_is_reported_with_its_output() {
    for (binary, expected) in [
        ("/bin/false", "/bin/false exited with code 1 while starting"),
        ("/bin/pwd", "/bin/pwd exited with code 0 while starting: /"),
        ("/no/such/host", "the PHP host /no/such/host is missing; install"),
    ] {
        in_loop(async move {
            let log = Target::Off;
            let settings = PoolSettings { host_binary: binary.into(), ..sequential() };
            let sink = Rc::new(Sink::open(log, Opener::default()).unwrap());
            let log = Rc::new(ErrorLog::new(sink, Level::Debug));
            let pool = Pool::start(settings, Shard::only(), log.clone(), log, Rc::default());
            let error = pool.ready().await.unwrap_err();
            assert!(error.message.starts_with(expected), "{error}");
            assert!(error.message.matches("install").count() <= 1, "the hint is not repeated");
            pool.retire(0);
            while !pool.is_gone() {
                pool.core.lifecycle.changed().wait().await;
            }
        });
    }
}

#[test]
fn queued_requests_fail_if_the_host_of_a_retiring_pool_exits() {
    in_loop(async {
        let settings = PoolSettings { host_binary: "/bin/false".into(), ..sequential() };
        let sink = Rc::new(Sink::open(Target::Off, Opener::default()).unwrap());
        let log = Rc::new(ErrorLog::new(sink, Level::Debug));
        let pool = Pool::start(settings, Shard::only(), log.clone(), log, Rc::default());
        let queued = submit(&pool);
        pool.retire(60_000);
        while !pool.is_gone() {
            pool.core.lifecycle.changed().wait().await;
        }
        assert_eq!(end_of(&queued), failed(Reason::AppDown));
    });
}

#[test]
fn forked_workers_get_their_process_id_and_failed_forks_are_removed() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        let _both = [StandIn::starting(&pool, 1), StandIn::starting(&pool, 2)];
        pool.handle(Event::Forked { worker: 1, pid: 4_000 });
        pool.handle(Event::ForkFailed { worker: 2, message: "Cannot allocate memory".into() });
        pool.handle(Event::ForkFailed { worker: 7, message: "unknown".into() });
        let status = pool.status();
        assert_eq!((status.workers.len(), status.workers[0].pid), (1, Some(4_000)));
        assert_eq!(status.workers[0].state, "booting");
        log.has("cannot fork a worker: Cannot allocate memory");
        log.has("a worker could not be forked (Cannot allocate memory) while starting");
        assert!(!log.text().contains("unknown"));
        pool.handle(Event::Exited { worker: 1, code: None, signal: Some(6) });
        log.has("a worker was killed by signal 6 (SIGABRT) while starting");
    });
}

#[test]
fn an_exit_that_no_process_can_have_is_not_reported_as_one() {
    in_loop(async {
        for (code, signal, how) in [
            (None, Some(0), "exited"),
            (Some(3), Some(0), "exited with code 3"),
            (Some(256), Some(-1), "exited"),
            (Some(-1), Some(i32::MAX), "exited"),
            (None, Some(64), "was killed by signal 64"),
        ] {
            let log = LogFile::new();
            let pool = log.pool_of(sequential());
            let _worker = StandIn::starting(&pool, 1);
            pool.handle(Event::Exited { worker: 1, code, signal });
            log.has(&format!("a worker {how} while starting\n"));
        }
    });
}

#[test]
fn a_zygote_that_does_not_carry_out_orders_is_unresponsive() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        let mut worker = StandIn::starting(&pool, 1);
        assert!(!pool.is_zygote_unresponsive(now_ms() + 4_900));
        assert!(pool.is_zygote_unresponsive(now_ms() + 5_100));
        log.has("the zygote did not fork a worker within 5000 ms");
        worker.send(FrameKind::Ready, Tag::default(), &[]);
        poll(&pool);
        assert!(!pool.is_zygote_unresponsive(now_ms() + 5_100));
        pool.core.with_worker(1, |worker| pool.core.kill(worker));
        assert!(!pool.is_zygote_unresponsive(now_ms()));
        assert!(pool.is_zygote_unresponsive(now_ms() + 5_100));
        log.has("the zygote did not end a worker within 5000 ms");
    });
}
