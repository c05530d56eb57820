//! Bodies in both directions: chunks, trailers, `Expect`, streaming, and answers without a body.

use crate::{plain, plain_and_close, site};
use outboard_e2e::{Fifo, Protocol};

#[test]
fn chunks_with_extensions_and_trailers_reach_php_as_one_body() {
    let transcript = site().exchange(
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\
         Connection: close\r\n\r\n\
         5;name=value\r\nhello\r\n7;quoted=\"a;b\"\r\n, world\r\n00\r\nX-Sum: 42\r\nX-More: y\r\n\r\n",
    );
    assert_eq!(transcript, plain_and_close("POST /echo.php HTTP/1.1\nhello, world"));
}

#[test]
fn trailers_do_not_become_headers() {
    let transcript = site().exchange(
        "POST /server.php?names=HTTP_X_ROLE,CONTENT_LENGTH,HTTP_TRANSFER_ENCODING HTTP/1.1\r\n\
         Host: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
         2\r\nhi\r\n0\r\nX-Role: admin\r\n\r\n",
    );
    assert!(transcript.contains("HTTP_X_ROLE=(none)\n"), "{transcript}");
    assert!(transcript.contains("CONTENT_LENGTH=2\n"), "{transcript}");
}

#[test]
fn a_body_beyond_the_memory_for_it_arrives_whole() {
    let body: Vec<u8> = (0..900_000_u32).map(|number| (number % 251) as u8).collect();
    let head = format!(
        "POST /digest.php HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let by_length = site().exchange([head.as_bytes(), &body].concat());
    let mut chunked = b"POST /digest.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                        Connection: close\r\n\r\n"
        .to_vec();
    for piece in body.chunks(70_001) {
        chunked.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let by_chunks = site().exchange(&chunked);
    assert!(by_length.contains("\r\n\r\n900000 "), "{by_length}");
    assert_eq!(by_length, by_chunks);
}

#[test]
fn expect_100_continue_is_answered_before_the_body_is_sent() {
    let mut wire = site().wire();
    wire.send(
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(wire.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.send("hello");
    wire.expect_undated(&plain("POST /echo.php HTTP/1.1\nhello"));
}

#[test]
fn a_body_that_comes_uninvited_needs_no_100_continue() {
    let mut wire = site().wire();
    wire.send(
        "POST /echo.php HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n\
         hello",
    );
    wire.expect_undated(&plain("POST /echo.php HTTP/1.1\nhello"));
}

#[test]
fn a_client_that_would_be_refused_is_not_invited() {
    for (target, length, status) in [
        ("/echo.php", 1 << 30, "413 Content Too Large"),
        ("/missing.txt", 5, "404 Not Found"),
        ("/file.txt", 5, "405 Method Not Allowed"),
    ] {
        let transcript = site().exchange(format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\
             Expect: 100-continue\r\n\r\n"
        ));
        assert!(transcript.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{transcript}");
        let closes = transcript.contains("\r\nConnection: close\r\n");
        assert_eq!(closes, Protocol::of_run() == Protocol::Http1, "{transcript}");
    }
}

#[test]
fn a_client_of_http_1_0_gets_no_100_continue() {
    let mut wire = site().wire();
    wire.send("POST /echo.php HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    wire.send("hello");
    assert_eq!(wire.to_end(), plain_and_close("POST /echo.php HTTP/1.0\nhello"));
}

/// Closing at once would make the kernel send a reset, which destroys the answer on its way.
#[test]
fn a_response_survives_an_unread_body() {
    for _ in 0..5 {
        for target in ["/file.txt", "/missing.txt"] {
            let mut wire = site().wire();
            let length = 700_000;
            wire.send(format!(
                "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
            ));
            wire.send(vec![b'x'; length]);
            wire.finish_sending();
            let transcript = wire.to_end();
            assert!(transcript.contains("\r\nX-Outboard-Reason: "), "{transcript}");
            assert!(transcript.ends_with("\n"), "{transcript}");
        }
    }
}

#[test]
fn flushed_output_is_sent_at_once_as_a_chunk() {
    let mut gate = Fifo::at(site().docroot().beside().path().join("chunked-gate"));
    let mut wire = site().wire();
    wire.send(format!(
        "GET /stream.php?gate={} HTTP/1.1\r\nHost: a\r\n\r\n",
        gate.path().display()
    ));
    let head = "HTTP/1.1 200 OK\r\nServer: outboard\r\n\
                Content-type: text/plain;charset=UTF-8\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(wire.head(), Protocol::of_run().lines(head));
    wire.expect("6\r\nfirst\n\r\n");
    gate.open();
    // How the rest is cut is the server's choice; that it ends is not.
    let mut rest = String::new();
    while !rest.ends_with("0\r\n\r\n") {
        rest.push_str(&String::from_utf8_lossy(&wire.exactly(1)));
    }
    let content: String = rest.split("\r\n").filter(|line| line.ends_with('\n')).collect();
    assert_eq!(content, "second\nthird\n", "{rest:?}");
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.expect_undated(&plain("Hello, world\n"));
}

#[test]
fn flushed_output_to_http_1_0_ends_with_the_connection() {
    let mut gate = Fifo::at(site().docroot().beside().path().join("closing-gate"));
    let mut wire = site().wire();
    wire.send(format!(
        "GET /stream.php?gate={} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        gate.path().display()
    ));
    assert_eq!(
        wire.head(),
        "HTTP/1.1 200 OK\r\nServer: outboard\r\nContent-type: text/plain;charset=UTF-8\r\n\
         Connection: close\r\n\r\n"
    );
    wire.expect("first\n");
    gate.open();
    assert_eq!(wire.to_end(), "second\nthird\n");
}

#[test]
fn answers_that_have_no_body_have_none() {
    for (code, status) in [(204, "204 No Content"), (304, "304 Not Modified")] {
        let mut wire = site().wire();
        wire.send(format!("GET /status.php?code={code} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let head = wire.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
        assert!(!head.contains("Transfer-Encoding"), "{head}");
        assert!(!head.contains("Content-Length"), "{head}");
        // The connection is where the client believes it to be.
        wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
        wire.expect_undated(&plain("Hello, world\n"));
    }
}
