//! Workers answer on connections of clients by themselves: clients get what they get without, and so do the logs.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Process, Request, Wire, eventually};
use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SCRIPT: &str = r#"<?php
$boot = getmypid();
while (Outboard\handle_request(function () use ($boot) {
    switch ($_GET['do'] ?? '') {
        case 'server':
            $facts = $_SERVER;
            foreach (['REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'REMOTE_PORT', 'REQUEST_ID', 'SERVER_PORT'] as $own) unset($facts[$own]);
            foreach ($facts as $name => $value) if (is_string($value) && str_contains($value, '-docroot')) unset($facts[$name]);
            ksort($facts);
            echo json_encode([$facts, $_GET, $_POST, $_COOKIE, file_get_contents('php://input')]);
            return;
        case 'pid': echo $boot; return;
        case 'big': echo str_repeat('x', (int) $_GET['bytes']); return;
        case 'flush': echo 'a'; flush(); usleep(30000); echo 'b'; return;
        case 'sleep': usleep(1000 * (int) $_GET['ms']); echo 'slept'; return;
        case 'status': http_response_code((int) $_GET['code']); echo 'body'; return;
        case 'header': header($_GET['line']); echo 'body'; return;
        case 'log': error_log('this is logged'); echo 'logged'; return;
        case 'exit': echo 'so far'; exit;
        case 'throw': throw new Exception('thrown');
        case 'append': file_put_contents($_GET['file'], "{$_GET['id']}\n", FILE_APPEND | LOCK_EX); usleep(15000); echo 'appended'; return;
        case 'kill': posix_kill(getmypid(), 9); return;
        case 'spin': while (true);
    }
    echo 'hello';
})) {}
"#;

fn text(direct: bool, tables: &str) -> String {
    let mode = format!(
        "root = \"www\"\nmode = \"worker\"\ncompress = false\n\
         [app.site.worker]\nscript = \"worker.php\"\ndirect = {direct}\n"
    );
    Configured::text(tables).replace("root = \"www\"\n", &mode)
}

fn serving_with(direct: bool, tables: &str) -> Configured {
    let docroot = Docroot::of("supervision");
    docroot.beside().file("worker.php", SCRIPT);
    docroot.put("file.txt", "a file\n");
    Configured::start(docroot, &text(direct, tables))
}

fn serving(tables: &str) -> Configured {
    serving_with(true, tables)
}

fn get(target: &str) -> Vec<u8> {
    Request::get(target).to_bytes("site.test")
}

fn answers(connection: &mut Connection, target: &str) -> String {
    connection.send(&get(target)).unwrap();
    connection.response().unwrap().expect(200).text()
}

fn direct(site: &Configured, what: &str) -> u64 {
    site.status()["pools"][0][what].as_u64().expect("a number")
}

/// A connection that a worker has.
fn parked(site: &Configured) -> Connection {
    let mut connection = Connection::open(site.address());
    let before = direct(site, "direct_requests");
    eventually("a worker answers by itself", || {
        answers(&mut connection, "/");
        direct(site, "direct_requests") > before
    });
    connection
}

/// What comes back on a connection for these bytes, sent behind requests that a worker answers by itself.
fn exchanged(site: &Configured, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut came = Vec::new();
    for _ in 0..3 {
        stream.write_all(&get("/")).unwrap();
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).unwrap_or_else(|error| {
            panic!("no answer before {}: {error}", bytes.escape_ascii());
        });
        let answer = answer[..count].escape_ascii();
        assert!(answer.to_string().ends_with("hello"), "{answer} before {}", bytes.escape_ascii());
        thread::sleep(Duration::from_millis(2));
    }
    stream.write_all(bytes).unwrap();
    stream
        .write_all(b"GET /last HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    if let Err(error) = stream.read_to_end(&mut came) {
        // After a response that ends the connection, before it has read the last request.
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{}", bytes.escape_ascii());
    }
    let text = String::from_utf8_lossy(&came).into_owned();
    // Those of the two servers' own files differ.
    let own = ["Date: ", "ETag: ", "Last-Modified: "];
    let is_own = |line: &&str| own.iter().any(|name| line.starts_with(name));
    let lines = text.split_inclusive("\r\n").filter(|line| !is_own(line));
    if !text.contains("xxx") {
        return lines.collect();
    }
    // Time decides where a long body is cut into chunks.
    let is_size = |line: &&str| {
        let size = line.trim_end();
        !size.is_empty() && size.len() < 7 && size.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let whole = |line: &str| {
        line.trim_end_matches(if line.starts_with("xx") { "\r\n" } else { "\0" }).to_owned()
    };
    lines.filter(|line| !is_size(line)).map(whole).collect()
}

#[test]
fn every_request_is_answered_as_without() {
    let (with, without) = (serving_with(true, ""), serving_with(false, ""));
    let one = |line: &str, fields: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n{body}").into_bytes()
    };
    let mut all: Vec<Vec<u8>> = Vec::new();
    for target in [
        "/?do=server&a[]=1&a[]=2",
        "/a/b/../c?do=server",
        "/%61?do=server",
        "/?do=server#x",
        "/?do=big&bytes=1",
        "/?do=big&bytes=100000",
        "/?do=big&bytes=3000000",
        "/?do=flush",
        "/?do=sleep&ms=30",
        "/?do=status&code=404",
        "/?do=status&code=204",
        "/?do=status&code=304",
        "/?do=status&code=503",
        "/?do=status&code=299",
        "/?do=header&line=X-A:%20b",
        "/?do=header&line=Content-Length:%203",
        "/?do=header&line=Connection:%20close",
        "/?do=header&line=Server:%20mine",
        "/?do=header&line=X-Accel-Redirect:%20/file.txt",
        "/?do=header&line=HTTP/1.1%20404%20Nope",
        "/?do=header&line=no%20header",
        "/?do=log",
        "/?do=exit",
        "/?do=throw",
        "/file.txt",
        "/worker.php",
        "/none.php",
        "//x?do=server",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
            all.push(one(&format!("{method} {target}"), "", ""));
        }
    }
    for fields in [
        "Cookie: a=1\r\nCookie: b=2\r\n",
        "X_Under: 1\r\n",
        "X-Forwarded-For: 1.2.3.4\r\nEarly-Data: 1\r\n",
        "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\nIf-None-Match: *\r\n",
        "Connection: keep-alive\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        "TE: trailers\r\n",
        "Authorization: Basic YTpi\r\nContent-Type: text/x\r\n",
    ] {
        all.push(one("GET /?do=server", fields, ""));
    }
    for (fields, body) in [
        ("Content-Length: 3\r\n", "a=b"),
        ("Content-Length: 3\r\nContent-Type: application/x-www-form-urlencoded\r\n", "a=b"),
        ("Content-Length: 0\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "3\r\na=b\r\n0\r\n\r\n"),
        ("Content-Length: 2\r\nExpect: 100-continue\r\n", "ab"),
    ] {
        all.push(one("POST /?do=server", fields, body));
        all.push(one("PUT /?do=server", fields, body));
    }
    all.push(one("POST /?do=server", "Content-Length: 40000\r\n", &"y".repeat(40_000)));
    let others =
        ["GET / HTTP/1.0\r\n\r\n", "GET http://site.test/?do=server HTTP/1.1\r\nHost: b\r\n\r\n"];
    all.extend(others.map(|request| request.as_bytes().to_vec()));
    all.push(b"GET /?do=server HTTP/1.1\r\nHost: other.test\r\n\r\n".to_vec());
    all.push([one("GET /?do=big&bytes=10", "", ""), one("GET /?do=flush", "", "")].concat());
    all.push(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec());
    all.push(b"nonsense\r\n\r\n".to_vec());
    for request in all {
        let expected = exchanged(&without, &request);
        let answer = exchanged(&with, &request);
        assert_eq!(answer, expected, "{}", request.escape_ascii());
    }
    assert!(direct(&with, "direct_requests") > 100, "{}", with.status());
    assert_eq!(direct(&without, "direct_requests"), 0);
}

#[test]
fn accounts_and_the_access_log_have_every_request_once() {
    let site = serving("[app.site.log.access]\npath = \"stdout\"\n");
    let mut connection = Connection::open(site.address());
    let mut sent = 0;
    eventually("a worker answers by itself", || {
        answers(&mut connection, "/");
        sent += 1;
        direct(&site, "direct_requests") > 0
    });
    for number in 0..200 {
        assert_eq!(answers(&mut connection, &format!("/?number={number}")), "hello");
        sent += 1;
    }
    eventually("all are counted", || site.status()["responses"]["2xx"] == sent);
    for number in 0..200 {
        let line = format!("\"GET /?number={number} HTTP/1.1\" 200 5 ");
        eventually(&line, || site.child().output().matches(&line).count() == 1);
    }
    assert!(direct(&site, "direct_requests") >= 190);
}

#[test]
fn a_new_file_is_served_after_a_second() {
    let site = serving("");
    let mut connection = parked(&site);
    assert_eq!(answers(&mut connection, "/later.txt"), "hello");
    assert_eq!(answers(&mut connection, "/later.txt"), "hello");
    site.docroot().put("later.txt", "a file");
    eventually("the file is served", || answers(&mut connection, "/later.txt") == "a file");
}

/// Kills workers under the load of so many connections. What is lost are requests in flight.
fn kills_cost_requests_in_flight(connections: usize, kills: usize) {
    let site = serving("[pool]\nmin = 2\nmax = 2");
    let (is_over, served, lost) =
        (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = Connection::open(site.address());
                while !is_over.load(Ordering::Relaxed) {
                    connection.send(&get("/?do=pid")).unwrap();
                    match connection.response() {
                        Ok(response) if response.status == 200 => {
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                        failed => {
                            lost.fetch_add(1, Ordering::Relaxed);
                            if let Ok(response) = failed {
                                assert_eq!(response.status, 502);
                            }
                            connection = Connection::open(site.address());
                        }
                    }
                    thread::sleep(Duration::from_micros(50 * connections as u64));
                }
            });
        }
        for _ in 0..kills {
            let worker = eventually("a worker is there", || {
                let workers = site.status()["pools"][0]["workers"].clone();
                let pids = workers.as_array()?.iter().filter_map(|worker| worker["pid"].as_u64());
                let pids: Vec<u32> = pids.map(|pid| pid as u32).collect();
                pids.into_iter().find_map(Process::find)
            });
            worker.kill();
            thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (served, lost) = (served.into_inner(), lost.into_inner());
    println!("{served} requests, {lost} lost by {kills} kills");
    // A worker has one request at a time, and may be reading from another connection.
    assert!(
        lost <= 2 * kills && served > 10 * kills,
        "{served} requests, {lost} lost by {kills} kills"
    );
    assert_eq!(answers(&mut parked(&site), "/"), "hello");
}

#[test]
fn a_killed_worker_costs_the_requests_in_flight() {
    kills_cost_requests_in_flight(20, 20);
}

#[test]
#[ignore = "a minute: cargo test -p outboard-e2e --test direct -- --ignored"]
fn a_thousand_kills_under_500_connections_cost_no_other_request() {
    kills_cost_requests_in_flight(500, 1_000);
}

#[test]
fn a_request_that_never_ends_has_its_deadline_and_holds_up_nobody() {
    let site = serving("[limits]\nrequest_deadline = \"500ms\"\n[pool]\nmin = 2\nmax = 2");
    let (mut stuck, mut other) = (parked(&site), parked(&site));
    stuck.send(&get("/?do=spin")).unwrap();
    for _ in 0..5 {
        assert_eq!(answers(&mut other, "/"), "hello");
    }
    let response = stuck.response().unwrap().expect(504);
    assert_eq!(response.header("x-outboard-reason"), Some("deadline"));
}

#[test]
fn a_client_that_does_not_read_holds_no_worker() {
    let site = serving("[pool]\nmin = 1\nmax = 1");
    let _slow = {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        for _ in 0..3 {
            stream.write_all(&get("/")).unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
        }
        for _ in 0..400 {
            stream.write_all(&get("/?do=big&bytes=30000")).unwrap();
        }
        stream
    };
    let mut other = parked(&site);
    for _ in 0..50 {
        assert_eq!(answers(&mut other, "/"), "hello");
    }
}

#[test]
fn a_client_that_sends_slowly_is_waited_for_by_the_gateway() {
    let site = serving("[pool]\nmin = 1\nmax = 1");
    let mut slow = parked(&site);
    let mut other = parked(&site);
    for piece in get("/?do=pid").chunks(7) {
        slow.send(piece).unwrap();
        assert_eq!(answers(&mut other, "/"), "hello");
    }
    slow.response().unwrap().expect(200);
}

#[test]
fn a_half_closed_client_is_answered() {
    let site = serving("");
    let mut wire = Wire::open(site.address());
    wire.send([&get("/")[..], &get("/")].concat());
    wire.finish_sending();
    assert_eq!(wire.to_end().matches("hello").count(), 2);
    let mut stream = TcpStream::connect(site.address()).unwrap();
    for _ in 0..3 {
        stream.write_all(&get("/")).unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
    }
    stream.write_all(&get("/")).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("hello"), "{rest}");
    eventually("its connection is closed", || direct(&site, "direct_connections") == 0);
}

