//! Servers that share the requests of a route: which one gets a request, what happens when one of them
//! fails, and that no request is sent twice that must not be.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Child, Configured, Docroot, Launch, Mode, Names, Protocol, Replica, Request, accept,
    eventually,
};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

fn text(servers: &[String], keys: &str) -> String {
    let servers = servers.join(", ");
    Configured::text(&format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"api\"\n\
         [upstream.api]\nservers = [{servers}]\n{keys}\n"
    ))
}

fn quoted(replicas: &[&Replica]) -> Vec<String> {
    replicas.iter().map(|replica| format!("\"http://{}\"", replica.address())).collect()
}

fn serving(replicas: &[&Replica], keys: &str) -> Configured {
    Configured::start(Docroot::of("page_cache"), &text(&quoted(replicas), keys))
}

fn three() -> [Replica; 3] {
    ["a", "b", "c"].map(Replica::start)
}

/// An address at which nothing listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The state of a server in `outboard status`.
fn state(site: &Configured, address: SocketAddr) -> String {
    let status = site.status();
    let servers = status["upstreams"][0]["servers"].as_array().unwrap().clone();
    let name = format!("http://{address}");
    let server = servers.iter().find(|one| one["server"] == name.as_str()).unwrap();
    server["state"].as_str().unwrap().to_owned()
}

/// Which replica has responded how often.
fn answers(site: &Configured, count: usize) -> BTreeMap<String, usize> {
    let mut client = site.client();
    let mut all = BTreeMap::new();
    for _ in 0..count {
        *all.entry(client.get("/x").expect(200).text()).or_default() += 1;
    }
    all
}

#[test]
fn requests_are_shared_by_weight() {
    let [a, b, c] = three();
    let servers = [
        format!("{{ url = \"http://{}\", weight = 2 }}", a.address()),
        format!("\"{}\"", b.address()),
        format!("{{ url = \"http://{}\", backup = true }}", c.address()),
    ];
    let site = Configured::start(Docroot::of("page_cache"), &text(&servers, ""));
    let expected = [("a".to_owned(), 20), ("b".to_owned(), 10)];
    assert_eq!(answers(&site, 30), BTreeMap::from(expected));
    assert_eq!(c.heard().len(), 0);
}

#[test]
fn a_key_leads_to_the_same_server() {
    let [a, b, c] = three();
    let keys = "balance = \"hash\"\nhash_key = \"header:X-User\"";
    let site = serving(&[&a, &b, &c], keys);
    let of = |user: &str| {
        site.client().send(&Request::get("/x").header("X-User", user)).expect(200).text()
    };
    let users: Vec<String> = (0..30).map(|number| format!("user-{number}")).collect();
    let first: Vec<String> = users.iter().map(|user| of(user)).collect();
    let again: Vec<String> = users.iter().map(|user| of(user)).collect();
    assert_eq!(first, again);
    for name in ["a", "b", "c"] {
        assert!(first.iter().any(|server| server == name), "{name} has no key");
    }
}

#[test]
fn a_server_that_fails_in_any_way_fails_no_get() {
    for mode in [Mode::Silent, Mode::HalfHead, Mode::Reset] {
        let [a, b, c] = three();
        let keys = "try_timeout = \"200ms\"\nmax_fails = 2\nfail_timeout = \"1h\"";
        let site = serving(&[&a, &b, &c], keys);
        b.set(mode);
        let answers = answers(&site, 30);
        assert_eq!(answers.values().sum::<usize>(), 30);
        assert_eq!(b.heard().len(), 2, "{mode:?}: ejected after two failures");
        assert_eq!(state(&site, b.address()), "ejected", "{mode:?}");
        site.logs(&["upstream api", &b.address().to_string(), "is ejected"]);
    }
}

