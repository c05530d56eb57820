//! A connection over an in-memory pipe, with a service that echoes.

use crate::listener_context::{ListenerContext, Role};
use crate::test_client::TestClient;
use crate::testing::{Echo, context, limits};
use outboard_config::Limits;
use outboard_reactor::{Peer, run, yield_now};
use std::rc::Rc;

fn connect(limits: Limits) -> (TestClient, Rc<Echo>) {
    let service = Rc::new(Echo { context: context(limits) });
    let client = TestClient::connect(&service, ListenerContext::plain(Role::Apps), Peer::Unix);
    (client, service)
}

/// The bodies of a sequence of responses.
fn bodies(responses: &str) -> Vec<&str> {
    let heads = responses.split("HTTP/1.1 ").skip(1);
    heads.map(|response| response.split_once("\r\n\r\n").unwrap().1).collect()
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async {
        let (client, _service) = connect(limits());
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3");
        assert_eq!(bodies(&client.receive().await), ["/1", "/2"]);
        client.send(" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let last = client.receive_to_end().await;
        assert_eq!(bodies(&last), ["/3"]);
        assert!(last.contains("Connection: close\r\n"));
    })
    .unwrap();
}

#[test]
fn a_head_may_arrive_byte_by_byte() {
    run(async {
        let (client, _service) = connect(limits());
        for byte in "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n".chars() {
            client.send(byte.to_string());
            yield_now().await;
        }
        assert_eq!(bodies(&client.receive().await), ["/slow"]);
    })
    .unwrap();
}

#[test]
fn an_invalid_head_is_refused_and_the_connection_closed() {
    run(async {
        for (head, detail) in [
            ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400"),
            ("GET / HTTP/3.7\r\nHost: a\r\n\r\n", "HTTP/1.1 505"),
        ] {
            let (client, _service) = connect(limits());
            client.send(head);
            let refusal = client.receive().await;
            assert!(refusal.starts_with(detail), "{head:?}: {refusal}");
            assert!(refusal.contains("Connection: close\r\n"), "{refusal}");
        }
    })
    .unwrap();
}

#[test]
fn an_incomplete_head_times_out_with_408() {
    run(async {
        let (client, _service) = connect(Limits { header_timeout_ms: 30, ..limits() });
        client.send("GET / HTTP/1.1\r\n");
        let refusal = client.receive_to_end().await;
        assert!(refusal.starts_with("HTTP/1.1 408"), "{refusal}");
    })
    .unwrap();
}

#[test]
fn an_idle_connection_closes_without_a_response() {
    run(async {
        let (client, _service) = connect(Limits { idle_timeout_ms: 30, ..limits() });
        assert_eq!(client.receive_to_end().await, "");
    })
    .unwrap();
}

#[test]
fn an_unread_body_closes_the_connection() {
    run(async {
        let (client, _service) = connect(limits());
        client.send("POST /ignored HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart");
        let response = client.receive().await;
        assert_eq!(bodies(&response), ["/ignored"]);
        assert!(response.contains("Connection: close\r\n"), "{response}");
    })
    .unwrap();
}

#[test]
fn a_body_that_was_read_keeps_the_connection() {
    run(async {
        let (client, _service) = connect(limits());
        client.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nfour");
        client.send("POST /body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(bodies(&client.receive().await), ["four"]);
        client.send("3\r\ntwo\r\n1\r\n!\r\n0\r\n\r\n");
        assert_eq!(bodies(&client.receive().await), ["two!"]);
    })
    .unwrap();
}

#[test]
fn a_client_that_expects_100_receives_it_before_its_body() {
    run(async {
        let (client, _service) = connect(limits());
        client.send(
            "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        );
        assert_eq!(client.receive().await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("ok");
        assert_eq!(bodies(&client.receive().await), ["ok"]);
    })
    .unwrap();
}

#[test]
fn a_body_beyond_the_limit_is_refused_before_it_is_read() {
    run(async {
        let (client, _service) = connect(Limits { body_bytes: 3, ..limits() });
        client.send("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
        assert_eq!(bodies(&client.receive().await), ["body_too_large"]);
    })
    .unwrap();
}

#[test]
fn a_drained_server_closes_idle_connections() {
    run(async {
        let (client, service) = connect(limits());
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(bodies(&client.receive().await), ["/1"]);
        assert!(!client.has_ended());
        service.context.drain();
        assert_eq!(client.receive_to_end().await, "");
    })
    .unwrap();
}

#[test]
fn the_number_of_requests_of_a_connection_is_limited() {
    run(async {
        let (client, _service) = connect(Limits { keepalive_requests: Some(2), ..limits() });
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
        let responses = client.receive_to_end().await;
        assert_eq!(bodies(&responses).len(), 2, "{responses}");
    })
    .unwrap();
}

#[test]
fn a_broken_response_ends_the_connection() {
    run(async {
        let (client, service) = connect(limits());
        client.send("GET /broken HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.receive_to_end().await, "");
        assert_eq!(service.context.shared.open_connections(), 0);
    })
    .unwrap();
}