#[test]
fn a_reload_loses_no_request_and_its_script_is_used() {
    let site = serving("");
    let mut connections: Vec<Connection> = (0..8).map(|_| parked(&site)).collect();
    for round in 0..3 {
        let script = SCRIPT.replace("echo 'hello'", &format!("echo 'round {round}'"));
        site.docroot().beside().file("worker.php", script);
        let output = site.command("reload", &[]);
        assert!(output.status.success(), "{output:?}");
        for connection in &mut connections {
            assert_eq!(answers(connection, "/"), format!("round {round}"));
        }
    }
}

#[test]
fn idle_connections_are_closed_in_time() {
    let site = serving("[limits]\nidle_timeout = \"500ms\"");
    let mut connection = parked(&site);
    assert!(connection.is_closed());
    eventually("no worker has one", || direct(&site, "direct_connections") == 0);
}

#[test]
fn what_needs_the_gateway_excludes_it_by_name() {
    let site = serving("");
    for (tables, key) in [
        ("[[app.site.headers]]\nset = { X-A = \"b\" }\n", "headers"),
        ("[[app.site.rewrite]]\nmatch = \"^/a$\"\nto = \"/b\"\n", "rewrite"),
        ("[app.site.page_cache]\n", "page_cache"),
        (
            "[[app.site.access]]\npath = \"/a\"\nrate_limit = { requests = 1, per = \"1s\" }\n",
            "access",
        ),
    ] {
        site.rewrite(&text(true, tables));
        let output = site.command("reload", &[]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(key), "{key}: {text}");
    }
}

