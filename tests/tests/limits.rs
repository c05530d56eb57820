//! What is too much or too late is refused with a status and a reason of its own, or waits.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Protocol, Wire, connect, eventually};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::time::Duration;

/// A server whose every limit is small.
fn strict() -> &'static Configured {
    static STRICT: LazyLock<Configured> = LazyLock::new(|| {
        Configured::serving(
            "limits",
            "[limits]
             header_timeout = \"300ms\"
             body_timeout = \"300ms\"
             idle_timeout = \"300ms\"
             request_line = 256
             header = \"1 KiB\"
             header_count = 8
             body = \"64 KiB\"
             keepalive_requests = 3",
        )
    });
    &STRICT
}

/// The connection ends with this answer.
#[track_caller]
fn ends_with(transcript: &str, status: &str, reason: &str) {
    assert!(transcript.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{transcript}");
    let field = format!("\r\nX-Outboard-Reason: {reason}\r\n");
    assert!(transcript.contains(&field), "{transcript}");
    assert!(transcript.ends_with('\n'), "{transcript}");
}

#[track_caller]
fn is_refused(request: impl AsRef<[u8]>, status: &str, reason: &str) {
    ends_with(&strict().exchange(request), status, reason);
}

#[test]
fn a_head_that_does_not_come_is_408() {
    for beginning in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        is_refused(beginning, "408 Request Timeout", "header_timeout");
    }
}

