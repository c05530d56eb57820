//! Rate limits that two gateways share by a Redis between them, also while it fails.

#![forbid(unsafe_code)]

use outboard_e2e::{Cable, Configured, Docroot, Redis, eventually};
use std::thread;
use std::time::{Duration, Instant};

/// Tokens in a second, and at once.
const RATE: f64 = 100.0;
const BURST: f64 = 20.0;

/// A gateway, and its way to Redis.
struct Gateway {
    site: Configured,
    cable: Cable,
}

/// What clients of all gateways got.
#[derive(Debug, Default, Clone, Copy)]
struct Got {
    admitted: f64,
    refused: f64,
    /// The time from the first request to the last.
    seconds: f64,
    /// The longest that a response took, in milliseconds.
    slowest_ms: u128,
}

impl Gateway {
    fn start(redis: &Redis) -> Gateway {
        let cable = Cable::to(redis.socket());
        let docroot = Docroot::of("routing");
        docroot.put("open.txt", "SENT open");
        docroot.put(
            "limit.php",
            "<?php $result = (new Outboard\\RateLimit('login'))->take('ann');
            echo $result->allowed ? 'ALLOWED' : 'REFUSED', ' ', $result->limit;",
        );
        let text = format!(
            "threads = 2\nlisten = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[admin]\nmetrics = \"/metrics\"\n\
             [rate_sharing]\nserver = \"redis://:{}@{}/3\"\ntimeout = \"500ms\"\n\
             [app.site]\nroot = \"www\"\n\
             [[app.site.access]]\npath = \"/open.txt\"\n\
             rate_limit = {{ rate = \"{RATE}/s\", burst = {BURST}, shared = true }}\n\
             [[app.site.access]]\npath = \"/limit.php\"\nrate_limit = \"10000/s\"\n\
             [app.site.rate_limits.login]\nrate = \"5/h\"\nshared = true\n",
            Redis::PASSWORD,
            cable.address(),
        );
        let gateway = Gateway { site: Configured::start(docroot, &text), cable };
        gateway.wait_until_shared();
        gateway
    }

    fn metric(&self, name: &str) -> u64 {
        let page = self.site.client().get("/metrics").expect(200);
        let line = page.text().lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no metric {name}")).trim().parse().expect("a number")
    }

    /// Waits until the gateway asks Redis, which it does once it is connected.
    fn wait_until_shared(&self) {
        eventually("limits are shared", || {
            let before = self.metric("outboard_rate_sharing_local_total ");
            self.site.client().get("/open.txt");
            self.metric("outboard_rate_sharing_local_total ") == before
                && self.metric("outboard_rate_sharing_threads_away ") == 0
        });
    }

    fn wait_until_away(&self) {
        eventually("Redis is away", || self.metric("outboard_rate_sharing_threads_away ") > 0);
    }

    /// Many more requests than the limit admits, until the deadline.
    fn load(&self, deadline: Instant) -> Got {
        let (mut client, started) = (self.site.client(), Instant::now());
        let mut got = Got::default();
        while Instant::now() < deadline {
            for _ in 0..3 {
                let sent = Instant::now();
                match client.get("/open.txt").status {
                    200 => got.admitted += 1.0,
                    429 => got.refused += 1.0,
                    other => panic!("status {other}"),
                }
                got.slowest_ms = got.slowest_ms.max(sent.elapsed().as_millis());
            }
            thread::sleep(Duration::from_millis(3));
        }
        got.seconds = started.elapsed().as_secs_f64();
        got
    }
}

/// Requests of the same client to all gateways at the same time.
fn load(gateways: &[Gateway], seconds: u64) -> Got {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let all: Vec<Got> = thread::scope(|scope| {
        let running = gateways.iter().map(|gateway| scope.spawn(move || gateway.load(deadline)));
        let running: Vec<_> = running.collect();
        running.into_iter().map(|one| one.join().expect("no request fails")).collect()
    });
    all.into_iter().fold(Got::default(), |sum, one| Got {
        admitted: sum.admitted + one.admitted,
        refused: sum.refused + one.refused,
        seconds: sum.seconds.max(one.seconds),
        slowest_ms: sum.slowest_ms.max(one.slowest_ms),
    })
}

/// The gateways together admit the rate of a bucket that was empty or full at first.
#[track_caller]
fn within_limit(got: Got) {
    let rate = RATE * got.seconds;
    assert!(got.refused > 10.0, "the load is more than the limit: {got:?}");
    assert!((0.95 * rate..1.05 * rate + BURST).contains(&got.admitted), "{rate}: {got:?}");
}

#[test]
fn gateways_admit_one_rate_together_and_each_alone_without_redis() {
    let mut redis = Redis::start();
    let gateways = [Gateway::start(&redis), Gateway::start(&redis)];
    within_limit(load(&gateways, 5));
    assert!(gateways.iter().all(|one| one.metric("outboard_rate_sharing_asked_total ") > 50));

    redis.kill();
    let got = load(&gateways, 4);
    let rate = 2.0 * RATE * got.seconds;
    assert!(got.admitted > 0.85 * rate && got.admitted < 1.05 * rate + 2.0 * BURST, "{got:?}");
    assert!(got.slowest_ms < 3_000, "{got:?}");
    for gateway in &gateways {
        let line = "rate limits are not shared, this gateway limits by itself";
        gateway.site.logs(&[line]);
        let lines = gateway.site.child().output();
        assert_eq!(lines.lines().filter(|found| found.contains(line)).count(), 1, "{lines}");
    }

    redis.start_again();
    gateways.iter().for_each(Gateway::wait_until_shared);
    within_limit(load(&gateways, 5));
}

#[test]
fn a_redis_that_hangs_or_is_full_delays_no_request_for_long() {
    let redis = Redis::start();
    let gateways = [Gateway::start(&redis)];
    redis.pause();
    let got = load(&gateways, 4);
    assert!(got.admitted > 0.6 * RATE * got.seconds, "{got:?}");
    assert!(got.slowest_ms < 3_000, "{got:?}");
    gateways[0].wait_until_away();
    redis.resume();
    gateways[0].wait_until_shared();

    redis.tell(&["CONFIG", "SET", "maxmemory", "1"]);
    let got = load(&gateways, 2);
    assert!(got.admitted > 0.8 * RATE * got.seconds, "{got:?}");
    gateways[0].wait_until_away();
    gateways[0].site.logs(&["limits by itself", "OOM"]);
    redis.tell(&["CONFIG", "SET", "maxmemory", "0"]);
    gateways[0].wait_until_shared();

    gateways[0].cable.cut();
    gateways[0].wait_until_away();
    assert_eq!(gateways[0].site.client().get("/limit.php").text(), "ALLOWED 5");
    gateways[0].cable.mend();
    gateways[0].wait_until_shared();
}

#[test]
fn a_limit_of_scripts_is_one_for_all_gateways() {
    let redis = Redis::start();
    let gateways = [Gateway::start(&redis), Gateway::start(&redis)];
    let texts = (0..8).map(|number| {
        let response = gateways[number % 2].site.client().get("/limit.php").expect(200);
        response.text()
    });
    let texts: Vec<String> = texts.collect();
    let allowed = texts.iter().filter(|text| *text == "ALLOWED 5").count();
    assert_eq!(allowed, 5, "{texts:?}");
    assert!(texts[5..].iter().all(|text| text == "REFUSED 5"), "{texts:?}");
}