#[test]
fn a_response_that_breaks_off_is_not_sent_again() {
    let [a, b, _] = three();
    let site = serving(&[&a, &b], "max_fails = 1\nfail_timeout = \"1h\"");
    a.set(Mode::ResetInBody);
    b.set(Mode::ResetInBody);
    let received = site.exchange("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    // If the reset arrives with the head, no byte has been sent; a stream is reset before its end.
    let is_cut = received.starts_with("HTTP/1.1 200") && received.ends_with("\r\n\r\npart");
    let is_reset = received.is_empty() && Protocol::of_run().scheme() == "https";
    assert!(is_cut || is_reset || received.starts_with("HTTP/1.1 502"), "{received}");
    assert_eq!(a.heard().len() + b.heard().len(), 1);
    let failed = [&a, &b].into_iter().find(|one| !one.heard().is_empty()).unwrap();
    eventually("ejection", || state(&site, failed.address()) == "ejected");
}

#[test]
fn a_post_is_sent_to_another_server_only_if_it_was_not_sent() {
    for mode in [Mode::Silent, Mode::HalfHead, Mode::Reset, Mode::Unavailable] {
        let [a, b, c] = three();
        let keys = "max_fails = 0\nfailure_status = [\"503\"]\ntry_timeout = \"100ms\"";
        let keys = format!("{keys}\n[limits]\nbody_timeout = \"30s\"");
        let servers = quoted(&[&a, &b, &c]);
        let text = text(&servers, &keys)
            .replace("upstream = \"api\"", "upstream = \"api\"\ntimeout = \"300ms\"");
        let site = Configured::start(Docroot::of("page_cache"), &text);
        [&a, &b, &c].iter().for_each(|replica| replica.set(mode));
        let post = |name: &str| Request::new("POST", &format!("/{name}")).body("x");
        let statuses: Vec<u16> =
            (0..6).map(|number| site.client().send(&post(&number.to_string())).status).collect();
        assert!(statuses.iter().all(|status| *status >= 502), "{mode:?}: {statuses:?}");
        let mut heard = [a.heard(), b.heard(), c.heard()].concat();
        heard.sort();
        let expected: Vec<String> = (0..6).map(|number| format!("POST /{number}")).collect();
        assert_eq!(heard, expected, "{mode:?}: each was sent once");
    }
    let a = Replica::start("a");
    let servers = [format!("\"{}\"", nobody()), format!("\"{}\"", a.address())];
    let site = Configured::start(Docroot::of("page_cache"), &text(&servers, "max_fails = 0"));
    for _ in 0..6 {
        let post = Request::new("POST", "/x").body("x");
        assert_eq!(site.client().send(&post).expect(200).text(), "a");
    }
    assert_eq!(a.heard().len(), 6);
}

#[test]
fn a_status_of_a_failure_is_retried_and_passed_on_at_the_end() {
    let [a, b, _] = three();
    let site = serving(&[&a, &b], "failure_status = [\"503\"]\nmax_fails = 0");
    a.set(Mode::Unavailable);
    assert_eq!(answers(&site, 6), BTreeMap::from([("b".to_owned(), 6)]));
    b.set(Mode::Unavailable);
    site.client().get("/x").expect(503).saying("busy");
}

#[test]
fn without_any_server_up_a_request_fails_at_once_and_says_why() {
    let (a, b) = (nobody(), nobody());
    let servers = [format!("\"{a}\""), format!("\"{b}\"")];
    let down = |keys: &str| Configured::start(Docroot::of("page_cache"), &text(&servers, keys));
    let unchecked = down("");
    for _ in 0..8 {
        let refused = unchecked.client().get("/x").expect(502);
        assert_eq!(refused.header("x-outboard-reason"), Some("upstream_failed"));
    }
    let checked = down("health_check = { path = \"/health\", interval = \"50ms\", unhealthy = 1 }");
    eventually("both are down", || [a, b].iter().all(|one| state(&checked, *one) == "down"));
    let refused = checked.client().get("/x").expect(503);
    assert_eq!(refused.header("x-outboard-reason"), Some("upstream_down"));
    checked.logs(&["is down: its health checks fail"]);
}

#[test]
fn a_server_that_flaps_fails_no_request() {
    let [a, b, _] = three();
    let check = "{ path = \"/health\", interval = \"50ms\", timeout = \"100ms\", healthy = 1, unhealthy = 1 }";
    let keys = format!("health_check = {check}\ntry_timeout = \"200ms\"\nfail_timeout = \"50ms\"");
    let site = serving(&[&a, &b], &keys);
    for _ in 0..3 {
        b.set(Mode::Reset);
        assert_eq!(answers(&site, 20), BTreeMap::from([("a".to_owned(), 20)]));
        eventually("b is down", || state(&site, b.address()) == "down");
        b.set(Mode::Serve);
        eventually("b is up", || state(&site, b.address()) == "up");
        assert_eq!(answers(&site, 20).get("b"), Some(&10));
    }
}

#[test]
fn the_circuit_breaker_refuses_while_requests_fail() {
    let a = Replica::start("a");
    let keys = "max_fails = 0\nretries = 0\nfailure_status = [\"503\"]\n\
                breaker = { min_requests = 4, open = \"1s\" }";
    let site = serving(&[&a], keys);
    a.set(Mode::Unavailable);
    for _ in 0..4 {
        site.client().get("/x").expect(503).saying("busy");
    }
    let refused = site.client().get("/x").expect(503);
    assert_eq!(refused.header("x-outboard-reason"), Some("upstream_open"));
    site.logs(&["upstream api", "circuit breaker is open"]);
    a.set(Mode::Serve);
    eventually("it closes", || site.client().get("/x").status == 200);
    assert_eq!(answers(&site, 5).len(), 1);
}

#[test]
fn requests_beyond_the_limit_are_busy_and_wait_for_nothing() {
    let backend = Backend::start();
    let servers = [format!("{{ url = \"{}\", max_connections = 1 }}", backend.url())];
    let site = Configured::start(Docroot::of("page_cache"), &text(&servers, ""));
    thread::scope(|scope| {
        let held = scope.spawn(|| site.client().get("/held/one").expect(200).saying("held one"));
        backend.hears("/held/one", 1);
        let refused = site.client().get("/text/x").expect(503);
        assert_eq!(refused.header("x-outboard-reason"), Some("upstream_busy"));
        backend.release("one");
        held.join().unwrap();
    });
    site.client().get("/text/x").expect(200).saying("x");
}

#[test]
fn a_cookie_binds_a_client_and_a_forged_one_does_not() {
    let [a, b, c] = three();
    let site = serving(&[&a, &b, &c], "sticky = { cookie = \"srv\", secret = \"s\" }");
    let mut client = site.client();
    let first = client.get("/x").expect(200);
    let cookie = first.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.starts_with("srv=") && cookie.contains("; Path=/; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    assert_eq!(cookie.contains("; Secure"), Protocol::of_run().scheme() == "https");
    for _ in 0..9 {
        let again = client.get("/x").expect(200);
        assert_eq!((again.text(), again.header("set-cookie")), (first.text(), None));
    }
    let address = a.address().to_string();
    for forged in ["", "a", &address, "../../x", &"f".repeat(32), &"f".repeat(4_000)] {
        let request = Request::get("/x").header("Cookie", &format!("srv={forged}"));
        let answer = site.client().send(&request).expect(200);
        let new = answer.header("set-cookie").expect("a cookie of a server");
        assert!(!new.contains(&format!("srv={forged};")), "{new}");
    }
    let bound = [&a, &b, &c].into_iter().find(|one| one.heard().len() >= 10).unwrap();
    let drained = site.command("upstreams", &["drain", "api", &bound.address().to_string()]);
    assert!(drained.status.success(), "{drained:?}");
    let moved = client.get("/x").expect(200);
    assert!(moved.text() != first.text() && moved.header("set-cookie").is_some());
}

#[test]
fn a_drained_server_gets_nothing_until_it_is_enabled() {
    let [a, b, _] = three();
    let site = serving(&[&a, &b], "");
    let b_name = format!("http://{}", b.address());
    let run = |arguments: &[&str]| site.command("upstreams", arguments);
    assert!(run(&["drain", "api", &b_name]).status.success());
    assert_eq!(answers(&site, 6), BTreeMap::from([("a".to_owned(), 6)]));
    site.rewrite(&text(&quoted(&[&b, &a]), "balance = \"least_connections\""));
    assert!(site.command("reload", &[]).status.success());
    assert_eq!(state(&site, b.address()), "drained", "a reload keeps it");
    assert_eq!(answers(&site, 6), BTreeMap::from([("a".to_owned(), 6)]));
    let list = String::from_utf8(run(&[]).stdout).unwrap();
    assert!(list.contains("upstream api") && list.contains("drained"), "{list}");
    assert!(run(&["enable", "api", &b_name]).status.success());
    assert_eq!(answers(&site, 6).len(), 2);
    for wrong in [&["drain", "api", "http://10.0.0.1"], &["drain", "x", &b_name[..]]] {
        let refused = run(wrong);
        assert!(!refused.status.success() && !refused.stderr.is_empty());
    }
}

#[test]
fn a_reload_keeps_the_health_of_servers_that_remain() {
    let [a, b, c] = three();
    let keys = "max_fails = 1\nfail_timeout = \"1h\"";
    let site = serving(&[&a, &b], keys);
    b.set(Mode::Reset);
    answers(&site, 4);
    assert_eq!(state(&site, b.address()), "ejected");
    site.rewrite(&text(&quoted(&[&c, &b, &a]), keys));
    assert!(site.command("reload", &[]).status.success());
    assert_eq!(state(&site, b.address()), "ejected");
    let both = BTreeMap::from([("a".to_owned(), 5), ("c".to_owned(), 5)]);
    assert_eq!(answers(&site, 10), both);
}

#[test]
fn a_server_can_have_a_unix_socket() {
    let docroot = Docroot::of("page_cache");
    let path = docroot.beside().path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.push(byte[0]);
            }
            let length = head.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
            let _ = stream.write_all(&[answer.as_bytes(), &head].concat());
        }
    });
    let servers = [format!("\"unix:{}\"", path.display())];
    let text =
        text(&servers, "").replace("path = \"off\"", "path = \"access.log\"\nformat = \"json\"");
    let site = Configured::start(docroot, &text);
    let heard = site.client().get("/a?b").expect(200).text();
    assert!(heard.starts_with("GET /a?b HTTP/1.1\r\n"), "{heard}");
    let log = site.docroot().beside().path().join("access.log");
    let line = eventually("a line of the access log", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n'))
    });
    assert!(line.contains(&format!("\"upstream\":\"unix:{}\"", path.display())), "{line}");
}

