//! Buffers, pipelined input and departures on a connection in memory.

use super::*;
use crate::testing::{connect, connection_pair, context, limits};
use crate::transport::pipe::Pipe;
use outboard_config::Limits;
use outboard_reactor::{run, spawn};
use std::future::{pending, ready};
use std::io::IoSlice;
use std::pin::pin;
use std::task::Poll;

fn send(client: &Pipe, bytes: &str) {
    let written = client.try_write(&[IoSlice::new(bytes.as_bytes())]).unwrap();
    assert_eq!(written, Some(bytes.len()));
}

/// Whether a connection that waits for a head has one, or is to close.
async fn has_next(connection: &mut Connection) -> bool {
    let mut next = pin!(connection.next_head());
    poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready())).await
}

#[test]
fn an_idle_connection_holds_no_buffers() {
    run(async {
        let (mut connection, client) = connection_pair();
        assert!(!has_next(&mut connection).await);
        assert!(connection.request.buffers.is_none());
        send(&client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(matches!(connection.next_head().await, Next::Request));
        assert!(connection.request.buffers.is_some());
        connection.request.forget();
        assert!(!has_next(&mut connection).await);
        assert!(connection.request.buffers.is_none());
    })
    .unwrap();
}

#[test]
fn bytes_of_the_next_request_remain() {
    run(async {
        let (mut connection, client) = connection_pair();
        let heads = ["GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"];
        send(&client, &heads.concat());
        for head in heads {
            assert!(matches!(connection.next_head().await, Next::Request));
            assert_eq!(connection.request.head_len, head.len());
            assert!(connection.request.buffers_mut().input.starts_with(head.as_bytes()));
            connection.request.forget();
        }
        assert!(connection.request.buffers_mut().input.is_empty());
    })
    .unwrap();
}

#[test]
fn only_a_body_that_was_not_read_counts_as_unread() {
    run(async {
        for (lines, expected) in [
            ("", false),
            ("Content-Length: 0\r\n", false),
            ("Content-Length: 1\r\n", true),
            ("Transfer-Encoding: chunked\r\n", true),
        ] {
            let (mut connection, client) = connection_pair();
            send(&client, &format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
            assert!(matches!(connection.next_head().await, Next::Request));
            assert_eq!(connection.client.has_unread_body.get(), expected, "{lines}");
        }
    })
    .unwrap();
}

#[test]
fn a_read_ends_with_bytes_the_end_or_the_time() {
    run(async {
        let (mut connection, client) = connection_pair();
        assert_eq!(connection.discard_within(5).await, None);
        send(&client, "a");
        assert_eq!(connection.discard_within(60_000).await, Some(1));
        assert_eq!(connection.request.buffers_mut().input, b"a");
        client.end();
        assert_eq!(connection.discard_within(60_000).await, None);
    })
    .unwrap();
}

#[test]
fn a_connection_that_must_close_waits_for_nothing() {
    run(async {
        let context = context(Limits { max_connections: 1, ..limits() });
        let (mut first, _first_client) = connect(&context);
        assert!(!has_next(&mut first).await);
        let (_second, _second_client) = connect(&context);
        assert!(matches!(first.next_head().await, Next::Close));
    })
    .unwrap();
}

#[test]
fn an_interim_response_is_written_at_once() {
    run(async {
        let (mut connection, client) = connection_pair();
        assert!(connection.response.write_interim(103, b"Link: </a.css>\r\n").await);
        let expected = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
        assert_eq!(crate::testing::read_all(&client), expected);
        drop(client);
        assert!(!connection.response.write_interim(103, b"Link: </a.css>\r\n").await);
    })
    .unwrap();
}

#[test]
fn a_stopping_server_still_serves_requests_that_have_arrived() {
    run(async {
        let context = context(limits());
        let (mut idle, _idle_client) = connect(&context);
        let (mut other, client) = connect(&context);
        send(&client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        context.drain();
        assert!(matches!(other.next_head().await, Next::Request));
        assert!(!other.may_continue());
        assert!(matches!(idle.next_head().await, Next::Close));
    })
    .unwrap();
}

/// The client may have sent a request before it learns of the end.
#[test]
fn after_an_upgrade_an_idle_connection_waits_for_one_more_request() {
    run(async {
        let context = context(limits());
        let (mut idle, _idle_client) = connect(&context);
        let (mut other, client) = connect(&context);
        context.leave();
        let mut next = Box::pin(other.next_head());
        assert!(
            std::future::poll_fn(|task| Poll::Ready(next.as_mut().poll(task).is_pending())).await
        );
        send(&client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(matches!(next.await, Next::Request));
        assert!(!other.may_continue(), "its response announces the end");
        context.close_idle();
        assert!(matches!(idle.next_head().await, Next::Close));
        assert!(context.is_draining() && !context.ends_tunnels());
    })
    .unwrap();
}

#[test]
fn a_client_that_leaves_ends_what_is_done_for_it() {
    run(async {
        let (connection, client) = connection_pair();
        assert_eq!(connection.client.unless_gone(ready(7)).await, Ok(7));
        spawn(async move { drop(client) });
        let ended = connection.client.unless_gone(pending::<()>()).await;
        assert_eq!(ended, Err(Reason::ClientGone));
    })
    .unwrap();
}