/// A request that the gateway passes on by the ring, whatever the connection.
fn by_ring(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nConnection: keep-alive\r\n\r\n")
        .into_bytes()
}

#[test]
fn a_request_in_flight_runs_once_although_its_app_is_reloaded() {
    let site = serving("[pool]\nmin = 4\nmax = 4");
    site.docroot().writable("");
    let file = site.root().join("log.txt");
    let (is_over, appended) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (site, file, is_over, appended) = (&site, &file, &is_over, &appended);
        for client in 0..8 {
            scope.spawn(move || {
                let mut connection = parked(site);
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let target =
                        format!("/?do=append&file={}&id={client}-{number}", file.display());
                    assert_eq!(answers(&mut connection, &target), "appended");
                    appended.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
            });
        }
        for _ in 0..6 {
            let output = site.command("reload", &[]);
            assert!(output.status.success(), "{output:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let text = std::fs::read_to_string(&file).unwrap();
    let different: HashSet<&str> = text.lines().collect();
    assert_eq!(text.lines().count(), different.len(), "a request has run twice");
    assert_eq!(different.len(), appended.into_inner());
}

#[test]
fn a_long_request_of_another_client_holds_up_no_connection() {
    let site = serving("[pool]\nmin = 2\nmax = 2");
    let mut connections: Vec<Connection> = (0..6).map(|_| parked(&site)).collect();
    let mut long = Connection::open(site.address());
    long.send(&by_ring("/?do=sleep&ms=3000")).unwrap();
    thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    for connection in &mut connections {
        assert_eq!(answers(connection, "/"), "hello");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    long.response().unwrap().expect(200);
}

#[test]
fn a_flood_by_the_ring_does_not_starve_connections() {
    let site = serving("[pool]\nmin = 1\nmax = 1");
    let mut direct = parked(&site);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = Connection::open(site.address());
                while !is_over.load(Ordering::Relaxed) {
                    connection.send(&by_ring("/")).unwrap();
                    connection.response().unwrap().expect(200);
                }
            });
        }
        for _ in 0..200 {
            assert_eq!(answers(&mut direct, "/"), "hello");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_connection_that_was_at_a_worker_can_become_a_tunnel() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let backend = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        stream.write_all(switched.as_bytes()).unwrap();
        let mut bytes = [0; 7];
        while stream.read_exact(&mut bytes).is_ok() {
            stream.write_all(&[&b"\x81\x01"[..], &[bytes[6] ^ bytes[2]]].concat()).unwrap();
        }
    });
    let site =
        serving(&format!("[[app.site.proxy]]\npath = \"/ws\"\nupstream = \"http://{backend}\"\n"));
    let mut wire = site.wire();
    let before = direct(&site, "direct_requests");
    eventually("a worker responds", || {
        wire.send(get("/"));
        wire.head();
        wire.expect("hello");
        direct(&site, "direct_requests") > before
    });
    let upgrade = "GET /ws HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    wire.send(upgrade);
    assert!(wire.head().starts_with("HTTP/1.1 101 "));
    for letter in b"abc" {
        wire.send([&b"\x81\x81\x01\x02\x03\x04"[..], &[letter ^ 1]].concat());
        assert_eq!(wire.exactly(3), [0x81, 1, *letter]);
    }
}