#[test]
fn a_header_of_the_proxy_protocol_names_the_client() {
    let starts =
        [("v1", &b"PROXY TCP4 127.0.0.1 127.0.0.1 "[..]), ("v2", b"\r\n\r\n\0\r\nQUIT\n\x21\x11")];
    for (version, start) in starts {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let servers = [format!("\"{}\"", listener.local_addr().unwrap())];
        let keys = format!("proxy_protocol = \"{version}\"");
        let site = Configured::start(Docroot::of("page_cache"), &text(&servers, &keys));
        thread::scope(|scope| {
            let got = scope.spawn(|| {
                let mut client = site.client();
                client.get("/one").expect(200);
                client.get("/two").expect(200)
            });
            for target in ["/one", "/two"] {
                let mut stream = accept(&listener);
                let mut heard = Vec::new();
                while !(heard.ends_with(b"\r\n\r\n") && heard.len() > 40) {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    heard.push(byte[0]);
                }
                assert!(heard.starts_with(start), "{}", heard.escape_ascii());
                let head = format!("GET {target} HTTP/1.1\r\n");
                let is_there = heard.windows(head.len()).any(|part| part == head.as_bytes());
                assert!(is_there, "{}", heard.escape_ascii());
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
            got.join().unwrap();
        });
    }
}

#[test]
fn a_copy_of_a_request_delays_nothing_and_is_discarded() {
    let (a, copy) = (Replica::start("a"), Replica::start("copy"));
    let mirror =
        format!("mirror = {{ upstream = \"http://{}\", max_requests = 3 }}", copy.address());
    let tables = format!(
        "[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://{}\"\n{mirror}\n",
        a.address()
    );
    let site = Configured::serving("page_cache", &tables);
    let post = Request::new("POST", "/first?x").body("body");
    assert_eq!(site.client().send(&post).expect(200).text(), "a");
    eventually("the copy", || copy.heard() == ["POST /first?x"]);
    copy.set(Mode::Silent);
    assert_eq!(answers(&site, 20), BTreeMap::from([("a".to_owned(), 20)]));
    eventually("three copies", || copy.heard().len() == 4);
    assert_eq!(a.heard().len(), 21);
}

#[test]
fn a_name_that_disappears_keeps_its_servers() {
    let a = Replica::start("a");
    let names = Names::start();
    names.open();
    let servers = [format!("\"http://app.test:{}\"", a.address().port())];
    let text = text(&servers, "resolve_interval = \"100ms\"");
    let site = Configured::resolving(&names, Docroot::of("page_cache"), &text);
    site.logs(&["upstream api: app.test has addresses [127.0.0.1]"]);
    assert_eq!(site.client().get("/x").expect(200).text(), "a");
    names.forget();
    site.logs(&["upstream api: app.test has no address, those known remain"]);
    assert_eq!(answers(&site, 5), BTreeMap::from([("a".to_owned(), 5)]));
    let status = site.status()["upstreams"][0]["servers"][0].clone();
    let name = format!("http://app.test:{} (127.0.0.1)", a.address().port());
    assert_eq!(
        (status["server"].as_str(), status["state"].as_str()),
        (Some(&name[..]), Some("up"))
    );
}

#[test]
fn a_websocket_is_balanced_too() {
    let backend = Backend::start();
    let servers = [format!("\"{}\"", nobody()), format!("\"{}\"", backend.url())];
    let site = Configured::start(Docroot::of("page_cache"), &text(&servers, ""));
    for _ in 0..2 {
        let mut wire = site.wire();
        wire.send(
            "GET /switch HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        let received = wire.head();
        assert!(received.starts_with("HTTP/1.1 101 "), "{received}");
    }
}

/// A replica in a process of its own.
fn process(name: &str) -> (Child, SocketAddr) {
    let child = Launch::new(env!("CARGO_BIN_EXE_replica")).arg(name).start();
    let address = |line: &str| line.strip_prefix("serving at ")?.parse().ok();
    let address = child.wait_for(address).unwrap();
    (child, address)
}

fn set(address: SocketAddr, mode: &str) {
    outboard_e2e::Client::new(address).get(&format!("/-/{mode}")).expect(200);
}

/// What a request got, and how long it took.
struct Outcome {
    at: Duration,
    took: Duration,
    status: u16,
}

/// Of three servers one is killed and one becomes slow, under load. No request fails, and the p99 is
/// back within a second of the first failed check; `make upstreams` prints the figures.
#[test]
fn a_dead_and_a_slow_server_fail_no_request() {
    const CLIENTS: usize = 8;
    let servers = ["a", "b", "c"].map(process);
    let names: Vec<String> = servers.iter().map(|(_, at)| format!("\"http://{at}\"")).collect();
    let check = "{ path = \"/health\", interval = \"200ms\", timeout = \"200ms\", unhealthy = 1 }";
    let keys = format!("health_check = {check}\ntry_timeout = \"250ms\"\nmax_fails = 3");
    let site = Configured::start(Docroot::of("page_cache"), &text(&names, &keys));
    let outcomes = Mutex::new(Vec::new());
    let began = Instant::now();
    let [killed, slowed, ends] = [1, 3, 6].map(Duration::from_secs);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = site.client();
                let mut own = Vec::new();
                while began.elapsed() < ends {
                    let at = began.elapsed();
                    let status = client.get("/x").status;
                    own.push(Outcome { at, took: began.elapsed() - at, status });
                }
                outcomes.lock().unwrap().extend(own);
            });
        }
        thread::sleep(killed.saturating_sub(began.elapsed()));
        servers[0].0.signal(Signal::KILL);
        thread::sleep(slowed.saturating_sub(began.elapsed()));
        set(servers[1].1, "slow:5000");
    });
    let outcomes = outcomes.into_inner().unwrap();
    let failed = outcomes.iter().filter(|one| one.status != 200).count();
    let p99 = |from: u64, to: u64| {
        let range = Duration::from_millis(from)..Duration::from_millis(to);
        let mut took: Vec<Duration> =
            outcomes.iter().filter(|one| range.contains(&one.at)).map(|one| one.took).collect();
        took.sort_unstable();
        (took.len(), took.get(took.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default())
    };
    for (what, from, to) in [
        ("three servers", 0, 1_000),
        ("the second in which one is killed", 1_000, 2_000),
        ("the second after", 2_000, 3_000),
        ("the second in which one becomes slow", 3_000, 4_000),
        ("the second after", 4_000, 5_000),
        ("the second after", 5_000, 6_000),
    ] {
        let (count, p99) = p99(from, to);
        println!("| {what} | {count} requests | p99 {:.1} ms |", p99.as_secs_f64() * 1e3);
    }
    println!("| all | {} requests | {failed} failed |", outcomes.len());
    assert_eq!(failed, 0, "of {}", outcomes.len());
    let status = site.status();
    let states: Vec<_> =
        (0..3).map(|n| status["upstreams"][0]["servers"][n]["state"].clone()).collect();
    assert_eq!(states[2], "up");
    assert!(states[0] == "down" && states[1] != "up", "{states:?}");
    if std::env::var_os("OUTBOARD_UPSTREAMS_STRICT").is_some() {
        let (before, after) = (p99(0, 1_000).1, p99(4_000, 6_000).1);
        assert!(after < before * 3 + Duration::from_millis(10), "{before:?} {after:?}");
    }
}