/// The time is counted from the first byte: a byte now and then does not prolong it.
#[test]
fn a_head_that_trickles_is_408() {
    let mut stream = connect(strict().address());
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX: ").unwrap();
    let mut answer = vec![0; 65536];
    let mut sent = 0;
    let count = loop {
        stream.write_all(b"x").unwrap();
        sent += 1;
        match stream.read(&mut answer) {
            Ok(count) => break count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        assert!(sent < 800, "every byte prolongs the time");
    };
    let answer = String::from_utf8_lossy(&answer[..count]);
    ends_with(&answer, "408 Request Timeout", "header_timeout");
}

#[test]
fn a_body_that_does_not_come_is_408() {
    for request in [
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n",
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n",
    ] {
        is_refused(request, "408 Request Timeout", "body_timeout");
    }
}

/// Each piece comes in time, and all of them together far too slowly.
#[test]
fn a_body_that_trickles_is_408() {
    for (framing, piece) in
        [("Content-Length: 10000", "x"), ("Transfer-Encoding: chunked", "1\r\nx\r\n")]
    {
        let mut stream = connect(strict().address());
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let head = format!("POST /echo.php HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = vec![0; 65536];
        let mut sent = 0;
        let count = loop {
            // It may have been closed.
            let _ = stream.write_all(piece.as_bytes());
            sent += 1;
            match stream.read(&mut answer) {
                Ok(count) => break count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            assert!(sent < 800, "every byte prolongs the time");
        };
        let answer = String::from_utf8_lossy(&answer[..count]);
        ends_with(&answer, "408 Request Timeout", "body_timeout");
    }
}

#[test]
fn a_client_that_takes_little_at_a_time_is_let_go() {
    let limits = "[limits]\nwrite_timeout = \"300ms\"\nwrite_min_rate = \"64 MiB\"";
    let site = Configured::serving("limits", limits);
    let file = std::fs::File::create(site.root().join("sparse.bin")).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut stream = connect(site.address());
    stream.write_all(b"GET /sparse.bin HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut piece = vec![0; 64 << 10];
    let mut taken = 0;
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        taken += count;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(taken < 1 << 30, "all of it came");
    site.logs(&["reason=write_timeout"]);
}

#[test]
fn a_silent_connection_is_closed_without_a_word() {
    assert_eq!(strict().wire().to_end(), "");
    let mut wire = strict().wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.head();
    wire.expect("Hello, world\n");
    assert_eq!(wire.to_end(), "", "an idle connection gets no 408");
}

#[test]
fn a_body_that_says_its_excess_is_413_at_once() {
    // Not a byte of the body is sent, and none is waited for.
    let request = "POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n";
    let mut wire = strict().wire();
    wire.send(request);
    ends_with(&wire.to_end(), "413 Content Too Large", "body_too_large");
}

#[test]
fn chunks_that_go_beyond_the_limit_are_413() {
    let mut request =
        b"POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..5 {
        request.extend_from_slice(b"4000\r\n");
        request.extend_from_slice(&[b'x'; 0x4000]);
        request.extend_from_slice(b"\r\n");
    }
    is_refused(&request, "413 Content Too Large", "body_too_large");
}

/// Bytes that are too many are not waited for: the size line alone is enough.
#[test]
fn a_chunk_that_says_its_excess_is_413_at_once() {
    let half = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    for (before, size) in [
        ("", "10001"),
        ("", "7fffffffffffffff"),
        ("", "000000000010001;name=value"),
        (half.as_str(), "8001"),
    ] {
        let mut wire = strict().wire();
        wire.send(format!(
            "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             {before}{size}\r\n"
        ));
        ends_with(&wire.to_end(), "413 Content Too Large", "body_too_large");
    }
}

#[test]
fn an_invalid_chunk_size_is_400() {
    for size in ["8000000000000000", "ffffffffffffffff", "10000000000000000", "-1", "0x5", ""] {
        let request = format!(
            "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n"
        );
        is_refused(request, "400 Bad Request", "bad_chunk");
    }
}

#[test]
fn a_body_of_just_the_limit_is_taken() {
    let body = vec![b'x'; 65536];
    let head =
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 65536\r\n\r\n";
    let transcript = strict().exchange([head.as_bytes(), &body].concat());
    assert!(transcript.starts_with("HTTP/1.1 200 OK\r\n"), "{transcript}");
    let version = Protocol::of_run().version();
    assert!(transcript.ends_with(&format!("HTTP/{version}\n{}", "x".repeat(65536))));
}

#[test]
fn a_long_request_line_is_414() {
    let target = "x".repeat(300);
    let request = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n");
    is_refused(request, "414 URI Too Long", "target_too_long");
}

/// A line that never ends is refused once it is too long, not kept until it ends.
#[test]
fn a_request_line_without_end_is_414() {
    is_refused(format!("GET /{}", "x".repeat(4000)), "414 URI Too Long", "target_too_long");
}

#[test]
fn long_headers_are_431() {
    let field = "x".repeat(1100);
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {field}\r\n\r\n");
    is_refused(request, "431 Request Header Fields Too Large", "headers_too_large");
}

/// A field that never ends is refused once it is too long.
#[test]
fn a_header_without_end_is_431() {
    let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(9000));
    is_refused(endless, "431 Request Header Fields Too Large", "headers_too_large");
}

#[test]
fn many_headers_are_431() {
    let fields = "X: y\r\n".repeat(8);
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    is_refused(request, "431 Request Header Fields Too Large", "headers_too_large");
}

#[test]
fn just_as_many_headers_as_allowed_are_taken() {
    let fields = "X: y\r\n".repeat(6);
    let transcript = strict().exchange(format!(
        "GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n"
    ));
    assert!(transcript.starts_with("HTTP/1.1 200 OK\r\n"), "{transcript}");
}

#[test]
fn the_last_response_of_a_connection_announces_the_close() {
    let request = "GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n";
    let transcript = strict().exchange(request.repeat(5));
    assert_eq!(transcript.matches("Hello, world\n").count(), 3, "{transcript}");
    assert_eq!(transcript.matches("Connection: close\r\n").count(), 1, "{transcript}");
}

/// Clients that ask for much and read nothing, more of them than there are workers; returns once
/// the server has let go of them.
fn sleepers(site: &Configured) -> Vec<Wire> {
    let sleepers = (0..4).map(|_| {
        let mut wire = site.wire();
        wire.send("GET /large.php HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.head();
        wire
    });
    let sleepers = sleepers.collect();
    // The connection that reads the status counts as well.
    eventually("the server closes the others", || site.status()["connections"].as_u64() <= Some(1));
    sleepers
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let site = Configured::serving("limits", "[limits]\nwrite_timeout = \"300ms\"");
    for mut wire in sleepers(&site) {
        let came = wire.to_any_end();
        assert!(came.len() < 16 << 20, "all of it came");
    }
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn a_client_that_was_let_go_is_counted_with_its_reason() {
    let site = Configured::serving("limits", "[limits]\nwrite_timeout = \"300ms\"");
    let sleepers = sleepers(&site);
    let status = site.status();
    let reasons = status["reasons"].as_array().expect("a list");
    let counted = reasons.iter().find(|counted| counted["reason"] == "write_timeout");
    let count = counted.and_then(|counted| counted["count"].as_u64());
    assert_eq!(count, Some(sleepers.len() as u64), "{status:#}");
}

#[test]
fn connections_beyond_the_limit_wait_and_are_served() {
    let site = Configured::serving("limits", "[limits]\nconnections = 2");
    let mut inside = [site.wire(), site.wire()];
    for wire in &mut inside {
        // The server has sent it 100 (Continue): it is in the middle of a request.
        wire.send("POST /echo.php HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n");
        wire.send("Content-Length: 5\r\nConnection: close\r\n\r\n");
        assert_eq!(wire.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    }
    let mut waiting: Vec<Wire> = (0..3).map(|_| site.wire()).collect();
    for wire in &mut waiting {
        wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }
    // Those inside are not disturbed by those that wait.
    for mut wire in inside {
        wire.send("hello");
        let transcript = wire.to_end();
        assert!(transcript.starts_with("HTTP/1.1 200 OK\r\n"), "{transcript}");
    }
    for mut wire in waiting {
        let transcript = wire.to_end();
        assert!(transcript.ends_with("\r\n\r\nHello, world\n"), "{transcript}");
    }
}

#[test]
fn the_operator_gets_in_when_all_connections_are_taken() {
    let site = Configured::serving("limits", "[limits]\nconnections = 2\nidle_timeout = \"10m\"");
    let _taken = [site.wire(), site.wire()].map(|mut wire| {
        wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.head();
        wire
    });
    let mut admin = UnixStream::connect(site.admin_socket()).unwrap();
    admin.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    admin.write_all(b"GET /status HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let read = admin.read_to_string(&mut answer);
    assert!(read.is_ok() && answer.starts_with("HTTP/1.1 200 OK\r\n"), "{read:?} {answer}");
}

/// A server of its own, so that no other test has written the line already.
#[track_caller]
fn is_logged(request: &str, reason: &str, status: &str) {
    let site = Configured::serving("limits", "[limits]\nheader_timeout = \"300ms\"\nbody = \"1k\"");
    site.exchange(request);
    // What is logged later than this was not logged.
    site.client().get("/echo.php%00").expect(400);
    site.logs(&["reason=bad_path"]);
    let log = site.child().output();
    let words = [format!("reason={reason} "), format!("status={status} ")];
    let found = log.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(found, "{words:?} are not in the log:\n{log}");
}

#[test]
fn a_refused_head_is_in_the_log_with_its_reason() {
    is_logged("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "bad_request", "400");
}

#[test]
fn a_refused_body_is_in_the_log_with_its_reason() {
    let request = "POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 1025\r\n\r\n";
    is_logged(request, "body_too_large", "413");
}

#[test]
fn a_head_that_was_cut_is_in_the_log_with_its_reason() {
    let site = Configured::serving("limits", "");
    let mut wire = site.wire();
    wire.send("GET / HTTP/1.1\r\n");
    wire.finish_sending();
    wire.to_end();
    site.logs(&["reason=bad_request ", "status=400 ", "client=127.0.0.1 head_cut"]);
}

#[test]
fn a_head_that_came_too_late_is_in_the_log_with_its_reason() {
    is_logged("GET / HTTP/1.1\r\n", "header_timeout", "408");
}

/// No room would ever be enough, so nobody waits for it.
#[test]
fn a_response_head_that_is_too_long_is_502_at_once() {
    let site = Configured::serving("limits", "[pool]\nmin = 1\nmax = 1");
    for _ in 0..2 {
        let refused = site.client().get("/long_head.php").expect(502);
        assert_eq!(refused.header("x-outboard-reason"), Some("bad_response"));
    }
    site.logs(&["The response head of the script has 300"]);
    site.client().get("/hello.php").expect(200);
}
