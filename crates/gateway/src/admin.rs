//! The admin socket: status, metrics, reload and stop, as plain HTTP over a Unix socket.
//!
//! Called by connections of the admin listener and of the metrics listener. `curl --unix-socket`
//! works as well as `outboard status`. Invariant: only those who may open the socket file reach more
//! than the metrics; the address for a collector may be open to a network.

use crate::answer::{Asked, Sent};
use crate::connection::Connection;
use crate::header_block::HeaderBlock;
use crate::listener::Serves;
use crate::{entities, metrics, opcache, page_cache, status};
use outboard_http1::Method::{Get, Head, Post};
use serde_json::{Value, json};

const JSON: &str = "application/json";

/// Answers one admin request.
pub(crate) async fn answer(connection: &mut Connection) -> Sent {
    let asked = Asked::of(connection);
    let buffers = connection.buffers();
    let path = buffers.head.path(&buffers.input).to_vec();
    let gateway = connection.gateway.clone();
    if connection.listener.serves == Serves::Admin
        && let Some(sent) = entities::operate(connection, asked, &path).await
    {
        return sent;
    }
    let (code, kind, body) = match (asked.method, &path[..]) {
        (Get | Head, b"/metrics") => (200, metrics::CONTENT_TYPE, metrics::of(&gateway)),
        _ if connection.listener.serves == Serves::Metrics => nothing_there(),
        (Get | Head, b"/status") => {
            (200, JSON, serde_json::to_vec(&status::of(&gateway)).unwrap_or_default())
        }
        (Get | Head, b"/opcache") => (200, JSON, json_body(&opcache::status(&gateway).await)),
        (Post, b"/cache/audit") => {
            let buffers = connection.buffers();
            let query = buffers.head.query(&buffers.input).unwrap_or_default().to_vec();
            let (code, value) = page_cache::audit(&gateway, &query).await;
            (code, JSON, json_body(&value))
        }
        (Get | Post, [b'/', b'c', b'a', b'c', b'h', b'e', b'/', verb @ ..]) => {
            let buffers = connection.buffers();
            let query = buffers.head.query(&buffers.input).unwrap_or_default().to_vec();
            let is_post = asked.method == Post;
            let (code, value) = page_cache::operate(&gateway, is_post, verb, &query).await;
            (code, JSON, json_body(&value))
        }
        (Post, b"/reload") => match gateway.wishes.reload_and_hear().await {
            Ok(generation) => (200, JSON, json_body(&json!({"generation": generation}))),
            Err(why) => (409, JSON, json_body(&json!({"error": why}))),
        },
        (Post, b"/stop") => {
            gateway.wishes.stop.set();
            (202, JSON, json_body(&json!({"stopping": true})))
        }
        _ => nothing_there(),
    };
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", kind.as_bytes()).expect("a constant header");
    connection.respond(asked, code, &headers, &body).await
}

fn nothing_there() -> (u16, &'static str, Vec<u8>) {
    (404, JSON, json_body(&json!({"error": "no such admin resource"})))
}

fn json_body(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
