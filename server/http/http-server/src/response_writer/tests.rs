//! Heads, framings and files on a connection in memory.

use super::*;
use crate::connection::Connection;
use crate::testing::{connect, connection_pair, context, limits, read_all};
use outboard_config::Limits;
use outboard_http1::Method;
use outboard_reactor::run;
use std::os::fd::AsFd;

const GET: RequestFacts =
    RequestFacts { method: Method::Get, version: Version::Http11, keep_alive: true };

/// Without its Date line, which differs.
fn without_date(response: &str) -> String {
    response.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect()
}

#[test]
fn each_response_has_one_framing() {
    let head = RequestFacts { method: Method::Head, ..GET };
    let old = RequestFacts { version: Version::Http10, ..GET };
    for (request, status, length, expected) in [
        (GET, 200, Some(5), Framing::Length(5)),
        (GET, 200, None, Framing::Chunked),
        (old, 200, None, Framing::UntilClose),
        (old, 200, Some(5), Framing::Length(5)),
        (head, 200, Some(5), Framing::Bodyless(Some(5))),
        (head, 200, None, Framing::Bodyless(None)),
        (GET, 204, Some(0), Framing::Bodyless(None)),
        (GET, 304, Some(5), Framing::Bodyless(Some(5))),
    ] {
        assert_eq!(request.framing(status, length), expected, "{status} {length:?}");
    }
    assert_eq!(GET.framing_of_whole(304, 5), Framing::Bodyless(None), "RFC 9110 15.4.5");
}

#[test]
fn a_response_is_complete_in_one_piece() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        let mut headers = HeaderBlock::default();
        headers.add(b"X-Own", b"1").unwrap();
        let written = response.respond(200, &headers, b"hello").await;
        assert_eq!(written, Written::Complete { keep_alive: true });
        assert_eq!(
            without_date(&read_all(&client)),
            "HTTP/1.1 200 OK\r\nServer: outboard\r\nX-Own: 1\r\nContent-Length: 5\r\n\r\nhello"
        );
    })
    .unwrap();
}

#[test]
fn a_response_to_head_has_the_length_and_no_body() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        let request = RequestFacts { method: Method::Head, ..GET };
        response.request = request;
        response.respond(200, &HeaderBlock::default(), b"hello").await;
        let text = read_all(&client);
        assert!(text.contains("Content-Length: 5\r\n") && text.ends_with("\r\n\r\n"));
    })
    .unwrap();
}

#[test]
fn the_connection_header_depends_on_the_version() {
    for (version, keep_alive, expected) in [
        (Version::Http11, true, None),
        (Version::Http11, false, Some("Connection: close\r\n")),
        (Version::Http10, true, Some("Connection: keep-alive\r\n")),
        (Version::Http10, false, Some("Connection: close\r\n")),
    ] {
        run(async move {
            let (Connection { mut response, .. }, client) = connection_pair();
            response.request = GET;
            let request = RequestFacts { version, keep_alive, ..GET };
            response.request = request;
            response.respond(200, &HeaderBlock::default(), b"").await;
            let text = read_all(&client);
            match expected {
                Some(line) => assert!(text.contains(line), "{text}"),
                None => assert!(!text.contains("Connection:"), "{text}"),
            }
        })
        .unwrap();
    }
}

#[test]
fn an_invalid_reason_phrase_is_replaced() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        for (reason, expected) in
            [(&b"Fine"[..], "HTTP/1.1 200 Fine\r\n"), (b"Split\r\nX: y", "HTTP/1.1 200 OK\r\n")]
        {
            let facts = HeadFacts { reason, ..GET.head(200, Framing::Length(0)) };
            response.put_head(facts, b"");
            assert!(response.flush(b"").await);
            assert!(read_all(&client).starts_with(expected), "{reason:?}");
            response.output.clear();
        }
    })
    .unwrap();
}

#[test]
fn own_lines_replace_those_of_the_server() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        let facts =
            HeadFacts { own_date: true, own_server: true, ..GET.head(200, Framing::Length(0)) };
        response.put_head(facts, b"Server: php\r\n");
        assert!(response.flush(b"").await);
        let text = read_all(&client);
        assert_eq!(text.matches("Server:").count(), 1);
        assert!(!text.contains("Date:"));
    })
    .unwrap();
}

#[test]
fn a_file_that_became_shorter_breaks_the_response() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        let file = std::fs::File::open("/proc/self/comm").unwrap();
        assert!(!response.send_file(file.as_fd(), 0, 1 << 20).await);
        assert!(!read_all(&client).is_empty(), "what there is was sent");
        assert_eq!(response.take_lost(), None, "the client is not at fault");
    })
    .unwrap();
}

#[test]
fn a_client_that_is_gone_is_noticed_once() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        drop(client);
        let written = response.respond(200, &HeaderBlock::default(), b"hello").await;
        assert_eq!(written, Written::Broken);
        assert_eq!(response.take_lost(), Some(Reason::ClientGone));
        assert_eq!(response.take_lost(), None);
    })
    .unwrap();
}

#[test]
fn a_client_that_reads_nothing_is_dropped() {
    run(async {
        let context = context(Limits { write_timeout_ms: 20, ..limits() });
        let (Connection { mut response, .. }, _client) = connect(&context);
        response.request = GET;
        let body = vec![b'x'; 2 << 20];
        let written = response.respond(200, &HeaderBlock::default(), &body).await;
        assert_eq!(written, Written::Broken);
        assert_eq!(response.take_lost(), Some(Reason::WriteTimeout));
    })
    .unwrap();
}

#[test]
fn an_upgraded_connection_passes_to_its_handler() {
    run(async {
        let (Connection { mut response, .. }, client) = connection_pair();
        response.request = GET;
        let mut headers = HeaderBlock::default();
        headers.add(b"Upgrade", b"echo").unwrap();
        let handler: UpgradeHandler = Box::new(|_| Box::pin(async {}));
        let written = response.upgrade(&headers, handler).await;
        assert_eq!(written, Written::Upgraded);
        let text = read_all(&client);
        assert!(response.into_upgrade_handler().is_some());
        assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
        assert!(!text.contains("Content-Length"), "{text}");
    })
    .unwrap();
}
