//! Many requests on one connection, in whatever pieces they come.

use crate::{plain, plain_and_close, site};

const GET: &str = "GET /echo.php?1 HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &str = "POST /echo.php?2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKS: &str = "POST /echo.php?3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                      3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
const LAST: &str = "GET /echo.php?4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// What the four requests are answered.
fn all_four() -> String {
    [
        plain("GET /echo.php?1 HTTP/1.1\n"),
        plain("POST /echo.php?2 HTTP/1.1\nhello"),
        plain("POST /echo.php?3 HTTP/1.1\nhello"),
        plain_and_close("GET /echo.php?4 HTTP/1.1\n"),
    ]
    .concat()
}

#[test]
fn a_connection_serves_one_request_after_another() {
    let mut wire = site().wire();
    for _ in 0..20 {
        wire.send(GET);
        wire.expect_undated(&plain("GET /echo.php?1 HTTP/1.1\n"));
    }
    wire.send(LAST);
    assert_eq!(wire.to_end(), plain_and_close("GET /echo.php?4 HTTP/1.1\n"));
}

#[test]
fn requests_in_one_segment_are_answered_in_order() {
    assert_eq!(site().exchange([GET, POST, CHUNKS, LAST].concat()), all_four());
}

#[test]
fn a_hundred_requests_in_one_segment_are_all_answered() {
    let mut wire = site().wire();
    wire.send([GET.repeat(100).as_str(), LAST].concat());
    let expected = plain("GET /echo.php?1 HTTP/1.1\n").repeat(100)
        + &plain_and_close("GET /echo.php?4 HTTP/1.1\n");
    assert_eq!(wire.to_end(), expected);
}

#[test]
fn scripts_files_and_refusals_keep_their_order() {
    let requests = [
        GET,
        "GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /missing.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /file.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        LAST,
    ];
    let transcript = site().exchange(requests.concat());
    let lines = transcript.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 "));
    let statuses: Vec<&str> = lines.map(|line| &line[..3]).collect();
    assert_eq!(statuses, ["200", "200", "404", "200", "200"], "{transcript}");
}

#[test]
fn a_request_may_be_cut_anywhere() {
    let stream = [POST, CHUNKS, LAST].concat();
    let expected = all_four().split_off(plain("GET /echo.php?1 HTTP/1.1\n").len());
    for at in 1..stream.len() {
        let mut wire = site().wire();
        wire.send(&stream[..at]);
        wire.send(&stream[at..]);
        assert_eq!(wire.to_end(), expected, "cut at {at}");
    }
}

#[test]
fn a_client_may_send_byte_by_byte() {
    let mut wire = site().wire();
    for byte in [GET, POST, CHUNKS, LAST].concat().bytes() {
        wire.send([byte]);
    }
    assert_eq!(wire.to_end(), all_four());
}

#[test]
fn empty_lines_before_a_request_are_passed_over() {
    let transcript = site().exchange(format!("\r\n{LAST}"));
    assert_eq!(transcript, plain_and_close("GET /echo.php?4 HTTP/1.1\n"));
}

#[test]
fn http_1_0_closes_after_the_answer() {
    let transcript = site().exchange("GET /echo.php HTTP/1.0\r\n\r\n");
    assert_eq!(transcript, plain_and_close("GET /echo.php HTTP/1.0\n"));
}

#[test]
fn http_1_0_with_keep_alive_goes_on() {
    let keep = "GET /echo.php HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let last = "GET /echo.php HTTP/1.0\r\n\r\n";
    let kept = plain_and_close("GET /echo.php HTTP/1.0\n")
        .replace("Connection: close", "Connection: keep-alive");
    let expected = kept + &plain_and_close("GET /echo.php HTTP/1.0\n");
    assert_eq!(site().exchange([keep, last].concat()), expected);
}

#[test]
fn a_client_that_has_sent_all_may_close_its_side() {
    let mut wire = site().wire();
    wire.send("GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.finish_sending();
    let transcript = wire.to_end();
    assert!(transcript.ends_with("\r\n\r\na file\n"), "{transcript}");
}

#[test]
fn a_head_that_ends_half_way_is_refused() {
    let mut wire = site().wire();
    wire.send("GET /echo.php HTTP/1.1\r\nHo");
    wire.finish_sending();
    let transcript = wire.to_end();
    assert!(transcript.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{transcript}");
}

#[test]
fn a_body_that_ends_half_way_never_reaches_php() {
    for request in [
        "POST /marks.php?cut-length HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf",
        "POST /marks.php?cut-chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
    ] {
        let mut wire = site().wire();
        wire.send(request);
        wire.finish_sending();
        wire.to_any_end();
    }
    site().client().get("/hello.php").expect(200).saying("Hello, world\n");
    assert_eq!(std::fs::read_to_string(site().root().join("marks/seen")).unwrap_or_default(), "");
}

#[test]
fn a_client_that_leaves_affects_no_other_client() {
    for bytes in ["", "G", GET, POST, "GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n"] {
        drop({
            let mut wire = site().wire();
            wire.send(bytes);
            wire
        });
    }
    site().client().get("/hello.php").expect(200).saying("Hello, world\n");
}
