//! What leaves a choice of how to read it is refused, and the connection with it: otherwise what
//! follows could be read as a request that another server in front has never seen.

use crate::{plain_and_close, site};

const SMUGGLED: &str = "GET /smuggled.php HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends this and a further request; exactly one answer comes, with this status and reason, and
/// then the end.
#[track_caller]
fn is_refused(stream: &str, status: &str, reason: &str) {
    let transcript = site().exchange([stream, SMUGGLED].concat());
    assert!(transcript.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{stream:?}\n{transcript}");
    let reason = format!("\r\nX-Outboard-Reason: {reason}\r\n");
    assert!(transcript.contains(&reason), "{stream:?}\n{transcript}");
    assert!(transcript.contains("\r\nConnection: close\r\n"), "{stream:?}\n{transcript}");
    let answers = transcript.lines().filter(|line| line.starts_with("HTTP/1.1 "));
    assert_eq!(answers.count(), 1, "{stream:?}\n{transcript}");
    assert!(!transcript.contains("smuggled"), "{stream:?}\n{transcript}");
}

#[track_caller]
fn is_bad(stream: &str) {
    is_refused(stream, "400 Bad Request", "bad_request");
}

/// A POST with these fields, and chunks that end at once.
fn chunked(fields: &str) -> String {
    format!("POST /echo.php HTTP/1.1\r\nHost: a\r\n{fields}\r\n0\r\n\r\n")
}

#[test]
fn length_and_transfer_encoding_together_are_refused() {
    is_bad(&chunked("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"));
    is_bad(&chunked("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"));
    is_bad(&chunked("content-length: 5\r\nTRANSFER-ENCODING: Chunked\r\n"));
}

#[test]
fn disguised_transfer_encodings_are_refused() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding : chunked\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
    ] {
        is_bad(&chunked(fields));
    }
}

#[test]
fn transfer_codings_that_are_not_known_are_501() {
    let stream = chunked("Transfer-Encoding: gzip, chunked\r\n");
    is_refused(&stream, "501 Not Implemented", "not_implemented");
}

#[test]
fn transfer_encoding_in_http_1_0_is_refused() {
    is_bad("POST /echo.php HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

#[test]
fn doubtful_lengths_are_refused() {
    for length in [
        "Content-Length: 0\r\nContent-Length: 43\r\n",
        "Content-Length: 43\r\nContent-Length: 43\r\n",
        "Content-Length: 0, 43\r\n",
        "Content-Length: +43\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 4 3\r\n",
        "Content-Length: 0x2b\r\n",
        "Content-Length: 18446744073709551659\r\n",
        "Content-Length:\r\n",
        "Content-Length: five\r\n",
    ] {
        is_bad(&format!("POST /echo.php HTTP/1.1\r\nHost: a\r\n{length}\r\n"));
    }
}

#[test]
fn doubtful_chunks_are_refused() {
    for body in [
        "0\n\n",
        "0 \r\n\r\n",
        "0x0\r\n\r\n",
        "-1\r\nx\r\n0\r\n\r\n",
        "+1\r\nx\r\n0\r\n\r\n",
        "g\r\n\r\n",
        "\r\n\r\n",
        "10000000000000000\r\n\r\n",
        "2\r\nabc\r\n0\r\n\r\n",
        "2\r\nab\n0\r\n\r\n",
        "2;\nab\r\n0\r\n\r\n",
        "0\r\nContent-Length: 43\r\n\r\n",
        "0\r\nX: y\r\n folded\r\n\r\n",
    ] {
        let head = "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        is_refused(&[head, body].concat(), "400 Bad Request", "bad_chunk");
    }
}

#[test]
fn folded_lines_are_refused() {
    is_bad("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\n Host: a\r\n\r\n");
}

#[test]
fn bare_line_ends_are_refused() {
    is_bad("GET / HTTP/1.1\nHost: a\n\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n");
}

#[test]
fn malformed_fields_are_refused() {
    for field in [
        "X : y",
        "X\t: y",
        ": y",
        "no colon",
        "X Y: z",
        "X\0: y",
        "X: \0",
        "X: a\x01b",
        "X: \x7f",
        "X(Y): z",
        "X\u{e9}: y",
    ] {
        is_bad(&format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"));
    }
}

#[test]
fn a_request_has_one_host() {
    is_bad("GET / HTTP/1.1\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n");
    is_bad("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n");
}

#[test]
fn malformed_request_lines_are_refused() {
    for line in [
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / extra HTTP/1.1",
        " GET / HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.1x",
        "GET / HTTP/11",
        "GET /\0 HTTP/1.1",
        "GET /\x7f HTTP/1.1",
        "GET /#fragment HTTP/1.1",
        "GET index.php HTTP/1.1",
        "GET * HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "GET http://user@a/ HTTP/1.1",
    ] {
        is_bad(&format!("{line}\r\nHost: a\r\n\r\n"));
    }
}

#[test]
fn other_versions_are_not_spoken() {
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/3.0"] {
        let stream = format!("GET / {version}\r\nHost: a\r\n\r\n");
        is_refused(&stream, "505 HTTP Version Not Supported", "version_not_supported");
    }
}

#[test]
fn tls_to_the_plain_port_is_refused_and_not_waited_for() {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random\r\n\r\n";
    let transcript = site().exchange(hello);
    assert!(transcript.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{transcript}");
}

#[test]
fn a_request_within_a_body_stays_there() {
    let transcript = site().exchange(format!(
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{SMUGGLED}",
        SMUGGLED.len()
    ));
    let body = format!("POST /echo.php HTTP/1.1\n{SMUGGLED}");
    assert_eq!(transcript, plain_and_close(&body));
}

#[test]
fn a_body_that_php_does_not_read_is_not_a_request() {
    for target in ["/file.txt", "/missing.txt", "/.hidden"] {
        let transcript = site().exchange(format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{SMUGGLED}{SMUGGLED}",
            SMUGGLED.len()
        ));
        let answers = transcript.lines().filter(|line| line.starts_with("HTTP/1.1 "));
        assert_eq!(answers.count(), 1, "{transcript}");
        assert!(!transcript.contains("smuggled"), "{transcript}");
    }
}