#[test]
fn what_one_thread_finds_out_all_threads_know() {
    const CLIENTS: usize = 8;
    let [a, b, _] = three();
    let keys = "max_fails = 2\nfail_timeout = \"1h\"";
    let text = format!("threads = 4\n{}", text(&quoted(&[&a, &b]), keys));
    let site = Configured::start(Docroot::of("page_cache"), &text);
    assert_eq!(site.threads(), 4);
    b.set(Mode::Reset);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for _ in 0..20 {
                    // Each connection may be on another thread.
                    site.client().get("/x").expect(200).saying("a");
                }
            });
        }
    });
    let heard = b.heard().len();
    assert!((2..2 + CLIENTS).contains(&heard), "{heard}: each client had at most one there");
    assert_eq!(a.heard().len(), CLIENTS * 20);
}

/// The servers of a forward authentication are balanced as those of a route.
#[test]
fn a_dead_server_of_forward_auth_admits_and_refuses_nobody() {
    let [one, other, _] = three();
    let dead = nobody();
    let servers = [quoted(&[&one, &other]), vec![format!("\"http://{dead}\"")]].concat().join(", ");
    let site = Configured::start(
        Docroot::of("reload"),
        &Configured::text(&format!(
            "[[app.site.access]]\nforward_auth = {{ upstream = \"auth/verify\" }}\n\
             [upstream.auth]\nservers = [{servers}]\n"
        )),
    );
    for _ in 0..30 {
        site.client().get("/hello.php").expect(200).saying("Hello, world\n");
    }
    let status = site.status();
    assert_eq!(status["upstreams"][0]["name"], "auth", "{status}");
    for replica in [&one, &other] {
        let url = format!("http://{}", replica.address());
        let output = site.command("upstreams", &["drain", "auth", &url]);
        assert!(output.status.success(), "{output:?}");
    }
    assert!(site.client().get("/hello.php").status >= 500);
}
