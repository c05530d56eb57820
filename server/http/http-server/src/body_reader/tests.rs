//! Bodies on a connection in memory: framings, limits, and bytes that are not the body's.

use super::*;
use crate::connection::{Connection, Next};
use crate::testing::{connect, context, limits};
use crate::transport::pipe::Pipe;
use outboard_reactor::run;
use std::io::IoSlice;
use std::rc::Rc;

fn send(client: &Pipe, bytes: &str) {
    let written = client.try_write(&[IoSlice::new(bytes.as_bytes())]).unwrap();
    assert_eq!(written, Some(bytes.len()));
}

/// A connection whose head was read, with these headers and the beginning of a body.
async fn request(limits: &Limits, headers: &str, body: &str) -> (Connection, Pipe) {
    let (mut connection, client) = connect(&context(limits.clone()));
    send(&client, &format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}"));
    assert!(matches!(connection.next_head().await, Next::Request));
    (connection, client)
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

#[test]
fn a_request_without_a_body_differs_from_an_empty_body() {
    run(async {
        let limits = limits();
        let (mut connection, _client) = request(&limits, "", "").await;
        assert_eq!(
            body(&connection.request, &mut connection.response, &limits)
                .await
                .unwrap()
                .content_length,
            None
        );
        let (mut connection, _client) = request(&limits, "Content-Length: 0\r\n", "").await;
        assert_eq!(
            body(&connection.request, &mut connection.response, &limits)
                .await
                .unwrap()
                .content_length,
            Some(0)
        );
    })
    .unwrap();
}

#[test]
fn a_body_may_arrive_in_pieces() {
    run(async {
        let limits = limits();
        for (headers, pieces) in [
            ("Content-Length: 9\r\n", ["one, ", "two", "!"]),
            (CHUNKED, ["5\r\none, \r\n3\r", "\ntwo\r\n1\r\n!", "\r\n0\r\n\r\n"]),
        ] {
            let (mut connection, client) = request(&limits, headers, pieces[0]).await;
            outboard_reactor::spawn(async move {
                for piece in &pieces[1..] {
                    outboard_reactor::yield_now().await;
                    send(&client, piece);
                }
                outboard_reactor::sleep(10_000).await;
                drop(client);
            });
            let (bytes, held) =
                in_memory(&connection.request, &mut connection.response, &limits).await.unwrap();
            assert_eq!((&bytes[..], held.bytes()), (&b"one, two!"[..], 9), "{headers}");
            assert!(!connection.client.has_unread_body.get());
        }
    })
    .unwrap();
}

#[test]
fn bytes_of_the_next_request_stay_in_the_input() {
    run(async {
        let limits = limits();
        for (headers, body) in
            [("Content-Length: 3\r\n", "one"), (CHUNKED, "3\r\none\r\n0\r\nX-Sum: 1\r\n\r\n")]
        {
            let (mut connection, _client) =
                request(&limits, headers, &format!("{body}GET /next")).await;
            let (bytes, _) =
                in_memory(&connection.request, &mut connection.response, &limits).await.unwrap();
            assert_eq!(bytes, b"one");
            connection.request.forget();
            assert_eq!(connection.request.buffers_mut().input, b"GET /next", "{headers}");
        }
    })
    .unwrap();
}

#[test]
fn an_invalid_or_incomplete_body_is_refused() {
    run(async {
        let limits = Limits { body_timeout_ms: 20, ..limits() };
        for (headers, bytes, is_closed, expected) in [
            (CHUNKED, "x\r\n", false, Reason::BadChunk),
            (CHUNKED, "3\r\nonetwo", false, Reason::BadChunk),
            (CHUNKED, "3\r\non", true, Reason::BodyCut),
            ("Content-Length: 9\r\n", "one", true, Reason::BodyCut),
            ("Content-Length: 9\r\n", "one", false, Reason::BodyTimeout),
        ] {
            let (mut connection, client) = request(&limits, headers, bytes).await;
            let client = (!is_closed).then_some(client);
            let refused = body(&connection.request, &mut connection.response, &limits).await.err();
            assert_eq!(refused, Some(expected), "{headers}{bytes}");
            drop(client);
        }
    })
    .unwrap();
}

#[test]
fn a_body_beyond_the_limit_is_refused_at_its_first_byte_too_many() {
    run(async {
        let limits = Limits { body_bytes: 5, ..limits() };
        for (headers, bytes) in
            [("Content-Length: 6\r\n", ""), (CHUNKED, "6\r\n"), (CHUNKED, "3\r\none\r\n3\r\n")]
        {
            let (mut connection, _client) = request(&limits, headers, bytes).await;
            let refused = body(&connection.request, &mut connection.response, &limits).await.err();
            assert_eq!(refused, Some(Reason::BodyTooLarge), "{headers}{bytes}");
        }
    })
    .unwrap();
}

#[test]
fn a_large_body_is_on_disk_and_a_full_disk_refuses_it() {
    run(async {
        let limits = Limits { body_memory_bytes: 4, ..limits() };
        let headers = "Content-Length: 9\r\n";
        let (mut connection, _client) = request(&limits, headers, "one, two!").await;
        let received = body(&connection.request, &mut connection.response, &limits).await.unwrap();
        assert_eq!((received.body.memory().len(), received.body.length()), (0, 9));
        assert_eq!(connection.client.context.shared.temp_dir.used_bytes(), 9);
        let context = Rc::clone(&connection.client.context);
        context.shared.temp_dir.set_limit(10);
        let (mut second, client) = connect(&context);
        send(&client, &format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\none, two!"));
        assert!(matches!(second.next_head().await, Next::Request));
        assert_eq!(
            body(&second.request, &mut second.response, &limits).await.err(),
            Some(Reason::SpoolFull)
        );
    })
    .unwrap();
}
